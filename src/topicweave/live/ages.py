"""The ages of events that come late: caught up, asked for again, or kept for the first subscriber.

A node that hands an event on later than it got it first says how old the event is (`Aged`). Ages are
durations, so clocks need not agree. An event without an age came at once, or through a node that keeps no log
of it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from topicweave.live.event_log import EventLog
from topicweave.model.event import EventId

MOST = 16_384
"""Events that were told of and did not come yet; and own ones that went to nobody yet."""


class Ages:
    """One node's. `now` is its clock, `wall` the one by which its log notes when events came."""

    def __init__(self, log: EventLog, now: Callable[[], float], wall: Callable[[], float]) -> None:
        self._log, self._now, self._wall = log, now, wall
        self._born: OrderedDict[EventId, float] = OrderedDict()
        self._waiting: OrderedDict[EventId, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._born)

    def told(self, event: EventId, age: float) -> None:
        self._born[event] = self._now() - age
        if len(self._born) > MOST:
            self._born.popitem(last=False)

    def at_arrival(self, event: EventId) -> float:
        """What is said of an event that comes in."""
        born = self._born.get(event)
        return 0.0 if born is None else self._now() - born

    def take(self, event: EventId) -> float:
        """The same, for the last time."""
        born = self._born.pop(event, None)
        return 0.0 if born is None else self._now() - born

    def waits(self, event: EventId) -> None:
        """An event of this node's own went to nobody. Its topic's log may go before the event does."""
        self._waiting[event] = self._now()
        if len(self._waiting) > MOST:
            self._waiting.popitem(last=False)

    def kept(self, event: EventId) -> float | None:
        """Of an event that is sent later than it came; None if that is not known, as of one that has just come."""
        logged = self._log.get(event)
        if logged is not None:
            return max(0.0, self._wall() - logged.arrived + logged.age)
        published = self._waiting.get(event)
        return None if published is None else self._now() - published
