"""What a ring may be told."""

from __future__ import annotations

import msgspec


class RingParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds, and numbers of links."""

    period: float = 1.0
    """Between two beats."""
    signs_every: int = 2
    """Beats between two signs of life to the same neighbour."""
    suspect_after: float = 4.0
    doubt: float = 60.0
    """For how long the silent are asked whether they are back."""
    sides: int = 3
    """How many nodes are known on either side."""
    most_fans: int = 40

    def __post_init__(self) -> None:
        if self.signs_every < 1 or not 0 < self.period * self.signs_every < self.suspect_after:
            raise ValueError(
                "need 0 < period * signs_every < suspect_after, "
                f"got {self.period:g}, {self.signs_every} and {self.suspect_after:g}"
            )
        if self.sides < 1 or self.most_fans < 1 or not self.doubt > 0:
            raise ValueError("need at least one node on each side, one fan, and doubts that last")
