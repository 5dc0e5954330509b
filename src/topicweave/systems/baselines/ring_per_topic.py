"""Ring per topic: for each topic a ring of its subscribers by identifier; links that coincide are merged (§3.9.2).

A view need not hold all subscribers. So a node counts its neighbours in, whether its view still does or not,
and tells a neighbour of those that stand between the two (`Nearer`): whatever hangs together becomes one
ring, as in Onus, Richa, Scheideler: "Linearization" (ALENEX 2007), and no link ends before a nearer one is
known. Where rings of one topic do not know of each other, each has one node whose predecessor has a higher
identifier: the lowest of the ring, which leads it and names it. No label needs to go round.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from topicweave.blocks.topic_directory import Parts
from topicweave.blocks.views import InterestView
from topicweave.model.ids import Interest, NodeId, TopicId, clockwise
from topicweave.port import Message, Receivers, World
from topicweave.systems.spidercast.messages import CONTROL_KINDS
from topicweave.systems.spidercast.node import OverlayNode
from topicweave.systems.spidercast.parameters import Count, LinkParameters, Seconds
from topicweave.systems.spidercast.selection import Shared
from topicweave.systems.system import System


def ring_neighbours(own: NodeId, peers: npt.NDArray[np.uint64]) -> set[NodeId]:
    """The next and the previous of the peers on the ring, seen from `own` (one peer may be both).

    >>> sorted(ring_neighbours(10, np.array([3, 7, 10, 20, 40], dtype=np.uint64)))
    [7, 20]
    """
    others = peers[peers != own]
    if not len(others):
        return set()
    # Unsigned differences wrap as the ring does: they are the clockwise distances from and to `own`.
    here = np.uint64(own)
    return {int(others[np.argmin(others - here)]), int(others[np.argmin(here - others)])}


MOST_NAMED = 64
HINT_AGAIN = 30.0
"""Seconds after which a neighbour is told once more of one that stands between: the word may have been lost."""
NAME_LASTS = 2 * HINT_AGAIN
"""Seconds for which a name counts: its bearer may refuse for ever."""
LOOK_AGAIN = 5.0
"""Seconds after which the rings are worked out anew, though the view says that nothing changed: it leaves out
peers that could not be reached, and takes them in again, without counting that as a change.
"""


class RingPerTopicParameters(LinkParameters, frozen=True, forbid_unknown_fields=True):
    """The rings need no settings of their own."""

    bridges: Count = 0
    """Rings mend themselves; and a label takes too long round a large ring to tell it from a parted one."""
    ring_settles: Seconds = 10.0
    """The lowest of a ring says so after it has been that for so long."""


class RingSelection:
    """Wants the ring neighbours of every topic, as far as the view knows them. Implements `Selection`."""

    def __init__(self, world: World, own_id: NodeId, view: InterestView) -> None:
        self._world = world
        self._id = own_id
        self._view = view
        self._interest: Interest = frozenset()
        self._neighbours: dict[NodeId, Shared] = {}
        # By neighbours and homes, with the topic and until when; until they are neighbours, or do not answer.
        self._named: dict[NodeId, tuple[TopicId, float]] = {}
        self._rings: dict[TopicId, tuple[npt.NDArray[np.uint64], list[NodeId], set[NodeId]]] = {}
        self._ends: dict[TopicId, tuple[NodeId, NodeId] | None] = {}
        self._wanted: set[NodeId] = set()
        self._seen_version = -1
        self._look_again_at = 0.0

    def _want(self) -> set[NodeId]:
        """The peers wanted as neighbours; worked out anew when the view has changed, or may have."""
        if self._view.version != self._seen_version or self._world.now >= self._look_again_at:
            self._seen_version = self._view.version
            self._look_again_at = self._world.now + LOOK_AGAIN
            now = self._world.now
            self._named = {peer: named for peer, named in self._named.items() if named[1] > now}
            self._wanted = set().union(*(self._around(topic) for topic in sorted(self._interest)))
            self._named = {peer: named for peer, named in self._named.items() if peer in self._wanted}
        return self._wanted

    def _around(self, topic: TopicId) -> set[NodeId]:
        """The next and the previous of those whom this node knows on a topic's ring; worked out anew when it
        knows others.
        """
        beside = [peer for peer, shared in self._neighbours.items() if topic in shared]
        beside += [peer for peer, (named, _) in self._named.items() if named == topic]
        known = self._view.subscribers(topic)
        ring = self._rings.get(topic)
        if ring is None or ring[0] is not known or ring[1] != beside:
            everybody = np.concatenate([known, np.array(beside, np.uint64)]) if beside else known
            ring = self._rings[topic] = (known, beside, ring_neighbours(self._id, everybody))
        return ring[2]

    def name(self, topic: TopicId, peer: NodeId) -> None:
        """Somebody says that a peer is on a topic's ring."""
        if topic in self._interest and peer != self._id and len(self._named) < MOST_NAMED:
            self._named[peer] = (topic, self._world.now + NAME_LASTS)
            self._seen_version = -1

    def lost(self, peer: NodeId) -> None:
        if self._named.pop(peer, None) is not None:
            self._seen_version = -1

    @property
    def named(self) -> set[NodeId]:
        return set(self._named)

    def nearer_to(self, peer: NodeId) -> Iterator[tuple[TopicId, NodeId]]:
        """Per topic shared with a neighbour that is next to this node on another ring only: one that stands
        between the two.
        """
        for topic in self._neighbours.get(peer, ()):
            ends = self._ends[topic] if topic in self._ends else self._next_to(topic)
            if ends is not None and peer not in ends:
                yield topic, ends[clockwise(self._id, peer) > clockwise(peer, self._id)]

    def _next_to(self, topic: TopicId) -> tuple[NodeId, NodeId] | None:
        """The nearest neighbours that want a topic, ahead and behind, if there are others; the answer holds
        until neighbours change.
        """
        others = [other for other, shared in self._neighbours.items() if topic in shared]
        ends = None
        if len(others) > 2:
            ahead = min(others, key=lambda other: clockwise(self._id, other))
            ends = (ahead, min(others, key=lambda other: clockwise(other, self._id)))
        self._ends[topic] = ends
        return ends

    def lowest(self) -> list[TopicId]:
        """The topics on whose ring this node is the lowest of all that it knows."""
        return [
            topic
            for topic in sorted(self._interest)
            if all(self._id < peer for peer, shared in self._neighbours.items() if topic in shared)
        ]

    def enabled(self) -> bool:
        return True

    def limit(self) -> int:
        """Two per topic; and one for each peer that is to come between: the link that it replaces ends when
        its other end knows of a nearer one, too. Otherwise two whole rings could not become one.
        """
        self._want()  # Lets go of names that came to nothing.
        return 2 * len(self._interest) + len(self._named)

    def reset(self, interest: Interest) -> None:
        self._interest = interest
        self._neighbours.clear()
        self._rings.clear()
        self._ends.clear()
        self._named.clear()
        self._seen_version = -1

    def added(self, peer: NodeId, shared: Shared) -> None:
        self._neighbours[peer] = shared
        self._ends.clear()
        self._named.pop(peer, None)
        self._seen_version = -1

    def removed(self, peer: NodeId, shared: Shared) -> None:
        self._neighbours.pop(peer, None)
        self._ends.clear()
        self._seen_version = -1

    def lacking(self) -> int:
        return len(self._want() - self._neighbours.keys())

    def lacking_without(self, peer: NodeId, shared: Shared) -> int:
        return self.lacking() + (peer in self._neighbours and self.serves(peer, shared))

    def serves(self, peer: NodeId, shared: Shared) -> bool:
        return peer in self._want()

    def choose(self, excluded: Collection[NodeId], rng: random.Random) -> NodeId | None:
        missing = sorted(self._want().difference(excluded))
        return missing[rng.randrange(len(missing))] if missing else None

    def exchange(self, shared: Mapping[NodeId, Shared], excluded: Collection[NodeId]) -> NodeId | None:
        return None


