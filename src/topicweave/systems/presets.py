"""Times of live nodes by the network that they are on: `local` (one machine), `lan`, `wan`.

A comparison takes them, too, so that it shows what live nodes do. The papers' studies keep the systems'
defaults, which are the papers' times where a paper names some: `paper`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Preset = Literal["local", "lan", "wan"]
Times = Literal["lan", "local", "wan", "paper"]
PAPER: Times = "paper"
DEFAULT: Preset = "lan"

CACHED, CACHED_BYTES = 131_072, 32 * 1024 * 1024
"""Events, and bytes of them, that a broadcast tree keeps for grafts: two seconds' worth at full speed. A part
of the tree that prunes of a burst have cut off needs one to find that out and to mend.
"""


@dataclass(frozen=True)
class SystemPace:
    """What a system does at another pace than its defaults'."""

    parameters: Mapping[str, float]
    settles_within: float | None = None
    """As `System.settles_within`, which it is if None."""


SHARED: Mapping[str, Mapping[str, Any]] = {
    "local": {
        "tree": {
            "announce_period": 0.03,
            "graft_timeout": 1.0,
            "cache_events": CACHED,
            "cache_bytes": CACHED_BYTES,
            "prefer_short": True,
        },
    },
    "lan": {
        "tree": {
            "announce_period": 0.03,
            "graft_timeout": 0.2,
            "cache_events": CACHED,
            "cache_bytes": CACHED_BYTES,
            "prefer_short": True,
        },
    },
    "wan": {
        "connect_timeout": 1.0,
        "heartbeat_period": 3.0,
        "suspect_after": 12.0,
        "quarantine": 15.0,
        "tree": {"cache_events": CACHED, "cache_bytes": CACHED_BYTES},
    },
}
"""Parameters of all systems that have some of these names."""
