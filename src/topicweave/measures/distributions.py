"""Whole distributions of what became of published events, for figures: what a mean or a percentile hides.

Hops and latencies are over wanted first receptions, as `TrafficSums.hops_measures` and `latency_measures` are.
"""

from __future__ import annotations

import numpy as np

from topicweave.measures.delivery import Receptions
from topicweave.measures.traffic import noise_by_node
from topicweave.model.arrays import FloatArray

QUANTILES = 101
"""The minimum, every percentile between, and the maximum."""


def hops_counts(receptions: Receptions) -> list[int]:
    """How many receptions came over 0, 1, 2, … links; empty if there was none."""
    counts: list[int] = receptions.traffic.hops.tolist()
    return counts


def latency_quantiles(receptions: Receptions) -> list[float]:
    """Seconds from publish to reception: percentiles 0 to 100 (interpolated); empty if there was none."""
    counted = receptions.first & receptions.wanted
    return quantiles(receptions.time[counted] - receptions.event_time[receptions.event[counted]])


def noise_quantiles(receptions: Receptions) -> list[float]:
    """Of nodes' own noise; a node that received nothing has none."""
    unwanted = noise_by_node(receptions.traffic)
    return quantiles(unwanted[~np.isnan(unwanted)])


def quantiles(values: FloatArray) -> list[float]:
    """Percentiles 0 to 100 (interpolated); empty if there is no value."""
    if not len(values):
        return []
    found: list[float] = np.quantile(values, np.linspace(0.0, 1.0, QUANTILES)).tolist()
    return found