class RingNode(OverlayNode):
    """Rings of which each node may know a part only."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        view: InterestView,
        parameters: RingPerTopicParameters,
    ) -> None:
        self._ring = RingSelection(world, node_id, view)
        super().__init__(world, node_id, subscriptions, view, parameters, {"ring": self._ring})
        self._hints: dict[tuple[NodeId, TopicId], tuple[NodeId, float]] = {}
        view.serve(Parts(parameters.ring_settles, lambda _topic: None, self._ring.lowest, self._introduced))

    def receivers(self) -> Receivers:
        return {**super().receivers(), Nearer: self._receive_nearer}

    def _introduced(self, topic: TopicId, peer: NodeId, label: NodeId | None) -> None:
        """The lowest of another ring, or a member of it: it has a place on this one, too."""
        self._ring.name(topic, peer)
        self.tasks["ring"].wake()

    def _receive_nearer(self, sender: NodeId, message: Nearer) -> None:
        if sender in self._known_versions:
            self._ring.name(message.topic, message.peer)
            self.tasks["ring"].wake()

    def _beat(self, peers: Iterable[NodeId]) -> None:
        peers = list(peers)
        super()._beat(peers)
        now = self.world.now
        for peer in peers:
            for topic, nearer in self._ring.nearer_to(peer):
                said, when = self._hints.get((peer, topic), (None, 0.0))
                if said != nearer or now - when > HINT_AGAIN:
                    self._hints[peer, topic] = (nearer, now)
                    self.world.send(peer, Nearer(topic, nearer))
        for key in [key for key, (_, when) in self._hints.items() if now - when > 2 * HINT_AGAIN]:
            del self._hints[key]

    def _unanswered(self, peer: NodeId) -> None:
        super()._unanswered(peer)
        self._ring.lost(peer)

    def known_peers(self) -> set[NodeId]:
        return super().known_peers() | self._ring.named


class Nearer(Message, frozen=True, array_like=True, tag="ring-nearer"):
    """On a topic that we share, this one stands between us."""

    topic: TopicId
    peer: NodeId

    def introduces(self) -> Iterable[NodeId]:
        return (self.peer,)


def build(
    world: World,
    node_id: NodeId,
    subscriptions: Iterable[TopicId],
    view: InterestView,
    parameters: RingPerTopicParameters,
) -> OverlayNode:
    return RingNode(world, node_id, subscriptions, view, parameters)


RING_PER_TOPIC = System(
    name="ring-per-topic",
    summary="a ring of its subscribers for each topic, common links merged",
    source="SpiderCast (DEBS 2007) §3.9.2, after Sub-2-Sub",
    parameters=RingPerTopicParameters,
    build=build,
    connects_topics=True,
    control_kinds=CONTROL_KINDS,
)
