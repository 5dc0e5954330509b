"""Lists of different lengths laid out one after the other, in pieces of bounded size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from topicweave.model.arrays import IntArray

PIECE = 1 << 22


def expansion(counts: IntArray) -> tuple[IntArray, IntArray]:
    """For lists of the given lengths laid out in a row: each cell's list, and its place within that list.

    >>> owner, place = expansion(np.array([2, 0, 3]))
    >>> owner.tolist(), place.tolist()
    ([0, 0, 2, 2, 2], [0, 1, 0, 1, 2])
    """
    owner = np.repeat(np.arange(len(counts)), counts)
    starts = np.cumsum(counts) - counts
    return owner, np.arange(len(owner)) - starts[owner]


def pieces(counts: IntArray, limit: int = PIECE) -> Iterator[slice]:
    """Cut lists of the given lengths into runs of at most `limit` cells (or one list, if that is longer).

    >>> [(piece.start, piece.stop) for piece in pieces(np.array([2, 2, 9, 1]), limit=4)]
    [(0, 2), (2, 3), (3, 4)]
    """
    ends = np.cumsum(counts)
    start = 0
    while start < len(counts):
        before = int(ends[start - 1]) if start else 0
        stop = max(int(np.searchsorted(ends, before + limit, side="right")), start + 1)
        yield slice(start, stop)
        start = stop
