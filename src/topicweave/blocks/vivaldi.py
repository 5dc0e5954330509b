"""Network coordinates: points of a Euclidean space whose distances tell how long a message takes.

F. Dabek, R. Cox, F. Kaashoek, R. Morris: "Vivaldi: A Decentralized Network Coordinate System", SIGCOMM 2004;
made stable as in J. Ledlie, P. Pietzuch, M. Seltzer: "Stable and Accurate Network Coordinates", ICDCS 2006
(Rappel §2.2, §6.1.4).

Rules kept
----------
1. Distances are **one-way** seconds: half of the measured round trip. No height term: with heights the
   triangle inequality that Rappel's rejoins rest on (§4.3) would not hold between coordinates.
2. A raw sample never moves a coordinate: per peer, the lowest quarter of the last few samples does (Ledlie §4.1), so a
   burst of queueing is not taken for distance.
3. What a node tells others is not the point that moves with every sample but one that follows only when the
   recent points have clearly moved away from the earlier ones (Ledlie §5.2, ENERGY).
4. With landmarks whose places are known, a node finds its own from one measurement of each: the springs are
   relaxed at once, instead of one sample at a time.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Sequence

import numpy as np

from topicweave.model.arrays import FloatArray
from topicweave.model.ids import NodeId

Coordinate = tuple[float, ...]

DIMENSIONS = 5
"""See `docs/systems/rappel.md`: the relative error falls up to five dimensions and hardly beyond, on both networks."""

FLOOR = 1e-3
"""Seconds. Errors are relative to at least this: half a millisecond wrong of a tenth of a millisecond is not
five times wrong.
"""


def distance(one: Coordinate, other: Coordinate) -> float:
    """Seconds one way between two points.

    >>> distance((0.0, 0.003), (0.004, 0.0))
    0.005
    """
    return math.dist(one, other)


class LatencyFilter:
    """The moving percentile of the samples of each peer (Ledlie §4.1: a window of 4, the 25th percentile)."""

    def __init__(self, window: int = 4, peers: int = 256) -> None:
        self._window = window
        self._peers = peers
        self._samples: dict[NodeId, deque[float]] = {}

    def add(self, peer: NodeId, seconds: float) -> float:
        """Take a sample; what to believe of the peer now."""
        samples = self._samples.get(peer)
        if samples is None:
            if len(self._samples) >= self._peers:
                del self._samples[next(iter(self._samples))]
            samples = self._samples[peer] = deque(maxlen=self._window)
        samples.append(seconds)
        return sorted(samples)[len(samples) // 4 if len(samples) > 1 else 0]

    def forget(self, peer: NodeId) -> None:
        self._samples.pop(peer, None)


class Vivaldi:
    """One node's coordinate: a mass on springs to whomever it measures."""

    CE, CC = 0.25, 0.25

    def __init__(self, rng: random.Random, dimensions: int = DIMENSIONS) -> None:
        # A little apart from the start: springs between equal points have no direction.
        self.position: Coordinate = tuple(rng.uniform(-1e-3, 1e-3) for _ in range(dimensions))
        self.error = 1.0
        self._random = rng

    def update(self, seconds: float, other: Coordinate, other_error: float) -> None:
        """A peer at `other`, which trusts its place by `other_error`, was measured `seconds` away (one way)."""
        if not (0 <= seconds < math.inf) or len(other) != len(self.position):
            return
        away = math.dist(self.position, other)
        total = self.error + other_error
        weight = self.error / total if total > 0 else 0.5
        wrong = abs(away - seconds) / max(seconds, FLOOR)
        self.error = min(1.0, wrong * self.CE * weight + self.error * (1.0 - self.CE * weight))
        push = self.CC * weight * (seconds - away)
        if away < 1e-9:
            direction = [self._random.gauss(0.0, 1.0) for _ in other]
            length = math.hypot(*direction)
            self.position = tuple(
                p + push * d / length for p, d in zip(self.position, direction, strict=True)
            )
        else:
            scale = push / away
            self.position = tuple(p + scale * (p - o) for p, o in zip(self.position, other, strict=True))


class StableCoordinate:
    """The coordinate that a node shows: moves only when the recent ones differ from the earlier ones (Ledlie
    §5.2, ENERGY).

    Two windows of the last positions; when the energy distance between them exceeds `threshold` (seconds),
    the shown point becomes the centre of the newer window and both begin anew there.
    """

    def __init__(self, window: int = 8, threshold: float = 4e-3) -> None:
        self._window = window
        self._threshold = threshold
        self._start: list[Coordinate] = []
        self._recent: deque[Coordinate] = deque(maxlen=window)
        self.shown: Coordinate = ()

    def follow(self, position: Coordinate) -> bool:
        """Take the newest position; whether the shown one changed."""
        if not self.shown:
            self.shown = position
        if len(self._start) < self._window:
            self._start.append(position)
        self._recent.append(position)
        if len(self._recent) < self._window or self._energy() <= self._threshold:
            return False
        self.shown = tuple(sum(axis) / len(self._recent) for axis in zip(*self._recent, strict=True))
        self._start = list(self._recent)
        return True

    def _energy(self) -> float:
        start, recent = self._start, self._recent

        def mean(ones: Sequence[Coordinate], others: Sequence[Coordinate]) -> float:
            return sum(math.dist(a, b) for a in ones for b in others) / (len(ones) * len(others))

        one, other = list(start), list(recent)
        return 2 * mean(one, other) - mean(one, one) - mean(other, other)


def place(landmarks: Sequence[Coordinate], seconds: Sequence[float], rounds: int = 100) -> Coordinate:
    """Where a node is that measured landmarks at known places so many seconds away (one way).

    Vivaldi's springs with all landmarks pulling at once, until they are at rest. A function of its inputs
    alone, so a node that measures the same is at the same place. Springs have several states of rest; the one
    with the least energy of three starts is taken: the centre of the landmarks, the nearest one, and across
    from the farthest one.
    """
    points: FloatArray = np.array(landmarks, dtype=np.float64)
    lengths: FloatArray = np.array(seconds, dtype=np.float64)
    centre = points.mean(axis=0)
    nearest, farthest = points[int(lengths.argmin())], points[int(lengths.argmax())]
    starts = np.array([centre, nearest * 0.9 + centre * 0.1, 2 * centre - farthest])
    # All starts at once: starts x landmarks x dimensions.
    place_ = starts + 1e-6 * np.arange(1, points.shape[1] + 1)
    count = len(points)
    for step in range(rounds):
        arrows = place_[:, None, :] - points[None, :, :]
        away = np.sqrt((arrows**2).sum(axis=2)) + 1e-12
        force = ((lengths - away) / away)[:, :, None] * arrows
        place_ = place_ + (1.0 if step < rounds // 2 else 0.5) * force.sum(axis=1) / count
    away = np.sqrt(((place_[:, None, :] - points[None, :, :]) ** 2).sum(axis=2))
    best = place_[int(((away - lengths) ** 2).sum(axis=1).argmin())]
    return tuple(float(value) for value in best)


def relative_errors(coordinates: FloatArray, one_way: FloatArray) -> FloatArray:
    """|predicted - true| / true of every pair of different nodes; `one_way` is the matrix of seconds."""
    count = len(coordinates)
    upper = np.triu_indices(count, 1)
    true = one_way[upper]
    predicted = np.sqrt(((coordinates[upper[0]] - coordinates[upper[1]]) ** 2).sum(axis=1))
    errors: FloatArray = np.abs(predicted - true) / np.maximum(true, FLOOR)
    return errors
