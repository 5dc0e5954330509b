"""Comparisons made up by hand, for the tests of this folder and of the command line's tables."""

import math
from typing import Any

from topicweave.report import Comparison, Entry, Setting
from topicweave.report.constraints import Constraint

MEASURES = {
    "degree_mean": 12.0,
    "degree_p95": 15.0,
    "degree_max": 19.0,
    "partitioned_topics": 0.0,
    "coverage": 1.0,
    "hit_ratio": 1.0,
    "noise": 0.0,
    "duplicates": 0.5,
    "hops_mean": 3.5,
    "hops_max": 9.0,
    "latency_p50": 0.2,
    "latency_p95": 0.35,
    "control_messages": 3.0,
    "control_bytes": 300.0,
    "membership_bytes": 120.0,
    "membership_contacts": 9.0,
    "relays_per_topic": 0.0,
    "repair_time": 2.0,
    "memory_bytes": 30_000.0,
    "settled_after": 10.0,
    "control_bytes.heartbeat": 200.0,
    "control_bytes.connect": 100.0,
}


PICTURE = {
    "nodes": [
        {"name": "ann", "group": 0, "relay": False},
        {"name": "bob", "group": 0, "relay": True},
        {"name": "<eve>", "group": 1, "relay": False},
        {"name": "dan", "group": -1, "relay": False},
    ],
    "links": [[0, 1], [1, 2], [0, 2], [2, 3]],
    "topics": ["news & weather", "go"],
}


def entry(system: str, parameters: dict[str, Any] | None = None, **changes: Any) -> Entry:
    """A well-behaved system, but for the changes."""
    distributions = {
        "degrees": [10, 12, 14],
        "hops_counts": [0, 1, 3],
        "latency_quantiles": [step / 100 for step in range(101)],
        "noise_quantiles": [0.0] * 101,
        "repair_curve": [[-1, 1.0], [0, 0.5], [1, 0.8], [2, 1.0], [3, 1.0]],
        "cost_by_likeness": [[0.02 * number, 10 + number, 0.0] for number in range(50)],
        "picture": PICTURE,
    }
    given = parameters or {}
    return Entry(system, given, {"k": 3, **given}, ({**MEASURES, **distributions, **changes},))


def without_events(system: str, **changes: Any) -> Entry:
    """What an experiment that publishes nothing gives."""
    overlay = ("degree_mean", "degree_p95", "degree_max", "partitioned_topics")
    measures = {name: MEASURES[name] for name in overlay}
    return Entry(system, {}, {}, (measures | {"degrees": [1, 2]} | changes,))


def comparison(
    *entries: Entry, events: int = 200, cuts: tuple[str, ...] = (), asked: tuple[Constraint, ...] = ()
) -> Comparison:
    return Comparison(
        workload={
            "name": "feeds",
            "source": "data/feeds",
            "nodes": 400,
            "topics": 100,
            "subscriptions": 4000,
            "topics_per_node": 10.0,
            "topics_per_node_min": 4,
            "topics_per_node_max": 16,
            "subscribers_per_topic": 40.0,
            "subscribers_per_topic_max": 130,
            "lonely_topics": 3,
            "changes": 0,
            "list_sizes": [[4, 100], [10, 200], [16, 100]],
            "audiences": [[1, 3], [20, 60], [60, 30], [130, 7]],
            "fingerprint": "f1",
        },
        setting=Setting(seeds=(7,), events=events),
        entries=entries,
        command="topicweave compare data/feeds --systems alpha,beta --seed 7",
        cuts=cuts,
        constraints=asked,
    )


NAN = math.nan
