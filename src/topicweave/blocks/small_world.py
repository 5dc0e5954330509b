"""A small world on the ring: whom to link to, and how to route over whatever links there are.

G. Manku, M. Bawa, P. Raghavan: "Symphony: Distributed Hashing in a Small World", USITS 2003.

Rules kept
----------
1. A long link leads to the peer nearest to a point whose distance is drawn with density proportional to its inverse,
   between one node's share of the ring and the whole of it.
2. A node knows how many nodes there are only by how close its ring neighbours are (Symphony §3.2 does the same with a
   few more of them). The estimate enters by its logarithm, and is rounded to a power of two, so that
   a neighbour's coming or going does not move all long links.
3. A lookup goes to the link nearest to the point, by the shorter way round, as long as that is nearer than the node
   itself. Of two equally near identifiers the lower one wins, so each point has exactly one node where lookups end,
   once everybody knows its ring neighbours.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from topicweave.model.arrays import IdArray
from topicweave.model.ids import RING_SIZE, NodeId, clockwise

_FEW = 8  # fewer lookups than this are quicker one by one


def harmonic_distance(u: float, nodes: float) -> int:
    """A distance on the ring; for u uniform in [0, 1) its density is 1 / (x ln nodes) (Symphony §3.1).

    >>> harmonic_distance(0.0, 1024) == RING_SIZE // 1024, harmonic_distance(0.5, 1024) == RING_SIZE // 32
    (True, True)
    """
    return max(1, min(RING_SIZE - 1, int(RING_SIZE * max(nodes, 2.0) ** (u - 1.0))))


def estimated_nodes(own: NodeId, successor: NodeId, predecessor: NodeId) -> int:
    """How many nodes there are if all lie as close as these, as a power of two.

    >>> estimated_nodes(0, successor=RING_SIZE // 1000, predecessor=RING_SIZE - RING_SIZE // 1000)
    1024
    """
    arc = (clockwise(own, successor) + clockwise(predecessor, own)) / 2
    return 1 << max(1, round(math.log2(RING_SIZE / max(arc, 1.0))))


class LongLinkTargets:
    """The points that a node's long links should lead to.

    Each link's place in the distribution is drawn once (`redraw`: every time it is asked for), so links
    stay where they are while the ring does.
    """

    def __init__(self, own: NodeId, count: int, rng: random.Random, redraw: bool = False) -> None:
        self._own = own
        self._random = rng
        self._redraw = redraw
        self._places = [rng.random() for _ in range(count)]
        self._nodes = 2
        self._points: list[int] = []

    def points(self, nodes: int) -> list[int]:
        """Where the links should lead, if there are so many nodes."""
        if self._redraw:
            self._places = [self._random.random() for _ in self._places]
        if self._redraw or nodes != self._nodes or not self._points:
            self._nodes = nodes
            self._points = [
                (self._own + harmonic_distance(place, nodes)) % RING_SIZE for place in self._places
            ]
        return self._points


def nearest(point: int, ring: Sequence[NodeId], taken: Collection[NodeId] = ()) -> NodeId | None:
    """The identifier nearest to the point among those in growing order and not taken; None if there is none.

    >>> nearest(10, [3, 8, 13, 40]), nearest(10, [3, 8, 13, 40], taken={8}), nearest(RING_SIZE - 1, [3, 40])
    (8, 13, 3)
    """
    if len(taken) >= len(ring) and all(peer in taken for peer in ring):
        return None
    count, place = len(ring), bisect_left(ring, point)
    up, down = place, place - 1
    while ring[up % count] in taken:
        up += 1
    while ring[down % count] in taken:
        down -= 1
    above, below = ring[up % count], ring[down % count]
    ahead, behind = clockwise(point, above), clockwise(below, point)
    if ahead == behind:
        return min(above, below)
    return above if ahead < behind else below


def ring_sides(own: NodeId, ring: Sequence[NodeId], count: int) -> list[NodeId]:
    """The next and the previous `count` of identifiers in growing order, nearest first, each once."""
    above, below = bisect_right(ring, own), bisect_left(ring, own) - 1
    around: dict[NodeId, None] = {}
    for step in range(min(count, len(ring))):
        around[ring[(above + step) % len(ring)]] = None
        around[ring[(below - step) % len(ring)]] = None
    around.pop(own, None)
    return list(around)


class Router:
    """Greedy routing from one node over its links (rule 3).

    >>> router = Router(10, [20, 40]); [router.next_hop(point) for point in (12, 19, 35, RING_SIZE - 1)]
    [10, 20, 40, 10]
    """

    def __init__(self, own: NodeId, links: Iterable[NodeId]) -> None:
        self._ids = sorted({own, *links})
        self._ring: IdArray | None = None

    def next_hops(self, points: Sequence[int]) -> list[NodeId]:
        """Where lookups go next from here; the node's own identifier where they end here."""
        if len(points) < _FEW:
            return [self.next_hop(point) for point in points]
        hops: list[NodeId] = self._in_bulk(np.array(points, dtype=np.uint64)).tolist()
        return hops

    def _in_bulk(self, points: IdArray) -> IdArray:
        if self._ring is None:
            self._ring = np.array(self._ids, dtype=np.uint64)
        ring = self._ring
        place = ring.searchsorted(points)
        above, below = ring[place % len(ring)], ring[place - 1]
        ahead, behind = above - points, points - below  # unsigned: they wrap as the ring does
        below_wins = (behind < ahead) | ((behind == ahead) & (below < above))
        hops: IdArray = np.where(below_wins, below, above)
        return hops

    def next_hop(self, point: int) -> NodeId:
        hop = nearest(point, self._ids)
        assert hop is not None  # the node itself is there
        return hop
