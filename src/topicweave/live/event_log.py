"""The last events of each topic, for nodes that missed them.

The log is bounded in events per topic, and in bytes over all topics. The oldest event is dropped first, but
the last event of a retained topic stays. Each topic has a digest of its events that does not depend on their
order. So two nodes can tell at once whether they hold the same events.
"""

from __future__ import annotations

import hashlib
import struct
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from topicweave.live.memory import EVENT
from topicweave.model.event import Event, EventId
from topicweave.model.ids import TopicId


class Logged(NamedTuple):
    event: Event
    hops: int
    arrived: float
    age: float = 0.0
    """How old it was then."""


def fingerprint(event: EventId) -> int:
    return int.from_bytes(hashlib.blake2b(struct.pack(">QQQQ", *event), digest_size=8).digest(), "big")


class EventLog:
    """`size(topic)` says how many events a topic may hold, `wall()` what time it is."""

    def __init__(
        self,
        size: Callable[[TopicId], int],
        most_bytes: int,
        wall: Callable[[], float],
        retained: Callable[[TopicId], bool] = lambda topic: False,
    ) -> None:
        self.size_of = size
        self._most_bytes = most_bytes
        self._wall = wall
        self._retained = retained
        self._topics: dict[TopicId, OrderedDict[EventId, Logged]] = {}
        # Digests are asked for now and then, events come all the time: a digest is made when it is asked for.
        self._digests: dict[TopicId, int] = {}
        # All events in the order they came, to find the oldest over all topics; also some that went already.
        self._order: deque[EventId] = deque()
        self._count = 0
        self.bytes = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, event: EventId) -> bool:
        return event in self._topics.get(event.topic, ())

    def add(self, event: Event, hops: int, age: float = 0.0, arrived: float | None = None) -> bool:
        """Whether it is kept: it is new, and its topic may hold events. It arrives now, unless it is said when."""
        topic_id = event.topic
        size = self.size_of(topic_id) or int(self._retained(topic_id))
        if size == 0:
            return False
        topic = self._topics.get(topic_id)
        if topic is None:
            topic = self._topics[topic_id] = OrderedDict()
        event_id = event.id
        if event_id in topic:
            return False
        topic[event_id] = Logged(event, hops, self._wall() if arrived is None else arrived, age)
        self._order.append(event_id)
        self._count += 1
        self._digests.pop(topic_id, None)
        self.bytes += len(event.payload)
        while len(topic) > size:
            self._remove(next(iter(topic)))
        self._make_room()
        return True

    def _make_room(self) -> None:
        while self.bytes > self._most_bytes and self._count > 1:
            if not self._order:
                break  # What is left is retained.
            oldest = self._order.popleft()
            if oldest in self and not (len(self._topics[oldest.topic]) == 1 and self._retained(oldest.topic)):
                self._remove(oldest)
        if len(self._order) > 2 * self._count + 1000:
            self._order = deque(event_id for event_id in self._order if event_id in self)

    def extend(self, events: Sequence[Event], hops: int) -> None:
        """`add` for several events of one topic, no more than it may hold."""
        topic_id, arrived = events[0].topic, self._wall()
        topic = self._topics.get(topic_id)
        if topic is None:
            topic = self._topics[topic_id] = OrderedDict()
        for event in events:
            event_id = event.id
            if event_id not in topic:
                topic[event_id] = Logged(event, hops, arrived)
                self._order.append(event_id)
                self._count += 1
                self.bytes += len(event.payload)
        self._digests.pop(topic_id, None)
        size = self.size_of(topic_id) or int(self._retained(topic_id))
        while len(topic) > size:
            _, gone = topic.popitem(last=False)
            self._count -= 1
            self.bytes -= len(gone.event.payload)
        self._make_room()

    def get(self, event: EventId) -> Logged | None:
        topic = self._topics.get(event.topic)
        return None if topic is None else topic.get(event)

    def digest(self, topic: TopicId) -> int:
        """0 for a topic without events."""
        digest = self._digests.get(topic)
        if digest is None:
            digest = 0
            for event in self._topics.get(topic, ()):
                digest ^= fingerprint(event)
            if topic in self._topics:
                self._digests[topic] = digest
        return digest

    def events(self, topic: TopicId) -> list[EventId]:
        """What a topic holds, oldest first."""
        return list(self._topics.get(topic, ()))

    def history(self, topic: TopicId, last: int, since: float) -> list[Logged]:
        """The last events of a topic that came after a moment, oldest first."""
        found = [logged for logged in self._topics.get(topic, {}).values() if logged.arrived >= since]
        return found[-last:] if last else []

    def topics(self) -> Iterable[TopicId]:
        return self._topics.keys()

    def free(self, amount: int) -> None:
        """Let the oldest go, until so many bytes are free."""
        while amount > 0 and self._order:
            oldest = self._order.popleft()
            if oldest in self:
                amount -= len(self._topics[oldest.topic][oldest].event.payload) + EVENT
                self._remove(oldest)

    def drop(self, topic: TopicId) -> None:
        for event in self.events(topic):
            self._remove(event)

    def _remove(self, event: EventId) -> None:
        topic = self._topics[event.topic]
        self.bytes -= len(topic.pop(event).event.payload)
        self._count -= 1
        self._digests.pop(event.topic, None)
        if not topic:
            del self._topics[event.topic]
