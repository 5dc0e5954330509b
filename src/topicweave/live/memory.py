"""One account of what others can make a node hold: bytes, by what they are for. No I/O, no clock.

Rules kept
----------
1. Code that holds something for peers or applications reports it here: before it takes more (`take`), or
   after (`settle`). After `settle` it makes room by its own policy until nothing is `excess`.
2. No kind may hold more than its share, so that it cannot shut out the others. All kinds together may hold no
   more than `most`.
3. Sizes are counted, not measured: payloads and encoded bytes as they are, with a fixed sum for what Python adds.

Tables of fixed size (streams seen, addresses, certificates, a broadcast tree's cache) do not count.
"""

from __future__ import annotations

from typing import Literal

Kind = Literal["interests", "queues", "frames", "unread", "unacknowledged", "waiting", "cache", "asked"]
SHARES: dict[Kind, int] = {
    "interests": 2,
    "queues": 2,
    "frames": 4,
    "unread": 2,
    "unacknowledged": 4,
    "waiting": 4,
    "cache": 4,
    "asked": 16,
}
"""Each may have this part of all: what peers want; what waits to be sent; frames that are not whole yet;
events that applications have not read, or not acknowledged; events that wait for the disk; the caches for
catching up; events asked for.
"""
EVENT = 250
"""Bytes that an event takes up beyond its payload."""
EVENT_ID = 200


class Memory:
    """
    >>> memory = Memory(1000)
    >>> memory.take("queues", 400), memory.take("queues", 200), memory.take("frames", 200)
    (True, False, True)
    >>> memory.settle("unread", 0, 500); memory.excess("unread"), memory.excess("frames")
    (100, 100)
    >>> memory.refused["queues"]
    1
    """

    def __init__(self, most: int = 1 << 62) -> None:
        self.most = most
        self.held: dict[Kind, int] = dict.fromkeys(SHARES, 0)
        self.refused: dict[Kind, int] = dict.fromkeys(SHARES, 0)
        """How often there was no room."""
        self.total = 0

    def share(self, kind: Kind) -> int:
        return self.most // SHARES[kind]

    def take(self, kind: Kind, amount: int) -> bool:
        """Whether there is room for so much more; if so, it is held from now on."""
        if self.held[kind] + amount > self.share(kind) or self.total + amount > self.most:
            self.refused[kind] += 1
            return False
        self.settle(kind, 0, amount)
        return True

    def give(self, kind: Kind, amount: int) -> None:
        """So much less is held."""
        self.settle(kind, amount, 0)

    def settle(self, kind: Kind, before: int, now: int) -> None:
        """Somebody held `before`, and holds `now`."""
        self.held[kind] += now - before
        self.total += now - before

    def excess(self, kind: Kind) -> int:
        """How much of this kind must go."""
        return max(0, self.held[kind] - self.share(kind), min(self.held[kind], self.total - self.most))
