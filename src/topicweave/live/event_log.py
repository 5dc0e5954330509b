"""The last events of each topic: what those who missed them can be given.

Bounded per topic in events and over all topics in bytes; the oldest goes first. Each topic has a digest of the events it holds, the same for
the same events in whatever order, so two nodes can tell at a glance whether they hold the same.
"""

from __future__ import annotations

import hashlib
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterable

import msgspec

from topicweave.model.event import Event, EventId
from topicweave.model.ids import TopicId


class Logged(msgspec.Struct, frozen=True):
    event: Event
    hops: int


Removed = Callable[[EventId], None]


def fingerprint(event: EventId) -> int:
    return int.from_bytes(hashlib.blake2b(struct.pack(">QQQQ", *event), digest_size=8).digest(), "big")


class EventLog:
    """`size(topic)` says how many events a topic may hold; `removed` is told what went."""

    def __init__(self, size: Callable[[TopicId], int], most_bytes: int, removed: Removed) -> None:
        self._size = size
        self._most_bytes = most_bytes
        self._removed = removed
        self._topics: dict[TopicId, OrderedDict[EventId, Logged]] = {}
        self._digests: dict[TopicId, int] = {}
        # All events in the order they came, to find the oldest over all topics.
        self._order: OrderedDict[EventId, None] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, event: EventId) -> bool:
        return event in self._order

    def add(self, event: Event, hops: int) -> bool:
        """Whether it is kept: it is new, and its topic may hold events."""
        event_id = event.id
        size = self._size(event.topic)
        if size == 0 or event_id in self._order:
            return False
        topic = self._topics.setdefault(event.topic, OrderedDict())
        topic[event_id] = Logged(event, hops)
        self._order[event_id] = None
        self._digests[event.topic] = self._digests.get(event.topic, 0) ^ fingerprint(event_id)
        self.bytes += len(event.payload)
        while len(topic) > size:
            self._remove(next(iter(topic)))
        while self.bytes > self._most_bytes and len(self._order) > 1:
            self._remove(next(iter(self._order)))
        return True

    def get(self, event: EventId) -> Logged | None:
        topic = self._topics.get(event.topic)
        return None if topic is None else topic.get(event)

    def digest(self, topic: TopicId) -> int:
        """0 for a topic without events."""
        return self._digests.get(topic, 0)

    def events(self, topic: TopicId) -> list[EventId]:
        """What a topic holds, oldest first."""
        return list(self._topics.get(topic, ()))

    def topics(self) -> Iterable[TopicId]:
        return self._topics.keys()

    def drop(self, topic: TopicId) -> None:
        for event in self.events(topic):
            self._remove(event)

    def _remove(self, event: EventId) -> None:
        topic = self._topics[event.topic]
        self.bytes -= len(topic.pop(event).event.payload)
        del self._order[event]
        self._digests[event.topic] ^= fingerprint(event)
        if not topic:
            del self._topics[event.topic], self._digests[event.topic]
        self._removed(event)
