"""Who polls a feed: one of its readers, without anybody who appoints it.

Rules kept
----------
1. Whoever hears that the feed was polled waits until the next poll is due, and a random while longer. So the
   one who polls is left alone while it goes on, and when it falls silent, one of the others is the first to
   notice.
2. Who notices says so (a claim) and waits a moment. Of several that claim at once the lowest name polls, and
   the others wait again.
3. Who has polled `turns` times in a row says that it ends there, and waits longer than others do: the next
   one is somebody else, if there is somebody.
4. Who hears nobody at all polls by itself: a reader that is alone reads all the same.
5. A feed that makes trouble is polled more and more seldom, up to once a day; so says the poll, and everybody
   goes by it.
"""

from __future__ import annotations

import random
from enum import Enum

MOST_PAUSE = 86_400.0


class Act(Enum):
    """What there is to do."""

    CLAIM = "say that this reader is going to poll"
    POLL = "poll"


class Rota:
    """One reader's part in it, for one feed; times in seconds. It asks for nothing: `due` says what there is to do now.

    `moment` is how long a claim is open to others: longer than a word takes to reach them.
    """

    def __init__(
        self, own: str, period: float, turns: int, moment: float, rng: random.Random, now: float
    ) -> None:
        self._own = own
        self._period = period
        self._turns = turns
        self._random = rng
        self._moment = moment
        self.poller = ""
        """Whom this reader last heard of."""
        self._left = 0
        self._failures = 0
        self._claimed_until: float | None = None
        # There may be somebody who polls: listen first.
        self._next = now + self._moment * rng.uniform(1.0, 3.0)

    @property
    def next(self) -> float:
        """When there may be something to do."""
        return self._next if self._claimed_until is None else self._claimed_until

    def due(self, now: float) -> Act | None:
        """What there is to do now. A poll is told of by `polled`."""
        if self._claimed_until is not None:
            if now < self._claimed_until:
                return None
            self._claimed_until = None
            self._left = self._turns
            return self._poll(now)
        if now < self._next:
            return None
        if self.poller == self._own and self._left > 0:
            return self._poll(now)
        self._claimed_until = now + self._moment
        return Act.CLAIM

    def _poll(self, now: float) -> Act:
        self._next = now + self._period  # Should nothing come of it, the source is left alone for as long.
        return Act.POLL

    def polled(self, now: float, good: bool, wait: float = 0.0) -> tuple[float, int]:
        """This reader polled; `wait` is what the source asks for. Returns after how long the next poll is
        due, and how many turns are left.
        """
        self._failures = 0 if good else self._failures + 1
        pause = self._period * 2.0 ** min(self._failures, 16)
        pause = min(max(pause, wait), max(MOST_PAUSE, self._period))
        self._left -= 1
        self.poller = self._own
        # With no turns left others come first; if there are none, it goes on.
        rest = self._period / 4 * self._random.uniform(2.0, 3.0) if self._left <= 0 else 0.0
        self._next = now + pause + rest
        return pause, max(0, self._left)

    def heard_poll(self, who: str, due: float, turns_left: int, good: bool, now: float) -> None:
        if self.poller == self._own and self._left > 0 and who > self._own:
            return  # Two poll, as after a partition: this one goes on, the other one gives way.
        self.poller, self._left = who, 0
        self._claimed_until = None
        self._failures = 0 if good else self._failures + 1
        late = self._random.uniform(0.0, 1.0) if not turns_left else self._random.uniform(1.0, 2.0)
        self._next = now + due + self._period / 4 * late

    def heard_claim(self, who: str, now: float) -> None:
        if self._claimed_until is not None and who > self._own:
            return  # Whoever it is hears this one's claim, too.
        self._claimed_until = None
        # Long enough for the poll to be told of; or it is not going to happen.
        self._next = max(self._next, now + self._moment * self._random.uniform(6.0, 12.0))
