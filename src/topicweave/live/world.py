"""The live world of one node: implements `port.World` on the transport, the event loop and the data folder.

Whatever arrives is looked at here before the node sees it: signed by its publisher, allowed by its
certificate, of its publisher's latest life. What the node hands over goes to the application through the
`gate`.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from topicweave.live import catch_up_messages
from topicweave.live.catch_up import Around, CatchUpService
from topicweave.live.catch_up_messages import Aged, CatchUp, Measured
from topicweave.live.clock import Clock
from topicweave.live.counters import Counters
from topicweave.live.event_log import EventLog
from topicweave.live.gate import Gate, Refusal
from topicweave.live.memory import Memory
from topicweave.live.names import TopicNames
from topicweave.live.receiving import Events
from topicweave.live.runs import run_from
from topicweave.live.settings import LogLimits, Settings
from topicweave.live.transport import Transport
from topicweave.live.turns import Deferred
from topicweave.live.vouching import Vouching
from topicweave.live.wire import VerdictOn, verdicts_frame
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId, TopicId, ring_id
from topicweave.port import EventMessage, InFormat, Message, Node, Published, TimerKey

if TYPE_CHECKING:
    from topicweave.live.disk import Disk
    from topicweave.live.gaps import Missed
    from topicweave.live.keyring import Keyring, Verdict

log = logging.getLogger("topicweave.live")

LOOK_EVERY = 0.5
"""Seconds between looks for new neighbours to catch up with."""

MOST_QUICK = 1024
"""Events are published quickly before the node is told of them: no more than its caches hold."""
MOST_HOPS = 10_000
"""An event that has crossed more links is dropped, not held against the neighbour it came from: that one
counted on honestly from what it was told, and what it sends must stay within what decodes.
"""
FURTHEST_EPOCH = int(10 * 365 * 86_400 * 1e6)
"""An epoch further ahead than ten years is nobody's clock."""

_CATCH_UP = frozenset(catch_up_messages.TYPES)

