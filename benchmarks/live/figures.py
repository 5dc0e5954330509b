"""What a contestant's run gives."""

from __future__ import annotations

import struct
import time
from typing import NamedTuple

SIZE = 128
"""Bytes of an event."""


class Figures(NamedTuple):
    deliveries: int
    per_second: float
    p50: float
    p99: float


def stamped(number: int) -> bytes:
    """A payload that knows when it was sent; the clock is the same in all processes of a machine."""
    return struct.pack(">Qd", number, time.monotonic()).ljust(SIZE, b".")


def age(payload: bytes) -> float:
    return float(time.monotonic() - struct.unpack_from(">d", payload, 8)[0])


def figures(began: float, ended: float, ages: list[float]) -> Figures:
    ordered = sorted(ages)
    last = len(ordered) - 1
    return Figures(
        len(ages),
        len(ages) / (ended - began),
        ordered[last // 2],
        ordered[min(last, int(len(ordered) * 0.99))],
    )
