"""From what tasks have told of a run to its measures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from topicweave.measures.columns import ratio
from topicweave.measures.control import ControlTraffic, control_rates
from topicweave.measures.correlation import Moments
from topicweave.measures.delivery import Delivered
from topicweave.measures.overlay import Connectivity, DegreeCounts, links_per_node
from topicweave.measures.traffic import TrafficSums


def measures(told: Mapping[str, Any], kinds: Mapping[int, str], latency: list[float]) -> dict[str, float]:
    """In the order of `topicweave.measures.summary.measure_run`, whose definitions these are."""
    p50, p95, longest = latency
    return {
        **_degrees(told).measures(),
        **{
            f"links.{kind}": value
            for kind, value in links_per_node(_by_kind(told, "links", kinds), told["present"]).items()
        },
        **Connectivity(**_fields(Connectivity, told)).measures(),
        "topic_diameter_mean": ratio(told["diameters"], told["wanted_topics"]),
        "topic_diameter_max": float(told.get("diameter_max", math.nan)),
        "hit_ratio": Delivered(told["hits"], told["expected"]).hit_ratio,
        **TrafficSums(**_fields(TrafficSums, told)).measures(
            ratio(told["noise"], told["noise_nodes"]), ratio(told["noise_all"], told["noise_all_nodes"])
        ),
        "latency_p50": p50,
        "latency_p95": p95,
        "latency_max": longest,
        "fairness": Moments(**_fields(Moments, told)).correlation,
        **_control(told, kinds),
    }


def _fields(counts: Any, told: Mapping[str, Any]) -> dict[str, Any]:
    """What of the told belongs to a tuple of counts."""
    return {name: told.get(name, 0) for name in counts._fields}


def _by_kind(told: Mapping[str, Any], what: str, kinds: Mapping[int, str]) -> dict[str, int]:
    found = {
        kinds[int(name.partition(":")[2])]: amount
        for name, amount in told.items()
        if name.startswith(f"{what}:")
    }
    return dict(sorted(found.items()))


def _control(told: Mapping[str, Any], kinds: Mapping[int, str]) -> dict[str, float]:
    """Kinds outside the interval count 0."""
    messages, sizes = _by_kind(told, "messages", kinds), _by_kind(told, "bytes", kinds)
    by_kind = {kind: ControlTraffic(float(messages[kind]), float(sizes[kind])) for kind in messages}
    return control_rates(by_kind, told["seconds"])


def _degrees(told: Mapping[str, Any]) -> DegreeCounts:
    """Who has no neighbour is in nobody's edges."""
    nodes = {int(name.partition(":")[2]): times for name, times in told.items() if name.startswith("degree:")}
    nodes[0] = told["present"] - sum(nodes.values())
    degrees = sorted(degree for degree, count in nodes.items() if count)
    return DegreeCounts(
        np.array(degrees, np.int64), np.array([nodes[degree] for degree in degrees], np.int64)
    )
