"""The discrete-event kernel: a clock and a calendar.

Theory of operation: everything that will happen is an entry `(time, order, action, a, b)`. `run` takes the
earliest, sets the clock to its time and calls `action(a, b)`. Entries of equal time run in the order in which
they were scheduled, so a run is fully determined by what is scheduled. There is no way to remove an entry:
an action that may have been cancelled (a timer) checks when it is called. Two arguments, always, spare a tuple
per entry: this loop runs millions of times a minute.

The calendar has pages of a 64th of a second. An entry for a later page is only laid there. A page is put in order when
its time comes. That takes a fraction of what one heap of all entries would: messages that take equally long are
scheduled one after another, so most of a page is in order already. An entry for the page at hand goes to a small heap
beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

Action = Callable[[Any, Any], None]
Entry = tuple[float, int, Action, Any, Any]

PAGES_PER_SECOND = 64.0
"""A power of two, so that no rounding moves an entry to another page."""
END_OF_TIME = 1e15
"""All later entries, for ever included, share one page."""
_LAST_PAGE = int(END_OF_TIME * PAGES_PER_SECOND)


class Kernel:
    """Virtual time.

    >>> kernel, seen = Kernel(), []
    >>> kernel.at(2.0, lambda a, b: seen.append((kernel.now, a)), "second")
    >>> kernel.at(1.0, lambda a, b: seen.append((kernel.now, a)), "first")
    >>> kernel.run(until=1.5); seen, kernel.now
    ([(1.0, 'first')], 1.5)
    """

    __slots__ = ("_due", "_numbers", "_order", "_page", "_pages", "_soon", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self._order = 0
        self._page = -1
        """The number of the page at hand."""
        self._due: list[Entry] = []
        """What is left of it, the earliest last."""
        self._soon: list[Entry] = []
        """A heap of what was scheduled for it, or for earlier, since."""
        self._pages: dict[int, list[Entry]] = {}
        self._numbers: list[int] = []
        """A heap of their numbers."""

    def after(self, delay: float, action: Action, a: Any = None, b: Any = None) -> None:
        """Call `action(a, b)` `delay` seconds from now; a negative delay is none: the clock never goes back."""
        self.at(self.now + delay if delay > 0.0 else self.now, action, a, b)

    def at(self, time: float, action: Action, a: Any = None, b: Any = None) -> None:
        """Call `action(a, b)` at a moment, or at once after what is due now if the moment has passed."""
        self._order = order = self._order + 1
        if not time > self.now:
            time = self.now  # of "not a number", which nothing can order, too
        number = int(time * PAGES_PER_SECOND) if time < END_OF_TIME else _LAST_PAGE
        if number <= self._page:
            heappush(self._soon, (time, order, action, a, b))
        elif (page := self._pages.get(number)) is not None:
            page.append((time, order, action, a, b))
        else:
            self._pages[number] = [(time, order, action, a, b)]
            heappush(self._numbers, number)

    def run(self, until: float) -> None:
        """Let everything happen that is due up to and including `until`; the clock then stands there."""
        last = int(until * PAGES_PER_SECOND) if until < END_OF_TIME else _LAST_PAGE
        while True:
            if self._page < last:
                self._finish_page()
            else:
                self._run_page_to(until)
                break
            if not self._numbers or self._numbers[0] > last:
                break
            self._page = heappop(self._numbers)
            self._due = self._pages.pop(self._page)
            # No two entries have the same order, so comparing them never reaches the actions.
            self._due.sort(reverse=True)
        self.now = max(self.now, until)

    def _finish_page(self) -> None:
        """All that is due on the page at hand."""
        due, soon, next_due = self._due, self._soon, self._due.pop
        while due:
            if soon and soon[0] < due[-1]:
                self.now, _, action, a, b = heappop(soon)
            else:
                self.now, _, action, a, b = next_due()
            action(a, b)
        while soon:
            self.now, _, action, a, b = heappop(soon)
            action(a, b)

    def _run_page_to(self, until: float) -> None:
        """What is due on the page at hand up to a moment."""
        due, soon = self._due, self._soon
        while due or soon:
            from_soon = not due or (soon and soon[0] < due[-1])
            if (soon[0] if from_soon else due[-1])[0] > until:
                return
            self.now, _, action, a, b = heappop(soon) if from_soon else due.pop()
            action(a, b)

    @property
    def pending(self) -> int:
        """How many entries wait."""
        return len(self._due) + len(self._soon) + sum(map(len, self._pages.values()))

    @property
    def events(self) -> int:
        """How many entries have had their turn."""
        return self._order - self.pending
