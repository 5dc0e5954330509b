"""A node of Weave with a hard bound on links.

Rules kept
----------
1. No node ever has more than `max_degree` neighbours, whatever for. A full node that is asked names another one.
2. At most half of them are lower ones that the node chose. A full node makes room for one of these: it lets its
   highest neighbour go, if that has a higher id than its own. So the links downwards of a node depend on lower
   nodes alone, and come to rest from the lowest node upwards.
3. A full node that is asked lets its highest neighbour go, if that is higher than the asker: the higher an id,
   the more others there are to ask. Nodes with a bound do not look for better neighbours, so links come to rest.
4. Every node but the lowest has a neighbour with a lower id, if only for that (the task `stem`). If all
   neighbours of a full node are lower than one that asks for that, the full node sends it on to one of them.
5. A topic that cannot be joined is carried (`relays`). A node without a link for it tells the lowest subscriber
   that it knows, which passes this on downwards (`Meet`). So the lowest subscriber of all, which lacks nothing,
   lets the topic be carried, too. A node that takes up a topic for others asks for what its neighbours had of it
   lately: the others may have lost that with the way before.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from topicweave.blocks.small_world import Router
from topicweave.blocks.views import InterestView
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import Node, Receivers, World
from topicweave.systems.spidercast.messages import Connect, ConnectOk, Leave, Redirect
from topicweave.systems.spidercast.node import degree_limit as unbounded_limit
from topicweave.systems.spidercast.selection import Selection, Shared
from topicweave.systems.weave.messages import MOST_TOPICS, Carries, Meet
from topicweave.systems.weave.node import COVER, MOST_REMEMBERED, WeaveNode
from topicweave.systems.weave.parameters import LEAST_BOUND, WeaveParameters
from topicweave.systems.weave.relays import DownwardRouter, relay_paths
from topicweave.systems.weave.selection import LowerSelection

STEM = "stem"
AT_EASE = 24
"""With a bound from this on, a low id counts as much as without one. With the least bound it counts for
nothing: all would ask the same few.
"""
MOST_REFUSALS = 16
"""A node that so many turned down or sent on lately asks nobody."""
MOST_DOUBLINGS = 5
"""Of the time for which the node does not ask a peer again that sent it on."""
MEET_EVERY = 5
"""Heartbeats."""


class BoundedSelection(LowerSelection):
    """As many lower neighbours as there is room for. A neighbour does not cover a topic that it only carries."""

    def __init__(
        self,
        own: NodeId,
        view: InterestView,
        parameters: WeaveParameters,
        refused: Collection[NodeId],
        node: Callable[[], BoundedNode],
    ) -> None:
        most = parameters.max_degree
        lean = parameters.lean * min(1.0, (most - LEAST_BOUND) / (AT_EASE - LEAST_BOUND))
        super().__init__(own, view, most, lean, refused)
        self._most_below = (most + 1) // 2
        self._node = node

    def limit(self) -> int:
        """One more than there may be: a full node asks as well, and then lets somebody go."""
        return self._most + 1

    def reset(self, interest: Interest) -> None:
        super().reset(interest & self._node().own_topics())

    def added(self, peer: NodeId, shared: Shared) -> None:
        super().added(peer, self.counted(peer, shared))

    def counted(self, peer: NodeId, shared: Shared) -> Shared:
        carries = self._node().carried_by(peer)
        return tuple(topic for topic in shared if topic in self._interest and topic not in carries)

    def recount(self, peer: NodeId, shared: Shared) -> None:
        """Who carries what has changed."""
        if peer in self._below and self._below[peer] != self.counted(peer, shared):
            self.removed(peer, shared)
            self.added(peer, shared)

    def serves(self, peer: NodeId, shared: Shared) -> bool:
        node = self._node()
        return super().serves(peer, shared) or node.relays.has_parent(peer) or node.lower() == [peer]

    def choose(self, excluded: Collection[NodeId], rng: random.Random) -> NodeId | None:
        if len(self._refused) >= MOST_REFUSALS or len(self._below) >= self._most_below:
            self._wish = None
            return None
        return super().choose([*excluded, *self._refused], rng)

    def look_for_better(self, excluded: Collection[NodeId]) -> bool:
        """Never. A full neighbour lets another node go for this one. That node would look for a better neighbour
        in turn, and so on without end.
        """
        return False


class StemSelection:
    """Some neighbour with a lower id, if the node has no other such. Implements `Selection`."""

    def __init__(self, own: NodeId, view: InterestView, most: int, lower: Callable[[], list[NodeId]]) -> None:
        """lower: the neighbours with a lower id, of all tasks"""
        self._id = own
        self._view = view
        self._most = most
        self._lower = lower

    def enabled(self) -> bool:
        return True

    def limit(self) -> int:
        return self._most + 1

    def reset(self, interest: Interest) -> None: ...

    def added(self, peer: NodeId, shared: Shared) -> None: ...

    def removed(self, peer: NodeId, shared: Shared) -> None: ...

    def lacking(self) -> int:
        return not self._lower()

    def lacking_without(self, peer: NodeId, shared: Shared) -> int:
        return self.serves(peer, shared) or self.lacking()

    def serves(self, peer: NodeId, shared: Shared) -> bool:
        return self._lower() == [peer]

    def choose(self, excluded: Collection[NodeId], rng: random.Random) -> NodeId | None:
        ids = self._view.peer_ids()
        lower = sorted(set(ids[ids < self._id].tolist()).difference(excluded))
        return rng.choice(lower) if lower else None

    def exchange(self, shared: Mapping[NodeId, Shared], excluded: Collection[NodeId]) -> NodeId | None:
        return None


class BoundedNode(WeaveNode):
    """Never has more links than `max_degree`, and carries topics for those who cannot join them."""

    _cover: BoundedSelection

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        view: InterestView,
        parameters: WeaveParameters,
    ) -> None:
        self._router: DownwardRouter | None = None
        self._apart: dict[TopicId, None] = {}
        """Topics that it wants and has no link for."""
        self._called: dict[TopicId, float] = {}
        """Until when it lets a topic be carried for the sake of those who have no link for it."""
        self._met: dict[TopicId, float] = {}
        """Until when no more is said of a topic that others let be carried."""
        self._bound = parameters.max_degree
        self._refusals = 0
        """Since a link downwards came or went."""
        self._lower_ones: set[NodeId] = set()
        self._carriers: dict[NodeId, Interest] = {}
        """What lower neighbours carry and do not want."""
        self.relays = relay_paths(
            *(world, node_id, self._route, self._to_be_carried, parameters.heartbeat_period, self._asked_for)
        )
        super().__init__(world, node_id, subscriptions, view, parameters)
        self.use(self.relays)

    def _make_cover(self, own: NodeId, view: InterestView, parameters: WeaveParameters) -> LowerSelection:
        return BoundedSelection(own, view, parameters, self._refused.keys(), lambda: self)

    def _selections(
        self, own: NodeId, view: InterestView, parameters: WeaveParameters
    ) -> dict[str, Selection]:
        selections = super()._selections(own, view, parameters)
        return {**selections, STEM: StemSelection(own, view, parameters.max_degree, self.lower)}

    def receivers(self) -> Receivers:
        return {**super().receivers(), Meet: self._receive_meet, Carries: self._receive_carries}

    def start(self, contacts: Sequence[NodeId]) -> None:
        super().start(contacts)
        self.relays.start()

    def known_peers(self) -> set[NodeId]:
        return super().known_peers() | self.relays.known_peers()

    def own_topics(self) -> Interest:
        return self._own_topics()

    def carried(self) -> Interest:
        """What it takes part in for others alone."""
        return self._interest - self._own_topics()

    # Links.

    @property
    def full(self) -> bool:
        return self.degree >= self._bound

    def lower(self) -> list[NodeId]:
        """The neighbours with a lower id."""
        return sorted(self._lower_ones)

    def _link_changed(self, peer: NodeId) -> None:
        super()._link_changed(peer)
        self._router = None
        if peer < self.id and (peer in self._lower_ones) != (peer in self._known_versions):
            self._lower_ones ^= {peer}
            self._refusals = 0
        if peer not in self._known_versions:
            self._carriers.pop(peer, None)
            self.relays.lost(peer)

    def _busy(self, peer: NodeId) -> int:
        return min(super()._busy(peer), self._bound)

    def _receive_connect(self, sender: NodeId, message: Connect) -> None:
        self._decide(sender, message)
        if sender in self._known_versions and self.carried():
            self.world.send(sender, Carries(tuple(sorted(self.carried()))[:MOST_TOPICS]))

    def _decide(self, sender: NodeId, message: Connect) -> None:
        if (
            sender in self._known_versions
            or sender == self.id
            or not self.full
            or (message.task in (COVER, STEM) and self._make_room(sender))
        ):
            super()._receive_connect(sender, message)
        elif message.task == STEM and (below := [peer for peer in self._known_versions if peer < sender]):
            self.world.send(sender, Redirect(STEM, self.world.random.choice(below)))
        elif message.task == COVER:
            other = self._stand_in(sender, message)
            self.world.send(sender, Leave(COVER) if other is None else Redirect(COVER, other))
        else:
            self.world.send(sender, Leave(message.task))

    def _receive_connect_ok(self, sender: NodeId, message: ConnectOk) -> None:
        task = self._task(message.task)
        if task is None:
            return
        asked = message.task in (COVER, STEM) and sender < self.id and task.awaits(sender)
        if sender in self._known_versions or not self.full or (asked and self._make_room()):
            super()._receive_connect_ok(sender, message)
        else:
            task.refused(sender, ask_again=False)
            self.world.send(sender, Leave(message.task))

    def _remember_refusal(self, peer: NodeId) -> None:
        """Links come to rest from the lowest node upwards: at first it pays to ask again soon, later it does not."""
        self._refusals += 1
        if len(self._refused) < MOST_REMEMBERED:
            rounds = min(self._refusals // MOST_REFUSALS, MOST_DOUBLINGS)
            self._refused[peer] = self.world.now + self.parameters.quarantine * 2.0**rounds

    def _make_room(self, newcomer: NodeId | None = None) -> bool:
        """Let the highest neighbour go, if it is higher than this node and the newcomer."""
        highest = max(self._known_versions)
        if highest < max(self.id, newcomer or 0):
            return False
        for task in self.tasks.values():
            if highest in task.neighbours:
                task.part(highest)
        return True

    def _bridge_to(self, peer: NodeId) -> None:
        if not self.full:
            super()._bridge_to(peer)

    # Topics that are carried.

    def _introduced(self, topic: TopicId, peer: NodeId, label: NodeId | None) -> None:
        super()._introduced(topic, peer, label)
        if self.full and topic in self._interest and self._beacons.leader(topic) != label:
            self._call(topic)

    def _carried(self) -> Collection[TopicId]:
        return self.relays.carried(self._known_versions)

    def carried_by(self, peer: NodeId) -> Interest:
        return self._carriers.get(peer, frozenset())

    def _interest_changed(self, before: Interest) -> None:
        super()._interest_changed(before)
        self._tell_what_is_carried()

    def _tell_what_is_carried(self) -> None:
        message = Carries(tuple(sorted(self.carried()))[:MOST_TOPICS])
        for peer in self._known_versions:
            if peer > self.id:
                self.world.send(peer, message)

    def _receive_carries(self, sender: NodeId, message: Carries) -> None:
        if sender in self._lower_ones:
            self._carriers[sender] = frozenset(message.topics[:MOST_TOPICS])
            cover = self.tasks[COVER]
            if sender in cover.neighbours:
                self._cover.recount(sender, cover.neighbours[sender].shared)

    def _took_up(self, topic: TopicId) -> None:
        if topic in self._own_topics():
            super()._took_up(topic)

    def _asked_for(self, topic: TopicId, peer: NodeId) -> None:
        if topic not in self._interest:
            self._update_interest()

    def _route(self) -> Router:
        if self._router is None:
            self._router = DownwardRouter(self.id, self._interests, self.relays.parent)
        return self._router

    def _to_be_carried(self) -> Collection[TopicId]:
        return {**self._apart, **dict.fromkeys(self._called)}.keys()

    def _beat(self, peers: Iterable[NodeId]) -> None:
        super()._beat(peers)
        self._review()

    def _review(self) -> None:
        """What is to be carried, for others and for this node."""
        now = self.world.now
        cover = self.tasks[COVER]
        self._update_interest()
        for memory in (self._called, self._met):
            for topic in [topic for topic, until in memory.items() if until <= now]:
                del memory[topic]
        uncovered = self._cover.uncovered()
        if cover.content():
            lowest = {topic: self.view.lowest(topic) for topic in uncovered}
            apart = [topic for topic, peer in lowest.items() if peer is not None and peer < self.id]
        else:
            apart = [topic for topic in uncovered if topic in self._apart]
        new = [topic for topic in apart if topic not in self._apart]
        self._apart = dict.fromkeys(apart)
        self.relays.request(new)
        self._meet(apart if self._beats % MEET_EVERY == 0 else new)
        if self._beats % MEET_EVERY == 0 and self.carried():
            self._tell_what_is_carried()

    def _meet(self, topics: Iterable[TopicId]) -> None:
        """Tell the lowest subscriber that is known. The view may be wrong about that one, so another lower
        one hears of it every other time.
        """
        by_peer: dict[NodeId, list[TopicId]] = {}
        for topic in topics:
            known = self.view.subscribers(topic)
            lower = sorted(known[known < self.id].tolist())
            if lower:
                told = lower[0] if self.world.random.random() < 0.5 else self.world.random.choice(lower)
                by_peer.setdefault(told, []).append(topic)
        self._send_meet(by_peer)

    def _send_meet(self, topics: Mapping[NodeId, Sequence[TopicId]]) -> None:
        for peer, together in topics.items():
            self.world.send(peer, Meet(tuple(together[:MOST_TOPICS])))

    def _receive_meet(self, _sender: NodeId, message: Meet) -> None:
        """Somebody has no link for these topics. The lowest subscriber that is known hears of it, and who is
        linked to: either may be gone.
        """
        wanted, now = self._own_topics(), self.world.now
        onward = []
        for topic in message.topics[:MOST_TOPICS]:
            if topic in wanted and topic not in self._apart and self._met.get(topic, 0.0) <= now:
                self._met[topic] = now + MEET_EVERY * self.parameters.heartbeat_period / 2
                onward.append(topic)
        self._meet(onward)
        by_peer: dict[NodeId, list[TopicId]] = {}
        for topic in onward:
            carrier = self.relays.parent(topic)
            lower = [peer for peer in self._links_of_topic(topic) if peer < self.id and peer != carrier]
            if lower:
                by_peer.setdefault(min(lower), []).append(topic)
            else:
                self._call(topic)
        self._send_meet(by_peer)

    def _call(self, topic: TopicId) -> None:
        new = topic not in self._called
        self._called[topic] = self.world.now + 3 * MEET_EVERY * self.parameters.heartbeat_period
        if new:
            self.relays.request([topic])


def build(
    world: World,
    node_id: NodeId,
    subscriptions: Iterable[TopicId],
    view: InterestView,
    parameters: WeaveParameters,
) -> WeaveNode:
    kind = BoundedNode if parameters.max_degree else WeaveNode
    return kind(world, node_id, subscriptions, view, parameters)


def degree_limit(node: Node) -> int:
    """How many links a node may have."""
    assert isinstance(node, WeaveNode)
    return node.parameters.max_degree or unbounded_limit(node)
