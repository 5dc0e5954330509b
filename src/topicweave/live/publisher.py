"""The publishing side of a live node: it hands events to the system and writes their receipts."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from typing import TYPE_CHECKING

from topicweave.client.words import Payload, as_payload
from topicweave.errors import BadInput
from topicweave.live.application import Receipt
from topicweave.live.gate import FOR_NOW
from topicweave.live.wire import VerdictOn, ask_frame
from topicweave.model.event import EventId
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import EventMessage

if TYPE_CHECKING:
    from topicweave.live.node import LiveNode

TURN = 64 * 1024
"""Bytes published without a pause, before the event loop has a turn to send them."""
QUEUE_FULL = "queue full: every interested neighbour is too slow to take it"
SEAL_ROOM = bytes(72)
"""In front of a payload that will be signed; see `keyring`."""
NOT_PERMANENT = "not sent yet: "
"""Begins the reason why an event that is not on disk was not sent."""
ASK_EVERY = 0.05
"""Seconds between looks whether those who were sent an event can be asked about it."""
ASK_AGAIN = 0.5
"""Seconds after which one that refused for now is asked again."""


class _Watch:
    """What becomes of one event among the neighbours."""

    __slots__ = ("asked", "changed", "sent", "verdicts")

    def __init__(self) -> None:
        self.sent: list[NodeId] = []
        self.verdicts: dict[NodeId, str] = {}
        self.asked: dict[NodeId, float] = {}
        self.changed = asyncio.Event()

    @property
    def accepted(self) -> int:
        return sum(not verdict for verdict in self.verdicts.values())

    @property
    def refused(self) -> dict[str, int]:
        return dict(Counter(verdict for verdict in self.verdicts.values() if verdict))


class Publisher:
    """One per node. A node's `publish` calls never overlap between their checks and the system: that part
    does not wait.
    """

    def __init__(self, owner: LiveNode) -> None:
        self._owner = owner
        self._transport = owner.transport
        self._counters = owner.counters
        self._most_bytes = owner.settings.limits.payload_bytes - len(SEAL_ROOM)
        self._sent: list[NodeId] = []
        self._refused = 0
        self._watches: dict[EventId, _Watch] = {}
        self.refusals: Counter[str] = Counter()
        """What neighbours refused of this node's events, by reason."""
        own = owner.world.own
        own.on_sent, own.on_refused, own.on_judged = self._note_sent, self._note_refused, self._judged

    def checked(self, given: Payload) -> bytes:
        """A payload that can be sent."""
        payload = as_payload(given)
        if len(payload) > self._most_bytes:
            raise BadInput(f"a payload of {len(payload)} bytes; at most {self._most_bytes} are sent")
        return payload

    async def publish(
        self, topic: TopicId, payload: bytes, wait_for: int, timeout: float, retain: bool
    ) -> Receipt:
        """Send a payload that was checked."""
        sender = self._transport.sender
        if sender.congestion.holding_up:
            await sender.room()
        elif sender.unflushed > TURN:
            await asyncio.sleep(0)
        owner = self._owner
        if not wait_for and not retain and owner.recorder is None:
            quick = owner.world.own.publish_quickly(topic, payload)
            if quick is not None:
                self._counters.publishes += 1
                event, taken = quick
                return Receipt(event.id, taken, 0, {}, "" if taken else QUEUE_FULL)
        if retain:
            owner.world.retained.add(topic)
        sent = self._sent = []
        self._refused = 0
        told, permanent = owner.world.own.publish(
            topic, payload if owner.keyring is None else SEAL_ROOM + payload
        )
        event = told.event
        if not sent:
            owner.world.gate.ages.waits(event.id)
        self._counters.publishes += 1
        if owner.recorder is not None:
            owner.recorder.published(event)
        if not wait_for and permanent is None:
            return Receipt(event.id, len(sent), 0, {}, "" if sent else self._why_nobody(told.reason))
        watch = self._watches[event.id] = _Watch()
        watch.sent += sent
        try:
            # Before the event leaves: its number is never used again.
            disk = owner.disk
            if disk is not None and permanent is not None and not await disk.keeps(permanent, timeout):
                why = f"the data folder takes nothing ({disk.error})" if disk.error else "the node stops"
                return Receipt(event.id, 0, 0, {}, NOT_PERMANENT + why)
            enough = await self._wait_for(event.id, watch, wait_for, timeout)
        finally:
            del self._watches[event.id]
        reason = "" if watch.sent else self._why_nobody(told.reason)
        if not enough:
            reason = reason or self._why_too_few(watch, wait_for)
        return Receipt(event.id, len(set(watch.sent)), watch.accepted, watch.refused, reason)

    def _note_sent(self, peer: NodeId, message: EventMessage) -> None:
        self._sent.append(peer)
        if self._watches and (watch := self._watches.get(message.event.id)) is not None:
            watch.sent.append(peer)
            watch.changed.set()

    def _note_refused(self, peer: NodeId, message: EventMessage) -> None:
        self._refused += 1

    def _judged(self, peer: NodeId, verdict: VerdictOn) -> None:
        if verdict.refusal and verdict.refusal not in FOR_NOW:
            self.refusals[verdict.refusal] += 1
        watch = self._watches.get(verdict.event)
        if watch is not None:
            watch.verdicts[peer] = verdict.refusal
            watch.changed.set()

    def _why_nobody(self, system_reason: str) -> str:
        if self._refused:
            return QUEUE_FULL
        if not self._owner.joined:
            return "not joined: no other node is connected"
        return f"nobody interested known ({system_reason})" if system_reason else "nobody interested known"

    def _why_too_few(self, watch: _Watch, wanted: int) -> str:
        refused = ", ".join(f"{count} refused it as {reason}" for reason, count in watch.refused.items())
        return f"only {watch.accepted} of {wanted} neighbours accepted it in time" + (
            f"; {refused}" if refused else ""
        )

    async def _wait_for(self, event: EventId, watch: _Watch, wanted: int, timeout: float) -> bool:
        """Ask every neighbour that gets the event, now or later, whether it accepted it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while watch.accepted < wanted:
                    watch.changed.clear()
                    self._ask(event, watch)
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(watch.changed.wait(), ASK_EVERY)
        return watch.accepted >= wanted

    def _ask(self, event: EventId, watch: _Watch) -> None:
        now = self._transport.loop.time()
        for peer in dict.fromkeys(watch.sent):
            verdict = watch.verdicts.get(peer)
            open_ = verdict is None or verdict in FOR_NOW
            if open_ and now - watch.asked.get(peer, -ASK_AGAIN) >= ASK_AGAIN:
                entry = self._transport.peers.get(peer)
                if entry is None or entry.link is None:
                    continue
                self._transport.sender.flush(entry)
                # Behind the event, or its verdict is not known yet.
                if entry.link.open and not len(entry.outbox):
                    watch.asked[peer] = now
                    entry.link.write(ask_frame([event]))
