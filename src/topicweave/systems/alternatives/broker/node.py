"""A star: every node attaches to a broker, which passes events on to those who want them.

Rules kept
----------
1. The broker is the node with the lowest identifier that one's view has named. All views that know the same
   choose the same one, without a vote; when it falls silent, the next lowest takes its place.
2. Views may differ for a while. So whoever is asked to be a broker is one, and attaches in turn to the lowest
   node that *it* knows, asking for all that its clients want. Everybody attaches to somebody lower than
   itself: there is no circle, and whatever the views are, brokers form a tree over which events reach
   everybody that is connected at all. A broker tells its clients who its own is, and they attach to that
   one. A client that leaves a broker for a lower one says for whom, and the broker attaches to that one, too.
   So trees become one star, though few views name its root.
3. An event goes up to the root, and down to whoever asked for its topic. Nothing is sent twice, and nothing
   that is lost is repaired, as with a broker at quality of service 0.
4. A client that changes brokers attaches to the new one before it leaves the old one.
5. A broker names its lowest client as its heir. When it fails, the others attach to the heir at once, and to
   a lower node afterwards, if they know one: many of those that views name may have failed, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from topicweave.blocks.failure_detector import FailureDetector
from topicweave.blocks.interest_node import ViewNode
from topicweave.blocks.seen import SeenEvents
from topicweave.blocks.views import InterestView
from topicweave.model.event import Event
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import Link, Receivers, TimerKey, Timers, World
from topicweave.systems.alternatives.broker.messages import (
    Attach,
    Attached,
    Closed,
    Detach,
    Downwards,
    KeepAlive,
    Upwards,
)
from topicweave.systems.alternatives.broker.parameters import BrokerParameters

LOOK_AGAIN = 5.0
ASKED_FOR = 2.0
"""Times `keep_alive` for which one without a broker waits for the lowest node's answer before it asks the next:
views name some that are gone.
"""
DOUBT = 20.0
"""Seconds for which a broker's word is not believed that its own broker, which did not answer, would do."""
UNKNOWN = -1
"""The version a broker answers with that knows nothing of a client, as after a restart."""


class Client(msgspec.Struct):
    """What a broker knows of a client."""

    version: int
    interest: Interest


