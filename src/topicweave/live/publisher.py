"""The publishing side of a live node: hands events to the system, and writes receipts that tell the truth."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from topicweave.errors import BadInput
from topicweave.live.application import Receipt
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import EventMessage

if TYPE_CHECKING:
    from topicweave.live.node import LiveNode

TURN = 64 * 1024
"""Bytes published without a pause, before the event loop has a turn to send them."""
SIGNATURE_ROOM = bytes(64)
"""In front of a payload that will be signed; see `keyring`."""


class Publisher:
    """One per node. A node's `publish` calls never overlap between their checks and the system: that part does not wait."""

    def __init__(self, owner: LiveNode) -> None:
        self._owner = owner
        self._transport = owner.transport
        self._counters = owner.transport.counters
        self._most_bytes = owner.settings.limits.payload_bytes - len(SIGNATURE_ROOM)
        self._sent: list[NodeId] = []
        self._refused = 0
        self._watches: dict[EventId, set[NodeId]] = {}
        owner.world.on_sent = self._note_sent
        owner.world.on_refused = self._note_refused

    async def publish(self, topic: TopicId, payload: bytes, wait_for: int, timeout: float) -> Receipt:
        if len(payload) > self._most_bytes:
            raise BadInput(f"a payload of {len(payload)} bytes; at most {self._most_bytes} are sent")
        sender = self._transport.sender
        if sender.congestion.holding_up:
            await sender.congestion.room()
        elif sender.unflushed > TURN:
            await asyncio.sleep(0)
        owner = self._owner
        sent = self._sent = []
        self._refused = 0
        told = owner.node.publish(topic, payload if owner.keyring is None else SIGNATURE_ROOM + payload)
        event = told.event
        self._counters.publishes += 1
        owner.world.note_own(event)
        if owner.store is not None:
            # Before the event leaves (sending waits for the loop's next turn): its number is never used again.
            owner.store.set_fact("epoch", event.epoch)
            owner.store.set_sequence(topic, event.sequence + 1)
            owner.world.flush()
        if owner.recorder is not None:
            owner.recorder.published(event)
        reason = "" if sent else self._why_nobody(told.reason)
        if not wait_for:
            return Receipt(event.id, len(sent), 0, reason)
        return await self._wait_for(event, set(sent), wait_for, timeout, reason)

    def _note_sent(self, peer: NodeId, message: EventMessage) -> None:
        self._sent.append(peer)
        if self._watches and (watch := self._watches.get(message.event.id)) is not None:
            watch.add(peer)

    def _note_refused(self, peer: NodeId, message: EventMessage) -> None:
        self._refused += 1

    def _why_nobody(self, system_reason: str) -> str:
        if self._refused:
            return "queue full: every interested neighbour is too slow to take it"
        if not self._owner.joined:
            return "not joined: no other node is connected"
        return f"nobody interested known ({system_reason})" if system_reason else "nobody interested known"

    async def _wait_for(
        self, event: Event, sent: set[NodeId], wanted: int, timeout: float, reason: str
    ) -> Receipt:
        """Ask every neighbour that gets the event, now or later, whether it has read that far."""
        watch = self._watches[event.id] = set(sent)
        confirmed: set[NodeId] = set()
        enough = asyncio.Event()

        def passed(peer: NodeId) -> None:
            confirmed.add(peer)
            if len(confirmed) >= wanted:
                enough.set()

        asked: set[NodeId] = set()
        barriers: list[int] = []
        try:
            async with asyncio.timeout(timeout):
                while not enough.is_set():
                    if news := watch - asked:
                        asked |= news
                        barriers.append(self._transport.sender.barrier(sorted(news), passed))
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(enough.wait(), 0.05)
        except TimeoutError:
            reason = (
                reason if not watch else f"only {len(confirmed)} of {wanted} neighbours confirmed in time"
            )
        else:
            reason = ""
        finally:
            del self._watches[event.id]
            for barrier in barriers:
                self._transport.sender.end_barrier(barrier)
        return Receipt(event.id, len(watch), len(confirmed), reason)
