"""Backpressure: a node that sends faster than a peer reads is slowed down before the peer's queue is full. No
I/O, no clock.

Rules kept
----------
1. While more than `ENOUGH` bytes (or half of what is allowed) wait in a peer's outbox, the node's own
   `publish` waits, and the node reads nothing from other peers whose events it passes on. So their queues
   fill in turn, until the publishers wait, however many nodes lie between.
2. The node keeps reading the congested peer itself: two nodes that fill each other's queues would otherwise
   wait for each other. It also keeps reading peers whose last messages it did not pass on: three nodes in a
   circle, each of which has the others' events already, would otherwise wait for each other, and none would
   hear the request to push no more.
3. A peer that reads, however slowly, delays others for as long as it needs. A peer that stands still spends
   its credit: `PATIENCE` seconds of standing still, which come back at `REFILL` per second. Without credit it
   delays nobody: what does not fit into its queue is refused, counted and, if it is the node's own, reported
   in the receipt. It can delay others again once it has a credit of `AGAIN`. So a peer that stalls again and
   again costs the swarm a moment, then less than a tenth of its time.
"""

from __future__ import annotations

from topicweave.model.ids import NodeId

PATIENCE = 1.0
REFILL = 0.05
AGAIN = 0.25
STILL = 0.1
"""Seconds without progress after which a peer stands still. A process that waits for its turn on a busy
machine does not.
"""
ENOUGH = 512 * 1024
"""More would only wait longer: whatever a peer says about what it is sent, such as that it has it already,
comes too late for all of it.
"""


class _Full:
    """A peer for which too much waits."""

    __slots__ = ("charged", "progress")

    def __init__(self, now: float) -> None:
        self.progress = now
        """When it last took something."""
        self.charged = now
        """Until when standing still is paid for."""


class Congestion:
    """Every call returns whether `holding_up` has become another set; `deadline` is when to call `tick`."""

    def __init__(self) -> None:
        self.holding_up: set[NodeId] = set()
        self._full: dict[NodeId, _Full] = {}
        self._credit: dict[NodeId, tuple[float, float]] = {}
        self._spent: set[NodeId] = set()

    def filled(self, peer: NodeId, now: float) -> bool:
        """More waits for the peer than should."""
        if peer in self._full:
            return False
        self._full[peer] = _Full(now)
        if peer in self._spent and self._left(peer, now) < AGAIN:
            return False
        self._spent.discard(peer)
        self.holding_up.add(peer)
        return True

    def progressed(self, peer: NodeId, now: float) -> None:
        """The peer took something."""
        full = self._full.get(peer)
        if full is not None:
            self._charge(peer, full, now)
            full.progress = full.charged = now

    def drained(self, peer: NodeId, now: float) -> bool:
        """Enough was sent, or will never be."""
        full = self._full.pop(peer, None)
        if full is not None:
            self._charge(peer, full, now)
        return self._release(peer)

    def gone(self, peer: NodeId, now: float) -> bool:
        changed = self.drained(peer, now)
        if self._left(peer, now) >= PATIENCE:
            self._credit.pop(peer, None)
            self._spent.discard(peer)
        return changed

    def tick(self, now: float) -> bool:
        changed = False
        for peer in list(self.holding_up):
            self._charge(peer, self._full[peer], now)
            if self._left(peer, now) <= 0.0:
                self._spent.add(peer)
                changed |= self._release(peer)
        return changed

    def deadline(self, now: float) -> float | None:
        """When the first of those that stand still has spent its credit, if it goes on standing."""
        ends = [
            max(self._full[peer].charged, self._full[peer].progress + STILL) + self._left(peer, now)
            for peer in self.holding_up
        ]
        return min(ends) if ends else None

    def holds_up(self, sender: NodeId | None) -> bool:
        """Whether what this peer sends must wait."""
        return bool(self.holding_up) and sender not in self.holding_up

    def _left(self, peer: NodeId, now: float) -> float:
        left, at = self._credit.get(peer, (PATIENCE, now))
        return min(PATIENCE, left + (now - at) * REFILL)

    def _charge(self, peer: NodeId, full: _Full, now: float) -> None:
        """Pay for having stood still since it was last paid for."""
        since = max(full.charged, full.progress + STILL)
        if now > since and peer in self.holding_up:
            self._credit[peer] = (max(0.0, self._left(peer, now) - (now - since)), now)
            full.charged = now

    def _release(self, peer: NodeId) -> bool:
        if peer in self.holding_up:
            self.holding_up.discard(peer)
            return True
        return False
