"""A ring's routing table: where a message for a point goes.

The table is the node itself, its successor, its predecessor and its fingers, in the order of their places. A
message for a point goes to the last place at or before it, clockwise: each hop comes nearer, none oversteps.
The node whose next place lies beyond the point is the point's *owner*. So everything between two entries of a
table goes to the first of them: that arc is all there is to know of a hop.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from topicweave.blocks.growing_ids import RingPlace
from topicweave.model.ids import NodeId


class RingTable:
    """Places in their order; empty until the node has a place.

    >>> table = RingTable()
    >>> table.replace((b"\\x40", 1), links=[(b"\\x80", 2)], fans=[])
    True
    >>> table.next_hop((b"\\x90", 7)), table.next_hop((b"\\x20", 7)), table.next_hop((b"\\x50", 7))
    (2, 2, 1)
    """

    def __init__(self) -> None:
        self.places: list[RingPlace] = []
        self.neighbours: list[RingPlace] = []
        """All links, in whichever direction, without the node itself: where random walks go."""

    def replace(self, own: RingPlace, links: Iterable[RingPlace], fans: Iterable[RingPlace]) -> bool:
        """Fans are no part of the table, but neighbours; returns whether the table changed."""
        chosen = set(links)
        self.neighbours = sorted(chosen.union(fans))
        places = sorted({own} | chosen)
        changed = places != self.places
        self.places = places
        return changed

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[RingPlace]:
        return iter(self.places)

    def next_hop(self, point: RingPlace) -> NodeId:
        """Where a message for a point goes; the node itself if it owns it."""
        return self.places[bisect_right(self.places, point) - 1][1]

    def hop_and_end(self, point: RingPlace) -> tuple[RingPlace, RingPlace]:
        """The next hop's place, and where the arc ends that goes to it."""
        index = bisect_right(self.places, point) - 1
        return self.places[index], self.places[(index + 1) % len(self.places)]

    def end_of(self, place: RingPlace) -> RingPlace | None:
        """Where the arc ends that goes to a place of the table; None if it is not there."""
        index = bisect_left(self.places, place)
        if index < len(self.places) and self.places[index] == place:
            return self.places[(index + 1) % len(self.places)]
        return None

    def neighbours_between(self, start: RingPlace, end: RingPlace) -> tuple[int, int]:
        """(first, count): the neighbours on the arc [start, end) are so many from `neighbours[first]` on,
        round the end.
        """
        if start == end:
            return 0, len(self.neighbours)
        first, last = bisect_left(self.neighbours, start), bisect_left(self.neighbours, end)
        count = last - first if start < end else len(self.neighbours) - first + last
        return first, count
