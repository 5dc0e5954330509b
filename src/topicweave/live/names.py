"""Names for people: identifiers travel, names are what applications use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from topicweave.errors import BadInput
from topicweave.model.ids import TopicId, ring_id
from topicweave.model.patterns import hidden

MOST_TOPICS = 1_000_000
LONGEST_TOPIC = 1000
"""Characters of a topic's name."""
RETAINED = "$retained/"
"""A retained value of MQTT travels on a topic of its own, below this: who may have the one may have the other.
Applications do not see these topics.
"""


def reserved(topic: str) -> bool:
    return topic.startswith(RETAINED)


def refuse_reserved(topics: Iterable[str]) -> None:
    """What applications name: the door's own topics are not theirs."""
    for topic in topics:
        if reserved(topic):
            raise BadInput(
                f"{topic[:80]!r}: topics below {RETAINED} carry the retained values of MQTT clients"
            )


class UserTopics:
    """All topics but those."""

    def __contains__(self, topic: object) -> bool:
        return not (isinstance(topic, str) and reserved(topic))


def is_text(name: str) -> bool:
    """Whether it can be sent. Of arguments and variables that are no UTF-8, Python makes half characters."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_topic(name: str) -> None:
    if not 1 <= len(name) <= LONGEST_TOPIC:
        raise BadInput(f"a topic's name has 1 to {LONGEST_TOPIC} characters")
    if not is_text(name):
        raise BadInput(f"topic {name[:40]!r} is no UTF-8 text")


class TopicNames:
    """The topics that this node's application ever named."""

    def __init__(self, topics: Iterable[str] = ()) -> None:
        self._ids: dict[str, TopicId] = {}
        self._names: dict[TopicId, str] = {}
        for topic in topics:
            self.id_of(topic)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._ids))

    def id_of(self, topic: str) -> TopicId:
        known = self._ids.get(topic)
        if known is not None:
            return known
        check_topic(topic)
        if len(self._ids) >= MOST_TOPICS:
            raise BadInput("this node has used a million topics; restart it")
        identifier = ring_id(topic)
        self._ids[topic] = identifier
        self._names[identifier] = topic
        return identifier

    def learn(self, name: str, topic: TopicId) -> str:
        """A name that another node told of a topic; the name it has here. Levels that one of the two names
        hides are taken from the other.
        """
        known = self._names.get(topic)
        if known is None:
            known = name if len(self._ids) < MOST_TOPICS else f"{topic:016x}"
        elif known != name:
            told = name.split("/")
            levels = known.split("/")
            if len(told) == len(levels):
                known = "/".join(
                    one if hidden(one) == two else two for one, two in zip(told, levels, strict=True)
                )
        self._ids[known] = topic
        self._names[topic] = known
        return known

    def forget(self, topic: TopicId) -> None:
        """Nobody here speaks of it any more."""
        name = self._names.pop(topic, None)
        if name is not None:
            self._ids.pop(name, None)

    def known(self, topic: TopicId) -> str | None:
        """Its name, if the application ever said it."""
        return self._names.get(topic)

    def of(self, topic: TopicId) -> str:
        """Its name, or 16 hexadecimal digits."""
        return self._names.get(topic) or f"{topic:016x}"
