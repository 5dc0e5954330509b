"""Catching up: whoever was away gets what neighbours still hold. The same for every system, beside it, never through it.

Theory of operation: two nodes with a link between them compare digests of the topics they want (`Summary`). Where these differ, each
names the events it holds (`Inventory`), and each fetches what it has not seen (`Fetch`, answered by `CatchUp` events). That happens when a link comes up, when
a topic is subscribed to, from time to time with one neighbour at random, and with all neighbours after something was caught up,
so that one link between two halves of a healed partition is enough for both.

An event that was caught up goes to the application through the same gate as all others, which lets it pass once; the system does not see it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable

import msgspec

from topicweave.live.event_log import EventLog
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import EventMessage, Message

MOST_TOPICS = 16_384
MOST_IDS = 1024
"""Event ids in one message, and events sent for one fetch."""
MOST_INVENTORIES = 64
"""Topics named in answer to one summary; the rest has its turn when the summary comes again."""
FETCH_BYTES = 1024 * 1024
"""Sent at most in answer to one fetch."""
PATIENCE = 5


class TopicDigest(msgspec.Struct, frozen=True, array_like=True):
    topic: TopicId
    digest: int


class Summary(Message, frozen=True, array_like=True, tag="catchup.summary"):
    """What I hold of topics that I want. `answer`: this is an answer to one; don't answer with another."""

    topics: tuple[TopicDigest, ...]
    answer: bool


class Inventory(Message, frozen=True, array_like=True, tag="catchup.inventory"):
    """I can give these events."""

    events: tuple[EventId, ...]


class Fetch(Message, frozen=True, array_like=True, tag="catchup.fetch"):
    """Give me these events."""

    events: tuple[EventId, ...]


class CatchUp(EventMessage, frozen=True, array_like=True, tag="catchup.event"):
    """An event that was asked for."""


TYPES: tuple[type[Message], ...] = (Summary, Inventory, Fetch, CatchUp)


class CatchUpService:
    """One node's half.

    `send` hands over a message; `topics()` are those the application wants; `neighbours()` the overlay's links; `seen(event)`
    tells what the application has had; `take(event, hops)` hands over an event and tells whether it was new.
    """

    def __init__(
        self,
        log: EventLog,
        rng: random.Random,
        send: Callable[[NodeId, Message], object],
        topics: Callable[[], Collection[TopicId]],
        neighbours: Callable[[], Iterable[NodeId]],
        seen: Callable[[EventId], bool],
        take: Callable[[Event, int], bool],
    ) -> None:
        self._log = log
        self._random = rng
        self._send = send
        self._topics = topics
        self._neighbours = neighbours
        self._seen = seen
        self._take = take
        self._linked: set[NodeId] = set()
        self._news: set[TopicId] = set()
        # What was asked for, and at which look: an answer is waited for during PATIENCE looks.
        self._asked: dict[EventId, int] = {}
        self._looks = 0

    # Told by the world.

    def look(self) -> None:
        """Once or twice a second: greet new neighbours, tell all of them the news."""
        linked = set(self._neighbours())
        topics = self._topics()
        if topics:
            if self._news:
                news = self._news.intersection(topics)
                for peer in sorted(linked & self._linked):
                    self._tell(peer, news, answer=False)
            for peer in sorted(linked - self._linked):
                self._tell(peer, topics, answer=False)
        self._news.clear()
        self._linked = linked
        self._looks += 1
        for event in [event for event, asked in self._asked.items() if self._looks - asked > PATIENCE]:
            del self._asked[event]

    def compare(self) -> None:
        """From time to time: one neighbour, all topics that hold something."""
        linked = sorted(set(self._neighbours()))
        held = [topic for topic in self._log.topics() if topic in self._topics()]
        if linked and held:
            self._tell(linked[self._random.randrange(len(linked))], held, answer=False)

    def changed(self, topic: TopicId) -> None:
        """A topic is new here, or got events that did not come through the overlay."""
        self._news.add(topic)

    # Said by peers.

    def receive(self, sender: NodeId, message: Message) -> None:
        match message:
            case Summary():
                self._receive_summary(sender, message)
            case Inventory():
                self._receive_inventory(sender, message)
            case Fetch():
                self._receive_fetch(sender, message)
            case CatchUp():
                # Only what was asked for: a peer can't use this way to go past the overlay.
                asked = self._asked.pop(message.event.id, None) is not None
                if asked and self._take(message.event, message.hops):
                    self.changed(message.event.topic)

    def _receive_summary(self, sender: NodeId, message: Summary) -> None:
        wanted = self._topics()
        different = [
            entry
            for entry in message.topics[:MOST_TOPICS]
            if entry.topic in wanted and entry.digest != self._log.digest(entry.topic)
        ]
        for entry in different[:MOST_INVENTORIES]:
            events = self._log.events(entry.topic)
            if events:
                self._send(sender, Inventory(tuple(events[-MOST_IDS:])))
        theirs = [entry.topic for entry in different if entry.digest]
        if theirs and not message.answer:
            self._tell(sender, theirs, answer=True)

    def _receive_inventory(self, sender: NodeId, message: Inventory) -> None:
        wanted = self._topics()
        missed = [
            event
            for event in message.events[:MOST_IDS]
            if event.topic in wanted and event not in self._asked and not self._seen(event)
        ]
        if missed and len(self._asked) < 16 * MOST_IDS:
            self._asked.update(dict.fromkeys(missed, self._looks))
            self._send(sender, Fetch(tuple(missed)))

    def _receive_fetch(self, sender: NodeId, message: Fetch) -> None:
        sent = 0
        for event_id in message.events[:MOST_IDS]:
            logged = self._log.get(event_id)
            if logged is not None:
                sent += len(logged.event.payload)
                if sent > FETCH_BYTES:
                    return
                self._send(sender, CatchUp(logged.event, logged.hops + 1))

    def _tell(self, peer: NodeId, topics: Collection[TopicId], answer: bool) -> None:
        digests = [TopicDigest(topic, self._log.digest(topic)) for topic in sorted(topics)[:MOST_TOPICS]]
        if digests:
            self._send(peer, Summary(tuple(digests), answer))
