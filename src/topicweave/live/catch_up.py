"""Catching up: a node that was away gets what its neighbours still hold. It works beside the system, and in
the same way for every system.

Theory of operation: two linked nodes compare digests of the topics that both want (`Summary`). If digests
differ, each names the events that it holds (`Inventory`) and how far each publisher's events go (`Heads`).
Each fetches what it has not seen (`Fetch`, answered by `CatchUp` events). Nodes do this when a link comes up,
when a topic is subscribed to, from time to time with one random neighbour, and with all neighbours after they
have caught up. So one link between two halves of a healed partition is enough for both. A node asks for
events that it knows to be missing by their numbers (`Wanted`), one neighbour after the other. A neighbour
with a deep log on disk can give events that have left all caches.

Rules kept
----------
1. A node answers and listens to neighbours only. Nodes that a pattern led to a name announced here may also
   ask about that name.
2. A node takes from a peer only what it asked for. So no peer can bypass the overlay in this way.
3. A peer that names events and then gives none of them is not asked for a while, and others are asked for the
   same events at once. So a lie costs the liar.
4. An event that was caught up goes to the application through the same gate as all others, which lets it pass
   once. The system does not see it.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import struct
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple

from topicweave.live.catch_up_messages import (
    MOST_IDS,
    MOST_TOPICS,
    Aged,
    CatchUp,
    Fetch,
    Head,
    Heads,
    History,
    Inventory,
    Measured,
    MissedRange,
    Summary,
    TopicDigest,
    Wanted,
)
from topicweave.live.event_log import EventLog
from topicweave.live.gaps import EventStream
from topicweave.live.gate import Gate
from topicweave.live.memory import EVENT_ID, Memory
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import Message

MOST_INVENTORIES = 64
"""Topics named in answer to one summary; the rest has its turn when the summary comes again."""
FETCH_BYTES = 1024 * 1024
"""Sent at most in answer to one fetch."""
PATIENCE = 5
"""Looks for which an answer is waited for."""
FIRST_DISTRUST, LONGEST_DISTRUST = 20, 1200
"""Looks for which a peer that gave nothing of what it named is not asked."""
UNDER_WAY = 1.0
"""Seconds for which a missing event may still come by itself."""
MOST_PUBLISHERS = 1024
"""Publishers without a link that are asked at a time."""
HISTORY_LOOKS = 20
"""For so many looks new neighbours are asked for a topic's history, too."""


class _Asked:
    """What was asked of one peer."""

    __slots__ = ("events", "given", "ranges", "since")

    def __init__(self, look: int) -> None:
        self.events: dict[EventId, None] = {}
        self.ranges: tuple[MissedRange, ...] = ()
        self.given = 0
        self.since = look


class Around(NamedTuple):
    """What a node asks of the world around it to catch up."""

    now: Callable[[], float]
    wall: Callable[[], float]
    send: Callable[[NodeId, Message], object]
    topics: Callable[[], Collection[TopicId]]
    """What the application wants."""
    neighbours: Callable[[], Iterable[NodeId]]
    """The overlay's links."""
    take: Callable[[Event, int], bool]
    """Hands over an event, with its hops, and tells whether it was new."""
    blame: Callable[[NodeId], None]
    """Notes that a peer did not keep its word."""
    may_have: Callable[[NodeId, TopicId], bool]
    """What a peer's certificate says."""


