"""Identifiers: nodes and topics are points on one 64-bit ring.

Names are what people and tables use (strings); identifiers are what protocols use (integers). A name's
identifier is the first 64 bits of its SHA-1, so every node computes the same one without asking anybody.
Clockwise means growing identifiers, wrapping at 2**64.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

RING_BITS = 64
RING_SIZE = 1 << RING_BITS
_MASK = RING_SIZE - 1

NodeId = int
TopicId = int
Interest = frozenset[TopicId]


def ring_id(name: str) -> int:
    """The identifier of a name.

    >>> hex(ring_id("news"))
    '0x3c6bdcddc94f64bf'
    """
    return int.from_bytes(hashlib.sha1(name.encode(), usedforsecurity=False).digest()[:8], "big")


def ring_ids(names: Iterable[str]) -> list[int]:
    return [ring_id(name) for name in names]


def clockwise(start: int, end: int) -> int:
    """How far one walks clockwise from `start` to reach `end`.

    >>> clockwise(RING_SIZE - 1, 2)
    3
    """
    return (end - start) & _MASK


def distance(a: int, b: int) -> int:
    """The shorter way round between two points.

    >>> distance(1, RING_SIZE - 1)
    2
    """
    forward = (b - a) & _MASK
    return min(forward, RING_SIZE - forward)


def in_interval(point: int, start: int, end: int) -> bool:
    """Whether `point` lies in the clockwise interval (start, end].

    When start equals end the interval is the whole ring: a node alone owns everything.

    >>> in_interval(0, RING_SIZE - 5, 5), in_interval(6, RING_SIZE - 5, 5), in_interval(7, 3, 3)
    (True, False, True)
    """
    if start == end:
        return True
    return 0 < (point - start) & _MASK <= (end - start) & _MASK


def successor(point: int, ring: Sequence[int]) -> int:
    """The first identifier of `ring` at or after `point`, clockwise: the owner of `point`."""
    return min(ring, key=lambda candidate: clockwise(point, candidate))
