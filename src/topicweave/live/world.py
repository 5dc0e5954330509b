"""The live world of one node: implements `port.World` on the transport, the event loop and the data folder.

Whatever arrives is looked at by `acceptance` before the node sees it. What the node hands over goes to the
application through the `gate`. What it publishes leaves through `own_events`.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from topicweave.live import catch_up_messages
from topicweave.live.acceptance import Acceptance
from topicweave.live.bursts import burst_from
from topicweave.live.catch_up import Around, CatchUpService
from topicweave.live.catch_up_messages import Aged, Measured
from topicweave.live.clock import Clock
from topicweave.live.counters import Counters
from topicweave.live.event_log import EventLog
from topicweave.live.gate import Gate
from topicweave.live.memory import Memory
from topicweave.live.names import TopicNames
from topicweave.live.own_events import OwnEvents
from topicweave.live.receiving import Events
from topicweave.live.settings import LogLimits, Settings
from topicweave.live.transport import Transport
from topicweave.live.turns import Deferred
from topicweave.live.vouching import Vouching
from topicweave.live.wire import VerdictOn
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId, TopicId, ring_id
from topicweave.port import EventMessage, InFormat, Message, Node, TimerKey

if TYPE_CHECKING:
    from topicweave.live.disk import Disk
    from topicweave.live.gaps import Missed
    from topicweave.live.keyring import Keyring

log = logging.getLogger("topicweave.live")

LOOK_EVERY = 0.5
"""Seconds between looks for new neighbours to catch up with."""

_CATCH_UP = frozenset(catch_up_messages.TYPES)


class LiveWorld(Vouching, Events):
    """`hand_out(events, again)` gets what the application is to have, in batches; `announce(missed)` what it
    will not have.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        rng: random.Random,
        topics: TopicNames,
        hand_out: Callable[[list[Event], bool], None],
        announce: Callable[[list[Missed]], None],
        keyring: Keyring | None = None,
    ) -> None:
        self.memory = Memory(settings.limits.max_memory)
        self.random = rng
        self.node: Node | None = None
        self.most_topics = settings.limits.topics_per_peer
        self.keyring, self._unproven = keyring, settings.unproven_contacts
        self.control: dict[str, list[int]] | None = None
        """Messages and bytes sent by kind since somebody looks, if somebody does."""
        self.last_error, self.last_error_at = "", 0.0
        self.contacts: Callable[[], Collection[NodeId]] = tuple
        """Peers with whom membership keeps in touch."""
        self._settings, self._clock = settings, clock
        self._loop = asyncio.get_running_loop()
        self._announce = announce
        self._topics = topics
        self._transport: Transport | None = None
        self.counters = Counters()
        self._timers: dict[TimerKey, asyncio.TimerHandle | Deferred] = {}
        self._cache_sizes = {ring_id(topic): size for topic, size in settings.caches.items()}
        self._logs = {ring_id(topic): limits for topic, limits in settings.logs.items()}
        self.retained: set[TopicId] = set(map(ring_id, settings.retained))
        self.log = EventLog(
            lambda topic: self._cache_sizes.get(topic, settings.cache),
            settings.limits.cache_bytes,
            clock.wall,
            self.retained.__contains__,
        )
        self.gate = Gate(settings, clock, self.counters, self.log, hand_out, self._log_limits, self.memory)
        self.acceptance = Acceptance(clock, self.counters, self.gate, topics, keyring, self._note_error)
        self.observers = self.acceptance.observers
        self.own = OwnEvents(
            *(clock, self.counters, self.gate, self.log, self.retained, keyring),
            *(self.guarded, self._tell_sampled),
        )
        around = Around(
            lambda: self.now,
            clock.wall,
            self.send,
            lambda: self.node.subscriptions if self.node is not None else (),
            self._neighbours,
            self._take_caught_up,
            self._unmet,
            self.may_have,
        )
        self.catch_up = CatchUpService(self.log, self.gate, rng, self.memory, around)
        self._next_comparison = 0.0
        self._arriving: EventMessage | None = None
        self._stopped = False

    # The port.

    @property
    def now(self) -> float:
        return self._clock.offset + time.monotonic()  # the clock's time, asked for with each event

    def understands(self, peer: NodeId, kind: type[InFormat]) -> bool:
        link = self._transport.link_to(peer) if self._transport is not None else None
        return link is not None and link.connection.version >= kind.wire

    def send(self, peer: NodeId, message: Message) -> None:
        transport = self._transport
        if transport is None or self._stopped:
            return
        if isinstance(message, EventMessage):
            event = message.event
            if self.keyring is not None and not self.may_have(peer, event.topic):
                self.counters.withheld_events += 1
                return
            arriving = self._arriving
            new = self.own.publishing or (arriving is not None and arriving.event is event)
            if not new and (age := self.gate.ages.kept(event.id)) is not None:
                transport.sender.send(peer, Aged(event.id, age))
            if new and (self.own.publishing or len(self.gate.latency)):
                if self.own.publishing and event.publisher == transport.id and self.gate.latency.due:
                    self.gate.latency.begins(event.id)
                self._tell_sampled(event.id, peer)
            if event.publisher != transport.id:
                transport.sender.send_event(peer, message)
            else:
                self.own.send(peer, message)
            return
        if self.control is not None:
            tally = self.control.setdefault(str(message.__struct_config__.tag), [0, 0])
            tally[0] += 1
            tally[1] += len(transport.codec.encode(message))
        transport.sender.send(peer, message)

    def _tell_sampled(self, event: EventId, peer: NodeId) -> None:
        """Ahead of an event that goes to a peer: how old it is, if its latency is measured."""
        age = self.gate.latency.age(event)
        if age is not None and self.understands(peer, Measured):
            self.send(peer, Measured(event, age))

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
        hops = arriving.hops if (arriving := self._arriving) is not None and arriving.event is event else 0
        self.gate.take(self.own.sealed(event) if self.keyring is not None else event, hops)

    # What the live node does.

    def power_on(self, node: Node, transport: Transport, disk: Disk | None) -> None:
        """Bring back what an earlier life left, and begin."""
        self.node = node
        self.gate.wanted = node.subscriptions
        self._transport = self.acceptance.transport = transport
        if disk is not None:
            self.gate.disk = disk
            for logged in disk.store.events(max(self._settings.cache, *self._cache_sizes.values(), 1)):
                self.log.add(logged.event, logged.hops, arrived=logged.arrived)
            self.gate.restore()
        self.own.begin(node, transport, disk)
        self._look()

    def power_off(self) -> None:
        """No more timers, nothing more is sent."""
        self.own.end()
        self._stopped = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self.gate.flush()

    @property
    def pending_timers(self) -> list[TimerKey]:
        return list(self._timers)

    def guarded(self, action: Callable[..., object], *arguments: object) -> None:
        """Call into the node; whatever goes wrong there is counted, logged and shown, and does not stop the rest."""
        self.own.settle()
        try:
            action(*arguments)
        except Exception as error:
            self._note_error(error)

    def may_have(self, peer: NodeId, topic: TopicId) -> bool:
        """Whether a peer's certificate lets it have events of a topic; topics whose names are not known here
        are not judged.
        """
        if self.keyring is None or self._transport is None:
            return True
        link = self._transport.link_to(peer)
        if link is None or link.credential is None or link.credential.permissions.subscribe is None:
            return True
        name = self._topics.known(topic)
        return name is None or link.credential.permissions.may_subscribe(name)

    # Told by the transport.

    def received(self, sender: NodeId, messages: Sequence[Message]) -> None:
        """One after the other, bursts of events at once. Whatever one of them does to the node, the others are
        served on; the link it came over is not.
        """
        self.own.settle()
        at = 0
        while at < len(messages):
            node = self.node
            if node is None or self._stopped:
                return
            message = messages[at]
            end = at + 1
            if isinstance(message, EventMessage) and end < len(messages):
                burst = burst_from(messages, at)
                end = at + len(burst)
                if end > at + 1 and self._take_burst(node, sender, burst):
                    at = end
                    continue
            for one in messages[at:end]:
                self._receive(node, sender, one)
            at = end

    def _receive(self, node: Node, sender: NodeId, message: Message) -> None:
        try:
            if isinstance(message, EventMessage):
                if not self.acceptance.admits(sender, message, message.event.topic in node.subscriptions):
                    return
                self._arriving = message
            if type(message) in _CATCH_UP:
                self.catch_up.receive(sender, message)
            else:
                self._sender = sender
                node.receive(sender, message)
        except Exception as error:
            self._failed_on(sender, (message,), error)
        finally:
            self._arriving = None

    def _take_burst(self, node: Node, sender: NodeId, burst: Sequence[EventMessage]) -> bool:
        """Whether all of a burst could be taken at once: nothing about it calls for a closer look, and the
        system does so.
        """
        first, transport = burst[0], self._transport
        event = first.event
        if transport is None or type(first) in _CATCH_UP or not self.acceptance.is_plain(burst):
            return False
        try:
            onward = node.receive_run(sender, burst)
        except Exception as error:
            self._failed_on(sender, burst, error)
            return True
        if onward is None:
            return False
        wanted = event.topic in node.subscriptions
        self.acceptance.note(sender, burst, wanted)
        events = [message.event for message in burst]
        if wanted:
            self.gate.take_burst(events, first.hops)
        samples = self.gate.latency.among(events) if len(self.gate.latency) else ()
        for peer in onward.peers:
            if self.may_have(peer, event.topic):
                for sample in samples:
                    self._tell_sampled(sample, peer)
                transport.sender.send_burst(peer, onward.messages)
            else:
                self.counters.withheld_events += len(burst)
        return True

    def _failed_on(self, sender: NodeId, messages: Sequence[Message], error: Exception) -> None:
        self._note_error(error)
        for message in messages:
            if isinstance(message, EventMessage):
                self.gate.refuse(message.event.id, "failed")
        if self._transport is not None:
            self._transport.fault(sender, "made the node fail")
            self._transport.close_link(sender)

    def lost(self, peer: NodeId) -> None:
        if self.node is not None and not self._stopped:
            self.guarded(self.node.peer_lost, peer)

    def linked(self, peer: NodeId) -> bool:
        """Whether a connection serves a link of the overlay, or membership."""
        if self.node is None:
            return False
        return any(link.peer == peer for link in self.node.links()) or peer in self.contacts()

    def asked(self, peer: NodeId, events: Sequence[EventId]) -> None:
        self.acceptance.asked(peer, events)

    def judged(self, peer: NodeId, verdicts: Sequence[VerdictOn]) -> None:
        self.own.judged(peer, verdicts)

    def epoch_of(self, peer: NodeId) -> int:
        return self.gate.epoch_of(peer)

    def epoch_told(self, epoch: int) -> None:
        self.own.epoch_told(epoch)

    # Events.

    def _log_limits(self, topic: TopicId) -> tuple[LogLimits, bool]:
        return self._logs.get(topic, self._settings.log), topic in self.retained

    def _take_caught_up(self, event: Event, hops: int) -> bool:
        new = self.gate.take(event, hops)
        self.counters.caught_up += new
        return new

    def _unmet(self, peer: NodeId) -> None:
        self.counters.inventories_unmet += 1
        if self._transport is not None:
            self._transport.fault(peer, "offered what it does not have")

    # Time.

    def _due(self, key: TimerKey, due: float) -> None:
        assert self._transport is not None
        if (deferred := self._transport.turns.after_all(due, lambda: self._fire(key))) is not None:
            self._timers[key] = deferred

    def _fire(self, key: TimerKey) -> None:
        self._timers.pop(key, None)
        if self.node is not None and not self._stopped:
            self.guarded(self.node.timer, key)

    def _look(self) -> None:
        if self._stopped or self._transport is None:
            return
        due = self._loop.time() + LOOK_EVERY
        self._loop.call_at(due, self._transport.turns.after_all, due, self._look)
        self.guarded(self.catch_up.look)
        self.guarded(self._look_for_gaps)
        self.gate.account()
        if self.gate.at_least_once:
            self.gate.hand_out_again(self._settings.redeliver_after)
        if self.now >= self._next_comparison:
            period = self._settings.pace.catch_up_period
            self._next_comparison = self.now + period * self.random.uniform(0.5, 1.5)
            self.guarded(self.catch_up.compare)

    def _look_for_gaps(self) -> None:
        missed = self.gate.gaps.look(self.now, self._settings.pace.gap_patience)
        if missed:
            counted = [one for one in missed if one.reason != "before"]
            self.counters.gaps_announced += len(counted)
            self.counters.events_missed += sum(one.last - one.first + 1 for one in counted)
            self._announce(missed)

    def _neighbours(self) -> list[NodeId]:
        return [link.peer for link in self.node.links()] if self.node is not None else []

    def _note_error(self, error: Exception) -> None:
        self.counters.node_errors += 1
        self.last_error, self.last_error_at = f"{type(error).__name__}: {error}", self._loop.time()
        log.error("the node failed on what it was told: %s", self.last_error, exc_info=error)
