"""Backpressure: whoever sends faster than a peer reads is slowed down before that peer's queue is full.

Rules kept
----------
1. While more than `ENOUGH` bytes (or half of what is allowed) wait in a peer's outbox, the node's own `publish` waits, and nothing is read from the other peers: so their
   queues fill up in turn, until the publishers wait, however many relays lie between.
2. What the congested peer itself sends is read on: two nodes that fill each other's queues would otherwise wait for each other.
3. A peer holds up others for `PATIENCE` seconds at most, and not again before it has drained: one that is stuck costs the swarm a
   moment, not its life. What then does not fit is refused, counted and, if it is the node's own, told in the receipt. Larger circles of nodes that wait for
   each other end the same way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from topicweave.model.ids import NodeId

PATIENCE = 1.0
ENOUGH = 512 * 1024
"""More would only wait longer: whatever a peer says about what it is sent, such as that it has it already, comes too late for all of it."""


class Congestion:
    """`changed` is called when the peers that hold up others are others than before."""

    def __init__(self, loop: asyncio.AbstractEventLoop, changed: Callable[[], None]) -> None:
        self.holding_up: set[NodeId] = set()
        self._loop = loop
        self._changed = changed
        self._full: dict[NodeId, asyncio.TimerHandle] = {}
        self._waiting: list[asyncio.Future[None]] = []

    def filled(self, peer: NodeId) -> None:
        """More waits for the peer than should."""
        if peer not in self._full:
            self._full[peer] = self._loop.call_later(PATIENCE, self._lose_patience, peer)
            self.holding_up.add(peer)
            self._changed()

    def drained(self, peer: NodeId) -> None:
        """Enough was sent, or will never be."""
        timer = self._full.pop(peer, None)
        if timer is not None:
            timer.cancel()
            self._release(peer)

    def holds_up(self, sender: NodeId | None) -> bool:
        """Whether what this peer sends must wait."""
        return bool(self.holding_up) and sender not in self.holding_up

    async def room(self) -> None:
        """Returns when nobody holds up others."""
        while self.holding_up:
            waiting: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(waiting)
            await waiting

    def close(self) -> None:
        for peer in list(self._full):
            self.drained(peer)

    def _lose_patience(self, peer: NodeId) -> None:
        self._release(peer)

    def _release(self, peer: NodeId) -> None:
        if peer in self.holding_up:
            self.holding_up.discard(peer)
            if not self.holding_up:
                waiting, self._waiting = self._waiting, []
                for future in waiting:
                    if not future.done():
                        future.set_result(None)
            self._changed()
