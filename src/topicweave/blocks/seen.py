"""The events that a node has seen, in bounded memory.

Rule kept: `first_time` returns true at most once for an event, as long as the event's stream is remembered. A
stream is one publisher on one topic. For each stream its epoch, the highest number seen and the gaps below it
are kept, so a late event is still new. An event that is `WINDOW` numbers or more behind the highest counts as
seen, and so does the oldest gap beyond `MOST_GAPS`. So an event that was held up for very long may be
dropped, but none is taken twice. An older epoch of a publisher counts as seen, too. Beyond `streams` streams
the one that was unused for longest is forgotten.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol

from topicweave.model.ids import NodeId, TopicId

WINDOW = 1 << 24
MOST_GAPS = 256
"""Of one stream, while there is room; when all streams together have `ALL_GAPS`, `FEW_GAPS` of each."""
FEW_GAPS = 8
ALL_GAPS = 1 << 18

Gaps = tuple[tuple[int, int], ...]
"""First and last number of each, ascending."""


class Numbered(Protocol):
    """An `Event` or an `EventId`."""

    @property
    def publisher(self) -> NodeId: ...
    @property
    def topic(self) -> TopicId: ...
    @property
    def epoch(self) -> int: ...
    @property
    def sequence(self) -> int: ...


class SeenEvents:
    """The highest number of each stream, and the gaps below it.

    >>> from topicweave.model.event import EventId
    >>> seen = SeenEvents()
    >>> event = EventId(publisher=1, topic=2, epoch=0, sequence=5)
    >>> seen.first_time(event), seen.first_time(event), seen.first_time(event._replace(sequence=4))
    (True, False, True)
    >>> seen.unseen(1, 2, 0, 2, 9)
    [(2, 3), (6, 9)]
    """

    def __init__(self, streams: int = 65536) -> None:
        self._limit = streams
        # (publisher, topic) -> [epoch, highest sequence, gaps]
        self._streams: OrderedDict[tuple[NodeId, TopicId], list[Any]] = OrderedDict()
        self._gaps = 0  # of all streams
        self.on_forgotten: Callable[[NodeId, TopicId, int, int, Gaps], None] | None = None
        """Told, of a publisher, a topic and an epoch with its highest number, the gaps that count as seen
        from now on: there was no room, or a later epoch began.
        """
        # The stream used last: events of one stream often come in a row.
        self._publisher: NodeId = -1
        self._topic: TopicId = -1
        self._state: list[Any] = []
        self.jumped_from: int | None = None
        """Set when an event was new that did not follow the one before it: the highest number until then, -1
        for a new stream. For whoever looks for gaps, who sets it back.
        """

    def first_time(self, event: Numbered) -> bool:
        """Whether the event is new; from now on it is not."""
        publisher, topic = event.publisher, event.topic
        epoch, sequence = event.epoch, event.sequence
        if publisher == self._publisher and topic == self._topic:
            state = self._state
        else:
            state = self._recall(publisher, topic)
        if not state or epoch > state[0]:
            if sequence < 0:
                return False
            first = max(0, sequence - WINDOW + 1)
            gaps: Gaps = ((first, sequence - 1),) if first < sequence else ()
            self._put(publisher, topic, [epoch, sequence, gaps])
            self.jumped_from = -1
            return True
        if epoch < state[0]:
            return False
        highest = state[1]
        if sequence > highest:
            state[1] = sequence
            if sequence > highest + 1:
                self.jumped_from = highest
                self._set_gaps(state, (*state[2], (highest + 1, sequence - 1)))
            return True
        return bool(state[2]) and self._fill(state, sequence)

    def follows(self, event: Numbered, last: int) -> bool:
        """Whether the events from this one to number `last` go on right where their stream was; if so, all of
        them are seen from now on.
        """
        publisher, topic = event.publisher, event.topic
        if publisher == self._publisher and topic == self._topic:
            state = self._state
        else:
            state = self._recall(publisher, topic)
        if not state or state[0] != event.epoch or state[1] + 1 != event.sequence:
            return False
        state[1] = last
        return True

    def __contains__(self, event: Numbered) -> bool:
        """Whether the event counts as seen, without marking it."""
        return not self.unseen(event.publisher, event.topic, event.epoch, event.sequence, event.sequence)

    def unseen(
        self, publisher: NodeId, topic: TopicId, epoch: int, first: int, last: int
    ) -> list[tuple[int, int]]:
        """Those of a run of events that would be new, as runs."""
        first = max(first, 0)
        state = self._streams.get((publisher, topic))
        if state is None or epoch > state[0]:
            return [(first, last)] if first <= last else []
        highest = state[1]
        first = max(first, highest - WINDOW + 1)
        if epoch < state[0] or first > last:
            return []
        runs = [(max(first, low), min(last, high)) for low, high in state[2] if low <= last and high >= first]
        if last > highest:
            runs.append((max(first, highest + 1), last))
        return runs

    def highest(self, publisher: NodeId, topic: TopicId, epoch: int) -> int:
        """The highest number seen of an epoch; -1 if there is none."""
        state = self._streams.get((publisher, topic))
        return -1 if state is None or state[0] != epoch else state[1]

    def state(self, publisher: NodeId, topic: TopicId) -> tuple[int, int, Gaps] | None:
        """Epoch, highest sequence and gaps of one stream: what `restore` takes in a later life."""
        state = self._streams.get((publisher, topic))
        return None if state is None else (state[0], state[1], state[2])

    def restore(self, publisher: NodeId, topic: TopicId, state: tuple[int, int, Gaps]) -> None:
        """Remember a stream as an earlier life knew it."""
        self._put(publisher, topic, list(state))

    def forget(self, publisher: NodeId, topic: TopicId) -> None:
        """A stream's events may come again."""
        state = self._streams.pop((publisher, topic), None)
        if state is not None:
            self._gaps -= len(state[2])
            if state is self._state:
                self._publisher, self._topic, self._state = -1, -1, []

    def __len__(self) -> int:
        return len(self._streams)

    def _recall(self, publisher: NodeId, topic: TopicId) -> list[Any]:
        """The state of a stream that is not the one used last; empty if there is none."""
        state = self._streams.get((publisher, topic), [])
        if state:
            self._use(publisher, topic, state)
        return state

    def _use(self, publisher: NodeId, topic: TopicId, state: list[Any]) -> None:
        self._publisher, self._topic, self._state = publisher, topic, state
        self._streams.move_to_end((publisher, topic))

    def _put(self, publisher: NodeId, topic: TopicId, state: list[Any]) -> None:
        stream = (publisher, topic)
        old = self._streams.get(stream)
        self._streams[stream] = state
        self._gaps += len(state[2])
        self._use(publisher, topic, state)
        if old is not None:
            self._forget(publisher, topic, old)
        if len(self._streams) > self._limit:
            oldest, forgotten = self._streams.popitem(last=False)
            self._forget(*oldest, forgotten)

    def _forget(self, publisher: NodeId, topic: TopicId, state: list[Any]) -> None:
        self._gaps -= len(state[2])
        if self.on_forgotten is not None:
            self.on_forgotten(publisher, topic, *state)

    def _fill(self, state: list[Any], sequence: int) -> bool:
        """Whether a number is in a gap; from now on it is not."""
        gaps: Gaps = state[2]
        index = bisect_right(gaps, sequence, key=_first) - 1
        if index < 0 or sequence > gaps[index][1] or sequence <= state[1] - WINDOW:
            return False
        low, high = gaps[index]
        rest: Gaps = ((low, sequence - 1),) if low < sequence else ()
        if sequence < high:
            rest += ((sequence + 1, high),)
        self._set_gaps(state, gaps[:index] + rest + gaps[index + 1 :])
        return True

    def _set_gaps(self, state: list[Any], gaps: Gaps) -> None:
        floor = state[1] - WINDOW
        old = 0
        while old < len(gaps) and gaps[old][1] <= floor:
            old += 1
        most = MOST_GAPS if self._gaps < ALL_GAPS else FEW_GAPS
        old = max(old, len(gaps) - most)
        self._gaps += len(gaps) - old - len(state[2])
        state[2] = gaps[old:] if old else gaps
        if old and self.on_forgotten is not None:
            self.on_forgotten(self._publisher, self._topic, state[0], state[1], gaps[:old])


def _first(gap: tuple[int, int]) -> int:
    return gap[0]
