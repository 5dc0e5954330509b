"""The broker's settings (times in seconds)."""

from __future__ import annotations

from typing import Annotated

import msgspec

Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class BrokerParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How broker and clients watch each other."""

    keep_alive: Seconds = 1.0
    """How often both ends of a link show that they are there."""
    suspect_after: Seconds = 4.0
    most_waiting: Count = 1024
    """Events a client keeps while it has no broker."""

    def __post_init__(self) -> None:
        if self.suspect_after <= self.keep_alive:
            raise ValueError("suspect_after must be longer than keep_alive")