class BrokerNode(ViewNode):
    """A client, and a broker for whoever takes it for one."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        view: InterestView,
        parameters: BrokerParameters,
    ) -> None:
        super().__init__(world, node_id, subscriptions, view)
        self.parameters = parameters
        self.broker: NodeId | None = None
        self.clients: dict[NodeId, Client] = {}
        self._audience: dict[TopicId, dict[NodeId, None]] = {}
        self._candidate: NodeId | None = None
        self._asked_since = 0.0
        self._known_lowest: NodeId | None = None
        self._named: NodeId | None = None  # our broker's broker, as far as we know
        self._heir: NodeId | None = None  # of our broker
        self._lowest_client: NodeId | None = None
        self._doubted: tuple[NodeId, float] | None = None  # one that was named in vain, and until when
        self._seen_version = -1
        self._look_again_at = 0.0
        self._asked: Interest = frozenset()
        self._asked_version = 0
        self._seen = SeenEvents()
        self._waiting: deque[Event] = deque(maxlen=parameters.most_waiting)
        self._detector = FailureDetector(
            world, parameters.keep_alive, parameters.suspect_after, self._show_life, self.peer_lost
        )
        for block in (self._detector, self):
            self.use(block)

    def receivers(self) -> Receivers:
        return {
            Attach: self._receive_attach,
            Attached: self._receive_attached,
            Detach: self._receive_detach,
            Closed: self._receive_closed,
            KeepAlive: self._receive_keep_alive,
            Upwards: self._receive_upwards,
            Downwards: self._receive_downwards,
        }

    def timers(self) -> Timers:
        return {"br-look": self._look}

    # What the node is told.

    def start(self, contacts: Sequence[NodeId]) -> None:
        super().start(contacts)
        self._candidate = self._named = self._heir = self._doubted = None
        self._detector.start()
        self.world.set_timer(("br-look",), self.world.random.uniform(0.0, self.parameters.keep_alive))

    def _spread(self, event: Event) -> int:
        self._seen.first_time(event.id)
        return self._down(event, 0, None) + self._up(event, 0)

    def _reached_nobody(self, topic: TopicId) -> str:
        if self._best() is not None:
            return "no broker yet; the event waits for one"
        return "nobody has asked this broker for the topic"

    def peer_lost(self, peer: NodeId) -> None:
        self._forget_client(peer)
        if peer in (self.broker, self._candidate):
            self._left_broker(peer)
        self._leave_out(peer)
        self._choose()

    def leave(self) -> None:
        if self.broker is not None:
            self.world.send(self.broker, Detach())
        for peer in self.clients:
            self.world.send(peer, Closed())
        self.view.leave()

    def links(self) -> Iterator[Link]:
        if self.broker is not None:
            yield Link(self.broker, "broker")
        for peer in self.clients:
            yield Link(peer, "client")

    def known_peers(self) -> set[NodeId]:
        known = {*self.clients, *self.view.peers(), *self._detector.watched}
        named = (self.broker, self._candidate, self._named, self._heir)
        return known.union(peer for peer in named if peer is not None)

    # Which broker.

    def _lowest(self) -> NodeId | None:
        """The lowest node known that is lower than this one."""
        # The view takes peers in again that could not be reached, without counting that as a change: look now and then.
        if self.view.version != self._seen_version or self.world.now >= self._look_again_at:
            self._seen_version = self.view.version
            self._look_again_at = self.world.now + LOOK_AGAIN
            known = self.view.peer_ids()
            lowest = int(known.min()) if len(known) else self.id
            self._known_lowest = lowest if lowest < self.id else None
        return min((peer for peer in (self._known_lowest, self._named) if peer is not None), default=None)

    def _best(self) -> NodeId | None:
        """Who should be this node's broker now. See rules 1 and 5."""
        return self._heir if self.broker is None and self._heir is not None else self._lowest()

    def _leave_out(self, peer: NodeId) -> None:
        self.view.lost(peer)
        self._seen_version = -1
        if peer == self._heir:
            self._heir = None
        if peer == self._named:
            self._named, self._doubted = None, (peer, self.world.now + DOUBT)

    def _look(self, _key: TimerKey) -> None:
        self.world.set_timer(("br-look",), self.parameters.keep_alive)
        self._choose()

    def _choose(self) -> None:
        """Ask the lowest node to be our broker, if ours is not as low; again, if it has not answered.

        A bounded view forgets nodes that live: our broker counts though the view does not name it.
        """
        lowest = self._best()
        if lowest is None or (self.broker is not None and self.broker <= lowest):
            self._drop_candidate()
            return
        if lowest != self._candidate:
            self._drop_candidate()
            self._candidate, self._asked_since = lowest, self.world.now
            self._detector.watch(lowest)
        elif (
            self.broker is None
            and self.world.now - self._asked_since >= ASKED_FOR * self.parameters.keep_alive
        ):
            self._drop_candidate()
            self._leave_out(lowest)
            self._choose()
            return
        self.world.send(lowest, Attach(self._asked_version, self._wanted()))

    def _drop_candidate(self) -> None:
        if self._candidate is not None:
            self._unwatch(self._candidate)
            self._candidate = None

    def _unwatch(self, peer: NodeId) -> None:
        if peer not in self.clients and peer != self.broker:
            self._detector.unwatch(peer)

    def _receive_attached(self, sender: NodeId, message: Attached) -> None:
        self._detector.heard(sender)
        if sender == self._candidate:
            old, self.broker, self._candidate = self.broker, sender, None
            if old is not None:
                self.world.send(old, Detach(sender))
                self._unwatch(old)
            while self._waiting:
                self.world.send(sender, Upwards(self._waiting.popleft(), 1))
        elif sender == self.broker and message.version != self._asked_version:
            self.world.send(sender, Attach(self._asked_version, self._wanted()))
        if sender == self.broker:
            heir = message.heir
            self._heir = heir if heir is not None and sender < heir < self.id else None
            self._hear_of(message.broker, lower_than=sender)

    def _hear_of(self, named: NodeId | None, lower_than: NodeId) -> None:
        """A broker's broker, or that of one that was a client, which is lower than this, or somebody lies."""
        if named is not None and not 0 <= named < lower_than:
            named = None
        if self._doubted is not None and self._doubted[1] <= self.world.now:
            self._doubted = None
        if self._doubted is not None and self._doubted[0] == named:
            named = None
        if named != self._named:
            self._named = named
            if named is not None:
                self._choose()

    def _receive_closed(self, sender: NodeId, _message: Closed) -> None:
        if sender in (self.broker, self._candidate):
            self._left_broker(sender)
            self._leave_out(sender)
            self._choose()

    def _left_broker(self, peer: NodeId) -> None:
        if peer == self.broker:
            self.broker = None
        if peer == self._candidate:
            self._candidate = None
        self._unwatch(peer)

    # A broker's side.

    def _receive_attach(self, sender: NodeId, message: Attach) -> None:
        if sender <= self.id:
            return  # it would close a circle
        self._unlist(sender)
        self.clients[sender] = Client(message.version, message.interest)
        if self._lowest_client is None or sender < self._lowest_client:
            self._lowest_client = sender
        for topic in sorted(message.interest):
            self._audience.setdefault(topic, {})[sender] = None
        self._detector.watch(sender)
        self._detector.heard(sender)
        self.world.send(sender, self._attached(message.version))
        self._ask_for_what_is_wanted()

    def _attached(self, version: int) -> Attached:
        return Attached(version, self.broker, self._lowest_client)

    def _receive_detach(self, sender: NodeId, message: Detach) -> None:
        if sender in self.clients and message.broker is not None:
            self._hear_of(message.broker, lower_than=self.id if self.broker is None else self.broker)
        self._forget_client(sender)

    def _forget_client(self, peer: NodeId) -> None:
        self._unlist(peer)
        if self.clients.pop(peer, None) is not None:
            if peer == self._lowest_client:
                self._lowest_client = min(self.clients, default=None)
            if peer != self._candidate:
                self._unwatch(peer)
            self._ask_for_what_is_wanted()

    def _unlist(self, peer: NodeId) -> None:
        client = self.clients.get(peer)
        for topic in client.interest if client else ():
            audience = self._audience[topic]
            del audience[peer]
            if not audience:
                del self._audience[topic]

    # What this node wants from its broker.

    def _wanted(self) -> Interest:
        self._asked = frozenset(self.subscriptions).union(self._audience)
        return self._asked

    def _interest_changed(self, before: Interest) -> None:
        super()._interest_changed(before)
        self._ask_for_what_is_wanted()

    def _ask_for_what_is_wanted(self) -> None:
        asked = self._asked
        if self._wanted() != asked:
            self._asked_version += 1
            if self.broker is not None:
                self.world.send(self.broker, Attach(self._asked_version, self._asked))

    # Signs of life.

    def _show_life(self, peers: Iterable[NodeId]) -> None:
        for peer in peers:
            if peer in self.clients:
                self.world.send(peer, self._attached(self.clients[peer].version))
            elif peer == self.broker:
                self.world.send(peer, KeepAlive(self._asked_version))

    def _receive_keep_alive(self, sender: NodeId, message: KeepAlive) -> None:
        self._detector.heard(sender)
        client = self.clients.get(sender)
        if client is None or client.version != message.version:
            self.world.send(sender, self._attached(client.version if client else UNKNOWN))

    # Events.

    def _down(self, event: Event, hops: int, source: NodeId | None) -> int:
        message = Downwards(event, hops + 1)
        audience = [peer for peer in self._audience.get(event.topic, ()) if peer != source]
        for peer in audience:
            self.world.send(peer, message)
        return len(audience)

    def _up(self, event: Event, hops: int) -> int:
        """To the broker; an event waits for one that is known, and not attached to yet."""
        if self.broker is not None:
            self.world.send(self.broker, Upwards(event, hops + 1))
            return 1
        if self._best() is not None:
            self._waiting.append(event)
        return 0

    def _receive_upwards(self, sender: NodeId, message: Upwards) -> None:
        event = message.event
        if not self._seen.first_time(event.id):
            return
        self._hand_over(event)
        self._down(event, message.hops, sender)
        self._up(event, message.hops)

    def _receive_downwards(self, sender: NodeId, message: Downwards) -> None:
        event = message.event
        if self._seen.first_time(event.id):
            self._detector.heard(sender)
            self._hand_over(event)
            self._down(event, message.hops, sender)
