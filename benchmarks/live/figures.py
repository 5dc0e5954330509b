"""What a contestant's run gives."""

from __future__ import annotations

import struct
import time
from typing import NamedTuple

SIZE = 128
"""Bytes of an event."""


class Figures(NamedTuple):
    arrived: float
    """Share of the deliveries due that came at all."""
    per_second: float
    """Those that came, from the first publish to the last of them."""
    p50: float
    p99: float


def stamped(number: int) -> bytes:
    """A payload that knows when it was sent; the clock is the same in all processes of a machine."""
    return struct.pack(">Qd", number, time.monotonic()).ljust(SIZE, b".")


class Tally:
    """Deliveries of one burst."""

    def __init__(self) -> None:
        self.ages: list[float] = []
        self.restart()

    def add(self, payload: bytes) -> None:
        self.last = time.monotonic()
        self.ages.append(float(self.last - struct.unpack_from(">d", payload, 8)[0]))

    def restart(self) -> None:
        self.began = self.last = time.monotonic()
        self.ages = []

    def figures(self, due: int) -> Figures:
        ordered = sorted(self.ages)
        if not ordered:
            return Figures(0.0, 0.0, 0.0, 0.0)
        p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
        rate = len(ordered) / (self.last - self.began)
        return Figures(len(ordered) / due, rate, ordered[(len(ordered) - 1) // 2], p99)
