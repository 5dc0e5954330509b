"""The retained values that a door knows, and which subscribers still have to get one.

A retained value travels on a topic of its own (`names.RETAINED`), which keeps its last event. A door that has
such a value keeps it for others. Of two values of one topic the later one stays, by the time that their
publishers gave them; at the same time, that of the greater publisher's name. An empty value clears a topic. It is
kept for a while, like any other, so that doors that were away learn of it; then the topic is let go. A time far
ahead of the door's clock is not believed: no later value could take its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from topicweave.live.application import Received
from topicweave.live.clock import SKEWED
from topicweave.live.mqtt.envelope import unwrap
from topicweave.live.mqtt.listeners import Listeners
from topicweave.live.mqtt.packets import NO_PROPERTIES, Properties
from topicweave.live.mqtt.session import Kept
from topicweave.live.names import RETAINED
from topicweave.model.name_index import NameIndex
from topicweave.model.patterns import is_pattern

CLEARED_FOR = 600.0
"""Seconds for which a door keeps a topic whose value was cleared."""
MOST_CLEARED = 1000
"""Such topics; beyond that the oldest is let go earlier."""


class RetainedValue(msgspec.Struct, frozen=True):
    """A retained value."""

    at: float
    publisher: str
    payload: bytes
    properties: Properties = NO_PROPERTIES
    born: float = 0.0
    """When it was published by this node's clock, as far as is known; `at` is by its publisher's."""

    @property
    def rank(self) -> tuple[float, str]:
        """Of two values of a topic the higher one stays."""
        return self.at, self.publisher


class _Newcomer:
    """A subscription that is to be given values."""

    __slots__ = ("given", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.given: dict[str, tuple[float, str]] = {}
        """Topics, and the rank of the value that it was given."""


class RetainedValues:
    """`listening(topic)` names the subscriptions to a topic, `wanted(topic)` tells whether there are any,
    `now()` is the node's clock, `trusted()` the wall clock as far as it is believed.
    """

    def __init__(
        self,
        now: Callable[[], float],
        listening: Callable[[str], Iterable[tuple[str, str, Kept]]],
        wanted: Callable[[str], bool],
        trusted: Callable[[], float],
    ) -> None:
        self._now = now
        self._trusted = trusted
        self._listening = listening
        self._wanted = wanted
        self._values: dict[str, RetainedValue] = {}
        self._names = NameIndex()
        self.keeping: set[str] = set()
        """Topics whose value came in through this door."""
        self._cleared: dict[str, float] = {}
        """Those of them without a value, and since when; the oldest first."""
        self._newcomers: dict[tuple[str, str], _Newcomer] = {}
        """By client and filter."""

    def __len__(self) -> int:
        return sum(bool(value.payload) for value in self._values.values())

    def get(self, topic: str) -> RetainedValue | None:
        return self._values.get(topic)

    def learn(self, event: Received) -> str:
        """A value comes; its topic, if it is later than what is known, and somebody may have to be given it."""
        topic = event.topic.removeprefix(RETAINED)
        payload, head = unwrap(event.payload)
        born = self._now() - event.age
        at, trusted = head.retained_at, self._trusted()
        if not at <= trusted + SKEWED:  # Or it is no number.
            at = trusted - event.age
        value = RetainedValue(at, event.publisher, payload, head.properties, born)
        known = self._values.get(topic)
        if known is not None and known.rank >= value.rank:
            return ""
        self._values[topic] = value
        self._names.add(topic)
        self._cleared.pop(topic, None)
        if topic in self.keeping and not payload:
            self._cleared[topic] = self._now()
        return topic

    @property
    def kept(self) -> int:
        """Values that came in through this door and were not cleared."""
        return len(self.keeping) - len(self._cleared)

    def restore(self, topic: str, events: Iterable[Received]) -> None:
        """An earlier life kept this topic; if nothing is left of its value, others may have it."""
        self.keeping.add(topic)
        self._cleared[topic] = self._now()
        for event in events:
            self.learn(event)

    def let_go(self) -> list[str]:
        """Topics that were kept and are not any more: they were cleared, and others had time to learn of it."""
        excess, now = len(self._cleared) - MOST_CLEARED, self._now()
        gone = [
            topic
            for place, (topic, since) in enumerate(self._cleared.items())
            if place < excess or now - since >= CLEARED_FOR
        ]
        for topic in gone:
            del self._cleared[topic]
            self.keeping.discard(topic)
            self._forget(topic)
        return gone

    def _forget(self, topic: str) -> None:
        """A value that nobody here wants, and that others keep, if it is one."""
        if topic in self._values and topic not in self.keeping and not self._wanted(topic):
            del self._values[topic]
            self._names.discard(topic)

    def welcome(self, client_id: str, filter_: str) -> None:
        """A subscription begins that is to be given what there is."""
        self._newcomers[client_id, filter_] = _Newcomer(self._now())

    def leave(self, client_id: str, filters: Iterable[str]) -> None:
        """Subscriptions end. Values that nobody here wants then, and that others keep, are forgotten."""
        ended = list(filters)
        for filter_ in ended:
            self._newcomers.pop((client_id, filter_), None)
        for topic in list(self._values) if any(map(is_pattern, ended)) else ended:
            self._forget(topic)

    def matching(self, filter_: str) -> list[str]:
        """Topics with a value that a filter names."""
        return self._names.matching(filter_)

    def due(self, topic: str, value: RetainedValue, ahead: float) -> list[tuple[str, Kept]]:
        """Newcomers that are to get a value now, with their subscriptions. One that is younger than a
        subscription reaches it as an event.

        If neighbours tell of a later one after that, they get that one too. `ahead` is the trusted time less
        the node's clock.
        """
        found = []
        for filter_, client_id, kept in self._listening(topic):
            newcomer = self._newcomers.get((client_id, filter_))
            if newcomer is None:
                continue
            older = value.born < newcomer.since or value.at < newcomer.since + ahead
            given = newcomer.given.get(topic)
            if older and (given is None or given < value.rank):
                newcomer.given[topic] = value.rank
                found.append((client_id, kept))
        return found


class DoorTopics:
    """What the door's feed is to get."""

    def __init__(self, listeners: Listeners, values: RetainedValues) -> None:
        self._listeners, self._values = listeners, values

    def __contains__(self, topic: object) -> bool:
        if isinstance(topic, str) and topic.startswith(RETAINED):
            topic = topic.removeprefix(RETAINED)
            return topic in self._values.keeping or topic in self._listeners
        return topic in self._listeners
