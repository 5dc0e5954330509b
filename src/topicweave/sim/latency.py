"""How long a message takes from one host to another (one way, seconds).

A model is asked with the two hosts' indexes and the time. Hosts are numbered as the workload numbers its
nodes; unless told which host is at which place, models put host i at place i modulo their number of places.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from topicweave.errors import BadInput


class Latency(Protocol):
    def delay(self, source: int, target: int, now: float) -> float:
        """One-way delay in seconds of a message sent now."""


@dataclass(frozen=True)
class Constant:
    """Every message takes the same time."""

    seconds: float = 0.05

    def __post_init__(self) -> None:
        if not 0 <= self.seconds < math.inf:
            raise BadInput(f"constant latency: need 0 or more seconds, got {self.seconds}")

    def delay(self, source: int, target: int, now: float) -> float:
        return self.seconds


class Uniform:
    """Each message draws its delay anew, so messages overtake each other."""

    def __init__(self, low: float, high: float, rng: random.Random) -> None:
        if not 0 <= low <= high < math.inf:
            raise BadInput(f"uniform latency: need 0 <= low <= high, got {low} and {high}")
        self.low, self._width, self._random = low, high - low, rng.random

    def delay(self, source: int, target: int, now: float) -> float:
        return self.low + self._width * self._random()


def _numbers(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """An array, or an empty one (which all who ask refuse) if rows differ in length or hold no numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.empty(0)


class Coordinates:
    """Hosts are points; the delay grows with their distance."""

    def __init__(
        self,
        points: npt.ArrayLike,
        seconds_per_unit: float = 1e-3,
        floor: float = 1e-4,
        heights: npt.ArrayLike | None = None,
        places: Sequence[int] | None = None,
    ) -> None:
        """`heights` is what each host's own link adds to its distances, as in Vivaldi's coordinates."""
        grid = _numbers(points)
        if grid.ndim != 2 or not grid.size or not np.isfinite(grid).all():
            raise BadInput("coordinates: need one finite point (x, y, …) per host")
        if not (0 <= seconds_per_unit < math.inf and 0 <= floor < math.inf):
            raise BadInput(
                f"coordinates: need 0 or more seconds, got {seconds_per_unit} per unit and a floor of {floor}"
            )
        # Plain tuples: one distance at a time is quicker in Python than through NumPy.
        self._points = [tuple(point) for point in grid.tolist()]
        high = np.zeros(len(grid)) if heights is None else _numbers(heights)
        if high.shape != (len(grid),) or not (high >= 0).all():
            raise BadInput("coordinates: need one height of 0 or more per host")
        self._heights: list[float] = high.tolist()
        self._scale, self._floor = seconds_per_unit, floor
        self._places = range(len(grid)) if places is None else places

    def delay(self, source: int, target: int, now: float) -> float:
        places = self._places
        one, other = places[source % len(places)], places[target % len(places)]
        a, b = self._points[one], self._points[other]
        square = sum((x - y) ** 2 for x, y in zip(a, b, strict=True))
        distance = square**0.5 + (self._heights[one] + self._heights[other] if one != other else 0.0)
        return float(max(self._floor, self._scale * distance))


class RoundTripMatrix:
    """Measured round-trip times between places, in one or several slices of time.

    Slice s holds from s * slice_seconds on; after the last slice the series starts again.
    Half a round trip is taken as the one-way delay. An entry that is no time (NaN, infinite, negative) becomes
    the median of the slice's times between different places.
    """

    def __init__(
        self,
        slices_rtt_ms: Sequence[npt.ArrayLike],
        slice_seconds: float = 3600.0,
        places: Sequence[int] | None = None,
    ) -> None:
        self._slices: list[npt.NDArray[np.float64]] = []
        for number, matrix in enumerate(slices_rtt_ms, start=1):
            rtt = _numbers(matrix)
            if rtt.ndim != 2 or rtt.shape[0] != rtt.shape[1]:
                raise BadInput(f"RTT matrix, slice {number}: need a square matrix, got shape {rtt.shape}")
            valid = np.isfinite(rtt) & (rtt >= 0)
            if not valid.any():
                raise BadInput(f"RTT matrix, slice {number}: no valid entry")
            # The zeros of the diagonal would pull down the median of a small matrix.
            apart = valid & ~np.eye(len(rtt), dtype=np.bool_)
            median = np.median(rtt[apart if apart.any() else valid])
            self._slices.append(np.where(valid, rtt, median) / 2000.0)
        if not self._slices or len({matrix.shape for matrix in self._slices}) != 1:
            raise BadInput("RTT matrix: need at least one slice, all of the same size")
        if not 0 < slice_seconds < math.inf:
            raise BadInput(f"RTT matrix: slice_seconds must be positive, got {slice_seconds}")
        self._slice_seconds = slice_seconds
        self._places = range(len(self._slices[0])) if places is None else places

    def delay(self, source: int, target: int, now: float) -> float:
        matrix, places = self._slices[int(now / self._slice_seconds) % len(self._slices)], self._places
        return float(matrix[places[source % len(places)], places[target % len(places)]])
