"""Whole distributions of what became of published events, for figures: what a mean or a percentile hides.

All are over wanted first receptions, as `TrafficSums.hops_measures` and `latency_measures` are.
"""

from __future__ import annotations

import numpy as np

from topicweave.measures.delivery import Receptions

QUANTILES = 101
"""The minimum, every percentile between, and the maximum."""


def hops_counts(receptions: Receptions) -> list[int]:
    """How many receptions came over 0, 1, 2, … links; empty if there was none."""
    counts: list[int] = receptions.traffic.hops.tolist()
    return counts


def latency_quantiles(receptions: Receptions) -> list[float]:
    """Seconds from publish to reception: percentiles 0 to 100 (interpolated); empty if there was none."""
    counted = receptions.first & receptions.wanted
    latency = receptions.time[counted] - receptions.event_time[receptions.event[counted]]
    if not len(latency):
        return []
    quantiles: list[float] = np.quantile(latency, np.linspace(0.0, 1.0, QUANTILES)).tolist()
    return quantiles
