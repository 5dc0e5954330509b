"""The clocks of a live node: one that never goes back, for order; the wall clock, for certificates; and how
far neighbours' clocks differ.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from topicweave.model.ids import NodeId

LATE, GIVE_WAY = 0.02, 0.001
"""A reader of the clock that is so late was held up. What it waits for may have come meanwhile, so it lets the
event loop read the sockets first.
"""
JUMPED = 60.0
"""Seconds by which the wall clock may drift from the monotonic one before that is reported."""
SKEWED = 30.0
"""Seconds by which the middle neighbour's clock may differ before that is reported."""
MOST_TRUST = 3600.0
"""By no more than this do neighbours correct the wall clock, whatever they say."""
ENOUGH = 3
"""So many neighbours must have told their time before they are believed."""


class Clock:
    """`now` starts at the wall clock, or just above what an earlier life has seen, and then follows the
    monotonic clock.

    So a wall clock that is set back, between two lives or during one, does not bring the node's order into
    disorder. `trusted` is asked whether something is in force: the wall clock at the moment, corrected by
    what most neighbours say. A stored time far ahead has no say in that.
    """

    def __init__(self, not_before: float = 0.0, wall: Callable[[], float] | None = None) -> None:
        self.wall: Callable[[], float] = wall or time.time  # noqa: TID251 - the one place where the world's time comes from
        began = self.wall()
        self.offset = max(began, not_before) - time.monotonic()
        self._wall_offset = began - time.monotonic()
        self.skews = Skews()

    @property
    def now(self) -> float:
        return self.offset + time.monotonic()

    def trusted(self) -> float:
        return self.wall() + self.skews.correction()

    def told(self, peer: NodeId, theirs: float) -> None:
        """A neighbour's wall clock, as it was a moment ago."""
        self.skews.note(peer, theirs - self.wall())

    def problems(self) -> list[str]:
        """What is wrong with the clocks, for people."""
        found = []
        jumped = self.wall() - time.monotonic() - self._wall_offset
        if abs(jumped) > JUMPED:
            found.append(
                f"the wall clock was set {'on' if jumped > 0 else 'back'} by {abs(jumped):.0f} s since the start"
            )
        ahead = self.now - self.wall()
        if ahead > JUMPED and abs(ahead + jumped) > JUMPED:
            found.append(
                f"an earlier life had a clock {ahead:.0f} s ahead of this one; order goes on from there"
            )
        skew = self.skews.median()
        if abs(skew) > SKEWED and len(self.skews) >= ENOUGH:
            found.append(
                f"this clock is {abs(skew):.0f} s {'behind' if skew > 0 else 'ahead of'} most neighbours'"
            )
        return found


class Skews:
    """How far each neighbour's clock is ahead.

    >>> skews = Skews()
    >>> for peer, ahead in enumerate([2.0, 1.0, 90_000.0]):
    ...     skews.note(peer, ahead)
    >>> skews.median(), skews.correction()
    (2.0, 0.0)
    """

    def __init__(self) -> None:
        self._ahead: dict[NodeId, float] = {}

    def __len__(self) -> int:
        return len(self._ahead)

    def note(self, peer: NodeId, ahead: float) -> None:
        self._ahead[peer] = ahead

    def forget(self, peer: NodeId) -> None:
        self._ahead.pop(peer, None)

    def of(self, peer: NodeId) -> float:
        return self._ahead.get(peer, 0.0)

    def median(self) -> float:
        return statistics.median(self._ahead.values()) if self._ahead else 0.0

    def correction(self) -> float:
        """What to add to the wall clock: nothing while it is about right, and never more than `MOST_TRUST`."""
        skew = self.median()
        if len(self._ahead) < ENOUGH or abs(skew) <= SKEWED:
            return 0.0
        return max(-MOST_TRUST, min(MOST_TRUST, skew))
