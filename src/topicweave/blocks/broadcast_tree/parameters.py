"""What can be set of a broadcast tree, and its fixed bounds."""

from __future__ import annotations

import msgspec

MOST_RUNS = 256
"""An announcement or a graft names this many runs at most; of a longer one the rest is ignored."""
MOST_ASKED = 16_384
"""Events asked for, and sent, by one graft: all that a node lacks which is far behind, or new events would
come before the rest of them.
"""
MOST_SENT = 2 * 1024 * 1024
"""Bytes of payload sent for one graft, beyond the first event: more might not fit into a queue. What is left
is asked for again.
"""
MOST_PREPARED = 1024
"""Topics that one `Prepare` names of each sort; of more the rest is ignored."""
MOST_LAZY = 16_384
"""Links of all topics together: with so many that are lazy no more are prepared."""


class BroadcastTreeParameters(msgspec.Struct, frozen=True):
    """Times in seconds. `most_missing` counts streams."""

    announce_period: float = 0.1
    graft_timeout: float = 0.5
    graft_attempts: int = 5
    cache_events: int = 1024
    cache_bytes: int = 4 * 1024 * 1024
    most_missing: int = 1024
    most_undelivered: int = 64
    prefer_short: bool = False
    """Cut the way with more links, not the slower one: where all links are about as fast."""
