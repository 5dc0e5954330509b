"""The last events that passed through a node, for whoever asks for one that it missed.

Events come all the time and are seldom asked for, so they are only lined up as they come. The index that
finds them is made when one is asked for, and kept until as many have come as the cache holds and nobody
asked: however often one is asked for, making it costs little per event.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from topicweave.model.event import EventId
from topicweave.port import EventMessage

Key = tuple[int, int, int, int]
"""Publisher, topic, epoch, sequence: an `EventId`, or the same as a plain tuple."""


class EventCache:
    """Bounded in events and in bytes of payload; the last one is held whatever its size. No event is to be
    added twice.
    """

    def __init__(self, most_events: int, most_bytes: int) -> None:
        self._most_events, self._most_bytes = most_events, most_bytes
        self._messages: deque[EventMessage] = deque()
        self._index: dict[Key, EventMessage] | None = None
        self._unused = 0  # how many came since somebody asked
        self.bytes = 0

    def add(self, message: EventMessage) -> None:
        messages = self._messages
        messages.append(message)
        self.bytes += len(message.event.payload)
        if self._index is not None:
            self._index[message.event.id] = message
            self._unused += 1
            if self._unused > self._most_events:
                self._index = None
        elif len(messages) > self._most_events:
            self.bytes -= len(messages.popleft().event.payload)  # All that is to be done, most of the time.
        if len(messages) > self._most_events or self.bytes > self._most_bytes:
            self._make_room()

    def extend(self, messages: Sequence[EventMessage]) -> None:
        """Several at once."""
        self._messages.extend(messages)
        self.bytes += sum([len(message.event.payload) for message in messages])
        self._index = None
        self._make_room()

    def _make_room(self) -> None:
        messages = self._messages
        while len(messages) > self._most_events or (self.bytes > self._most_bytes and len(messages) > 1):
            oldest = messages.popleft()
            self.bytes -= len(oldest.event.payload)
            if self._index is not None:
                del self._index[oldest.event.id]

    def get(self, event: Key) -> EventMessage | None:
        if self._index is None:
            self._index = {message.event.id: message for message in self._messages}
        self._unused = 0
        return self._index.get(event)

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[EventId]:
        """The oldest first."""
        return (message.event.id for message in self._messages)
