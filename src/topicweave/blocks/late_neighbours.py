"""What a node passed on lately, and to whom, so that a neighbour in the tree that comes a little later gets it, too.

While nodes come and go an event meets gaps. A newcomer that becomes the root of a tree has no children yet. A
branch whose parent left looks for another one. An event may have been sent to a peer that is gone. So a node
that has an event passes it on to every new neighbour in the tree that it gets within `LATE` seconds.

It says how long ago the event came (`age`). A subscriber that came later than the event passes it on but does
not deliver it; an application asks for the past if it wants it. An event that is passed on keeps its age.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Annotated, Generic, NamedTuple, TypeVar

import msgspec

from topicweave.model.event import EventId
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import EventMessage, Message, World

LATE = 10.0
"""Seconds within which a new neighbour is handed what was passed on before; longer than branches take to be renewed."""
MOST_PASSED = 256


Age = Annotated[float, msgspec.Meta(ge=0.0)]
"""Seconds."""


class LateEvent(EventMessage, frozen=True, array_like=True, tag="late-event"):
    """An event that came so long ago."""

    age: Age


def aged_event(message: EventMessage, age: float) -> EventMessage:
    """As it is sent on: with the age of its event, unless that is new."""
    return LateEvent(message.event, message.hops, age) if age else message


M = TypeVar("M", bound=Message)


class _Passed(NamedTuple, Generic[M]):
    message: M
    had: set[NodeId]
    """Who got it from us, or gave it to us."""
    came: float
    until: float


class PassedOn(Generic[M]):
    """One node's memory of the events that it passed on in the last `LATE` seconds, `MOST_PASSED` of them at most.

    `aged(message, age)` is a message as it is sent so many seconds later.
    """

    def __init__(self, world: World, aged: Callable[[M, float], Message]) -> None:
        self._world = world
        self._aged = aged
        self._passed: OrderedDict[EventId, _Passed[M]] = OrderedDict()
        self._by_topic: dict[TopicId, set[EventId]] = {}

    def note(self, event: EventId, message: M, had: Iterable[NodeId], age: float = 0.0) -> None:
        """An event of that age was passed on as this message; who `had` it needs it no more."""
        if event not in self._passed:
            now = self._world.now
            self._passed[event] = _Passed(message, set(had), now - age, now + LATE)
            self._by_topic.setdefault(event.topic, set()).add(event)
            if len(self._passed) > MOST_PASSED:
                self._forget_oldest()

    def has(self, event: EventId, peer: NodeId) -> None:
        """A peer has the event from elsewhere."""
        if (passed := self._passed.get(event)) is not None:
            passed.had.add(peer)

    def serve(self, topic: TopicId, peers: Iterable[NodeId]) -> None:
        """Hand these neighbours what they did not get of a topic."""
        now = self._world.now
        while self._passed and next(iter(self._passed.values())).until <= now:
            self._forget_oldest()
        events = self._by_topic.get(topic)
        if events:
            for peer in peers:
                for event in sorted(events):
                    message, had, came, _ = self._passed[event]
                    if peer not in had:
                        had.add(peer)
                        self._world.send(peer, self._aged(message, now - came))

    @property
    def topics(self) -> list[TopicId]:
        """That there may be something to hand on of."""
        return list(self._by_topic)

    def _forget_oldest(self) -> None:
        event, _ = self._passed.popitem(last=False)
        events = self._by_topic[event.topic]
        events.discard(event)
        if not events:
            del self._by_topic[event.topic]
