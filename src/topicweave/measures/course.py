"""What becomes of a run in the course of time: its measures part by part."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyarrow.compute as pc

from topicweave.measures.delivery import Receptions, hit_ratio
from topicweave.measures.interests import Interests
from topicweave.measures.uptime import Uptime
from topicweave.telemetry.tables import Tables


def course(
    tables: Tables,
    interests: Interests,
    uptime: Uptime,
    edges: Sequence[float],
    *,
    grace: float = 0.0,
    window: float = float("inf"),
) -> list[dict[str, Any]]:
    """Of the events published between each two edges: who was reached, and at what cost. See `hit_ratio`."""
    when = tables.publishes["time"]
    parts = []
    for begin, end in pairwise(edges):
        chosen = tables.publishes.filter(pc.and_(pc.greater_equal(when, begin), pc.less(when, end)))
        receptions = Receptions.of(chosen, tables.deliveries)
        sums = receptions.traffic.sums
        parts.append(
            {
                "start": begin,
                "hit_ratio": hit_ratio(receptions, interests, uptime, grace=grace, window=window),
                "noise": sums.noise,
                "noise_all": sums.noise_all,
                **sums.hops_measures,
            }
        )
    return parts
