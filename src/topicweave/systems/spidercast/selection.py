"""Whom a maintenance task looks for: the only part in which SpiderCast and its rivals of §3.9 differ."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from topicweave.blocks.views import InterestView
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.systems.spidercast.rules import Coverage, OverlapView

Shared = Collection[TopicId]
"""The topics that a node and its neighbour both want."""


class Selection(Protocol):
    """What a task wants of its neighbours."""

    def enabled(self) -> bool:
        """Whether the task looks for neighbours at all (K > 0); if not, it still serves those who ask."""

    def limit(self) -> int:
        """L^max: how many neighbours can be needed at the most."""

    def reset(self, interest: Interest) -> None:
        """The node wants this now and has no neighbours: they are added one by one afterwards."""

    def added(self, peer: NodeId, shared: Shared) -> None: ...

    def removed(self, peer: NodeId, shared: Shared) -> None: ...

    def lacking(self) -> int:
        """How much is still missing; 0 when the task has what it wants."""

    def lacking_without(self, peer: NodeId, shared: Shared) -> int:
        """The same, were this neighbour gone."""

    def serves(self, peer: NodeId, shared: Shared) -> bool:
        """Whether anything would be worse without this neighbour: also what is lacking anyway."""

    def choose(self, excluded: Collection[NodeId], rng: random.Random) -> NodeId | None:
        """The next peer to connect to, if one is known."""

    def exchange(self, shared: Mapping[NodeId, Shared], excluded: Collection[NodeId]) -> NodeId | None:
        """A neighbour to part from because a better peer is known, given what each shares; only asked of a
        task that lacks nothing.
        """


PickByTopics = Callable[[InterestView, Collection[TopicId], Collection[NodeId], random.Random], NodeId | None]


def first_overlapping(
    view: OverlapView, topics: Collection[TopicId], excluded: Collection[NodeId], _rng: random.Random
) -> NodeId | None:
    """The peer that wants most of the topics, of several the first in the view. Figure 5 draws among them;
    this shows what that does.
    """
    counts = view.overlap_counts(topics)
    counts[view.slots(excluded)] = 0
    return view.peer_at(int(counts.argmax())) if counts.any() else None


class CoverageSelection:
    """K-coverage of every topic (§2.1): greedy or random, as `pick` says."""

    def __init__(self, k: int, view: InterestView, pick: PickByTopics) -> None:
        self._view = view
        self._pick = pick
        self._interest: Interest = frozenset()
        self._coverage = Coverage(self._interest, k)

    @property
    def k(self) -> int:
        return self._coverage.k

    def enabled(self) -> bool:
        return self.k > 0

    def limit(self) -> int:
        return self.k * len(self._interest)

    def set_k(self, k: int) -> None:
        """Change K; `reset` must follow."""
        self._coverage = Coverage(self._interest, k)

    def reset(self, interest: Interest) -> None:
        self._interest = interest
        self._coverage = Coverage(interest, self.k)

    def added(self, peer: NodeId, shared: Shared) -> None:
        self._coverage.add(shared)

    def removed(self, peer: NodeId, shared: Shared) -> None:
        self._coverage.remove(shared)

    def lacking(self) -> int:
        return self._coverage.lacking

    def lacking_without(self, peer: NodeId, shared: Shared) -> int:
        return self._coverage.lacking_without(shared)

    def serves(self, peer: NodeId, shared: Shared) -> bool:
        return self._coverage.needs(shared)

    def choose(self, excluded: Collection[NodeId], rng: random.Random) -> NodeId | None:
        return self._pick(self._view, self._coverage.uncovered(), excluded, rng)

    def exchange(self, shared: Mapping[NodeId, Shared], excluded: Collection[NodeId]) -> NodeId | None:
        return None


class BridgeSelection:
    """Wants single peers by name: those that a topic's other part is reached through. Implements `Selection`.

    Coverage sees no need for such links and would trim them at once, so they have a task of their own. It offers
    those that share no topic, and those that are `needless`: there is another way to their topics (`other_ways`). A
    peer is asked twice at the most (the second time, should it have named another instead): whoever still misses it
    then will say so.

    Whoever introduces nodes may lie, and links to made-up nodes would never become needless. So there is room for
    `most` such links only, or for one per topic if these are more: a few nodes that want many topics can hold all of
    them together. (Peers that ask for one get up to `margin` more.) Where there is no room, a needless one or else
    the oldest gives way to one that the node asked for, once that stands. If it was needed, its topics part and are
    introduced again.
    """

    def __init__(
        self, most: int, margin: int = 0, needless: Callable[[NodeId], bool] = lambda _peer: False
    ) -> None:
        self._most, self._margin, self._needless = most, margin, needless
        self._topics = 0
        self._wanted: dict[NodeId, int] = {}  # how often each may still be asked
        self._asked: NodeId | None = None  # the last one
        self._neighbours: dict[NodeId, None] = {}  # the oldest first
        self._leaving: list[NodeId] = []

    def _room(self) -> int:
        return max(self._most, self._topics)

    def want(self, peer: NodeId) -> None:
        """Ask for a link, unless many are asked for."""
        if peer not in self._neighbours and len(self._wanted) < self._most:
            self._wanted[peer] = 2

    def take_leaving(self) -> list[NodeId]:
        """Those that give way."""
        leaving, self._leaving = self._leaving, []
        return leaving

    def give_up(self, peer: NodeId) -> None:
        """The peer does not answer."""
        self._wanted.pop(peer, None)

    def enabled(self) -> bool:
        return True

    def limit(self) -> int:
        room = self._room()
        if self._wanted:
            return 1 + min(max(room, len(self._neighbours)), room + self._margin)
        return room

    def reset(self, interest: Interest) -> None:
        self._topics = len(interest)
        self._neighbours.clear()
        self._wanted.clear()
        self._asked = None

    def added(self, peer: NodeId, shared: Shared) -> None:
        asked = self._wanted.pop(peer, None) is not None or peer == self._asked
        self._neighbours[peer] = None
        if asked and shared:
            self._asked = None
            over = max(0, len(self._neighbours) - self._room())
            self._leaving = sorted(self._neighbours, key=lambda one: not self._needless(one))[:over]

    def removed(self, peer: NodeId, shared: Shared) -> None:
        self._neighbours.pop(peer, None)

    def lacking(self) -> int:
        return len(self._wanted)

    def lacking_without(self, peer: NodeId, shared: Shared) -> int:
        return len(self._wanted) + self.serves(peer, shared)

    def serves(self, peer: NodeId, shared: Shared) -> bool:
        return bool(shared) and not self._needless(peer)

    def choose(self, excluded: Collection[NodeId], rng: random.Random) -> NodeId | None:
        peer = next((peer for peer in self._wanted if peer not in excluded), None)
        if peer is not None:
            self._asked = peer
            self._wanted[peer] -= 1
            if not self._wanted[peer]:
                del self._wanted[peer]
        return peer

    def exchange(self, shared: Mapping[NodeId, Shared], excluded: Collection[NodeId]) -> NodeId | None:
        return None
