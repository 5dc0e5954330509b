"""A fixed number of neighbours instead of coverage: what similarity and random overlays ask for (§3.9.1)."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping

from topicweave.blocks.views import InterestView
from topicweave.model.ids import Interest, NodeId
from topicweave.systems.spidercast.selection import Shared

WORTH_IT = 1
"""Somebody a little better may have all the neighbours it may have, or take this node for its own least:
exchanges would never end.
"""

Pick = Callable[[Interest, Collection[NodeId], random.Random], NodeId | None]
"""Chooses a peer, given one's own interest and whom to leave out."""


class CountSelection:
    """`count` neighbours, each chosen by `pick`. Implements `Selection`.

    With a view the least similar neighbour makes room for somebody who shares more topics, by more than
    `WORTH_IT`: where a node gets to know the others by and by, the first it knew are not the best.
    """

    def __init__(self, count: int, pick: Pick, view: InterestView | None = None) -> None:
        self._view = view
        self._count = count
        self._pick = pick
        self._interest: Interest = frozenset()
        self._neighbours: set[NodeId] = set()

    def enabled(self) -> bool:
        return self._count > 0

    def limit(self) -> int:
        return self._count

    def reset(self, interest: Interest) -> None:
        self._interest = interest
        self._neighbours.clear()

    def added(self, peer: NodeId, shared: Shared) -> None:
        self._neighbours.add(peer)

    def removed(self, peer: NodeId, shared: Shared) -> None:
        self._neighbours.discard(peer)

    def lacking(self) -> int:
        return max(0, self._count - len(self._neighbours))

    def lacking_without(self, peer: NodeId, shared: Shared) -> int:
        return max(0, self._count - len(self._neighbours) + (peer in self._neighbours))

    def serves(self, peer: NodeId, shared: Shared) -> bool:
        return peer in self._neighbours and len(self._neighbours) <= self._count

    def choose(self, excluded: Collection[NodeId], rng: random.Random) -> NodeId | None:
        return self._pick(self._interest, excluded, rng)

    def exchange(self, shared: Mapping[NodeId, Shared], excluded: Collection[NodeId]) -> NodeId | None:
        if self._view is None:
            return None
        least = min(shared, key=lambda peer: len(shared[peer]))
        counts = self._view.overlap_counts(self._interest)
        counts[self._view.slots(excluded)] = 0
        return least if counts.size and counts.max() > len(shared[least]) + WORTH_IT else None
