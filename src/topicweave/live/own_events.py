"""What a node publishes itself: numbered, signed, permanent before it leaves, and sent.

An event without keys, on a node without a data folder, is sent straight to the system's targets. The node is
told of a burst of such events before it is told anything else (`settle`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING

import msgspec

from topicweave.live.catch_up_messages import CatchUp
from topicweave.live.clock import Clock
from topicweave.live.counters import Counters
from topicweave.live.event_log import EventLog
from topicweave.live.gate import Gate
from topicweave.live.transport import Transport
from topicweave.live.wire import VerdictOn
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import EventMessage, Node, Published

if TYPE_CHECKING:
    from topicweave.live.disk import Disk
    from topicweave.live.keyring import Keyring

log = logging.getLogger("topicweave.live")

MOST_QUICK = 1024
"""Events are published quickly before the node is told of them: no more than its caches hold."""
FURTHEST_EPOCH = int(10 * 365 * 86_400 * 1e6)
"""An epoch further ahead than ten years is nobody's clock."""


class OwnEvents:
    """`tell(action, …)` calls into the node; `tell_sampled(event, peer)` goes ahead of an event."""

    def __init__(
        self,
        clock: Clock,
        counters: Counters,
        gate: Gate,
        events: EventLog,
        retained: Container[TopicId],
        keyring: Keyring | None,
        tell: Callable[..., None],
        tell_sampled: Callable[[EventId, NodeId], None],
    ) -> None:
        self._clock, self._counters, self._gate, self._log = clock, counters, gate, events
        self._retained, self._keyring = retained, keyring
        self._tell, self._tell_sampled = tell, tell_sampled
        self._loop = asyncio.get_running_loop()
        self._node: Node | None = None
        self._transport: Transport | None = None
        self._id: NodeId | None = None
        self.epoch = 0
        self.publishing = False
        """Whether the node is being told to publish."""
        self.on_sent: Callable[[NodeId, EventMessage], None] | None = None
        """Told when an event message was taken for a peer."""
        self.on_refused: Callable[[NodeId, EventMessage], None] | None = None
        self.on_judged: Callable[[NodeId, VerdictOn], None] | None = None
        """Told what became of an event elsewhere."""
        self._quick: list[EventMessage] = []
        """Sent to their targets, and the node was not told of them yet."""
        self._impermanent: set[EventId] = set()
        self._unsent: dict[EventId, list[tuple[NodeId, EventMessage]]] = {}
        self._last_plain: EventMessage | None = None
        self._last_sealed: EventMessage | None = None

    def begin(self, node: Node, transport: Transport, disk: Disk | None) -> None:
        self._node, self._transport, self._id = node, transport, transport.id
        if disk is not None and isinstance(epoch := disk.store.fact("epoch"), int):
            self.epoch = epoch
            node.resume(epoch, disk.store.sequences())
        self.epoch = self.epoch or 1 + int(self._clock.now * 1e6)

    def end(self) -> None:
        """Nothing more is sent."""
        self.settle()
        self._transport = None

    # Publishing.

    def publish_quickly(self, topic: TopicId, payload: bytes) -> tuple[Event, int] | None:
        """Send an event straight to its targets, and tell the node of it before it is told anything else;
        returns to how many. None: that is not enough.
        """
        node, transport = self._node, self._transport
        if node is None or transport is None or self._keyring is not None or self._gate.disk is not None:
            return None
        targets = node.targets(topic)
        if not targets:
            return None
        quick = self._quick
        samples = not quick and self._gate.latency.due
        if not quick:
            self._loop.call_soon(self.settle)
        elif quick[0].event.topic != topic or len(quick) >= MOST_QUICK:
            self.settle()
            quick = self._quick
        message = node.numbered(topic, payload)
        if samples:
            self._gate.latency.begins(message.event.id)
            for peer in targets:
                self._tell_sampled(message.event.id, peer)
        quick.append(message)
        return message.event, transport.sender.send_own(targets, message)

    def settle(self) -> None:
        """Tell the node of what was published quickly."""
        burst = self._quick
        if not burst or self._node is None:
            return
        self._quick = []
        self._tell(self._node.published, burst)
        gate, event = self._gate, burst[0].event
        topic, self.epoch = event.topic, event.epoch
        events = [message.event for message in burst]
        if topic in gate.wanted:
            gate.take_burst(events, 0)
            return
        if size := self._log.size_of(topic) or int(topic in self._retained):
            self._log.extend(events[-size:], 0)
        gate.publishers.setdefault(topic, {})[event.publisher] = None
        if not gate.seen.follows(event, events[-1].sequence):
            for one in events:
                gate.seen.first_time(one)
            gate.seen.jumped_from = None

    def publish(self, topic: TopicId, payload: bytes) -> tuple[Published, asyncio.Future[None] | None]:
        """Let the node publish. With a data folder the event leaves when it is permanent: the future tells."""
        assert self._node is not None
        self.settle()
        self.publishing = True
        try:
            told = self._node.publish(topic, payload)
        finally:
            self.publishing = False
        return told, self._note(told.event)

    def _note(self, event: Event) -> asyncio.Future[None] | None:
        """Keep it for others, also on a topic that this node does not want."""
        self.epoch = event.epoch
        gate, topic = self._gate, event.topic
        disk = gate.disk
        if disk is not None or self._log.size_of(topic) or topic in self._retained:
            gate.log(self.sealed(event), 0)
        if topic not in gate.wanted:
            gate.publishers.setdefault(topic, {})[event.publisher] = None
            gate.seen.first_time(event)
            gate.seen.jumped_from = None
        if disk is None:
            return None
        disk.do(disk.store.set_fact, "epoch", event.epoch)
        disk.do(disk.store.set_sequence, event.topic, event.sequence + 1)
        gate.flush()
        promise = disk.committed()
        self._impermanent.add(event.id)
        promise.add_done_callback(lambda _: self._release(event.id))
        return promise

    def _release(self, event: EventId) -> None:
        self._impermanent.discard(event)
        for peer, message in self._unsent.pop(event, ()):
            self._send(peer, message)

    # Sending.

    def send(self, peer: NodeId, message: EventMessage) -> None:
        """Not before the event's number and itself are permanent: see `publish`."""
        event = message.event.id
        if self._gate.disk is not None and (self.publishing or event in self._impermanent):
            self._unsent.setdefault(event, []).append((peer, message))
        else:
            self._send(peer, message)

    def _send(self, peer: NodeId, message: EventMessage) -> None:
        if self._transport is None:
            return
        if self._keyring is not None and not isinstance(message, CatchUp):
            message = self._sealed_message(message)
        told = self.on_sent if self._transport.sender.send_event(peer, message) else self.on_refused
        if told is not None:
            told(peer, message)

    def sealed(self, event: Event) -> Event:
        """Signed, if it is this node's own and there are keys."""
        keyring = self._keyring
        return event if keyring is None or event.publisher != self._id else keyring.sign(event)

    def _sealed_message(self, message: EventMessage) -> EventMessage:
        # A broadcast sends one object many times: give the encoder one object, too.
        if message is not self._last_plain or self._last_sealed is None:
            self._last_plain = message
            self._last_sealed = msgspec.structs.replace(message, event=self.sealed(message.event))
        return self._last_sealed

    # What others say of them.

    def judged(self, peer: NodeId, verdicts: Sequence[VerdictOn]) -> None:
        for verdict in verdicts:
            if verdict.refusal:
                self._counters.refused_by_peers += 1
                if verdict.refusal == "old-epoch":
                    self.epoch_told(verdict.epoch)
            if self.on_judged is not None:
                self.on_judged(peer, verdict)

    def epoch_told(self, epoch: int) -> None:
        """An earlier life of this node had a clock ahead of this one: its events would be taken for old ones,
        so go on above that.
        """
        furthest = int(self._clock.trusted() * 1e6) + FURTHEST_EPOCH
        if self._node is None or not self.epoch < epoch < furthest:
            return
        log.warning(
            "an earlier life of this node had a clock ahead of this one; numbering goes on from there"
        )
        self.epoch = epoch + 1
        self._node.resume(self.epoch, {})
