"""What an application sees: events it gets, receipts for what it publishes, and a bounded queue in between."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Container, Sequence

import msgspec

from topicweave.client.words import Gap
from topicweave.live.counters import Counters
from topicweave.live.memory import EVENT, Memory
from topicweave.model.event import EventId


class Received(msgspec.Struct, frozen=True, gc=False):
    """An event as the application gets it."""

    topic: str
    payload: bytes
    publisher: str
    """The publisher's name, if its certificate or a connection told it; else its id in 16 hexadecimal digits."""
    epoch: int
    sequence: int
    """Counts the publisher's events on this topic within an epoch."""
    publisher_id: int = 0
    again: bool = False
    """The application got it earlier and did not acknowledge it (with delivery at least once)."""
    age: float = 0.0
    """At least how many seconds ago it was published, if it came late; 0 if it came at once."""


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """What a publisher learns about its event."""

    event: EventId
    neighbours: int
    """How many neighbours the event was sent to at once."""
    accepted: int = 0
    """How many neighbours said that they accepted the event: it is genuine, and written down if they have a
    data folder. They are asked with `wait_for` only.
    """
    refused: dict[str, int] = {}
    """How many neighbours refused it, by reason."""
    reason: str = ""
    """Why no neighbour took it, or fewer accepted it than were asked for."""


MOST_GAPS = 1024


class GapQueue:
    """Gaps that wait for one reader. Gaps of one stream that touch are merged. When more than `MOST_GAPS`
    wait, each new one is merged with the last one of its stream; a merged gap may include events that came.

    >>> gaps = GapQueue()
    >>> for first in (1, 2, 7):
    ...     gaps.put(Gap("news", "alice", 1, first, first, "unread"))
    >>> [(gap.first, gap.last) for gap in gaps.take()]
    [(1, 2), (7, 7)]
    """

    def __init__(self) -> None:
        self._streams: dict[tuple[str, str, int, str], list[Gap]] = {}
        self._count = 0
        self._some = asyncio.Event()

    def put(self, gap: Gap) -> None:
        gaps = self._streams.setdefault((gap.topic, gap.publisher, gap.epoch, gap.reason), [])
        if gaps and (gaps[-1].last + 1 == gap.first or self._count >= MOST_GAPS):
            first, last = min(gaps[-1].first, gap.first), max(gaps[-1].last, gap.last)
            gaps[-1] = msgspec.structs.replace(gap, first=first, last=last)
        else:
            gaps.append(gap)
            self._count += 1
        self._some.set()

    def take(self) -> list[Gap]:
        """All that wait."""
        taken = [gap for gaps in self._streams.values() for gap in gaps]
        self._streams, self._count = {}, 0
        self._some.clear()
        return taken

    async def get_all(self) -> list[Gap]:
        """All that wait, one at least."""
        await self._some.wait()
        return self.take()


def _key(event: Received) -> tuple[int, str, int, int]:
    return event.publisher_id, event.topic, event.epoch, event.sequence


class Feed:
    """Events on their way to one reader. Beyond its bounds the oldest goes, is counted and announced as a gap.

    `on_gap`, if given, is told of events that will not come; `on_unread` of those that the reader did not take in time.
    """

    def __init__(
        self,
        counters: Counters,
        most_events: int,
        most_bytes: int,
        topics: Container[str] | None = None,
        on_gap: Callable[[Gap], None] | None = None,
        on_unread: Callable[[Gap], None] | None = None,
        memory: Memory | None = None,
    ) -> None:
        self.topics = topics
        """Only these topics, if given: names, or what patterns match."""
        self._on_gap = on_gap
        self._on_unread = on_unread or on_gap
        self.dropped = 0
        self._counters = counters
        self._most_events, self._most_bytes = most_events, most_bytes
        self._queue: deque[Received] = deque()
        self._bytes = 0
        self._memory = memory or Memory()
        self._accounted = 0
        self._waiting: asyncio.Future[None] | None = None
        self._closed = False

    def put(self, events: Sequence[Received]) -> None:
        """What comes again, all of it or nothing, is passed over as long as it waits here."""
        if self.topics is not None:
            topics = self.topics
            events = [event for event in events if event.topic in topics]
        if events and events[0].again and self._queue:
            here = set(map(_key, self._queue))
            events = [event for event in events if _key(event) not in here]
        if self._closed or not events:
            return
        self._queue.extend(events)
        self._bytes += sum([len(event.payload) for event in events])
        self._account()
        if (
            len(self._queue) > self._most_events
            or self._bytes > self._most_bytes
            or self._memory.excess("unread")
        ):
            self._make_room()
        self._wake()

    def _account(self) -> None:
        """Say how much waits; not with each event that is read, but when more come, and when none is left."""
        now = self._bytes + EVENT * len(self._queue)
        self._memory.settle("unread", self._accounted, now)
        self._accounted = now

    def _make_room(self) -> None:
        unread: list[Gap] = []
        excess = self._memory.excess("unread")
        while len(self._queue) > self._most_events or (
            (self._bytes > self._most_bytes or excess > 0) and len(self._queue) > 1
        ):
            event = self._queue.popleft()
            self._bytes -= len(event.payload)
            excess -= len(event.payload) + EVENT
            self.dropped += 1
            self._counters.application_drops += 1
            first = number = event.sequence
            if unread:
                last = unread[-1]
                follows = (last.topic, last.publisher, last.epoch, last.last + 1)
                if follows == (event.topic, event.publisher, event.epoch, number):
                    first = unread.pop().first
            unread.append(Gap(event.topic, event.publisher, event.epoch, first, number, "unread"))
        self._account()
        if self._on_unread is not None:
            for gap in unread:
                self._on_unread(gap)

    def missed(self, gaps: Sequence[Gap]) -> None:
        if self._on_gap is not None and not self._closed:
            for gap in gaps:
                if self.topics is None or gap.topic in self.topics:
                    self._on_gap(gap)

    def close(self) -> None:
        """No more events come; those that are there can still be read."""
        self._closed = True
        self._memory.give("unread", self._accounted)
        self._accounted = 0
        self._wake()

    def __del__(self) -> None:
        self._memory.give("unread", self._accounted)  # A reader may go without a word.

    async def get(self) -> Received | None:
        """The next event; None when the feed is closed and empty."""
        while not self._queue:
            if self._closed:
                return None
            self._account()
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        event = self._queue.popleft()
        self._bytes -= len(event.payload)
        return event

    async def get_all(self) -> list[Received]:
        """All events that are there, at least one; none when the feed is closed and empty."""
        if self._queue:
            return self.take()
        first = await self.get()
        return [] if first is None else [first, *self.take()]

    def take(self) -> list[Received]:
        """All events that are there, if any."""
        events = list(self._queue)
        self._queue.clear()
        self._bytes = 0
        return events

    def __aiter__(self) -> Feed:
        return self

    async def __anext__(self) -> Received:
        if self._queue:
            event = self._queue.popleft()
            self._bytes -= len(event.payload)
            return event
        waited_for = await self.get()
        if waited_for is None:
            raise StopAsyncIteration
        return waited_for

    def __len__(self) -> int:
        return len(self._queue)

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
