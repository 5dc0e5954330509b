"""The one gate to the application. It lets pass only events of topics that the application wants, only once,
and only when they are written, if there is a data folder.

Rules kept
----------
1. The application gets an event after it is written that the event was seen. While the disk takes nothing,
   events wait here (policy `hold`, the default), as many as an application's queue holds. Further events are
   refused as `disk-full` and do not count as seen, so they can come again. With the policy `hand-over` the
   application gets them unwritten, and they are counted (`undurable_events`). In both cases they are not
   confirmed to their publisher.
2. Every event that comes from its publisher directly is accepted or refused, and the publisher can ask which
   (`verdict`). A refusal has a name.
3. Missing numbers are noticed and announced: see `gaps`.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from topicweave.blocks.seen import SeenEvents
from topicweave.live.ages import Ages
from topicweave.live.clock import Clock
from topicweave.live.counters import Counters
from topicweave.live.event_log import EventLog
from topicweave.live.gaps import EventStream, GapWatch
from topicweave.live.latency import LatencySamples
from topicweave.live.memory import EVENT, Kind, Memory
from topicweave.live.settings import LogLimits, Settings
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId, TopicId

if TYPE_CHECKING:
    from topicweave.live.disk import Disk

Refusal = Literal[
    "forged",
    "unknown-key",
    "expired",
    "revoked",
    "not-permitted",
    "old-epoch",
    "far-travelled",
    "disk-full",
    "full",
    "failed",
]
"""Why an event was not accepted; `docs/delivery-contract.md` says what each means."""
MOST_REFUSALS = 4096
MOST_RELAYED = 4096
FOR_NOW: frozenset[str] = frozenset({"unknown-key", "disk-full", "full", "not-received"})
"""Refusals that may be another answer a moment later."""


class Gate:
    """`hand_out(events, again)` gets what the application is to have; `wanted` holds the topics that it wants."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        counters: Counters,
        log: EventLog,
        hand_out: Callable[[list[Event], bool], None],
        limits_of: Callable[[TopicId], tuple[LogLimits, bool]],
        memory: Memory,
    ) -> None:
        self._memory = memory
        self._accounted: dict[Kind, int] = {"cache": 0, "waiting": 0, "unacknowledged": 0}
        self._unacknowledged_bytes = 0
        self._full = False
        """Whether the node holds as much as it may of what was not acknowledged, or waits for the disk."""
        self._limits = settings.limits
        self._holds = settings.when_disk_fails == "hold"
        self.at_least_once = settings.delivery == "at-least-once"
        self._clock = clock
        self._counters = counters
        self._log = log
        self.ages = Ages(log, lambda: clock.now, clock.wall)
        self.latency = LatencySamples(lambda: clock.now)
        self.wanted: Container[TopicId] = ()
        self._hand_out = hand_out
        self._limits_of = limits_of
        self._loop = asyncio.get_running_loop()
        self.disk: Disk | None = None
        self.seen = SeenEvents()
        self.gaps = GapWatch(self.seen)
        self.publishers: dict[TopicId, dict[NodeId, None]] = {}
        """Those of whom events came, by topic: whose heads there are to tell."""
        self.epochs: OrderedDict[NodeId, int] = OrderedDict()
        self._arrived: list[tuple[Sequence[Event], int]] = []
        """Bursts of events, and their hops."""
        self._waiting: dict[EventId, Event] = {}
        """Not permanent yet."""
        self._waiting_bytes = 0
        self._undurable: set[EventId] = set()
        """Handed over, and not permanent yet."""
        self._refused: OrderedDict[EventId, Refusal] = OrderedDict()
        self._relayed: OrderedDict[EventStream, int] = OrderedDict()
        self.unacknowledged: OrderedDict[EventId, tuple[Event, float, float]] = OrderedDict()
        """With when they were handed over for the first and for the last time."""
        self._pruned: set[TopicId] = set()

    def restore(self) -> None:
        """Bring back what an earlier life left, behind its log."""
        assert self.disk is not None
        store = self.disk.store
        for publisher, topic, state, base in store.seen():
            self.seen.restore(publisher, topic, state)
            self.gaps.begins(EventStream(publisher, topic, state[0]), base)
            self._note_stream(publisher, topic, state[0])
        for event in store.unacknowledged():
            self._unacknowledged_bytes += len(event.payload)
            logged = self._log.get(event.id)
            had = max(0.0, self._clock.wall() - logged.arrived) if logged is not None else 0.0
            self.unacknowledged[event.id] = (event, self._clock.now - had, 0.0)  # Due at once.

    # What comes in.

    def take(self, event: Event, hops: int) -> bool:
        """To the application, if it wants the event and has not had it. Whether it was new."""
        if event.topic not in self.wanted:
            return False
        if self._full or (self.disk is not None and self._overfull()):
            if event not in self.seen:
                self.refuse(event.id, "full" if self._full else "disk-full")
            return False
        seen = self.seen
        if not seen.first_time(event):
            self._counters.replays_dropped += 1
            return False
        if seen.jumped_from is not None:
            if event.sequence:
                heard = event.publisher in self.publishers.get(event.topic, ())
                self.gaps.came(event, seen.jumped_from, heard)
            seen.jumped_from = None
        if not self._arrived:
            self._loop.call_soon(self.flush)
        self._arrived.append(((event,), hops))
        if self.disk is not None:
            self._waiting[event.id] = event
            self._waiting_bytes += len(event.payload)
        return True

    def take_burst(self, events: Sequence[Event], hops: int) -> None:
        """The same for consecutive events of one stream."""
        if self._full or self.disk is not None or not self.seen.follows(events[0], events[-1].sequence):
            for event in events:
                self.take(event, hops)
            return
        if not self._arrived:
            self._loop.call_soon(self.flush)
        self._arrived.append((events, hops))

    def _overfull(self) -> bool:
        return self._holds and (
            len(self._waiting) >= self._limits.application_events
            or self._waiting_bytes >= self._limits.application_bytes
        )

    def flush(self) -> None:
        """Make permanent what came, then let the application have it."""
        arrived, self._arrived = self._arrived, []
        if not arrived:
            return
        events = [event for burst, _ in arrived for event in burst]
        streams = {(burst[0].publisher, burst[0].topic): burst[0].epoch for burst, _ in arrived}
        for (publisher, topic), epoch in streams.items():
            self._note_stream(publisher, topic, epoch)
        self._log_events(arrived)
        self.account()
        if self.disk is None:
            self._release(events)
            return
        for publisher, topic in streams:
            if (state := self.seen.state(publisher, topic)) is not None:
                base = self.gaps.base(EventStream(publisher, topic, state[0]))
                self.disk.do(self.disk.store.set_seen, publisher, topic, state, base)
        if self.at_least_once:
            for event in events:
                self.disk.do(self.disk.store.add_unacknowledged, event)
        self.disk.committed().add_done_callback(lambda _: self._permanent(events))
        if self.disk.error:
            self.disk_failed(self.disk.error)

    def account(self) -> None:
        """Say how much is held here, and make room if it is too much."""
        memory, accounted = self._memory, self._accounted
        held: dict[Kind, int] = {
            "cache": self._log.bytes + EVENT * len(self._log),
            "waiting": self._waiting_bytes + EVENT * len(self._waiting),
            "unacknowledged": self._unacknowledged_bytes + EVENT * len(self.unacknowledged),
        }
        for kind, now in held.items():
            memory.settle(kind, accounted[kind], now)
        self._accounted = held
        if excess := memory.excess("cache"):
            self._log.free(excess)
        full = bool(memory.excess("waiting") or memory.excess("unacknowledged"))
        if full and not self._full:
            memory.refused["unacknowledged" if memory.excess("unacknowledged") else "waiting"] += 1
        self._full = full

    @property
    def full_of(self) -> tuple[str, list[Event]]:
        """What there is too much of to take more events at the moment, if so: what it does, and all of it."""
        if not self._full:
            return "", []
        if not self._memory.excess("unacknowledged"):
            return "wait for the disk", list(self._waiting.values())
        return "are not acknowledged", [event for event, _, _ in self.unacknowledged.values()]

    def handed_out_until(self) -> float:
        """What the log got before this moment was handed out, and nothing of what it got from then on."""
        logged = filter(None, map(self._log.get, self._waiting if len(self._log) else ()))
        oldest = next(logged, None)
        return self._clock.wall() if oldest is None else oldest.arrived

    def _permanent(self, events: list[Event]) -> None:
        fresh = []
        for event in events:
            self._undurable.discard(event.id)
            if self._waiting.pop(event.id, None) is not None:
                self._waiting_bytes -= len(event.payload)
                fresh.append(event)
        self._release(fresh)

    def disk_failed(self, _reason: str) -> None:
        """By the policy `hand-over`: what waits for the disk goes to the application without it."""
        if self._holds or not self._waiting:
            return
        assert self.disk is not None
        waiting, self._waiting, self._waiting_bytes = self._waiting, {}, 0
        self._counters.undurable_events += len(waiting)
        self._undurable |= waiting.keys()
        self._release(list(waiting.values()))

    def _release(self, events: list[Event]) -> None:
        if not events:
            return
        self._counters.deliveries += len(events)
        if len(self.latency):
            self.latency.handed_over(events)
        if self.at_least_once:
            now = self._clock.now
            for event in events:
                self._unacknowledged_bytes += len(event.payload)
                self.unacknowledged[event.id] = (event, now, now)
        self._hand_out(events, False)

    def _note_stream(self, publisher: NodeId, topic: TopicId, epoch: int) -> None:
        self.publishers.setdefault(topic, {})[publisher] = None
        if epoch > self.epochs.get(publisher, 0):
            self.epochs[publisher] = epoch
            if len(self.epochs) > 1 << 16:
                self.epochs.popitem(last=False)

    def forget(self, topic: TopicId, unseen: bool = False) -> None:
        """The topic is not wanted any more; with `unseen` what came of it may come again."""
        for publisher in self.publishers.get(topic, ()) if unseen else ():
            self.seen.forget(publisher, topic)
        self._log.drop(topic)
        self.gaps.forget(topic)
        self.publishers.pop(topic, None)
        if self.disk is not None:
            self.disk.do(self.disk.store.forget_topic, topic)

    def drop_unread(self, topics: Iterable[TopicId]) -> None:
        """These are not wanted any more: what waits of them for the disk, or was not acknowledged, is for nobody."""
        ended = frozenset(topics)
        self.flush()
        waiting = [event for event in self._waiting.values() if event.topic in ended]
        for event in waiting:
            del self._waiting[event.id]
            self._waiting_bytes -= len(event.payload)
        held = [event for event, _, _ in self.unacknowledged.values() if event.topic in ended]
        for event in held:
            del self.unacknowledged[event.id]
            self._unacknowledged_bytes -= len(event.payload)
        if self.disk is not None and self.at_least_once:
            for event in (*waiting, *held):
                self.disk.do(self.disk.store.acknowledge, event.id)
        if self._full:
            self.account()

    # The log.

    def _log_events(self, arrived: list[tuple[Sequence[Event], int]]) -> None:
        """Of what came, only as many events of a topic as its log holds."""
        room: dict[TopicId, int] = {}
        kept = []
        for burst, hops in reversed(arrived):
            topic = burst[0].topic
            left = room[topic] if topic in room else self._depth(topic)
            if left:
                kept.append((burst[-left:], hops))
            room[topic] = max(0, left - len(burst))
        for burst, hops in reversed(kept):
            if self.disk is None and self._log.size_of(burst[0].topic) and not len(self.ages):
                self._log.extend(burst, hops)
                continue
            for event in burst:
                self.log(event, hops)

    def _depth(self, topic: TopicId) -> int:
        size = self._log.size_of(topic)
        return max(size, self._limits_of(topic)[0].events) if self.disk is not None else size

    def log(self, event: Event, hops: int) -> None:
        """Keep an event for others."""
        added = self._log.add(event, hops, self.ages.at_arrival(event.id) if len(self.ages) else 0.0)
        if self.disk is None or not (added or self._depth(event.topic)):
            return
        self.disk.do(self.disk.store.add_event, event, hops, self._clock.wall())
        if event.topic not in self._pruned:
            self._pruned.add(event.topic)
            self._loop.call_later(1.0, self._prune, event.topic)

    def _prune(self, topic: TopicId) -> None:
        """Once a second at most, for each topic that got events."""
        self._pruned.discard(topic)
        if self.disk is not None:
            limits, retained = self._limits_of(topic)
            since = self._clock.wall() - limits.seconds if limits.seconds else 0.0
            depth = max(self._depth(topic), int(retained))
            self.disk.do(self.disk.store.prune, topic, depth, limits.bytes, since, retained)
            self.disk.committed()

    # Verdicts.

    def refuse(self, event: EventId, reason: Refusal) -> None:
        self._counters.refused_events += 1
        self._refused[event] = reason
        if len(self._refused) > MOST_REFUSALS:
            self._refused.popitem(last=False)

    def relayed(self, event: Event) -> None:
        """A publisher handed over an event on a topic that is not wanted here, and it was passed on."""
        stream = EventStream(event.publisher, event.topic, event.epoch)
        if event.sequence > self._relayed.get(stream, -1):
            self._relayed[stream] = event.sequence
            if len(self._relayed) > MOST_RELAYED:
                self._relayed.popitem(last=False)

    def epoch_of(self, publisher: NodeId) -> int:
        return self.epochs.get(publisher, 0)

    def verdict(self, event: EventId) -> str | None:
        """Empty if it was accepted, else why not; None if that is not known yet."""
        reason = self._refused.get(event)
        if reason is not None and not (reason in FOR_NOW and event in self.seen):
            return reason
        if event.topic in self.wanted:
            if event in self._undurable:
                return "disk-full"
            if event in self._waiting:
                return "disk-full" if self.disk is not None and self.disk.error else None
            return "" if event in self.seen else "not-received"
        highest = self._relayed.get(EventStream(event.publisher, event.topic, event.epoch), -1)
        return "" if event.sequence <= highest else "not-received"

    def permanent(self) -> Iterable[asyncio.Future[None]]:
        """What to wait for before verdicts that are not known yet can be asked for again."""
        self.flush()
        return [self.disk.committed()] if self.disk is not None else []

    # At least once.

    def acknowledge(self, event: EventId) -> None:
        known = self.unacknowledged.pop(event, None)
        if known is None:
            return
        self._unacknowledged_bytes -= len(known[0].payload)
        if self._full:
            self.account()
        if self.disk is not None:
            self.disk.do(self.disk.store.acknowledge, event)
            self.disk.committed()

    def awaits(self, event: EventId) -> bool:
        """Whether it was handed over and nobody has acknowledged it yet."""
        return event in self.unacknowledged

    def waited(self, event: EventId) -> float:
        """Seconds since it came, as far as that is known: at least since the node's start."""
        known = self.unacknowledged.get(event)
        return 0.0 if known is None else self._clock.now - known[1]

    def hand_out_again(self, after: float) -> None:
        """What was handed over so long ago and never acknowledged. After a restart it waits until its topic
        is wanted again.
        """
        now, wanted = self._clock.now, self.wanted
        late = [
            (event, first)
            for event, first, last in self.unacknowledged.values()
            if now - last >= after and event.topic in wanted
        ]
        for event, first in late:
            self.unacknowledged[event.id] = (event, first, now)
        if late:
            self._hand_out([event for event, _ in late], True)
