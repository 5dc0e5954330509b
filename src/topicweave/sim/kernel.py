"""The discrete-event kernel: a clock and a queue.

Theory of operation: everything that will happen is an entry `(time, order, action, a, b)` in one heap. `run`
takes the earliest, sets the clock to its time and calls `action(a, b)`. Entries of equal time run in the
order in which they were scheduled, so a run is fully determined by what is scheduled. There is no way to
remove an entry: whoever may change its mind (a cancelled timer) checks when it is called. Two arguments,
always, spare a tuple per entry: this loop runs millions of times a minute.

What is scheduled with one and the same delay comes due in the order of scheduling and needs no heap. One such delay
may be named (`usual_delay`: that of messages, where all take the same time); its entries wait in a line of
their own, and the run takes from the line or the heap, whichever is earlier.
"""

from __future__ import annotations

from collections import deque
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

    __slots__ = ("_line", "_order", "_queue", "_usual_delay", "events", "now")

    def __init__(self, usual_delay: float = -1.0) -> None:
        self.now = 0.0
        self.events = 0
        self._usual_delay = usual_delay
        self._order = 0
        self._queue: list[tuple[float, int, Action, Any, Any]] = []
        self._line: deque[tuple[float, int, Action, Any, Any]] = deque()

    def at(self, time: float, action: Action, a: Any = None, b: Any = None) -> None:
        """Call `action(a, b)` at a moment, or at once after what is due now if the moment has passed."""
        self._order += 1
        # So written that "not a number", which no heap can order, is a moment that has passed, too.
        heappush(self._queue, (time if time > self.now else self.now, self._order, action, a, b))

    def after(self, delay: float, action: Action, a: Any = None, b: Any = None) -> None:
        """Call `action(a, b)` `delay` seconds from now; a negative delay is none: the clock never goes back."""
        self._order += 1
        if delay == self._usual_delay and delay >= 0.0:
            self._line.append((self.now + delay, self._order, action, a, b))
        else:
            heappush(self._queue, (self.now + delay if delay > 0.0 else self.now, self._order, action, a, b))

    def run(self, until: float) -> None:
        """Let everything happen that is due up to and including `until`; the clock then stands there."""
        queue, line = self._queue, self._line
        while queue or line:
            # No two entries have the same order, so comparing them never reaches the actions.
            if line and (not queue or line[0] < queue[0]):
                if line[0][0] > until:
                    break
                self.now, _, action, a, b = line.popleft()
            else:
                if queue[0][0] > until:
                    break
                self.now, _, action, a, b = heappop(queue)
            self.events += 1
            action(a, b)
        self.now = max(self.now, until)

    @property
    def pending(self) -> int:
        return len(self._queue) + len(self._line)
