"""Exact quantiles of values that lie in sorted arrays, one per task and run: looked at twice, and never
brought together.

The first look is at every so-manieth value (marks). It says between which two values a quantile lies for certain; the
second look is at what lies there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from topicweave.model.arrays import FloatArray
from topicweave.pipeline.rounds import Letter


class LatencyMarks(NamedTuple):
    """Every `stride`-th value of a sorted array, from its first on."""

    size: int
    stride: int
    values: FloatArray

    def at_most_below(self, value: float) -> int:
        return min(self.size, int(np.searchsorted(self.values, value, "left")) * self.stride)

    def at_least_up_to(self, value: float) -> int:
        marks = int(np.searchsorted(self.values, value, "right"))
        return (marks - 1) * self.stride + 1 if marks else 0


class WantedQuantiles(NamedTuple):
    """Quantiles of one run, and what is known of them after the first look."""

    places: list[float]
    """Each quantile's place among all values, which may be between two."""
    spans: dict[int, tuple[float, float]]
    """By rank: two values between which the one of that rank lies."""


def wanted(marks: Sequence[LatencyMarks], shares: Sequence[float]) -> WantedQuantiles:
    count = sum(one.size for one in marks)
    places = [share * (count - 1) for share in shares]
    candidates = np.unique(np.concatenate([one.values for one in marks]))
    ranks = {rank for place in places for rank in _neighbours(place, count)}
    return WantedQuantiles(places, {rank: _span(candidates, marks, rank) for rank in sorted(ranks)})


def _neighbours(place: float, count: int) -> tuple[int, int]:
    return math.floor(place), min(math.floor(place) + 1, count - 1)


def second_look(run: int, values: FloatArray, spans: Mapping[int, tuple[float, float]]) -> Iterator[Letter]:
    """What of a sorted array lies within the spans, equal values once, and how much lies below."""
    for rank, (low, high) in spans.items():
        first, last = np.searchsorted(values, low, "left"), np.searchsorted(values, high, "right")
        inside, times = np.unique(values[first:last], return_counts=True)
        columns = {
            "value": np.append(inside, -math.inf),
            "times": np.append(times, first).astype(np.int64),
            "run": np.full(len(inside) + 1, run),
            "rank": np.full(len(inside) + 1, rank),
        }
        yield Letter(0, 0, "within", columns)


def quantiles(asked: WantedQuantiles, looks: Sequence[Letter], run: int) -> list[float]:
    """Interpolated, and rounded, as NumPy does it: results are equal and not merely close."""
    found = {}
    for rank in asked.spans:
        mine = [
            look.columns
            for look in looks
            if look.columns["run"][0] == run and look.columns["rank"][0] == rank
        ]
        values, times = (np.concatenate([one[name] for one in mine]) for name in ("value", "times"))
        order = np.argsort(values)
        ends = np.cumsum(times[order])
        found[rank] = float(values[order][np.searchsorted(ends, rank, "right")])
    count = max(asked.spans) + 1
    pairs = [_neighbours(place, count) for place in asked.places]
    return [
        _between(found[low], found[high], place - low)
        for (low, high), place in zip(pairs, asked.places, strict=True)
    ]


def _between(low: float, high: float, share: float) -> float:
    return high - (high - low) * (1 - share) if share >= 0.5 else low + (high - low) * share


def _span(candidates: FloatArray, marks: Sequence[LatencyMarks], rank: int) -> tuple[float, float]:
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
