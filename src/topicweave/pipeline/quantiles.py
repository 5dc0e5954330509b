"""Exact quantiles of a column of any length, by counting: no sort, and no map of all the different values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BINS = 4096
_FEW = 20_000


def exact_quantiles(values: DataFrame, column: str, shares: Sequence[float]) -> list[float]:
    """Interpolated as NumPy does it; nan of nothing. `values` is read a few times: persist what is dear."""
    rows = values.where(f"{column} is not null")
    row = rows.selectExpr("count(*)", f"min({column})", f"max({column})").first()
    assert row is not None
    count, low, high = int(row[0]), row[1], row[2]
    if not count:
        return [math.nan] * len(shares)
    found: dict[int, float] = {0: float(low), count - 1: float(high)}
    answers = []
    for share in shares:
        place = share * (count - 1)
        below = math.floor(place)
        pair = [
            found.setdefault(rank, _ranked(rows, column, rank, float(low), float(high)))
            if rank not in found
            else found[rank]
            for rank in (below, min(below + 1, count - 1))
        ]
        answers.append(_between(pair[0], pair[1], place - below))
    return answers


def _between(low: float, high: float, share: float) -> float:
    """NumPy's own way to round between two values, so that results are equal and not merely close."""
    return high - (high - low) * (1 - share) if share >= 0.5 else low + (high - low) * share


def _ranked(rows: DataFrame, column: str, rank: int, low: float, high: float) -> float:
    """The value that has `rank` smaller ones before it: bins are counted, and the right one looked into."""
    from pyspark.sql import functions as sf

    while True:
        width = (high - low) / _BINS
        if width <= 0 or low + width == low:
            return low
        value = sf.col(column)
        inside = rows.where((value >= low) & (value <= high))
        number = sf.least(sf.floor((value - low) / width), sf.lit(_BINS - 1)).cast("int")
        counted = (
            inside.groupBy(number.alias("bin"))
            .agg(sf.count("*").alias("count"), sf.min(value).alias("low"), sf.max(value).alias("high"))
            .orderBy("bin")
            .toArrow()
        )  # at most _BINS rows
        ends = np.cumsum(counted["count"].to_numpy())
        place = int(np.searchsorted(ends, rank, side="right"))
        before = int(ends[place - 1]) if place else 0
        size = int(ends[place]) - before
        rank -= before
        low, high = counted["low"][place].as_py(), counted["high"][place].as_py()
        if low == high:
            return float(low)
        if size <= _FEW:
            few = rows.where((value >= low) & (value <= high)).select(value.alias("value")).toArrow()
            return float(np.sort(few["value"].to_numpy())[rank])