Observer = Callable[[NodeId, EventMessage, bool], None]
"""Told of every arriving message that carries an event: sender, message, whether its topic is wanted."""


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
        self.keyring, self._unproven = keyring, settings.unproven_contacts
        self.observers: list[Observer] = []
        self.on_sent: Callable[[NodeId, EventMessage], None] | None = None
        """Told when an event message of this node's own was taken for a peer."""
        self.on_refused: Callable[[NodeId, EventMessage], None] | None = None
        self.on_judged: Callable[[NodeId, VerdictOn], None] | None = None
        """Told what became of this node's own events elsewhere."""
        self.control: dict[str, list[int]] | None = None
        """Messages and bytes sent by kind since somebody looks, if somebody does."""
        self.last_error, self.last_error_at = "", 0.0
        self.contacts: Callable[[], Collection[NodeId]] = tuple
        """Peers with whom membership keeps in touch."""
        self.own_epoch = 0
        """Of the events that this node publishes."""
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
        self._publishing = self._stopped = False
        self._quick: list[EventMessage] = []
        """Own events that were sent to their targets, and that the node was not told of yet."""
        self._impermanent: set[EventId] = set()
        self._unsent: dict[EventId, list[tuple[NodeId, EventMessage]]] = {}
        self._last_plain: EventMessage | None = None
        self._last_sealed: EventMessage | None = None

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
            new = self._publishing or (arriving is not None and arriving.event is event)
            if not new and (age := self.gate.ages.kept(event.id)) is not None:
                transport.sender.send(peer, Aged(event.id, age))
            if new and (self._publishing or len(self.gate.latency)):
                if self._publishing and event.publisher == transport.id and self.gate.latency.due:
                    self.gate.latency.begins(event.id)
                self._tell_sampled(event.id, peer)
            if event.publisher != transport.id:
                transport.sender.send_event(peer, message)
            elif self.gate.disk is not None and (self._publishing or event.id in self._impermanent):
                # Not before its number and itself are permanent: see `publish`.
                self._unsent.setdefault(event.id, []).append((peer, message))
            else:
                self._send_own(transport, peer, message)
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
        self.gate.take(self._sealed(event) if self.keyring is not None else event, hops)

    # What the live node does.

    def power_on(self, node: Node, transport: Transport, disk: Disk | None) -> None:
        """Bring back what an earlier life left, and begin."""
        self.node = node
        self.gate.wanted = node.subscriptions
        self._transport = transport
        if disk is not None:
            self.gate.disk = disk
            self.gate.restore()
            for logged in disk.store.events(max(self._settings.cache, *self._cache_sizes.values(), 1)):
                self.log.add(logged.event, logged.hops, arrived=logged.arrived)
            epoch = disk.store.fact("epoch")
            if isinstance(epoch, int):
                self.own_epoch = epoch
                node.resume(epoch, disk.store.sequences())
        self.own_epoch = self.own_epoch or 1 + int(self.now * 1e6)
        self._look()

    def power_off(self) -> None:
        """No more timers, nothing more is sent."""
        self.settle()
        self._stopped = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self.gate.flush()

    def publish_quickly(self, topic: TopicId, payload: bytes) -> tuple[Event, int] | None:
        """Send an event straight to its targets, and tell the node of it before it is told anything else;
        returns to how many. None: that is not enough.
        """
        node, transport = self.node, self._transport
        if node is None or transport is None or self._stopped:
            return None
        if self.keyring is not None or self.gate.disk is not None:
            return None
        targets = node.targets(topic)
        if not targets:
            return None
        quick = self._quick
        samples = not quick and self.gate.latency.due
        if not quick:
            self._loop.call_soon(self.settle)
        elif quick[0].event.topic != topic or len(quick) >= MOST_QUICK:
            self.settle()
            quick = self._quick
        message = node.numbered(topic, payload)
        if samples:
            self.gate.latency.begins(message.event.id)
            for peer in targets:
                self._tell_sampled(message.event.id, peer)
        quick.append(message)
        return message.event, transport.sender.send_own(targets, message)

    def settle(self) -> None:
        """Tell the node of what was published quickly."""
        run, self._quick = self._quick, []
        if not run or self.node is None:
            return
        self.guarded(self.node.published, run)
        gate, event = self.gate, run[0].event
        topic, self.own_epoch = event.topic, event.epoch
        events = [message.event for message in run]
        if topic in gate.wanted:
            gate.take_run(events, 0)
            return
        if size := self.log.size_of(topic) or int(topic in self.retained):
            self.log.extend(events[-size:], 0)
        gate.publishers.setdefault(topic, {})[event.publisher] = None
        if not gate.seen.follows(event, events[-1].sequence):
            for one in events:
                gate.seen.first_time(one)
            gate.seen.jumped_from = None

    def publish(self, topic: TopicId, payload: bytes) -> tuple[Published, asyncio.Future[None] | None]:
        """Let the node publish. With a data folder the event leaves when it is permanent: the future tells."""
        assert self.node is not None
        self.settle()
        self._publishing = True
        try:
            told = self.node.publish(topic, payload)
        finally:
            self._publishing = False
        return told, self._note_own(told.event)

    def _note_own(self, event: Event) -> asyncio.Future[None] | None:
        """Keep an event of this node's own for others, also on a topic that it does not want itself."""
        self.own_epoch = event.epoch
        gate, topic = self.gate, event.topic
        disk = gate.disk
        if disk is not None or self.log.size_of(topic) or topic in self.retained:
            gate.log(self._sealed(event), 0)
        if topic not in gate.wanted:
            gate.publishers.setdefault(topic, {})[event.publisher] = None
            gate.seen.first_time(event)
            gate.seen.jumped_from = None
        if disk is None:
            return None
        disk.do(disk.store.set_fact, "epoch", event.epoch)
        disk.do(disk.store.set_sequence, event.topic, event.sequence + 1)
        self.gate.flush()
        promise = disk.committed()
        self._impermanent.add(event.id)
        promise.add_done_callback(lambda _: self._release_own(event.id))
        return promise

    def _release_own(self, event: EventId) -> None:
        self._impermanent.discard(event)
        waiting = self._unsent.pop(event, ())
        if self._transport is not None and not self._stopped:
            for peer, message in waiting:
                self._send_own(self._transport, peer, message)

    @property
    def pending_timers(self) -> list[TimerKey]:
        return list(self._timers)

    def guarded(self, action: Callable[..., object], *arguments: object) -> None:
        """Call into the node; whatever goes wrong there is counted, logged and shown, and does not stop the rest."""
        if self._quick:
            self.settle()
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
        """One after the other, runs of events at once. Whatever one of them does to the node, the others are
        served on; the link it came over is not.
        """
        if self._quick:
            self.settle()
        at = 0
        while at < len(messages):
            node = self.node
            if node is None or self._stopped:
                return
            message = messages[at]
            end = at + 1
            if isinstance(message, EventMessage) and end < len(messages):
                run = run_from(messages, at)
                end = at + len(run)
                if end > at + 1 and self._take_run(node, sender, run):
                    at = end
                    continue
            for one in messages[at:end]:
                self._receive(node, sender, one)
            at = end

    def _receive(self, node: Node, sender: NodeId, message: Message) -> None:
        try:
            if isinstance(message, EventMessage):
                if not self._admits(node, sender, message):
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

    def _take_run(self, node: Node, sender: NodeId, run: Sequence[EventMessage]) -> bool:
        """Whether all of a run could be taken at once: nothing about it calls for a closer look, and the
        system does so.
        """
        first, transport = run[0], self._transport
        event = first.event
        if transport is None or type(first) in _CATCH_UP or first.hops > MOST_HOPS:
            return False
        if event.publisher == transport.id or event.epoch < self.gate.epochs.get(event.publisher, 0):
            return False
        if self.keyring is not None:
            wall = self._clock.trusted()
            if not all(self._verdict(self.keyring, message.event, wall) == "good" for message in run):
                return False
        try:
            onward = node.receive_run(sender, run)
        except Exception as error:
            self._failed_on(sender, run, error)
            return True
        if onward is None:
            return False
        wanted = event.topic in node.subscriptions
        for observer in self.observers:
            for message in run:
                observer(sender, message, wanted)
        if wanted:
            self.counters.receptions_wanted += len(run)
            self.gate.take_run([message.event for message in run], first.hops)
        else:
            self.counters.receptions_unwanted += len(run)
            if sender == event.publisher:
                self.gate.relayed(run[-1].event)
        samples = (
            self.gate.latency.among([message.event for message in run]) if len(self.gate.latency) else ()
        )
        for peer in onward.peers:
            if self.may_have(peer, event.topic):
                for sample in samples:
                    self._tell_sampled(sample, peer)
                transport.sender.send_run(peer, onward.messages)
            else:
                self.counters.withheld_events += len(run)
        return True

    def _failed_on(self, sender: NodeId, messages: Sequence[Message], error: Exception) -> None:
        self._note_error(error)
        for message in messages:
            if isinstance(message, EventMessage):
                self.gate.refuse(message.event.id, "failed")
        if self._transport is not None:
            self._transport.fault(sender, "made the node fail")
            self._transport.close_link(sender)

    def _admits(self, node: Node, sender: NodeId, message: EventMessage) -> bool:
        """Whether the node may see an event; in any case somebody may have to know that it came."""
        event, counters = message.event, self.counters
        if message.hops > MOST_HOPS:
            counters.far_travelled += 1
            return self._refuse(sender, event, "far-travelled")
        if self.keyring is not None and not self._authentic(self.keyring, sender, event):
            return False
        wanted = event.topic in node.subscriptions
        if sender == event.publisher:
            if event.epoch < self.gate.epochs.get(sender, 0):
                return self._refuse(sender, event, "old-epoch")
            if not wanted:
                self.gate.relayed(event)
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
        """Whether a connection serves a link of the overlay, or membership."""
        if self.node is None:
            return False
        return any(link.peer == peer for link in self.node.links()) or peer in self.contacts()

    def asked(self, peer: NodeId, events: Sequence[EventId]) -> None:
        """Answer what is known; what depends on the disk when that is known."""
        known = {event: self.gate.verdict(event) for event in events if event.publisher == peer}
        self._tell_verdicts(
            peer, [(event, verdict) for event, verdict in known.items() if verdict is not None]
        )
        later = [event for event, verdict in known.items() if verdict is None]
        if later:
            for promise in self.gate.permanent():
                promise.add_done_callback(lambda _: self.asked(peer, later))

    def judged(self, peer: NodeId, verdicts: Sequence[VerdictOn]) -> None:
        for verdict in verdicts:
            if verdict.refusal:
                self.counters.refused_by_peers += 1
                if verdict.refusal == "old-epoch":
                    self.epoch_told(verdict.epoch)
            if self.on_judged is not None:
                self.on_judged(peer, verdict)

    def epoch_of(self, peer: NodeId) -> int:
        return self.gate.epoch_of(peer)

    def epoch_told(self, epoch: int) -> None:
        """An earlier life of this node had a clock ahead of this one: its events would be taken for old ones,
        so go on above that.
        """
        if (
            self.node is None
            or not self.own_epoch < epoch < int(self._clock.trusted() * 1e6) + FURTHEST_EPOCH
        ):
            return
        log.warning(
            "an earlier life of this node had a clock ahead of this one; numbering goes on from there"
        )
        self.own_epoch = epoch + 1
        self.node.resume(self.own_epoch, {})

    # Events.

    def _log_limits(self, topic: TopicId) -> tuple[LogLimits, bool]:
        return self._logs.get(topic, self._settings.log), topic in self.retained

    def _send_own(self, transport: Transport, peer: NodeId, message: EventMessage) -> None:
        if self.keyring is not None and not isinstance(message, CatchUp):
            message = self._sealed_message(message)
        told = self.on_sent if transport.sender.send_event(peer, message) else self.on_refused
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
        verdict = self._verdict(keyring, event, self._clock.trusted())
        if verdict == "good":
            return True
        if verdict == "forged":
            # Honest peers verify before they pass on: who sent this is not one.
            self.counters.forged_events += 1
            log.warning("%s: an event with a forged signature", self._transport.name)
            self._transport.fault(sender, "forged an event")
            self._transport.close_link(sender)
        elif verdict != "not-permitted":
            self.counters.unverifiable_events += 1
            if verdict == "unknown-key":
                self._transport.ask_for_credential(sender, event.publisher, event.payload[:8])
        return self._refuse(sender, event, verdict)

    def _verdict(self, keyring: Keyring, event: Event, wall: float) -> Verdict | Literal["not-permitted"]:
        verdict = keyring.verify(event, wall)
        if verdict != "good":
            return verdict
        credential = keyring.credential(event.publisher, event.payload[:8])
        name = self._topics.known(event.topic)
        if name is None or credential is None or credential.permissions.may_publish(name):
            return "good"
        return "not-permitted"

    def _refuse(self, sender: NodeId, event: Event, reason: Refusal) -> bool:
        """Note it; the publisher, if it handed the event over itself, is told."""
        self.gate.refuse(event.id, reason)
        if sender == event.publisher:
            self._tell_verdicts(sender, [(event.id, reason)])
        return False

    def _tell_verdicts(self, peer: NodeId, verdicts: Sequence[tuple[EventId, str]]) -> None:
        link = self._transport.link_to(peer) if self._transport is not None else None
        if link is not None and verdicts:
            epoch = self.gate.epoch_of(peer)
            link.write(verdicts_frame([VerdictOn(event, verdict, epoch) for event, verdict in verdicts]))

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
