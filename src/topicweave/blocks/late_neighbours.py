"""What a node handed on lately, and to whom: a neighbour in the tree that comes a little later gets it too.

While nodes come and go an event meets gaps. A newcomer that becomes the root of a tree has no children yet. A branch whose parent left
looks for another one. An event may have been sent to a peer that is gone. Whoever has the event hands it to the next neighbour in the
tree that it gets within `LATE` seconds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from topicweave.model.event import EventId
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import Message, World

LATE = 10.0
"""Seconds within which a new neighbour is handed what was passed on before; longer than branches take to be renewed."""
MOST_PASSED = 256


class _Passed(NamedTuple):
    message: Message
    had: set[NodeId]
    """Who got it from us, or gave it to us."""
    until: float


class PassedOn:
    """One node's memory of the events that it passed on in the last `LATE` seconds, `MOST_PASSED` of them at most."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._passed: OrderedDict[EventId, _Passed] = OrderedDict()
        self._by_topic: dict[TopicId, set[EventId]] = {}

    def note(self, event: EventId, message: Message, had: Iterable[NodeId]) -> None:
        """An event was passed on as this message; who `had` it needs it no more."""
        if event not in self._passed:
            self._passed[event] = _Passed(message, set(had), self._world.now + LATE)
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
                    message, had, _ = self._passed[event]
                    if peer not in had:
                        had.add(peer)
                        self._world.send(peer, message)

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