class CatchUpService:
    """One node's half."""

    def __init__(self, log: EventLog, gate: Gate, rng: random.Random, memory: Memory, around: Around) -> None:
        self._memory = memory
        self._accounted = 0
        self._log, self._gate = log, gate
        self._random = rng
        self._now, self._wall, self._send, self._topics = around[:4]
        self._neighbours, self._take, self._blame, self._may_have = around[4:]
        self.announces: Callable[[TopicId], bool] = lambda topic: False
        """Whether this node told everybody that it publishes on a topic."""
        self._linked: set[NodeId] = set()
        self._news: set[TopicId] = set()
        self._asked: dict[NodeId, _Asked] = {}
        self._distrusted: dict[NodeId, tuple[int, int]] = {}
        self._histories: dict[TopicId, tuple[History, int]] = {}
        # Those that were asked as publishers, and until which look they are listened to.
        self._publishers: dict[NodeId, int] = {}
        self._looks = 0
        self._reading: set[asyncio.Task[None]] = set()

    # Told by the world.

    def look(self) -> None:
        """Once or twice a second: greet new neighbours, tell all of them the news, ask for what is missing."""
        linked = set(self._neighbours())
        topics = self._topics()
        if topics:
            if self._news:
                news = self._news.intersection(topics)
                for peer in sorted(linked & self._linked):
                    self._tell(peer, news, answer=False)
            for peer in sorted(linked - self._linked):
                self._tell(peer, topics, answer=False)
                for history, _ in self._histories.values():
                    self._send(peer, history)
        self._news.clear()
        self._linked = linked
        self._looks += 1
        self._settle()
        self._account()
        self._ask_for_missing(sorted(linked))
        self._histories = {
            topic: (history, left - 1) for topic, (history, left) in self._histories.items() if left > 1
        }

    def compare(self) -> None:
        """From time to time: one neighbour, all topics of which something is known."""
        linked = sorted(set(self._neighbours()))
        held = [topic for topic in self._topics() if topic in self._gate.publishers]
        if linked and held:
            self._tell(linked[self._random.randrange(len(linked))], held, answer=False)

    def changed(self, topic: TopicId) -> None:
        """A topic is new here, or got events that did not come through the overlay."""
        self._news.add(topic)

    def ask_history(self, topic: TopicId, last: int, since: float) -> None:
        """Let neighbours, those to come soon included, name what they keep of a topic."""
        history = History(topic, last, since)
        self._histories[topic] = (history, HISTORY_LOOKS)
        for peer in sorted(set(self._neighbours())):
            self._send(peer, history)

    def ask_publisher(self, peer: NodeId, topic: TopicId, last: int, since: float) -> None:
        """Let a node that announced a topic, and may be no neighbour, name what it keeps of it."""
        if len(self._publishers) < MOST_PUBLISHERS or peer in self._publishers:
            self._publishers[peer] = self._looks + HISTORY_LOOKS
            self._send(peer, History(topic, last, since))

    def _settle(self) -> None:
        """Give up waiting for answers; a peer that gave nothing at all of what it named is distrusted."""
        for peer, asked in list(self._asked.items()):
            if self._looks - asked.since <= PATIENCE:
                continue
            del self._asked[peer]
            if asked.events and not asked.given:
                _, times = self._distrusted.get(peer, (0, 0))
                pause = min(FIRST_DISTRUST << min(times, 10), LONGEST_DISTRUST)
                self._distrusted[peer] = (self._looks + pause, times + 1)
                self._blame(peer)
        if len(self._distrusted) > 4096:
            self._distrusted.clear()
        for peer in [peer for peer, until in self._publishers.items() if until < self._looks]:
            del self._publishers[peer]

    def _ask_for_missing(self, linked: Sequence[NodeId]) -> None:
        if not linked or not len(self._gate.gaps):
            return
        missing = self._gate.gaps.missing(64, self._now() - UNDER_WAY)
        free = [peer for peer in linked if peer not in self._asked and not self._distrusts(peer)]
        if not missing or not free:
            return
        peer = free[self._looks % len(free)]
        ranges = tuple(MissedRange(*stream, first, last) for stream, first, last in missing)
        asked = self._asked[peer] = _Asked(self._looks)
        asked.ranges = ranges
        self._send(peer, Wanted(ranges))

    def _account(self) -> None:
        now = EVENT_ID * sum(len(asked.events) for asked in self._asked.values())
        self._memory.settle("asked", self._accounted, now)
        self._accounted = now

    def _distrusts(self, peer: NodeId) -> bool:
        return self._distrusted.get(peer, (0, 0))[0] > self._looks

    # Said by peers.

    def receive(self, sender: NodeId, message: Message) -> None:
        if isinstance(message, CatchUp):
            self._receive_event(sender, message)
            return
        if isinstance(message, Aged):
            self._gate.ages.told(message.event, message.age)
            return
        if isinstance(message, Measured):
            self._gate.latency.told(message.event, message.age)
            return
        if sender not in self._linked and sender not in set(self._neighbours()):
            self._receive_from_afar(sender, message)
            return
        match message:
            case Summary():
                self._receive_summary(sender, message)
            case Heads():
                self._receive_heads(message)
            case Inventory():
                self._receive_inventory(sender, message)
            case Fetch():
                self._give(sender, message.events[:MOST_IDS])
            case Wanted():
                self._give_ranges(sender, message.ranges)
            case History():
                self._name_history(sender, message)

    def _receive_from_afar(self, sender: NodeId, message: Message) -> None:
        """From a node without a link here: about names that one of the two announced, and nothing else."""
        match message:
            case Inventory() if sender in self._publishers:
                self._receive_inventory(sender, message)
            case Fetch():
                self._give(sender, [one for one in message.events[:MOST_IDS] if self.announces(one.topic)])
            case History() if self.announces(message.topic):
                self._name_history(sender, message)

    def _receive_event(self, sender: NodeId, message: CatchUp) -> None:
        asked = self._asked.get(sender)
        event = message.event
        if asked is None:
            return
        if event.id in asked.events:
            del asked.events[event.id]
        elif not any(
            (one.publisher, one.topic, one.epoch) == event.id[:3] and one.first <= event.sequence <= one.last
            for one in asked.ranges
        ):
            return
        asked.given += 1
        if self._take(event, message.hops):
            self.changed(event.topic)
        if not asked.events and not asked.ranges:
            del self._asked[sender]

    def _receive_summary(self, sender: NodeId, message: Summary) -> None:
        wanted = self._topics()
        different = [
            entry
            for entry in message.topics[:MOST_TOPICS]
            if entry.topic in wanted
            and (
                entry.digest != self._log.digest(entry.topic)
                or entry.heads != self._heads_digest(entry.topic)
            )
            and self._may_have(sender, entry.topic)
        ]
        for entry in different[:MOST_INVENTORIES]:
            if entry.digest != self._log.digest(entry.topic):
                events = self._log.events(entry.topic)
                if events:
                    self._send(sender, Inventory(tuple(events[-MOST_IDS:])))
            if entry.heads != self._heads_digest(entry.topic) and (heads := self._heads(entry.topic)):
                self._send(sender, Heads(entry.topic, tuple(heads[:MOST_IDS])))
        theirs = [entry.topic for entry in different if entry.digest or entry.heads]
        if theirs and not message.answer:
            self._tell(sender, theirs, answer=True)

    def _receive_heads(self, message: Heads) -> None:
        topic, gate = message.topic, self._gate
        if topic not in self._topics():
            return
        known = gate.publishers.get(topic, {})
        for head in message.heads:
            stream = EventStream(head.publisher, topic, head.epoch)
            if gate.gaps.superseded(stream):
                gate.gaps.told(stream, head.sequence, known=True)
                continue
            highest = gate.seen.highest(head.publisher, topic, head.epoch)
            unseen = gate.seen.unseen(head.publisher, topic, head.epoch, head.sequence, head.sequence)
            if unseen and head.sequence > highest:
                gate.gaps.told(stream, head.sequence, head.publisher in known)

    def _receive_inventory(self, sender: NodeId, message: Inventory) -> None:
        if self._distrusts(sender):
            return
        wanted, seen = self._topics(), self._gate.seen
        elsewhere = [asked.events for peer, asked in self._asked.items() if not self._distrusted.get(peer)]
        missed = [
            event
            for event in message.events[:MOST_IDS]
            if event.topic in wanted
            and event not in seen
            and not any(event in events for events in elsewhere)
        ]
        asked = self._asked.get(sender)
        self._account()
        room = not self._memory.excess("asked")
        if missed and room and (asked is None or len(asked.events) < 4 * MOST_IDS):
            if asked is None:
                asked = self._asked[sender] = _Asked(self._looks)
            asked.events.update(dict.fromkeys(missed))
            self._send(sender, Fetch(tuple(missed)))

    # Giving.

    def _give(self, peer: NodeId, events: Sequence[EventId]) -> None:
        sent = 0
        elsewhere = []
        for event_id in events:
            logged = self._log.get(event_id)
            if logged is None:
                if min(event_id) >= 0 and max(event_id.epoch, event_id.sequence) < 1 << 63:
                    elsewhere.append(event_id)
                continue
            sent += len(logged.event.payload)
            if sent > FETCH_BYTES:
                return
            if self._may_have(peer, event_id.topic):
                self._send(peer, CatchUp(logged.event, logged.hops + 1))
        if elsewhere and self._gate.disk is not None:
            self._give_ranges(peer, _in_ranges(elsewhere))

    def _give_ranges(self, peer: NodeId, ranges: Sequence[MissedRange]) -> None:
        disk = self._gate.disk
        allowed = [one for one in ranges if self._may_have(peer, one.topic)]
        if disk is not None:
            self._spawn(self._read_ranges(peer, allowed))
            return
        numbers = [
            EventId(one.publisher, one.topic, one.epoch, number)
            for one in allowed
            for number in range(one.first, min(one.last, one.first + MOST_IDS) + 1)
        ]
        self._give(peer, [event for event in numbers if event in self._log][:MOST_IDS])

    async def _read_ranges(self, peer: NodeId, ranges: Sequence[MissedRange]) -> None:
        disk = self._gate.disk
        assert disk is not None
        left, size = MOST_IDS, 0
        for one in ranges:
            key = (one.publisher, one.topic, one.epoch, one.first, one.last)
            for event, hops, arrived, _ in await disk.read(disk.store.within, key, left):
                left -= 1
                size += len(event.payload)
                if event.id not in self._log:
                    self._send(peer, Aged(event.id, max(0.0, self._wall() - arrived)))
                self._send(peer, CatchUp(event, hops + 1))
            if not left or size > FETCH_BYTES:
                return

    def _name_history(self, peer: NodeId, message: History) -> None:
        if not self._may_have(peer, message.topic):
            return
        if self._gate.disk is not None:
            self._spawn(self._read_history(peer, message))
            return
        found = self._log.history(message.topic, message.last, message.since)
        self._send_inventory(peer, [logged.event.id for logged in found])

    async def _read_history(self, peer: NodeId, message: History) -> None:
        disk = self._gate.disk
        assert disk is not None
        most = min(message.last, 4 * MOST_IDS)
        found = await disk.read(disk.store.history, message.topic, most, message.since)
        self._send_inventory(peer, [event.id for event, _ in found])

    def _send_inventory(self, peer: NodeId, events: Sequence[EventId]) -> None:
        for start in range(0, len(events), MOST_IDS):
            self._send(peer, Inventory(tuple(events[start : start + MOST_IDS])))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    # Telling.

    def _heads(self, topic: TopicId) -> list[Head]:
        heads = []
        for publisher in self._gate.publishers.get(topic, ()):
            state = self._gate.seen.state(publisher, topic)
            if state is not None:
                heads.append(Head(publisher, state[0], state[1]))
                ended = self._gate.gaps.ended(publisher, topic)
                heads += [Head(publisher, epoch, last) for epoch, last in ended.items()]
        return heads

    def _heads_digest(self, topic: TopicId) -> int:
        """The same for the same heads in whatever order; 0 for none."""
        digest = 0
        for head in self._heads(topic):
            packed = struct.pack(">QQQQ", topic, head.publisher, head.epoch, head.sequence)
            digest ^= int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), "big")
        return digest

    def _tell(self, peer: NodeId, topics: Collection[TopicId], answer: bool) -> None:
        digests = [
            TopicDigest(topic, self._log.digest(topic), self._heads_digest(topic))
            for topic in sorted(topics)[:MOST_TOPICS]
        ]
        if digests:
            self._send(peer, Summary(tuple(digests), answer))


def _in_ranges(events: Iterable[EventId]) -> list[MissedRange]:
    """Consecutive numbers together.

    >>> [(one.first, one.last) for one in _in_ranges(EventId(1, 2, 3, n) for n in (4, 5, 6, 9))]
    [(4, 6), (9, 9)]
    """
    ranges: list[MissedRange] = []
    for event in sorted(events):
        last = ranges[-1] if ranges else None
        if last is not None and (last.publisher, last.topic, last.epoch, last.last + 1) == tuple(event):
            ranges[-1] = MissedRange(*event[:3], last.first, event.sequence)
        else:
            ranges.append(MissedRange(*event[:3], event.sequence, event.sequence))
    return ranges
