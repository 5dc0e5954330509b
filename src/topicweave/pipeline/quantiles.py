"""Exact quantiles of a column of any length, by counting: no sort, and no map of all the different values."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_BINS = 4096
_FEW = 20_000


class _Span(NamedTuple):
    """All values from `low` to `high`: there are `size` of them, and `before` smaller ones."""

    low: float
    high: float
    before: int
    size: int

    @property
    def width(self) -> float:
        return (self.high - self.low) / _BINS

    def wide(self) -> bool:
        """Too much to look at every different value in it; bins as narrow as a rounding error help no more."""
        return self.size > _FEW and self.low + self.width > self.low


def exact_quantiles(values: DataFrame, column: str, shares: Sequence[float]) -> list[float]:
    """Interpolated as NumPy does it; nan of nothing. `values` is read about three times: persist what is dear."""
    rows = values.where(f"{column} is not null")
    row = rows.selectExpr("count(*)", f"min({column})", f"max({column})").first()
    assert row is not None
    count = int(row[0])
    if not count:
        return [math.nan] * len(shares)
    places = [share * (count - 1) for share in shares]
    pairs = [(math.floor(place), min(math.floor(place) + 1, count - 1)) for place in places]
    found = _ranked(
        rows, column, {rank for pair in pairs for rank in pair}, float(row[1]), float(row[2]), count
    )
    return [
        _between(found[low], found[high], place - low)
        for (low, high), place in zip(pairs, places, strict=True)
    ]


def _between(low: float, high: float, share: float) -> float:
    """NumPy's own way to round between two values, so that results are equal and not merely close."""
    return high - (high - low) * (1 - share) if share >= 0.5 else low + (high - low) * share


def _ranked(
    rows: DataFrame, column: str, ranks: Collection[int], low: float, high: float, count: int
) -> dict[int, float]:
    """The values that have so many smaller ones before them: bins are counted, and the right ones looked into."""
    found = {0: low, count - 1: high}
    where = {rank: _Span(low, high, 0, count) for rank in ranks if rank not in found}
    while any(span.wide() for span in where.values()):
        wide = sorted({span for span in where.values() if span.wide()})
        inside = _counted(rows, column, wide)
        where = {rank: _narrowed(rank, span, inside.get(span)) for rank, span in where.items()}
    found |= {rank: span.low for rank, span in where.items() if span.low == span.high}
    where = {rank: span for rank, span in where.items() if rank not in found}
    return found | (_looked_up(rows, column, where) if where else {})


def _within(value: Column, span: _Span) -> Column:
    return (value >= span.low) & (value <= span.high)


def _counted(rows: DataFrame, column: str, spans: Sequence[_Span]) -> dict[_Span, list[_Span]]:
    """The spans in bins."""
    from pyspark.sql import functions as sf

    value = sf.col(column)
    number = sf.lit(None).cast("int")
    for at, span in enumerate(spans):
        bin_number = sf.least(sf.floor((value - span.low) / span.width), sf.lit(_BINS - 1)).cast("int")
        number = sf.when(_within(value, span), sf.lit(at * _BINS) + bin_number).otherwise(number)
    counted = (
        rows.select(number.alias("bin"), value.alias("value"))
        .where("bin is not null")
        .groupBy("bin")
        .agg(sf.count("*").alias("size"), sf.min("value").alias("low"), sf.max("value").alias("high"))
        .orderBy("bin")
        .toArrow()
    )  # at most _BINS rows for each of the spans
    bins: dict[_Span, list[_Span]] = {span: [] for span in spans}
    for row in counted.to_pylist():
        span = spans[row["bin"] // _BINS]
        before = bins[span][-1].before + bins[span][-1].size if bins[span] else span.before
        bins[span].append(_Span(row["low"], row["high"], before, row["size"]))
    return bins


def _narrowed(rank: int, span: _Span, bins: list[_Span] | None) -> _Span:
    if bins is None:
        return span
    return next(bin_ for bin_ in bins if rank < bin_.before + bin_.size)


def _looked_up(rows: DataFrame, column: str, where: dict[int, _Span]) -> dict[int, float]:
    from pyspark.sql import functions as sf

    value = sf.col(column)
    inside = reduce(or_, (_within(value, span) for span in sorted(set(where.values()))))
    few = rows.where(inside).groupBy(value.alias("value")).count().toArrow().sort_by("value")  # see `wide`
    values, times = few["value"].to_numpy(), few["count"].to_numpy()
    found = {}
    for rank, span in where.items():
        first, last = np.searchsorted(values, [span.low, span.high])
        ends = span.before + np.cumsum(times[first : last + 1])
        found[rank] = float(values[first + np.searchsorted(ends, rank, side="right")])
    return found
