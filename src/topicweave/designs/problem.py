"""What a design is asked: who wants what, what is joined already, and how far degrees have grown.

The designs differ in one number only. LowODA (Onus and Richa, ICDCS 2010; OMen §4.1) looks at two edges: e1,
the heaviest of all, and e2, the heaviest among those that raise the maximum degree least. It takes e1 if its
weight exceeds rho times that of e2, else e2. So GM, which always takes the heaviest, is LowODA with rho = 0,
and MinMaxODA, which always takes e2, is LowODA with rho without bound.

Rules kept by every engine
--------------------------
1. The weight of an edge is the number of topics whose components it would join. Edges of weight 0 are never taken.
2. Among edges of equal weight the one with the lowest lower end wins, then the one with the lowest higher end.
3. The maximum degree is at least `ceiling`: an edge that stays below or at it raises nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from topicweave.model.arrays import IntArray

Edges = npt.NDArray[np.int64]
"""One row (lower end, higher end) per edge, in the order in which they were taken."""

DEFAULT_RHO = 1.5
"""LowODA's; see docs/systems/omen.md for the measurement behind it."""
GM = 0.0
MIN_MAX = math.inf

NO_EDGES: Edges = np.empty((0, 2), np.int64)


class InterestLists(Protocol):
    """What is read of a `Workload`."""

    @property
    def offsets(self) -> npt.NDArray[np.int64]: ...

    @property
    def topic_index(self) -> npt.NDArray[np.int32]: ...

    @property
    def topics(self) -> int: ...


@dataclass(frozen=True)
class Instance:
    """(V, T, I) of §2: node v wants the topics `topic[offsets[v]:offsets[v + 1]]`, growing.

    A place in `topic` stands for one subscription and is called a slot.
    """

    offsets: IntArray
    topic: IntArray
    topics: int

    @classmethod
    def of_lists(cls, interests: Sequence[Iterable[int]], topics: int | None = None) -> Instance:
        lists = [sorted(set(wanted)) for wanted in interests]
        offsets = np.zeros(len(lists) + 1, np.int64)
        np.cumsum([len(wanted) for wanted in lists], out=offsets[1:])
        topic = np.array([t for wanted in lists for t in wanted], np.int64)
        return cls(offsets, topic, int(topic.max(initial=-1)) + 1 if topics is None else topics)

    @classmethod
    def of_workload(cls, workload: InterestLists) -> Instance:
        return cls(workload.offsets.astype(np.int64), workload.topic_index.astype(np.int64), workload.topics)

    @property
    def nodes(self) -> int:
        return len(self.offsets) - 1

    @property
    def node(self) -> IntArray:
        """Per slot, who wants it."""
        return np.repeat(np.arange(self.nodes), np.diff(self.offsets))

    def interest(self, node: int) -> IntArray:
        return self.topic[self.offsets[node] : self.offsets[node + 1]]

    def only(self, nodes: npt.ArrayLike) -> Instance:
        """The instance over some nodes, which are numbered anew in the order given."""
        chosen = np.asarray(nodes, np.int64)
        return Instance.of_lists([self.interest(int(node)).tolist() for node in chosen], self.topics)


@dataclass(frozen=True)
class Problem:
    """An instance and where to start from."""

    instance: Instance
    labels: IntArray
    """Per slot, which component of its topic the node is in: equal for equal components of one topic."""
    degrees: IntArray
    ceiling: int
    """The maximum degree so far; not below any of the degrees."""

    @classmethod
    def of(
        cls,
        instance: Instance,
        edges: npt.ArrayLike = NO_EDGES,
        *,
        labels: npt.ArrayLike | None = None,
        degrees: npt.ArrayLike | None = None,
        ceiling: int = 0,
    ) -> Problem:
        """Start from existing edges.

        Of a subset of a larger overlay these are the edges inside it. What the rest of the overlay joins can
        be told by `labels` (which then replace what the edges join), degrees beyond those edges by `degrees`,
        a higher degree elsewhere by `ceiling`.
        """
        pairs = np.asarray(edges, np.int64).reshape(-1, 2)
        if degrees is None:
            degrees = np.bincount(pairs.ravel(), minlength=instance.nodes)
        counted = np.asarray(degrees, np.int64)
        if labels is None:
            labels = component_labels(instance, pairs)
        return cls(instance, np.asarray(labels, np.int64), counted, max(ceiling, int(counted.max(initial=0))))


def component_labels(instance: Instance, edges: Edges) -> IntArray:
    """Per slot, the lowest slot of its component in the topic's subgraph: what existing edges have joined."""
    parent = list(range(len(instance.topic)))

    def root(slot: int) -> int:
        while parent[slot] != slot:
            parent[slot] = parent[parent[slot]]
            slot = parent[slot]
        return slot

    for one, other in edges.tolist():
        for mine, theirs in zip(*shared_slots(instance, one, other), strict=True):
            low, high = sorted((root(int(mine)), root(int(theirs))))
            parent[high] = low
    return np.array([root(slot) for slot in parent], np.int64)


def shared_slots(instance: Instance, one: int, other: int) -> tuple[IntArray, IntArray]:
    """The slots of both for the topics that both want."""
    _, mine, theirs = np.intersect1d(
        instance.interest(one), instance.interest(other), assume_unique=True, return_indices=True
    )
    return mine + instance.offsets[one], theirs + instance.offsets[other]
