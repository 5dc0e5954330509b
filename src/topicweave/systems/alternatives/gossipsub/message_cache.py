"""The message cache: the events of the last heartbeats, for announcing and for answering requests."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator

from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId, TopicId
from topicweave.systems.alternatives.gossipsub.messages import GossipEvent

MOST_EVENTS = 4096
"""Beyond this many the oldest leave before their time."""


class MessageCache:
    """`length` windows of one heartbeat each; the newest `gossip` of them are announced.

    Kept with the number of hops each event came over, and how often each peer asked for it.
    """

    def __init__(self, length: int, gossip: int, retransmissions: int) -> None:
        self._windows: deque[list[EventId]] = deque([[]])
        self._length = length
        self._gossip = gossip
        self._retransmissions = retransmissions
        self._events: dict[EventId, tuple[Event, int]] = {}
        self._asked: Counter[tuple[NodeId, EventId]] = Counter()

    def put(self, event: Event, hops: int) -> None:
        if event.id not in self._events:
            self._windows[0].append(event.id)
            self._events[event.id] = (event, hops)
            while len(self._events) > MOST_EVENTS:
                self._forget(next(window for window in reversed(self._windows) if window).pop(0))

    def shift(self) -> None:
        """A heartbeat has passed."""
        self._windows.appendleft([])
        while len(self._windows) > self._length:
            for event_id in self._windows.pop():
                self._forget(event_id)

    def __contains__(self, event_id: EventId) -> bool:
        return event_id in self._events

    def to_announce(self) -> dict[TopicId, list[EventId]]:
        """What can be had, by topic."""
        topics: dict[TopicId, list[EventId]] = {}
        for event_id in self._recent():
            topics.setdefault(event_id.topic, []).append(event_id)
        return topics

    def message(self, event_id: EventId) -> GossipEvent | None:
        """The event as it would be sent on."""
        if found := self._events.get(event_id):
            return GossipEvent(found[0], found[1] + 1)
        return None

    def answer(self, peer: NodeId, event_id: EventId) -> GossipEvent | None:
        """The event for a peer that asked, unless it has asked too often."""
        message = self.message(event_id)
        if message is None or self._asked[peer, event_id] >= self._retransmissions:
            return None
        self._asked[peer, event_id] += 1
        return message

    def forget_peer(self, peer: NodeId) -> None:
        for key in [key for key in self._asked if key[0] == peer]:
            del self._asked[key]

    def _recent(self) -> Iterator[EventId]:
        for _, window in zip(range(self._gossip), self._windows, strict=False):
            yield from window

    def _forget(self, event_id: EventId) -> None:
        self._events.pop(event_id, None)
        for key in [key for key in self._asked if key[1] == event_id]:
            del self._asked[key]
