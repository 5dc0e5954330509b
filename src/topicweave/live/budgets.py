"""What one peer may cost: allowances of bytes, messages and work, and what happens to peers that exceed them.
No I/O, no clock.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

from topicweave.model.ids import NodeId


class Allowance:
    """A bucket that holds one second's worth; spending beyond it means waiting."""

    __slots__ = ("_at", "_left", "rate")

    def __init__(self, rate: int, now: float) -> None:
        self.rate = rate
        self._left = float(rate)
        self._at = now

    def spend(self, units: int, now: float) -> None:
        self._left = min(float(self.rate), self._left + (now - self._at) * self.rate) - units
        self._at = now

    def wait(self) -> float:
        """Seconds until there is something to spend again."""
        return -self._left / self.rate if self._left < 0 else 0.0


FAULTS = {
    "broke the protocol": 20.0,
    "forged an event": 50.0,
    "made the node fail": 20.0,
    "offered what it does not have": 5.0,
    "told more than it may": 25.0,
    "told of more topics than limits.topics_per_peer": 100.0,
}
"""How much each weighs."""
BANNED_AT = 100.0
HALF_LIFE = 60.0
"""Seconds in which half of a peer's faults is forgotten."""
FIRST_BAN, LONGEST_BAN = 30.0, 3600.0
MOST_PEERS = 4096


class Conduct(NamedTuple):
    score: float
    at: float
    bans: int
    banned_until: float
    last_fault: str


_CLEAN = Conduct(0.0, 0.0, 0, 0.0, "")


class Reputation:
    """Who did wrong, how much, and for how long nobody speaks to them.

    >>> book = Reputation()
    >>> [book.fault(7, "forged an event", now=float(t)) for t in range(3)]
    [False, True, False]
    >>> book.banned(7, now=5.0), book.banned(7, now=32.0)
    (True, False)
    """

    def __init__(self) -> None:
        self._peers: OrderedDict[NodeId, Conduct] = OrderedDict()

    def fault(self, peer: NodeId, what: str, now: float) -> bool:
        """Whether the peer is banned because of it; each time for twice as long."""
        old = self._peers.get(peer, _CLEAN)
        score = self._score(old, now) + FAULTS[what]
        bans, until = old.bans, old.banned_until
        banned = score >= BANNED_AT and now >= until
        if banned:
            until = now + min(FIRST_BAN * 2.0**bans, LONGEST_BAN)
            bans, score = bans + 1, 0.0
        self._peers[peer] = Conduct(score, now, bans, until, what)
        self._peers.move_to_end(peer)
        if len(self._peers) > MOST_PEERS:
            self._peers.popitem(last=False)
        return banned

    def banned(self, peer: NodeId, now: float) -> bool:
        known = self._peers.get(peer)
        return known is not None and now < known.banned_until

    def reason(self, peer: NodeId, now: float) -> str:
        known = self._peers.get(peer, _CLEAN)
        return f"banned for {max(0.0, known.banned_until - now):.0f} s more: you {known.last_fault}"

    def __iter__(self) -> Iterator[tuple[NodeId, Conduct]]:
        return iter(self._peers.items())

    def _score(self, known: Conduct, now: float) -> float:
        return float(known.score * 0.5 ** ((now - known.at) / HALF_LIFE))
