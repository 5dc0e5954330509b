"""A GossipSub node, after libp2p's specification of v1.1.

What is left out: peer scores and what hangs on them (opportunistic grafting, gossip promises), which defend
against peers that misbehave and change nothing among peers that do not.

What the specification leaves to its surroundings:
- Connections. A node connects to subscribers that its view knows of until each of its topics has `d`
  connected ones, as libp2p's discovery does, and closes connections that no topic needs. A connection is kept
  alive by a ping at every heartbeat.
- Islands. Parts of a topic that are complete in themselves never look for each other. Every
  `discovery_interval` a node connects to somebody new, and lets go of somebody it can spare. Where membership
  has a topic directory, every fifth ping carries labels of parts, and two members of different parts that are
  introduced take each other into their meshes, however full these are. They hold each other until there is another
  way (see `other_ways`): a mesh that is cut back keeps such members, `d` of a topic at most.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from topicweave.blocks.broadcast_tree import NOBODY
from topicweave.blocks.failure_detector import FailureDetector
from topicweave.blocks.interest_news import InterestNews
from topicweave.blocks.interest_node import ViewNode
from topicweave.blocks.seen import SeenEvents
from topicweave.blocks.topic_beacons import TopicBeacons
from topicweave.blocks.topic_directory import Parts
from topicweave.blocks.views import InterestView
from topicweave.model.event import Event, EventId
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import Link, Receivers, TimerKey, Timers, World
from topicweave.systems.alternatives.gossipsub import rules
from topicweave.systems.alternatives.gossipsub.message_cache import MessageCache
from topicweave.systems.alternatives.gossipsub.messages import (
    Announced,
    Control,
    Goodbye,
    GossipEvent,
    Greeting,
    Ping,
    Pruned,
    Subscriptions,
    SubscriptionsQuery,
)
from topicweave.systems.alternatives.gossipsub.parameters import GossipSubParameters

NOT_CONNECTED = "no subscriber is connected yet; the event goes to the first that is"
MOST_UNSENT = 64
LABELS_EVERY = 5
"""Pings per one that carries labels."""
INTRODUCED = 3.0
REMEMBERED = 60.0
"""Seconds for which the other end of an introduction may ask to be taken into the mesh, though it is full."""
LET_GO = 10
"""Where membership has a topic directory: by how much longer it is until the next discovery, and that one in
so many connections at most is let go of at a time, if it can be spared. Whoever was dialled while few were
known becomes too many.
"""
LOOK_AGAIN = 5.0
"""Seconds until the view is asked again for subscribers of a topic of which it knew no more."""


class ConnectedPeer(msgspec.Struct):
    """A connected peer."""

    interest: Interest
    outbound: bool
    since: float
    version: int = -1


class Outgoing(msgspec.Struct):
    """What the next `Control` to a peer will say."""

    graft: list[TopicId] = []
    prune: list[Pruned] = []
    ihave: list[Announced] = []
    iwant: list[EventId] = []

    def message(self) -> Control:
        return Control(tuple(self.graft), tuple(self.prune), tuple(self.ihave), tuple(self.iwant))


class GossipSubNode(ViewNode):
    """One node's half of all its meshes."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        view: InterestView,
        parameters: GossipSubParameters,
    ) -> None:
        super().__init__(world, node_id, subscriptions, view)
        self.parameters = parameters
        self.connections: dict[NodeId, ConnectedPeer] = {}
        self.mesh: dict[TopicId, dict[NodeId, None]] = {topic: {} for topic in sorted(self.subscriptions)}
        self._seen = SeenEvents()
        self._cache = MessageCache(
            parameters.history_length, parameters.history_gossip, parameters.gossip_retransmission
        )
        self._dialling: dict[NodeId, float] = {}
        self._fanout: dict[TopicId, float] = {}
        self._backoff: dict[tuple[TopicId, NodeId], float] = {}
        self._requested: dict[EventId, float] = {}
        self._unsent: OrderedDict[EventId, GossipEvent] = OrderedDict()
        self._outgoing: dict[NodeId, Outgoing] = {}
        self._nobody_new: dict[TopicId, tuple[int, float]] = {}
        self._next_discovery = 0.0
        self._detector = FailureDetector(
            world, parameters.heartbeat_interval, parameters.suspect_after, self._ping, self.peer_lost
        )
        self._beacons = TopicBeacons(
            *(world, node_id, self._topics, lambda _topic: None, lambda _peer: None, parameters.beacons),
            told_every=LABELS_EVERY * parameters.heartbeat_interval,
        )
        self._news = InterestNews(
            *(world, self._own_interest, self._interest_of, self._interest_is),
            *(Subscriptions, SubscriptionsQuery()),
        )
        self._tells_parts = view.introduces
        self._pings = 0
        # Members of other parts: until when they are taken into a mesh, though it may be full; and those that are
        # in it for that reason, the oldest first.
        self._introductions: dict[tuple[TopicId, NodeId], float] = {}
        self._held: dict[tuple[TopicId, NodeId], None] = {}
        view.serve(
            Parts(self._beacons.lifetime, self._beacons.leader, self._beacons.leading, self._introduced)
        )
        for block in (self._detector, self._news, self):
            self.use(block)

    def receivers(self) -> Receivers:
        return {
            Greeting: self._receive_hello,
            Subscriptions: self._receive_subscriptions,
            SubscriptionsQuery: self._receive_query,
            Ping: self._receive_ping,
            Goodbye: self._receive_goodbye,
            Control: self._receive_control,
            GossipEvent: self._receive_publish,
        }

    def timers(self) -> Timers:
        return {"gs-heartbeat": self._heartbeat}

    # What the node is told.

    def start(self, contacts: Sequence[NodeId]) -> None:
        super().start(contacts)
        self._dialling.clear()
        self._detector.start()
        interval = self.parameters.heartbeat_interval
        self._next_discovery = self.world.now + self.parameters.discovery_interval
        self.world.set_timer(("gs-heartbeat",), self.world.random.uniform(0.0, interval))

    def _spread(self, event: Event) -> int:
        topic = event.topic
        self._seen.first_time(event.id)
        self._cache.put(event, 0)
        if topic not in self.subscriptions:
            self._fanout[topic] = self.world.now + self.parameters.fanout_ttl
        message = GossipEvent(event, 1)
        flood = self.parameters.flood_publish or topic not in self.mesh
        targets = self._connected(topic) if flood else list(self.mesh[topic])
        for peer in targets:
            self.world.send(peer, message)
        if not targets:
            self._unsent[event.id] = message
            if len(self._unsent) > MOST_UNSENT:
                self._unsent.popitem(last=False)
            self._discover(topic)
        return len(targets)

    def _reached_nobody(self, topic: TopicId) -> str:
        return NOBODY if self._others_wanting(topic) == 0 else NOT_CONNECTED

    def peer_lost(self, peer: NodeId) -> None:
        self._disconnected(peer)
        self.view.lost(peer)

    def leave(self) -> None:
        for peer in self.connections:
            self.world.send(peer, Goodbye())
        self.view.leave()

    def links(self) -> Iterator[Link]:
        in_mesh = set().union(*self.mesh.values())
        for peer in self.connections:
            yield Link(peer, "mesh" if peer in in_mesh else "gossip")

    def known_peers(self) -> set[NodeId]:
        known = set(self.connections).union(
            self._dialling,
            self._outgoing,
            self.view.known_peers(),
            self._detector.watched,
            self._beacons.known_peers(),
            self._news.known_peers(),
            self._beacons.ways.known_peers(),
        )
        pairs = (peer for pairs in (self._backoff, self._introductions, self._held) for _, peer in pairs)
        return known.union(*self.mesh.values(), pairs)

    @property
    def degree(self) -> int:
        return len(self.connections)

    # Subscriptions.

    def _interest_changed(self, before: Interest) -> None:
        super()._interest_changed(before)
        for topic in sorted(self._interest - before):
            self.mesh[topic] = {}
            self._fanout.pop(topic, None)
        dropped = sorted(before - self._interest)
        for topic in dropped:
            for peer in list(self.mesh.pop(topic)):
                self._prune(topic, peer, self.parameters.unsubscribe_backoff)
        self._news.tell(self.connections, before)
        if dropped:
            self._flush()

    def _receive_subscriptions(self, sender: NodeId, message: Subscriptions) -> None:
        if connection := self.connections.get(sender):
            self._detector.heard(sender)
            self._news.heard_all(sender)
            if message.version != connection.version:
                self._interest_is(sender, message.version, message.interest)

    def _interest_of(self, peer: NodeId) -> tuple[int, Interest] | None:
        """What a connected peer wants, and in which version."""
        connection = self.connections.get(peer)
        return None if connection is None else (connection.version, connection.interest)

    def _interest_is(self, peer: NodeId, version: int, interest: Interest) -> None:
        connection = self.connections[peer]
        self._detector.heard(peer)
        connection.version = version
        connection.interest = interest
        self.view.said(peer, interest)
        for topic, members in self.mesh.items():
            if peer in members and topic not in interest:
                del members[peer]
        for event_id in [event_id for event_id in self._unsent if event_id.topic in interest]:
            self.world.send(peer, self._unsent.pop(event_id))

    def _receive_query(self, sender: NodeId, _message: SubscriptionsQuery) -> None:
        if sender in self.connections:
            self._news.tell_all(sender)

    # Connections.

    def _connected(self, topic: TopicId) -> list[NodeId]:
        return [peer for peer, connection in self.connections.items() if topic in connection.interest]

    def _usable(self, topic: TopicId) -> list[NodeId]:
        """Connected subscribers that are in the mesh, or may be asked into it. Who joins together with many finds
        the meshes of all that it meets full, and does not wait until they may be asked again.
        """
        members = self.mesh.get(topic, ())
        return [
            peer for peer in self._connected(topic) if peer in members or (topic, peer) not in self._backoff
        ]

    def _dial(self, peer: NodeId) -> None:
        if peer != self.id and peer not in self.connections and peer not in self._dialling:
            self._dialling[peer] = self.world.now + self.parameters.connect_timeout
            self.world.send(peer, Greeting(*self._own_interest(), answer=False))

    def _receive_hello(self, sender: NodeId, message: Greeting) -> None:
        if sender == self.id:
            return
        if not message.answer:
            self.world.send(sender, Greeting(*self._own_interest(), answer=True))
        elif sender not in self._dialling:
            return
        outbound = self._dialling.pop(sender, None) is not None
        if sender not in self.connections:
            self.connections[sender] = ConnectedPeer(frozenset(), outbound, self.world.now)
            self._detector.watch(sender)
        self._news.heard_all(sender)
        self._interest_is(sender, message.version, message.interest)
        for topic, peer in list(self._introductions):
            if peer == sender:
                self._graft(topic, peer)

    def _receive_goodbye(self, sender: NodeId, _message: Goodbye) -> None:
        self._disconnected(sender)

    def _disconnected(self, peer: NodeId) -> None:
        self._dialling.pop(peer, None)
        if self.connections.pop(peer, None) is not None:
            for pairs in (self._introductions, self._held):
                for pair in [pair for pair in pairs if pair[1] == peer]:
                    del pairs[pair]
            self._detector.unwatch(peer)
            self._news.heard_all(peer)
            self._cache.forget_peer(peer)
            self._outgoing.pop(peer, None)
            for members in self.mesh.values():
                members.pop(peer, None)

    def _ping(self, peers: Iterable[NodeId]) -> None:
        self._pings += 1
        ping = Ping(self._interest_version)
        with_labels = self._tells_parts and self._pings % LABELS_EVERY == 0
        if with_labels:
            self._let_go()
        for peer in peers:
            if with_labels and not self._interest.isdisjoint(interest := self.connections[peer].interest):
                self.world.send(peer, Ping(self._interest_version, self._beacons.tell(interest)))
            else:
                self.world.send(peer, ping)
            self.view.spoke(peer)

    def _introduced(self, topic: TopicId, peer: NodeId, label: NodeId | None) -> None:
        """A topic's home knows of another part of it: take one of its members into the mesh, which links in
        meshes stay in.
        """
        room = len(self._introductions) < MOST_UNSENT or (topic, peer) in self._introductions
        if topic in self.mesh and self._beacons.leader(topic) != label and room:
            self._introductions[topic, peer] = self.world.now + REMEMBERED
            if peer in self.connections:
                self._graft(topic, peer)
            else:
                self._dial(peer)

    def _graft(self, topic: TopicId, peer: NodeId) -> None:
        """Ask somebody who was introduced into the mesh."""
        members = self.mesh.get(topic)
        if members is not None and topic in self.connections[peer].interest:
            if peer not in members:
                members[peer] = None
                self._to(peer).graft.append(topic)
            self._hold(topic, peer)

    def _hold(self, topic: TopicId, peer: NodeId) -> None:
        """Keep a member until there is another way. Whoever introduces nodes may lie: only the latest `d` are kept."""
        self._held[topic, peer] = None
        held = [pair for pair in self._held if pair[0] == topic]
        for pair in held[: max(0, len(held) - self.parameters.d)]:
            del self._held[pair]

    def _let_go(self) -> None:
        """Links that were made by introductions, and that neither end needs, leave the mesh if it has enough others.
        The other end leaves it to this one, which is further from the topic's leader.
        """
        members = self.mesh
        self._held = {(topic, peer): None for topic, peer in self._held if peer in members.get(topic, ())}
        held: dict[NodeId, list[TopicId]] = {}
        for topic, peer in self._held:
            held.setdefault(peer, []).append(topic)
        self._beacons.watch(held)
        for peer, topics in held.items():
            if self._beacons.ways.needless_to_both(peer):
                for topic in topics:
                    if len(members[topic]) > self.parameters.d_low:
                        del members[topic][peer], self._held[topic, peer]
                        self._introductions.pop((topic, peer), None)
                        self._prune(topic, peer, self.parameters.prune_backoff)

    def _receive_ping(self, sender: NodeId, message: Ping) -> None:
        self.view.heard(sender)
        connection = self.connections.get(sender)
        if connection is None:
            # It takes us for connected, and we do not: it has to know.
            self.world.send(sender, Goodbye())
            return
        self._detector.heard(sender)
        if message.labels is not None:
            beside = [topic for topic, _ in self._held if sender not in self.mesh.get(topic, ())]
            self._beacons.hear(connection.interest, message.labels, sender, beside)
        if message.version != connection.version:
            self.world.send(sender, SubscriptionsQuery())

    def _discover(self, topic: TopicId) -> None:
        """Connect to subscribers of a topic until `d` of them are in the mesh or may be asked into it."""
        lacking = self.parameters.d - len(self._usable(topic))
        lacking -= sum(topic in self.view.interest_of(peer) for peer in self._dialling)
        if lacking <= 0:
            return
        version, look_again = self._nobody_new.get(topic, (-1, 0.0))
        if version == self.view.version and self.world.now < look_again:
            return
        strangers = self._strangers(topic)
        if len(strangers) <= lacking:
            self._nobody_new[topic] = (self.view.version, self.world.now + LOOK_AGAIN)
        for peer in rules.sample(strangers, lacking, self.world.random):
            self._dial(peer)

    def _strangers(self, topic: TopicId) -> list[NodeId]:
        known = self.view.subscribers(topic).tolist()
        return [peer for peer in known if peer not in self.connections and peer not in self._dialling]

    def _meet_somebody_new(self) -> None:
        topics = sorted(self.subscriptions)
        if topics:
            strangers = self._strangers(self.world.random.choice(topics))
            for peer in rules.sample(strangers, 1, self.world.random):
                self._dial(peer)
        for _ in range(max(1, len(self.connections) // LET_GO) if self._tells_parts else 1):
            if spare := self._spare_connection():
                self._disconnected(spare)
                self.world.send(spare, Goodbye())

    def _spare_connection(self) -> NodeId | None:
        """The oldest connection outside of all meshes without which every topic still has more than `d`.

        One without a topic in common, and none to publish on, is needed least.
        """
        counts: dict[TopicId, int] = {}
        for connection in self.connections.values():
            for topic in connection.interest & self.subscriptions:
                counts[topic] = counts.get(topic, 0) + 1
        in_mesh = set().union(*self.mesh.values())
        d = self.parameters.d
        for peer, connection in self.connections.items():
            young = self.world.now - connection.since < self.parameters.discovery_interval
            if peer in in_mesh or young or not connection.interest.isdisjoint(self._fanout):
                continue
            if all(counts[topic] > d + 1 for topic in connection.interest & self.subscriptions):
                return peer
        return None

    # The heartbeat.

    def _heartbeat(self, _key: TimerKey) -> None:
        now = self.world.now
        self.world.set_timer(("gs-heartbeat",), self.parameters.heartbeat_interval)
        for peer in [peer for peer, until in self._dialling.items() if until <= now]:
            self.peer_lost(peer)
        for key in [key for key, until in self._backoff.items() if until <= now]:
            del self._backoff[key]
        for pair in [pair for pair, until in self._introductions.items() if until <= now]:
            del self._introductions[pair]
        for event_id in [event_id for event_id, until in self._requested.items() if until <= now]:
            del self._requested[event_id]
        for topic in [topic for topic, until in self._fanout.items() if until <= now]:
            del self._fanout[topic]
        for topic, members in self.mesh.items():
            self._maintain(topic, members)
        for topic in [*self.mesh, *self._fanout]:
            self._discover(topic)
        self._announce()
        self._cache.shift()
        self._flush()
        if now >= self._next_discovery:
            # Where homes introduce parts of topics to each other, chance need not.
            rarely = INTRODUCED if self._tells_parts else 1.0
            self._next_discovery = now + rarely * self.parameters.discovery_interval
            self._meet_somebody_new()

    def _maintain(self, topic: TopicId, members: dict[NodeId, None]) -> None:
        settings, rng = self.parameters, self.world.random
        if len(members) < settings.d_low:
            eligible = [peer for peer in self._usable(topic) if peer not in members]
            for peer in rules.to_graft(members, eligible, settings.d, settings.d_low, rng):
                members[peer] = None
                self._to(peer).graft.append(topic)
        elif len(members) > settings.d_high:
            outbound = {peer for peer in members if self.connections[peer].outbound}
            held = [peer for peer in members if (topic, peer) in self._held]
            for peer in rules.to_prune(
                list(members), outbound, settings.d, settings.d_high, settings.d_out, rng, held
            ):
                del members[peer]
                self._prune(topic, peer, settings.prune_backoff)

    def _prune(self, topic: TopicId, peer: NodeId, backoff: float) -> None:
        self._backoff[topic, peer] = self.world.now + backoff
        others = [other for other in self._connected(topic) if other != peer]
        named = rules.sample(others, self.parameters.prune_peers, self.world.random)
        self._to(peer).prune.append(Pruned(topic, backoff, tuple(named)))

    def _announce(self) -> None:
        settings = self.parameters
        for topic, events in self._cache.to_announce().items():
            members = self.mesh.get(topic, {})
            outside = [peer for peer in self._connected(topic) if peer not in members]
            said = Announced(topic, tuple(events[: settings.max_ihave_length]))
            for peer in rules.gossip_targets(
                outside, settings.d_lazy, settings.gossip_factor, self.world.random
            ):
                self._to(peer).ihave.append(said)

    def _to(self, peer: NodeId) -> Outgoing:
        return self._outgoing.setdefault(peer, Outgoing())

    def _flush(self) -> None:
        outgoing, self._outgoing = self._outgoing, {}
        for peer, control in outgoing.items():
            self.world.send(peer, control.message())

    # What peers say.

    def _receive_control(self, sender: NodeId, message: Control) -> None:
        connection = self.connections.get(sender)
        if connection is None:
            return
        self._detector.heard(sender)
        for topic in message.graft:
            self._grafted(topic, sender, connection)
        for pruned in message.prune:
            self._pruned(pruned, sender)
        for announced in message.ihave:
            self._announced(announced, sender)
        for event_id in message.iwant[: self.parameters.max_ihave_length]:
            if answer := self._cache.answer(sender, event_id):
                self.world.send(sender, answer)
        self._flush()

    def _grafted(self, topic: TopicId, sender: NodeId, connection: ConnectedPeer) -> None:
        members = self.mesh.get(topic)
        if members is None:
            # It missed that we unsubscribed.
            self._news.tell_all(sender)
        elif sender not in members:
            full = len(members) >= self.parameters.d_high and not connection.outbound
            if (topic, sender) in self._introductions:
                members[sender] = None
                self._hold(topic, sender)
            elif full or (topic, sender) in self._backoff:
                self._prune(topic, sender, self.parameters.prune_backoff)
            else:
                members[sender] = None

    def _pruned(self, pruned: Pruned, sender: NodeId) -> None:
        members = self.mesh.get(pruned.topic)
        if members is None:
            return
        members.pop(sender, None)
        # Nobody keeps us away for longer than we would it.
        backoff = min(max(pruned.backoff, 0.0), self.parameters.prune_backoff)
        self._backoff[pruned.topic, sender] = self.world.now + backoff
        lacking = self.parameters.d - len(self._usable(pruned.topic))
        if lacking > 0:
            for peer in rules.sample(pruned.peers[: self.parameters.prune_peers], lacking, self.world.random):
                self._dial(peer)

    def _announced(self, announced: Announced, sender: NodeId) -> None:
        if announced.topic not in self.subscriptions:
            return
        settings = self.parameters
        for event_id in announced.events[: settings.max_ihave_length]:
            if event_id.topic != announced.topic or event_id in self._seen or event_id in self._requested:
                continue
            if len(self._requested) >= settings.max_ihave_length:
                return
            self._requested[event_id] = self.world.now + settings.connect_timeout
            self._to(sender).iwant.append(event_id)

    def _receive_publish(self, sender: NodeId, message: GossipEvent) -> None:
        event = message.event
        members = self.mesh.get(event.topic)
        if members is None or not self._seen.first_time(event.id):
            return
        self._detector.heard(sender)
        self._requested.pop(event.id, None)
        self._cache.put(event, message.hops)
        self.world.deliver(event)
        onwards = GossipEvent(event, message.hops + 1)
        for peer in members:
            if peer not in (sender, event.publisher):
                self.world.send(peer, onwards)
