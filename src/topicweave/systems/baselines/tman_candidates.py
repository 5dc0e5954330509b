"""Candidates by T-Man: whom a node may link to is what T-Man's exchanges brought together (Vitis §IV).

Vitis' paper gives its three systems the same peer sampling (Newscast) and the same protocol of construction
(T-Man). For OPT the ranking is greedy K-coverage itself: first who covers most of what still lacks neighbours.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

from topicweave.blocks.descriptors import Descriptor
from topicweave.blocks.interest_index import InterestIndex
from topicweave.blocks.peer_sampling import PeerSampling
from topicweave.blocks.tman import TMan, TManParams
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import World
from topicweave.systems.spidercast import rules


class TManCandidates:
    """A T-Man view as an index of who wants what. Its owner runs `tman`."""

    def __init__(self, world: World, sampling: PeerSampling, k: int, size: int) -> None:
        self._k = k
        self._index = InterestIndex()
        self.tman = TMan(
            *(world, sampling.own, self._rank, sampling.descriptors),
            TManParams(view_size=size, message_size=size, psi=0),
            self._changed,
        )

    def choose(
        self, topics: Collection[TopicId], excluded: Collection[NodeId], rng: random.Random
    ) -> NodeId | None:
        counts = self._index.overlap_counts(topics)
        counts[self._index.slots(excluded)] = 0
        best = counts.max(initial=0)
        return self._index.peer_at(rng.choice((counts == best).nonzero()[0].tolist())) if best else None

    def _changed(self, entered: list[NodeId], left: list[NodeId]) -> None:
        for peer in left:
            self._index.discard(peer)
        held = {descriptor.id: descriptor.profile for descriptor in self.tman.view()} if entered else {}
        for peer in entered:
            if peer in held:
                self._index.put(peer, held[peer])

    def _rank(self, own: Descriptor, candidates: Sequence[Descriptor]) -> list[Descriptor]:
        return by_coverage(own, candidates, self._k)


def by_coverage(own: Descriptor, candidates: Sequence[Descriptor], k: int) -> list[Descriptor]:
    """Greedy k-coverage's order: who covers most of what fewer than k of those before cover; the others last.

    >>> own, both, one, other = (Descriptor(*told) for told in
    ...     ((0, 0.0, 1, frozenset({1, 2})), (1, 0.0, 1, frozenset({1, 2})), (2, 0.0, 1, frozenset({1})),
    ...      (3, 0.0, 1, frozenset({9}))))
    >>> [descriptor.id for descriptor in by_coverage(own, [one, other, both], k=1)]
    [1, 2]
    """
    coverage = rules.Coverage(own.profile, k)
    shared = {one.id: own.profile & one.profile for one in candidates}
    left = [one for one in candidates if shared[one.id]]
    chosen: list[Descriptor] = []
    while left and coverage.lacking:
        open_ = set(coverage.uncovered())
        best = max(left, key=lambda one: len(shared[one.id] & open_))
        if not shared[best.id] & open_:
            break
        coverage.add(shared[best.id])
        left.remove(best)
        chosen.append(best)
    # sorted is stable: among equals the order given stays, so a view does not change for nothing.
    return [*chosen, *sorted(left, key=lambda one: -len(shared[one.id]))]
