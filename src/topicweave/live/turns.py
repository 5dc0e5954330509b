"""Turns: how much of what peers send is handled before the event loop sees to everybody else.

A signature takes a tenth of a millisecond, and a socket hands over thousands of events at once. What is beyond a portion waits for the next turn, in order,
so whoever asks for `/live` is served in between. Counted in messages, not in time.

Links are served in the order in which they brought something, each until it has caught up: an announcement that came after an event is not looked at
before it. A timer is to find what came before it: it waits until the links that were behind when it was due have caught up. So nobody takes
for lost what has arrived and was not looked at.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Hashable

from topicweave.live.clock import LATE

PLAIN = 1024
"""Messages of one turn."""
SIGNED = 64
"""The same where each event brings a signature to be verified."""


class Glance:
    """One timer's look at the time."""

    __slots__ = ("due", "noted")

    def __init__(self, due: float = math.inf) -> None:
        self.due = due
        self.noted: int | None = None


class Turns:
    """One node's. Whoever finds that it was `enough` falls behind, and is called in another turn."""

    def __init__(self, loop: asyncio.AbstractEventLoop, portion: int) -> None:
        self._loop = loop
        self.portion = portion
        self._done = 0
        self._waiting: deque[Callable[[], None]] = deque()
        self._scheduled = False
        self._behind: dict[Hashable, int] = {}
        """Who has something to be handled, and the number it got when that began; the lowest first."""
        self._number = 0

    @property
    def enough(self) -> bool:
        return self._done >= self.portion

    def spend(self, messages: int) -> None:
        self._done += messages
        self._schedule()

    @property
    def behind(self) -> bool:
        """Whether anybody is."""
        return bool(self._behind)

    def fall_behind(self, who: Hashable, call: Callable[[], None]) -> None:
        """`call` in another turn, when those are done who fell behind earlier."""
        if who in self._behind:
            self._waiting.appendleft(call)
        else:
            self._number += 1
            self._behind[who] = self._number
            self._waiting.append(call)
        self._schedule()

    def catch_up(self, who: Hashable) -> None:
        self._behind.pop(who, None)

    def ready(self, look: Glance) -> bool:
        """Whether a timer may act; if not, it comes again after `GIVE_WAY`."""
        if look.noted is None:
            late, look.due = self._loop.time() - look.due > LATE, math.inf
            if late:
                return False  # The process was held up: read first what has come meanwhile.
            look.noted = self._number
        return look.noted < next(iter(self._behind.values()), math.inf)

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled, self._done = False, 0
        while self._waiting and not self.enough:
            self._waiting.popleft()()
        if self._waiting:
            self._schedule()
