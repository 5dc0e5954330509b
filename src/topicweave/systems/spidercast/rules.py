"""SpiderCast's decisions as functions of plain data.

Where the pseudo-code and the prose of the paper differ, the prose is followed; each function says where.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from topicweave.model.ids import Interest, NodeId, TopicId


class OverlapView(Protocol):
    """What selection needs of an interest view: counts per slot, as arrays."""

    def overlap_counts(self, topics: Collection[TopicId]) -> npt.NDArray[np.int64]:
        """For each slot, how many of the topics its peer wants; 0 for peers outside the view."""

    def slots(self, peers: Iterable[NodeId]) -> Sequence[int] | npt.NDArray[np.int64]:
        """The slots of those of the peers that the view knows."""

    def candidates(self) -> npt.NDArray[np.int64]:
        """The slots of all peers in the view."""

    def peer_at(self, slot: int) -> NodeId: ...


class Coverage:
    """How often each own topic is covered by neighbours (CALCKUNCOVERED, Figure 3 lines 1-7).

    Kept up to date link by link, because it is asked far more often than links change. It counts when it is first
    asked: a node that changes its interest many times in a row begins a new one each time.

    >>> coverage = Coverage(frozenset({1, 2}), k=1)
    >>> coverage.add({2, 3}); sorted(coverage.uncovered()), coverage.lacking, coverage.lacking_without({2, 3})
    ([1], 1, 2)
    """

    def __init__(self, interest: Interest, k: int) -> None:
        self.k = k
        self._interest = interest
        self._uncounted: list[Collection[TopicId]] | None = []
        """What neighbours share, until it is counted."""
        self._counts: dict[TopicId, int] = {}
        self._scarce: set[TopicId] = set()  # those that have 1 to K neighbours
        self._lacking = 0

    @property
    def lacking(self) -> int:
        """How many topics fewer than K neighbours have."""
        self._count()
        return self._lacking

    def add(self, shared: Collection[TopicId]) -> None:
        """A neighbour with these topics was added (topics that are not one's own do not count)."""
        if self._uncounted is not None:
            self._uncounted.append(shared)
            return
        for topic in shared:
            if topic in self._counts:
                self._set(topic, self._counts[topic] + 1)
                self._lacking -= self._counts[topic] == self.k

    def remove(self, shared: Iterable[TopicId]) -> None:
        self._count()
        for topic in shared:
            if topic in self._counts:
                self._lacking += self._counts[topic] == self.k
                self._set(topic, self._counts[topic] - 1)

    def _count(self) -> None:
        if self._uncounted is not None:
            uncounted, self._uncounted = self._uncounted, None
            self._counts = dict.fromkeys(sorted(self._interest), 0)
            self._lacking = len(self._counts) if self.k > 0 else 0
            for shared in uncounted:
                self.add(shared)

    def _set(self, topic: TopicId, count: int) -> None:
        self._counts[topic] = count
        if 0 < count <= self.k:
            self._scarce.add(topic)
        else:
            self._scarce.discard(topic)

    def count(self, topic: TopicId) -> int:
        """How many neighbours have an own topic."""
        self._count()
        return self._counts[topic]

    def uncovered(self) -> list[TopicId]:
        """Own topics that fewer than K neighbours have.

        Figure 5 counts candidates instead of neighbours; that is a slip (it would leave all popular topics
        uncovered for ever or never), the prose of §2.1 counts neighbours.
        """
        self._count()
        return [topic for topic, count in self._counts.items() if count < self.k]

    def lacking_without(self, shared: Iterable[TopicId]) -> int:
        """How many topics would be uncovered without a neighbour that has these topics."""
        self._count()
        counts, k = self._counts, self.k
        return self._lacking + sum(1 for topic in shared if counts.get(topic, -1) == k)

    def needs(self, shared: Iterable[TopicId]) -> bool:
        """Whether a neighbour that has these topics covers one that has no more than K neighbours."""
        self._count()
        return not self._scarce.isdisjoint(shared)


def _random_slot(slots: npt.NDArray[np.intp], rng: random.Random) -> int:
    return int(slots[rng.randrange(len(slots))])


def most_overlapping(
    view: OverlapView, topics: Collection[TopicId], excluded: Collection[NodeId], rng: random.Random
) -> NodeId | None:
    """The peer that wants most of the topics, ties broken at random; None if nobody wants any.

    With the uncovered topics this is NEXTGREEDYCOVERAGENODE (Figure 5); with the whole interest it is
    NEXTSIMILARITYNODE (§3.9.1).
    """
    counts = view.overlap_counts(topics)
    counts[view.slots(excluded)] = 0
    best = counts.max(initial=0)
    return view.peer_at(_random_slot(np.flatnonzero(counts == best), rng)) if best else None


def any_overlapping(
    view: OverlapView, topics: Collection[TopicId], excluded: Collection[NodeId], rng: random.Random
) -> NodeId | None:
    """A random peer that wants at least one of the topics: NEXTRANDOMCOVERAGENODE (Figure 5)."""
    counts = view.overlap_counts(topics)
    counts[view.slots(excluded)] = 0
    slots = np.flatnonzero(counts)
    return view.peer_at(_random_slot(slots, rng)) if len(slots) else None


def any_peer(view: OverlapView, excluded: Collection[NodeId], rng: random.Random) -> NodeId | None:
    """A random peer of the view: NEXTRANDOMNODE (§3.9.1)."""
    slots = np.setdiff1d(view.candidates(), view.slots(excluded))
    return view.peer_at(_random_slot(slots, rng)) if len(slots) else None


def can_spare_a_link(degree: int, target: int) -> bool:
    """Whether a neighbour that reports this degree and target has what it needs.

    Figure 3 line 11 prints `degree > target`. But an accepted link raises the target with the degree (Figure 4
    lines 4-5), so hardly any node would ever be seen above its target and over-covered nodes would keep
    their links; §2.3.1 says that a neighbour has reached coverage when target <= degree. That reading is used, and it
    is the one under which the paper's degrees come out.
    """
    return degree >= target


def disconnect_candidates(lacking_without: Mapping[NodeId, int]) -> tuple[list[NodeId], int]:
    """Those neighbours whose removal hurts least, and how many topics it would leave uncovered
    (DISCONNECTCANDIDATE, Figure 3 lines 12-21)."""
    if not lacking_without:
        return [], 0
    least = min(lacking_without.values())
    return [peer for peer, lacking in lacking_without.items() if lacking == least], least


def redirect_candidates(
    asker: Interest, neighbours: Mapping[NodeId, tuple[int, int, Interest]], margin: int
) -> list[NodeId]:
    """Whom to name to a node that can't be taken: of the neighbours (degree, target, interest) below their target plus
    margin, those that share most with it (Figure 4 lines 7-8)."""
    best, most = [], -1
    for peer, (degree, target, interest) in neighbours.items():
        if degree >= target + margin:
            continue
        shared = len(interest & asker)
        if shared > most:
            best, most = [peer], shared
        elif shared == most:
            best.append(peer)
    return best


def adapted_k_random(
    k_greedy: int, k_random: int, degree: int, interests: int, greedy_covered: bool, random_covered: bool
) -> int:
    """The K_r a node should use next (§3.3.1).

    A node whose greedy links alone number exactly K_g has neighbours too much alike: it begins random
    coverage. While its degree stays below its number of topics after a random coverage and K_r <= 3, it takes
    one more.

    >>> adapted_k_random(3, 0, degree=3, interests=10, greedy_covered=True, random_covered=True)
    1
    >>> adapted_k_random(3, 0, degree=4, interests=10, greedy_covered=True, random_covered=True)
    0
    """
    if not greedy_covered or not random_covered:
        return k_random
    if k_random == 0:
        return 1 if degree == k_greedy else 0
    return k_random + 1 if degree < interests and k_random <= 3 else k_random
