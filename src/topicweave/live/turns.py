"""Turns: how much of peers' data a node handles before the event loop serves everybody else.

Checking a signature takes a tenth of a millisecond, and a socket hands over thousands of events at once. So a
node handles one portion per turn, in order, and the rest waits for another turn. In between it answers, for
example, a request for `/live`. Portions are counted in messages, not in time.

Links are served in the order in which their data came, each until it has caught up. So an announcement that
came after an event is handled after it. A timer must find what came before it handled. So it waits until the
links that were behind when it was due have caught up. Then no node takes for lost what has arrived and was
not handled.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Hashable

from topicweave.live.clock import GIVE_WAY, LATE

PLAIN = 1024
"""Messages of one turn."""
SIGNED = 64
"""The same where each event brings a signature to be verified."""


class Deferred:
    """A timer that waits for what came before it."""

    __slots__ = ("call", "number")

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call
        self.number = 0

    def cancel(self) -> None:
        self.call = None

    def run(self) -> None:
        if self.call is not None:
            self.call()


class LinkTurns:
    """One node's. A link that has had a portion falls behind, and is called in another turn."""

    def __init__(self, loop: asyncio.AbstractEventLoop, portion: int) -> None:
        self._loop = loop
        self.portion = portion
        self._waiting: deque[Callable[[], None]] = deque()
        self._behind: dict[Hashable, int] = {}
        """Who has something to be handled, and the number it got when that began; the lowest first."""
        self._number = 0
        self._deferred: deque[Deferred] = deque()

    @property
    def behind(self) -> bool:
        """Whether anybody is."""
        return bool(self._behind)

    def fall_behind(self, who: Hashable, call: Callable[[], None]) -> None:
        """`call` in another turn, when those are done who fell behind earlier."""
        if not self._waiting:
            self._loop.call_soon(self._turn)
        if who in self._behind:
            self._waiting.appendleft(call)
        else:
            self._number += 1
            self._behind[who] = self._number
            self._waiting.append(call)

    def catch_up(self, who: Hashable) -> None:
        self._behind.pop(who, None)
        lowest = next(iter(self._behind.values()), math.inf)
        while self._deferred and self._deferred[0].number < lowest:
            self._loop.call_soon(self._deferred.popleft().run)

    def after_all(self, due: float, call: Callable[[], None]) -> Deferred | None:
        """A timer is due: `call`, once all that came before is handled. None if that was at once."""
        late = self._loop.time() - due > LATE
        if not (late or self._behind):
            call()
            return None
        deferred = Deferred(call)
        if late:
            # The process was held up, and what the timer waits for may have arrived meanwhile: read that first.
            self._loop.call_later(GIVE_WAY, self._defer, deferred)
        else:
            self._defer(deferred)
        return deferred

    def _defer(self, deferred: Deferred) -> None:
        if self._behind:
            deferred.number = self._number
            self._deferred.append(deferred)
        else:
            deferred.run()

    def _turn(self) -> None:
        call = self._waiting.popleft()
        if self._waiting:
            self._loop.call_soon(self._turn)
        call()
