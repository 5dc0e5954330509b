"""Exact quantiles of values that lie in sorted arrays, one per task: looked at twice, and never brought together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from topicweave.model.arrays import FloatArray

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_MARKS = 1 << 20
"""So many values of all arrays together come to the driver; between two of an array's there are equally many."""


class _Marks(NamedTuple):
    """Every `stride`-th value of a sorted array, from its first on."""

    size: int
    stride: int
    values: FloatArray

    def at_most_below(self, value: float) -> int:
        return min(self.size, int(np.searchsorted(self.values, value, "left")) * self.stride)

    def at_least_up_to(self, value: float) -> int:
        marks = int(np.searchsorted(self.values, value, "right"))
        return (marks - 1) * self.stride + 1 if marks else 0


def exact_quantiles(arrays: DataFrame, column: str, shares: Sequence[float]) -> list[float]:
    """Of all float64 values in the cells of a binary column, each a sorted array; nan of nothing.

    Interpolated, and rounded, as NumPy does it: results are equal and not merely close.
    """
    cells = arrays.where(f"length({column}) > 0").selectExpr(f"{column} as cell")
    marks = _marks(cells)
    count = sum(one.size for one in marks)
    if not count:
        return [math.nan] * len(shares)
    places = [share * (count - 1) for share in shares]
    pairs = [(math.floor(place), min(math.floor(place) + 1, count - 1)) for place in places]
    found = _values_at(cells, marks, sorted({rank for pair in pairs for rank in pair}))
    return [
        _between(found[low], found[high], place - low)
        for (low, high), place in zip(pairs, places, strict=True)
    ]


def _between(low: float, high: float, share: float) -> float:
    return high - (high - low) * (1 - share) if share >= 0.5 else low + (high - low) * share


def _marks(cells: DataFrame) -> list[_Marks]:
    each = max(64, _MARKS // max(cells.count(), 1))

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for cell in batch["cell"]:
                values = np.frombuffer(cell.as_buffer(), np.float64)
                stride = -(-len(values) // each)
                marks = values[::stride].tobytes()
                yield pa.RecordBatch.from_pylist([{"size": len(values), "stride": stride, "marks": marks}])

    found = cells.mapInArrow(look, "size long, stride long, marks binary").toArrow()  # see _MARKS
    return [
        _Marks(row["size"], row["stride"], np.frombuffer(row["marks"], np.float64))
        for row in found.to_pylist()
    ]


def _values_at(cells: DataFrame, marks: Sequence[_Marks], ranks: Sequence[int]) -> dict[int, float]:
    """The values that have so many smaller ones (or equal ones, in any order) before them."""
    candidates = np.unique(np.concatenate([one.values for one in marks]))
    spans = sorted({rank: _span(candidates, marks, rank) for rank in ranks}.items())
    bounds = [span for _, span in spans]

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for cell in batch["cell"]:
                values = np.frombuffer(cell.as_buffer(), np.float64)
                for at, (low, high) in enumerate(bounds):
                    first, last = np.searchsorted(values, low, "left"), np.searchsorted(values, high, "right")
                    inside, times = np.unique(values[first:last], return_counts=True)
                    yield pa.RecordBatch.from_pydict(
                        {
                            "span": pa.array(np.full(len(inside) + 1, at, np.int32)),
                            "value": np.append(inside, -math.inf),  # all smaller ones
                            "times": np.append(times, first).astype(np.int64),
                        }
                    )

    # A few strides of each array, equal values once.
    found = cells.mapInArrow(look, "span int, value double, times long").toArrow()
    values_at = {}
    for at, (rank, _) in enumerate(spans):
        mine = found.filter(pc.equal(found["span"], at)).sort_by("value")
        ends = np.cumsum(mine["times"].to_numpy())
        values_at[rank] = float(mine["value"].to_numpy()[np.searchsorted(ends, rank, "right")])
    return values_at


def _span(candidates: FloatArray, marks: Sequence[_Marks], rank: int) -> tuple[float, float]:
    """Two values between which the one at a rank lies for certain."""
    low, high = 0, len(candidates)
    while low < high:  # the first candidate that may have more than `rank` values below it
        middle = (low + high) // 2
        if sum(one.at_most_below(candidates[middle]) for one in marks) <= rank:
            low = middle + 1
        else:
            high = middle
    start = float(candidates[low - 1]) if low else -math.inf
    low, high = 0, len(candidates)
    while low < high:  # the first that has more than `rank` values up to it
        middle = (low + high) // 2
        if sum(one.at_least_up_to(candidates[middle]) for one in marks) > rank:
            high = middle
        else:
            low = middle + 1
    return start, float(candidates[low]) if low < len(candidates) else math.inf
