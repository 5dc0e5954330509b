"""A fixed number of neighbours instead of coverage: what similarity and random overlays ask for (§3.9.1)."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection

from topicweave.model.ids import Interest, NodeId
from topicweave.systems.spidercast.selection import Shared

Pick = Callable[[Interest, Collection[NodeId], random.Random], NodeId | None]
"""Chooses a peer, given one's own interest and whom to leave out."""


class CountSelection:
    """`count` neighbours, each chosen by `pick`. Implements `Selection`."""

    def __init__(self, count: int, pick: Pick) -> None:
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
