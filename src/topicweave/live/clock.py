"""The live world's clock: seconds of Unix time that never go back, not even across restarts."""

from __future__ import annotations

import time


class Clock:
    """Starts at the wall clock, or just above what an earlier life has seen, and then follows the monotonic clock.

    So a wall clock that is set back, between two lives or during one, is not noticed by the node.
    """

    def __init__(self, not_before: float = 0.0) -> None:
        wall = time.time()  # noqa: TID251 - the one place where the world's time comes from
        self.offset = max(wall, not_before) - time.monotonic()

    @property
    def now(self) -> float:
        return self.offset + time.monotonic()
