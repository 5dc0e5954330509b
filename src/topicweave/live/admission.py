"""Which connections may come in, and which must go: connections that have not said hello, and room for
members. No I/O, no clock.

Rules kept
----------
1. A new connection is always let in. If there are too many that have not said hello, the oldest one of the
   address with most of them is closed. So a peer that says hello quickly gets through, however many strangers
   sit and wait.
2. When all places are taken, a connection that is no link of the overlay is closed. The last eighth of the
   places is for members that the node knew already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Generic, TypeVar

Caller = TypeVar("Caller", bound=Hashable)


class HalfOpen(Generic[Caller]):
    """Connections that are nobody's yet, by the address they come from."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._from: dict[Caller, str] = {}
        self._crowds: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._from)

    def __contains__(self, place: Caller) -> bool:
        return place in self._from

    def add(self, place: Caller, address: str) -> Caller | None:
        """Who must go to make room."""
        goes = self._eldest() if len(self._from) >= self.most else None
        if goes is not None:
            self.remove(goes)
        self._from[place] = address
        self._crowds[address] += 1
        return goes

    def remove(self, place: Caller) -> None:
        address = self._from.pop(place, None)
        if address is not None:
            self._crowds[address] -= 1
            if not self._crowds[address]:
                del self._crowds[address]

    def _eldest(self) -> Caller | None:
        if not self._from:
            return None
        crowd = max(self._crowds.values())
        return next(place for place, address in self._from.items() if self._crowds[address] == crowd)


def reserved(connections: int) -> int:
    """Places kept for members known from before."""
    return connections // 8
