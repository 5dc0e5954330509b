"""Magnet §4.5, real subscriptions; that nothing is lost without correlation; and whether arrays and messages agree."""

from __future__ import annotations

from typing import Any

import numpy as np

from topicweave.bulk.magnet.plan import Converged
from topicweave.measures.trees import share_uninterested
from topicweave.papers.levels import SIZES, beside
from topicweave.papers.magnet.runs import ConvergedTrees
from topicweave.papers.magnet.settings import (
    FINGERS_12,
    SYSTEMS,
    Point,
    both,
    degree_quantiles,
    multi_modal,
)
from topicweave.papers.magnet.settled import SettledTrees
from topicweave.papers.magnet.structured import hierarchical
from topicweave.papers.magnet.workloads import TopicSample
from topicweave.papers.study import Plan, Results, Row, Scale
from topicweave.runs.run import Result, Run
from topicweave.runs.sources import ModelWorkload


def wikipedia(scale: Scale, seed: int) -> Plan:
    """Real subscriptions with a degree of 12: Wikipedia edits; also YouTube groups and GitHub watches."""
    spec = Converged(fingers=FINGERS_12)
    traces: dict[Any, tuple[ModelWorkload | TopicSample, Converged]]
    if scale == "paper":
        traces = {name: (TopicSample(name), spec) for name in ("wikipedia", "youtube", "github")}
    else:
        traces = {"hierarchical stand-in": (hierarchical(scale, 8, 0.2, 1.0), spec)}
    runs = both(traces, scale, seed)

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for name in traces:
            point = Point(results, name)
            run = point.runs["magnet"][0]
            where = {"workload": name, "nodes": run["nodes"], "topics": run["topics"]}
            level = {**where, "level": "arrays"}
            more = point.cost["strawman"] / point.cost["magnet"] - 1.0
            paper = 0.77 if name == "wikipedia" else None
            rows += [
                Row(level, "subscribers per topic, mean (paper: 5.4)", None, run["subscribers_mean"]),
                Row(level, "subscribers per topic, most (paper: 348)", None, run["subscribers_max"]),
                Row(level, "overlay_degree (paper: 12)", 12, run["overlay_degree"]),
                Row(level, "strawman's relays above Magnet's", paper, more),
                *point.rows(where, None),
            ]
        return rows

    return Plan(runs, rows_of)


def uncorrelated(scale: Scale, seed: int) -> Plan:
    """Topics drawn all alike: nothing to exploit, and nothing to lose."""
    size = {"nodes": 10_000, "topics": 1000, "size": 50}
    if scale == "smoke":
        size = {"nodes": 600, "topics": 300, "size": 15}
    runs = both({"random": (ModelWorkload("vitis-random", size), Converged())}, scale, seed)

    def rows_of(results: Results) -> list[Row]:
        return Point(results, "random").rows({"workload": "uncorrelated"}, "not worse")

    return Plan(runs, rows_of)


COMPARED = ("relays_per_topic", "relays_by_rate", "tree_size", "route_hops", "overlay_degree")
"""What figures use of a run, and what explains it; with `_of_curves`."""


LAG = 5
"""Two nodes come per second, and what reports say of a topic is 2.5 s old on average. In the paper's networks
of thousands that is nothing: figures leave it out.
"""


def levels(scale: Scale, seed: int) -> Plan:
    """The same networks by messages in the simulator, and as arrays."""
    runs: dict[Any, Run] = {}
    for nodes in SIZES[scale]:
        workload = multi_modal("smoke", 1, 5, nodes=nodes, topics=nodes // 2, size=12)
        for system in SYSTEMS:
            lag = LAG if system == "magnet" else 0
            same: dict[str, Any] = {"system": system, "workload": workload, "seed": seed, "by_topic": True}
            runs["arrays", nodes, system] = ConvergedTrees(lag=lag, **same)
            runs["messages", nodes, system] = SettledTrees(arrivals=max(120.0, nodes / 2), **same)

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for nodes in SIZES[scale]:
            for system in SYSTEMS:
                messages, arrays = results["messages", nodes, system], results["arrays", nodes, system]
                where = {"system": system, "nodes": nodes}
                curves = _of_curves(messages)
                rows += [
                    *beside(where, messages, arrays, COMPARED),
                    *beside(where, curves, _of_curves(arrays), curves),
                    Row(where, "wrong trees by messages", None, messages["wrong_trees"]),
                    Row(where, "missed by messages", None, 1.0 - messages["hit_ratio"]),
                ]
        return rows

    return Plan(runs, rows_of)


def _of_curves(result: Result) -> dict[str, float]:
    """Figure 2's degrees; and figure 5's shares, of a tenth of the topics and of all."""
    degrees = degree_quantiles(np.array(result["degrees"]))
    relays, wanted, rates = (np.array(result[name]) for name in ("relays", "wanted", "rates"))
    shares = {
        f"share of messages to uninterested nodes, {told}": share_uninterested(relays, wanted, rates, topics)
        for told, topics in (
            ("the first tenth of the topics", len(wanted) // 10),
            ("all topics", len(wanted)),
        )
    }
    return {f"degree, {name}": value for name, value in degrees.items()} | shares
