"""The names of topics that a node publishes on, as it announces them for others' patterns.

A name is announced from the node's first event on it until `KEPT` seconds after the last, and as long as the
node keeps the topic's retained value. So many at most; others are counted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterator

from topicweave.model.ids import TopicId
from topicweave.model.name_index import NameIndex
from topicweave.model.patterns import BadPattern, check_name

log = logging.getLogger("topicweave.live")

KEPT = 600.0
"""Seconds for which a name is announced after the last event on it."""
MOST_ANNOUNCED = 16_384


class AnnouncedNames:
    def __init__(self, who: str, id_of: Callable[[str], TopicId]) -> None:
        self._who = who
        self._id_of = id_of
        self._topics: dict[str, TopicId] = {}
        self._ids: set[TopicId] = set()
        self._index = NameIndex()
        self._fresh: set[str] = set()
        self._older: set[str] = set()
        """Names that were published on in this period, and in the one before."""
        self.left_out = 0

    def __len__(self) -> int:
        return len(self._topics)

    def __contains__(self, name: str) -> bool:
        return name in self._topics

    def has_topic(self, topic: TopicId) -> bool:
        return topic in self._ids

    def is_fresh(self, name: str) -> bool:
        """Whether it was published on in this period."""
        return name in self._fresh

    def note(self, name: str) -> None:
        """It is published on."""
        self._fresh.add(name)

    def matching(self, pattern: str) -> Iterator[tuple[str, TopicId]]:
        for name in self._index.matching(pattern):
            yield name, self._topics[name]

    def add(self, name: str) -> TopicId | None:
        """Announce a name; its topic, or None if it cannot be announced."""
        try:
            check_name(name)
        except BadPattern:
            return None
        if len(self._topics) >= MOST_ANNOUNCED:
            if not self.left_out:
                log.warning(
                    "%s: %d names are announced; patterns do not find more", self._who, MOST_ANNOUNCED
                )
            self.left_out += 1
            return None
        topic = self._topics[name] = self._id_of(name)
        self._ids.add(topic)
        self._index.add(name)
        return topic

    def end(self, name: str) -> TopicId:
        topic = self._topics.pop(name)
        self._ids.discard(topic)
        self._index.discard(name)
        return topic

    def turn(self, retained: Container[TopicId]) -> list[str]:
        """Half of `KEPT` is over. Names without an event in this period and the one before, which are to end."""
        over = [
            name
            for name, topic in self._topics.items()
            if name not in self._fresh and name not in self._older and topic not in retained
        ]
        self._older, self._fresh = self._fresh, set()
        return over
