"""SpiderCast §3.3 to §3.6: how the overlay depends on popularity, on sizes, and on lists of unequal length."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import correlation
from typing import Any

import numpy as np

from topicweave.papers.spidercast.settings import (
    DISTRIBUTIONS,
    PAPER_SIZES,
    settled,
    sizes_of,
)
from topicweave.papers.study import Plan, Results, Row, Scale, listed
from topicweave.runs.run import Result

PATHS = (
    "topic_diameter_max",
    "topic_diameter_mean",
    "topic_depth_max",
    "topic_depth_mean",
    "topic_path_mean",
)


def fig6(scale: Scale, seed: int) -> Plan:
    """Heavily skewed popularity: which coverage connects all topics, and what it costs."""
    sizes = sizes_of(scale)
    settings: dict[str, dict[str, Any]] = {
        "(3,0)": {},
        "(3,1)": {"k_random": 1},
        "(4,0)": {"k_greedy": 4},
        "adaptive": {"adaptive": True},
    }
    runs = {
        (name, nodes): settled(nodes, seed, parameters=parameters, popularity="zipf2")
        for name, parameters in settings.items()
        for nodes in sizes
    }
    others = {
        ("adaptive", popularity): settled(
            sizes[-1], seed, parameters={"adaptive": True}, popularity=popularity
        )
        for popularity in ("rss", "nyse", "uniform")
    }
    partitioned_in_paper = dict(zip(PAPER_SIZES, (0, 0, 0, 15, 14, 14), strict=True))

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for nodes in sizes:
            where = {"nodes": nodes, "workload": "zipf2"}
            parted = {name: results[name, nodes]["partitioned_topics"] for name in settings}
            rows += [
                Row(
                    {**where, "coverage": "(3,0)"},
                    "partitioned_topics",
                    partitioned_in_paper.get(nodes),
                    parted["(3,0)"],
                ),
                Row({**where, "coverage": "(3,1)"}, "partitioned_topics", 0, parted["(3,1)"]),
                Row({**where, "coverage": "(4,0)"}, "partitioned_topics", "above 0", parted["(4,0)"]),
                Row({**where, "coverage": "adaptive"}, "partitioned_topics", 0, parted["adaptive"]),
            ]
        for nodes in sizes:
            for name, paper in (("(3,0)", 7), ("(3,1)", 13), ("(4,0)", None), ("adaptive", None)):
                where = {"nodes": nodes, "workload": "zipf2", "coverage": name}
                degree = results[name, nodes]["degree_mean"]
                rows.append(Row(where, "degree_mean", paper, degree))
        where = {"nodes": sizes[-1], "coverage": "adaptive"}
        share = results["adaptive", sizes[-1]]["random_coverage_share"]
        rows.append(Row({**where, "workload": "zipf2"}, "random_coverage_share", None, share))
        for popularity in ("rss", "nyse", "uniform"):
            share = results["adaptive", popularity]["random_coverage_share"]
            rows.append(
                Row({**where, "workload": popularity}, "random_coverage_share", "0: stays at (3,0)", share)
            )
        return rows

    return Plan({**runs, **others}, rows_of)


def fig7(scale: Scale, seed: int) -> Plan:
    """Four distributions of popularity: degree, tdi(20), diameter."""
    sizes = sizes_of(scale)
    runs = {
        (popularity, nodes): settled(nodes, seed, popularity=popularity, diameters=True, tdi=20)
        for popularity in DISTRIBUTIONS
        for nodes in sizes
    }
    diameter_in_paper = dict(zip(DISTRIBUTIONS, (6, 6, 7, 8), strict=True))

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for popularity in DISTRIBUTIONS:
            mine = [results[popularity, nodes] for nodes in sizes]
            where = {"workload": popularity}
            for nodes, result in zip(sizes, mine, strict=True):
                point = {**where, "nodes": nodes}
                rows += [
                    Row(point, "degree_mean", "below 12", result["degree_mean"]),
                    Row(point, "partitioned_topics", 0, result["partitioned_topics"]),
                    Row(point, "tdi_20", None, result["tdi_20"]),
                    Row(
                        point,
                        "degree_mean_ci95 / degree_mean",
                        None,
                        result["degree_mean_ci95"] / result["degree_mean"],
                    ),
                    *paths(point, result),
                ]
            degrees = [result["degree_mean"] for result in mine]
            rows.append(Row({**where, "nodes": "rising"}, "degree_mean", "falls", listed(degrees)))
            largest = max(result["topic_diameter_max"] for result in mine)
            rows.append(_one_above(where, diameter_in_paper[popularity], largest))
        for nodes in sizes:
            by_similarity = sorted(DISTRIBUTIONS, key=lambda name: results[name, nodes]["tdi_20"])
            degrees = [results[name, nodes]["degree_mean"] for name in by_similarity]
            rows.append(
                Row(
                    {"nodes": nodes, "workload": " < ".join(by_similarity)},
                    "degree_mean",
                    "the higher tdi(20), the lower",
                    listed(degrees),
                )
            )
        return rows

    return Plan(runs, rows_of)


def paths(where: dict[str, Any], result: Result) -> list[Row]:
    """Diameters (between any two subscribers), and beside them how far all are from one of them."""
    return [Row(where, name, None, result[name]) for name in PATHS]


def fig8(scale: Scale, seed: int) -> Plan:
    """Scalability with nodes (a, d), topics (b, e) and subscriptions (c, f)."""
    sizes = sizes_of(scale)
    largest = sizes[-1]
    topic_counts = (100, 200, 400, 600, 800, 1000) if scale == "paper" else (100, 200)
    list_sizes = (10, 15, 20, 30, 40)
    by_nodes = {
        ("a", topics, nodes): settled(nodes, seed, topics=topics, diameters=True, tdi=20)
        for topics in (100, 200)
        for nodes in sizes
    }
    by_topics = {
        ("b", topics): settled(largest, seed, topics=topics, lists=(20, 20), diameters=True, tdi=40)
        for topics in topic_counts
    }
    by_subscriptions = {
        ("c", length, nodes): settled(nodes, seed, lists=(length, length), tdi=2 * length)
        for length in list_sizes
        for nodes in sizes
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for topics, largest_degree in ((100, 32), (200, 31)):
            mine = [results["a", topics, nodes] for nodes in sizes]
            degrees = [result["degree_mean"] for result in mine]
            where = {"figure": "8a", "topics": topics}
            similarity = [result["tdi_20"] for result in mine]
            for nodes, result in zip(sizes, mine, strict=True):
                rows += paths({**where, "nodes": nodes}, result)
            rows += [
                Row({**where, "nodes": "rising"}, "degree_mean", "falls", listed(degrees)),
                Row({**where, "nodes": "rising"}, "tdi_20", "rises", listed(similarity)),
                Row(where, "degree_max", largest_degree, max(result["degree_max"] for result in mine)),
                _one_above(where, 6, max(result["topic_diameter_max"] for result in mine)),
                Row(where, "partitioned_topics", 0, max(result["partitioned_topics"] for result in mine)),
            ]
        for nodes in sizes:
            both = [results["a", topics, nodes]["degree_mean"] for topics in (100, 200)]
            where = {"figure": "8a", "nodes": nodes, "topics": "100, 200"}
            rows.append(Row(where, "degree_mean", "more topics, higher", listed(both)))
        mine = [results["b", topics] for topics in topic_counts]
        where = {"figure": "8b", "nodes": largest, "topics_per_node": 20, "topics": "rising"}
        degrees, similarity = [r["degree_mean"] for r in mine], [r["tdi_40"] for r in mine]
        rows += [
            Row(where, "degree_mean", "rises", listed(degrees)),
            Row(where, "tdi_40", "falls", listed(similarity)),
            _one_above({**where, "topics": topic_counts[0]}, 5, mine[0]["topic_diameter_max"]),
            _one_above({**where, "topics": topic_counts[-1]}, 4, mine[-1]["topic_diameter_max"]),
            Row(where, "partitioned_topics", 0, max(r["partitioned_topics"] for r in mine)),
        ]
        for nodes in sizes:
            rows += _by_subscriptions(
                nodes, list_sizes, [results["c", length, nodes] for length in list_sizes]
            )
        return rows

    return Plan({**by_nodes, **by_topics, **by_subscriptions}, rows_of)


def _one_above(where: dict[str, Any], paper: int, diameter: float) -> Row:
    return Row(where, "topic_diameter_max", paper, diameter)


def _by_subscriptions(nodes: int, list_sizes: Sequence[int], results: Sequence[Result]) -> list[Row]:
    """Figures 8c and 8f at one size of the network."""
    degrees = [result["degree_mean"] for result in results]
    similarity = [result[f"tdi_{2 * length}"] for length, result in zip(list_sizes, results, strict=True)]
    where = {"figure": "8c", "nodes": nodes, "topics_per_node": ", ".join(map(str, list_sizes))}
    return [
        Row(where, "degree_mean", "rises to 20, then falls", listed(degrees)),
        Row(where, "tdi(2d)", "falls to 20, then rises", listed(similarity)),
        Row(where, "partitioned_topics", 0, max(result["partitioned_topics"] for result in results)),
    ]


def fig9(scale: Scale, seed: int) -> Plan:
    """Lists of unequal size: the mean degree depends on their mean size only.

    The paper does not say how many nodes and topics; ours are its largest network and 100 topics.
    """
    nodes = sizes_of(scale)[-1]
    lists = {20: (10, 30), 40: (10, 70)}
    runs = {
        (mean, kind): settled(nodes, seed, lists=(mean, mean) if kind == "equal" else spread, histogram=True)
        for mean, spread in lists.items()
        for kind in ("equal", "unequal")
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for mean, spread in lists.items():
            equal, unequal = results[mean, "equal"], results[mean, "unequal"]
            where = {"nodes": nodes, "topics_per_node": f"{spread[0]} to {spread[1]}"}
            rows.append(
                Row(
                    where,
                    "degree_mean",
                    f"as with {mean} each",
                    f"{unequal['degree_mean']:.2f} against {equal['degree_mean']:.2f}",
                )
            )
            lengths = np.diff(runs[mean, "unequal"].workload.load().offsets).tolist()
            along = correlation(lengths, unequal["degrees"])
            rows.append(Row(where, "correlation of degree and subscriptions", None, along))
            for kind, result in (("equal", equal), ("unequal", unequal)):
                degrees = result["degrees"]
                average = sum(degrees) / len(degrees)
                near = sum(1 for degree in degrees if abs(degree - average) <= 0.5 * average) / len(degrees)
                rows.append(
                    Row(
                        {"nodes": nodes, "topics_per_node": f"{kind}, mean {mean}"},
                        "share of nodes within half the mean degree",
                        "concentrated around the mean",
                        near,
                    )
                )
        return rows

    return Plan(runs, rows_of)
