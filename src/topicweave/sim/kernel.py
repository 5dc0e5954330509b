"""The discrete-event kernel: a clock and a queue.

Theory of operation: everything that will happen is an entry `(time, order, action, a, b)` in one heap. `run`
takes the earliest, sets the clock to its time and calls `action(a, b)`. Entries of equal time run in the
order in which they were scheduled, so a run is fully determined by what is scheduled. There is no way to
remove an entry: whoever may change its mind (a cancelled timer) checks when it is called. Two arguments,
always, spare a tuple per entry: this loop runs millions of times a minute.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

Action = Callable[[Any, Any], None]


class Kernel:
    """Virtual time.

    >>> kernel, seen = Kernel(), []
    >>> kernel.at(2.0, lambda a, b: seen.append((kernel.now, a)), "second")
    >>> kernel.at(1.0, lambda a, b: seen.append((kernel.now, a)), "first")
    >>> kernel.run(until=1.5); seen, kernel.now
    ([(1.0, 'first')], 1.5)
    """

    __slots__ = ("_order", "_queue", "events", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self.events = 0
        self._order = 0
        self._queue: list[tuple[float, int, Action, Any, Any]] = []

    def at(self, time: float, action: Action, a: Any = None, b: Any = None) -> None:
        """Call `action(a, b)` at a moment, or at once after what is due now if the moment has passed."""
        self._order += 1
        # So written that "not a number", which no heap can order, is a moment that has passed, too.
        heappush(self._queue, (time if time > self.now else self.now, self._order, action, a, b))

    def after(self, delay: float, action: Action, a: Any = None, b: Any = None) -> None:
        """Call `action(a, b)` `delay` seconds from now; a negative delay is none: the clock never goes back."""
        self._order += 1
        heappush(self._queue, (self.now + delay if delay > 0.0 else self.now, self._order, action, a, b))

    def run(self, until: float) -> None:
        """Let everything happen that is due up to and including `until`; the clock then stands there."""
        queue = self._queue
        while queue and queue[0][0] <= until:
            self.now, _, action, a, b = heappop(queue)
            self.events += 1
            action(a, b)
        self.now = max(self.now, until)

    @property
    def pending(self) -> int:
        return len(self._queue)
