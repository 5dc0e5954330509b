"""How long events take from `publish` to the application: a histogram of samples.

Events carry no time, and clocks do not agree. So once per second a publisher sends, ahead of one event, how
old the event is (`Measured`). A node that passes the event on does the same and adds the time that the event
spent there. Messages without events overtake events that wait to be sent. So the time of an event in queues
counts, and the time that such a message takes over a link does not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

from topicweave.model.event import Event, EventId

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds, at most; one more bucket holds the rest."""
EVERY = 1.0
"""Seconds between two samples of a publisher."""
MOST = 64
LIFETIME = 30.0
"""Seconds for which an event that was told of is waited for."""


class LatencySamples:
    """One node's samples: of its own events, for others; and of those that come, for its histogram."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._born: OrderedDict[EventId, float] = OrderedDict()
        self._own: tuple[EventId, float] | None = None
        self._next = now()
        self._counts = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0

    def __len__(self) -> int:
        """Events that were told of and did not come yet."""
        return len(self._born)

    @property
    def due(self) -> bool:
        """Whether this node's next event is to be a sample."""
        return self._now() >= self._next

    def begins(self, event: EventId) -> None:
        """An event of this node's own is one."""
        now = self._now()
        self._own, self._next = (event, now), now + EVERY

    def told(self, event: EventId, age: float) -> None:
        """A peer says that an event that is about to come is so old."""
        now = self._now()
        while self._born and (len(self._born) >= MOST or next(iter(self._born.values())) < now - LIFETIME):
            self._born.popitem(last=False)
        self._born[event] = now - age

    def age(self, event: EventId) -> float | None:
        """Of a sample; None for other events."""
        if self._own is not None and self._own[0] == event:
            return self._now() - self._own[1]
        born = self._born.get(event)
        return None if born is None else self._now() - born

    def among(self, burst: Sequence[Event]) -> list[EventId]:
        """The samples that came in a burst."""
        first, last = burst[0].id, burst[-1].sequence
        return [one for one in self._born if one[:3] == first[:3] and first.sequence <= one.sequence <= last]

    def handed_over(self, events: Iterable[Event]) -> None:
        """The application has these."""
        born = self._born
        for event in events:
            if event.id in born:
                self.note(self._now() - born.pop(event.id))

    def note(self, seconds: float) -> None:
        self._counts[bisect_left(BUCKETS, seconds)] += 1
        self.sum += seconds

    @property
    def buckets(self) -> list[tuple[str, int]]:
        """As Prometheus wants them: how many samples took so many seconds at most."""
        return list(zip([*map(str, BUCKETS), "+Inf"], accumulate(self._counts), strict=True))
