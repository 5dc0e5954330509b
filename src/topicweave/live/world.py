"""The live world of one node: implements `port.World` on the transport, the event loop and the data folder.

Everything that reaches the application goes through one gate here: only topics it wants, only events it has not had, only what
their publishers signed. The gate's memory outlives the process if there is a data folder.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from topicweave.blocks.seen import SeenEvents
from topicweave.live import catch_up
from topicweave.live.catch_up import CatchUp, CatchUpService
from topicweave.live.clock import Clock
from topicweave.live.counters import Counters
from topicweave.live.event_log import EventLog
from topicweave.live.transport import Events, Transport
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import EventMessage, Message, Node, TimerKey

if TYPE_CHECKING:
    from topicweave.live.keyring import Keyring
    from topicweave.live.store import Store

log = logging.getLogger("topicweave.live")

LATE, GIVE_WAY = 0.02, 0.001
"""A timer that fires so late lets the event loop read what waits in the sockets first."""
LOOK_EVERY = 0.5
"""Seconds between looks for new neighbours to catch up with."""

MOST_HOPS = 10_000
"""An event that has crossed more links is dropped, not held against the neighbour it came from: that one counted on honestly from what
it was told, and what it sends must stay within what decodes."""

_CATCH_UP = frozenset(catch_up.TYPES)

Observer = Callable[[NodeId, EventMessage, bool], None]
"""Told of every arriving message that carries an event: sender, message, whether its topic is wanted."""


class LiveWorld(Events):
    """`hand_out(events)` gets what the application is to have, in batches, after it was made permanent."""

    def __init__(
        self,
        clock: Clock,
        rng: random.Random,
        hand_out: Callable[[list[Event]], None],
        cache_size: Callable[[TopicId], int],
        cache_bytes: int,
        catch_up_period: float,
        store: Store | None = None,
        keyring: Keyring | None = None,
    ) -> None:
        self.random = rng
        self.node: Node | None = None
        self.store = store
        self.keyring = keyring
        self.observers: list[Observer] = []
        self.on_sent: Callable[[NodeId, EventMessage], None] | None = None
        """Told when an event message of this node's own was taken for a peer."""
        self.on_refused: Callable[[NodeId, EventMessage], None] | None = None
        self.control: dict[str, list[int]] | None = None
        """Messages and bytes sent by kind since somebody looked, if somebody does: for telemetry."""
        self.last_error = ""
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._hand_out = hand_out
        self._transport: Transport | None = None
        self._counters = Counters()  # the transport's, once there is one
        self._timers: dict[TimerKey, asyncio.TimerHandle] = {}
        self._seen = SeenEvents()
        self.log = EventLog(cache_size, cache_bytes, store.remove_event if store is not None else None)
        self.catch_up = CatchUpService(
            self.log,
            rng,
            self.send,
            lambda: self.node.subscriptions if self.node is not None else (),
            self._neighbours,
            self._has_seen,
            self._take_caught_up,
        )
        self._catch_up_period = catch_up_period
        self._next_comparison = 0.0
        self._outgoing: list[tuple[Event, int]] = []
        self._arriving: EventMessage | None = None
        self._last_plain: EventMessage | None = None
        self._last_sealed: EventMessage | None = None
        self._stopped = False

    # The port.

    @property
    def now(self) -> float:
        return self._clock.offset + time.monotonic()  # the clock's time, asked for with each event

    def send(self, peer: NodeId, message: Message) -> None:
        transport = self._transport
        if transport is None or self._stopped:
            return
        if isinstance(message, EventMessage):
            if message.event.publisher == transport.id:
                self._send_own(transport, peer, message)
            else:
                transport.sender.send_event(peer, message)
            return
        if self.control is not None:
            tally = self.control.setdefault(str(message.__struct_config__.tag), [0, 0])
            tally[0] += 1
            tally[1] += len(transport.codec.encode(message))
        transport.sender.send(peer, message)

    def set_timer(self, key: TimerKey, delay: float) -> None:
        timer = self._timers.get(key)
        if timer is not None:
            timer.cancel()
        self._timers[key] = self._loop.call_later(delay, self._due, key, self._loop.time() + delay)

    def cancel_timer(self, key: TimerKey) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def deliver(self, event: Event) -> None:
        arriving = self._arriving
        self._pass_gate(event, arriving.hops if arriving is not None and arriving.event is event else 0)

    # What the live node does.

    def power_on(self, node: Node, transport: Transport) -> None:
        """Bring back what an earlier life left, and begin."""
        self.node = node
        self._transport = transport
        self._counters = transport.counters
        if self.store is not None:
            for publisher, topic, state in self.store.seen():
                self._seen.restore(publisher, topic, state)
            for event, hops in list(self.store.events()):
                self.log.add(event, hops)
        self._look()

    def power_off(self) -> None:
        """No more timers, nothing more is sent."""
        self._stopped = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self.flush()

    def note_own(self, event: Event) -> None:
        """Keep an event of this node's own for others, also on a topic that it does not want itself."""
        if self.log.size_of(event.topic):
            self._log_event(self._sealed(event), 0)

    def flush(self) -> None:
        """Make permanent what was written, then let the application have what was waiting for that."""
        arrived, self._outgoing = self._outgoing, []
        events = [event for event, _ in arrived]
        if events:
            self._log_events(arrived)
        if self.store is not None:
            for publisher, topic in {(event.publisher, event.topic): None for event in events}:
                if (state := self._seen.state(publisher, topic)) is not None:
                    self.store.set_seen(publisher, topic, state)
            self.store.commit()
        if events:
            self._hand_out(events)

    @property
    def pending_timers(self) -> list[TimerKey]:
        return list(self._timers)

    def guarded(self, action: Callable[..., object], *arguments: object) -> None:
        """Call into the node; whatever goes wrong there is counted, logged and shown, and does not stop the rest."""
        try:
            action(*arguments)
        except Exception as error:
            self._note_error(error)

    # Told by the transport.

    def received(self, sender: NodeId, messages: Sequence[Message]) -> None:
        """One after the other. Whatever one of them does to the node, the others are served on; the link it came over is not."""
        for message in messages:
            node = self.node
            if node is None or self._stopped:
                return
            try:
                if isinstance(message, EventMessage):
                    if not self._admits(node, sender, message):
                        continue
                    self._arriving = message
                if type(message) in _CATCH_UP:
                    self.catch_up.receive(sender, message)
                else:
                    node.receive(sender, message)
            except Exception as error:
                self._note_error(error)
                if self._transport is not None:
                    self._transport.close_link(sender)

    def _admits(self, node: Node, sender: NodeId, message: EventMessage) -> bool:
        """Whether the node may see an event; in any case somebody may have to know that it came."""
        event, counters = message.event, self._counters
        if message.hops > MOST_HOPS:
            counters.far_travelled += 1
            return False
        if self.keyring is not None and not self._authentic(self.keyring, sender, event):
            return False
        wanted = event.topic in node.subscriptions
        if wanted:
            counters.receptions_wanted += 1
        else:
            counters.receptions_unwanted += 1
        if self.observers:
            for observer in self.observers:
                observer(sender, message, wanted)
        return True

    def lost(self, peer: NodeId) -> None:
        if self.node is not None and not self._stopped:
            self.guarded(self.node.peer_lost, peer)

    def linked(self, peer: NodeId) -> bool:
        return self.node is not None and any(link.peer == peer for link in self.node.links())

    # Events.

    def _send_own(self, transport: Transport, peer: NodeId, message: EventMessage) -> None:
        if self.keyring is not None and not isinstance(message, CatchUp):
            message = self._sealed_message(message)
        taken = transport.sender.send_event(peer, message)
        told = self.on_sent if taken else self.on_refused
        if told is not None:
            told(peer, message)

    def _sealed(self, event: Event) -> Event:
        own = self._transport is not None and event.publisher == self._transport.id
        return self.keyring.sign(event) if own and self.keyring is not None else event

    def _sealed_message(self, message: EventMessage) -> EventMessage:
        # A broadcast sends one object many times: give the encoder one object, too.
        if message is not self._last_plain or self._last_sealed is None:
            self._last_plain = message
            self._last_sealed = msgspec.structs.replace(message, event=self._sealed(message.event))
        return self._last_sealed

    def _authentic(self, keyring: Keyring, sender: NodeId, event: Event) -> bool:
        assert self._transport is not None
        counters = self._transport.counters
        verdict = keyring.verify(event, self.now)
        if verdict == "good":
            return True
        if verdict == "forged":
            # Honest peers verify before they pass on: who sent this is not one.
            counters.forged_events += 1
            log.warning("%s: an event with a forged signature", self._transport.name)
            self._transport.close_link(sender)
        else:
            counters.unverifiable_events += 1
            if verdict == "unknown":
                self._transport.ask_for_credential(sender, event.publisher)
        return False

    def _has_seen(self, event: EventId) -> bool:
        return event in self._seen

    def _take_caught_up(self, event: Event, hops: int) -> bool:
        new = self._pass_gate(event, hops)
        self._counters.caught_up += new
        return new

    def _pass_gate(self, event: Event, hops: int) -> bool:
        """To the application, if it wants the event and has not had it."""
        assert self.node is not None
        if event.topic not in self.node.subscriptions:
            return False
        if not self._seen.first_time(event):
            self._counters.replays_dropped += 1
            return False
        self._counters.deliveries += 1
        if self.keyring is not None:
            event = self._sealed(event)
        if not self._outgoing:
            self._loop.call_soon(self.flush)
        self._outgoing.append((event, hops))
        return True

    def _log_events(self, arrived: list[tuple[Event, int]]) -> None:
        """Of a burst, only as many events of a topic as its cache holds."""
        room: dict[TopicId, int] = {}
        kept = []
        topic, left = -1, 0
        for entry in reversed(arrived):
            if entry[0].topic != topic:
                room[topic] = left
                topic = entry[0].topic
                left = room[topic] if topic in room else self.log.size_of(topic)
            if left:
                left -= 1
                kept.append(entry)
        for event, hops in reversed(kept):
            self._log_event(event, hops)

    def _log_event(self, event: Event, hops: int) -> None:
        if self.log.add(event, hops) and self.store is not None:
            self.store.add_event(event, hops)

    # Time.

    def _due(self, key: TimerKey, due: float) -> None:
        if self._loop.time() - due > LATE:
            # The process was held up, and what the timer waits for may have arrived meanwhile: read that first.
            self._timers[key] = self._loop.call_later(GIVE_WAY, self._fire, key)
        else:
            self._fire(key)

    def _fire(self, key: TimerKey) -> None:
        self._timers.pop(key, None)
        if self.node is not None and not self._stopped:
            self.guarded(self.node.timer, key)

    def _look(self) -> None:
        if self._stopped:
            return
        self._loop.call_later(LOOK_EVERY, self._look)
        self.guarded(self.catch_up.look)
        if self.now >= self._next_comparison:
            self._next_comparison = self.now + self._catch_up_period * self.random.uniform(0.5, 1.5)
            self.guarded(self.catch_up.compare)

    def _neighbours(self) -> list[NodeId]:
        return [link.peer for link in self.node.links()] if self.node is not None else []

    def _note_error(self, error: Exception) -> None:
        if self._transport is not None:
            self._transport.counters.node_errors += 1
        self.last_error = f"{type(error).__name__}: {error}"
        log.error("the node failed on what it was told: %s", self.last_error, exc_info=error)
