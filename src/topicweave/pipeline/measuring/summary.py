"""From what tasks have told of a run to its measures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from topicweave.measures.columns import ratio
from topicweave.measures.overlay import NORMAL_95


def measures(told: Mapping[str, Any], kinds: Mapping[int, str], latency: list[float]) -> dict[str, float]:
    """In the order of `topicweave.measures.summary.measure_run`."""
    delivered = told["firsts"] - told["relayed"]
    p50, p95, longest = latency
    return {
        **_degrees(told),
        **_by_kind(told, "links", "links.", kinds, max(told["present"], 1)),
        "components": float(told["components"]),
        "partitioned_topics": float(told["partitioned"]),
        "coverage": ratio(told["covered"], told["members"]),
        "topic_diameter_mean": ratio(told["diameters"], told["wanted_topics"]),
        "topic_diameter_max": float(told.get("diameter_max", math.nan)),
        "hit_ratio": ratio(told["hits"], told["expected"]),
        "noise": ratio(told["relayed"], told["firsts"]),
        "noise_node_mean": ratio(told["noise"], told["noise_nodes"]),
        "noise_all": ratio(told["unwanted"], told["receptions"]),
        "noise_all_node_mean": ratio(told["noise_all"], told["noise_all_nodes"]),
        "duplicates": ratio(told["receptions"] - told["firsts"], delivered),
        "relays_per_topic": ratio(told["relays"], told["topics"]),
        "hops_mean": ratio(told["hops"], delivered),
        "hops_max": float(told["hops_max"]) if delivered else math.nan,
        "latency_p50": p50,
        "latency_p95": p95,
        "latency_max": longest,
        "fairness": _correlation(told),
        **_control(told, kinds),
    }


def _by_kind(
    told: Mapping[str, Any], what: str, prefix: str, kinds: Mapping[int, str], whole: float
) -> dict[str, float]:
    found = {
        kinds[int(name.partition(":")[2])]: amount
        for name, amount in told.items()
        if name.startswith(f"{what}:")
    }
    return {f"{prefix}{kind}": ratio(float(amount), whole) for kind, amount in sorted(found.items())}


def _control(told: Mapping[str, Any], kinds: Mapping[int, str]) -> dict[str, float]:
    """Messages and bytes per node and second, in all and by kind; kinds outside the interval count 0."""
    found: dict[str, float] = {}
    for what in ("messages", "bytes"):
        total = sum(amount for name, amount in told.items() if name.startswith(f"{what}:"))
        found[f"control_{what}"] = ratio(float(total), told["seconds"])
        found |= _by_kind(told, what, f"control_{what}.", kinds, told["seconds"])
    return found


def _degrees(told: Mapping[str, Any]) -> dict[str, float]:
    """From the histogram of degrees, which has few different values."""
    histogram = {
        int(name.partition(":")[2]): times for name, times in told.items() if name.startswith("degree:")
    }
    nodes = told["present"]
    if not nodes:
        return dict.fromkeys(("degree_mean", "degree_mean_ci95", "degree_p95", "degree_max"), math.nan)
    histogram[0] = nodes - sum(histogram.values())
    values = np.array(sorted(value for value, times in histogram.items() if times))
    times = np.array([histogram[value] for value in values.tolist()])
    mean = float((values * times).sum() / nodes)
    variance = float((times * (values - mean) ** 2).sum() / (nodes - 1)) if nodes > 1 else math.nan
    place = 0.95 * (nodes - 1)
    ends = np.cumsum(times)
    low, high = (
        float(values[np.searchsorted(ends, rank, side="right")])
        for rank in (math.floor(place), min(math.floor(place) + 1, nodes - 1))
    )
    return {
        "degree_mean": mean,
        "degree_mean_ci95": NORMAL_95 * math.sqrt(variance) / nodes**0.5 if nodes > 1 else math.nan,
        "degree_p95": low + (high - low) * (place - math.floor(place)),
        "degree_max": float(values[-1]),
    }


def _correlation(told: Mapping[str, Any]) -> float:
    """Of traffic and demand, from exact sums."""
    count = told["handlers"]
    if count < 2:
        return math.nan
    mean_one, mean_other = Fraction(told["traffic"], count), Fraction(told["demand"], count)
    both = told["traffic_demand"] - mean_one * told["demand"]
    one = told["traffic_squared"] - mean_one * told["traffic"]
    other = told["demand_squared"] - mean_other * told["demand"]
    if not one or not other:
        return math.nan
    return float(both) / math.sqrt(float(one) * float(other))
