"""The figures of a comparison, under the questions that they answer.

Lines are one per system: distributions over nodes and over deliveries here, what happens over time in
`topicweave.report.over_time`. Bars and marks (`topicweave.report.bars`) have the systems along an axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from topicweave.measures.intervals import half_width, mean
from topicweave.report import bars, over_time
from topicweave.report.columns import one_decimal, percent
from topicweave.report.comparison import Comparison, Entry
from topicweave.report.figure import (
    HEIGHT,
    Figure,
    Trace,
    ccdf,
    colour_of,
    escaped,
    line,
    share_axis,
    symbol_of,
)
from topicweave.report.lines import lines

REACH = "Is everybody reached, and at how many links?"
LOAD = "What does a node carry?"
SPEED = "How far is it, and how long does it take?"
UPKEEP = "What does it cost to keep up?"

GROUPS, LEAST_GROUP = 5, 5
"""Of nodes, by how like others they are; and how many a group has to have for its mean to say anything."""


def figures(comparison: Comparison) -> list[Figure]:
    """All that the results allow: without events there are no hops."""
    entries = comparison.entries
    drawn = (
        links_against_hits(entries),
        bars.coverage(entries, comparison.shared_topics, REACH),
        degree_ccdf(entries),
        bars.links(entries, LOAD),
        noise_over_nodes(entries),
        links_by_likeness(entries),
        noise_by_likeness(entries),
        hops_cdf(entries),
        latency_cdf(entries),
        over_time.served_under_churn(entries, comparison.setting.churn),
        over_time.links_under_churn(entries, comparison.setting.churn),
        over_time.after_crash(entries, comparison.crashing),
        bars.repair(entries, over_time.CRASH),
        bars.control(entries, UPKEEP),
        bars.memory(entries, UPKEEP),
    )
    return _evened([figure for figure in drawn if figure.traces])


def _evened(drawn: list[Figure]) -> list[Figure]:
    """Figures that may stand side by side have the same height."""
    tallest: dict[str, int] = {}
    for figure in drawn:
        height = max(tallest.get(figure.question, HEIGHT), figure.layout.get("height", HEIGHT))
        tallest[figure.question] = height
    return [replace(figure, layout={**figure.layout, "height": tallest[figure.question]}) for figure in drawn]


def links_against_hits(entries: Sequence[Entry]) -> Figure:
    traces = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": entry.label,
            "x": [entry.measure("degree_mean")],
            "y": [entry.measure("hit_ratio")],
            "error_x": bars.whiskers(
                [entry.measure("degree_mean")], bars.intervals([entry], "degree_mean"), colour_of(place)
            ),
            "error_y": bars.whiskers(
                [entry.measure("hit_ratio")], bars.intervals([entry], "hit_ratio"), colour_of(place), 1.0
            ),
            "marker": {"size": 14, "color": colour_of(place), "symbol": symbol_of(place)},
            "hovertemplate": (
                f"{escaped(entry.label)}<br>{one_decimal(entry.measure('degree_mean'))} links per node"
                f"<br>hit ratio {percent(entry.measure('hit_ratio'))}<extra></extra>"
            ),
        }
        for place, entry in enumerate(entries)
        if not math.isnan(entry.measure("degree_mean") + entry.measure("hit_ratio"))
    ]
    return Figure(
        "links-hits",
        "What links buy",
        "Each mark is a system: the further left, the fewer links it keeps; the higher, the more of what was "
        "expected it delivers. Bars are 95% confidence intervals.",
        "degree_mean and hit_ratio, means over the seeds",
        traces,
        {
            "xaxis": {"title": {"text": "links per node (mean)"}, "rangemode": "tozero"},
            "yaxis": {"title": {"text": "hit ratio"}, "tickformat": ".1~%"},
        },
        REACH,
    )


def degree_ccdf(entries: Sequence[Entry]) -> Figure:
    return Figure(
        "degrees",
        "Links per node",
        "For each number of links, the share of nodes that keep at least so many (CCDF). A long tail on the right "
        "means that a few nodes carry many links.",
        "degrees of all nodes, all seeds together",
        lines(
            entries,
            lambda entry: ccdf([int(degree) for degree in entry.collected("degrees")]),
            "%{x:.4~g} links or more: %{y:.1%}",
            "vh",
        ),
        # From 1 on, since a node without links is seen by where its line starts.
        {
            "xaxis": {"title": {"text": "links"}, "type": "log", "dtick": "D2", "tickformat": ","},
            "yaxis": share_axis("nodes"),
        },
        LOAD,
    )


def noise_over_nodes(entries: Sequence[Entry]) -> Figure:
    def points(entry: Entry) -> tuple[list[float], list[float]]:
        quantiles = entry.averaged("noise_quantiles")
        steps = max(len(quantiles) - 1, 1)
        return [step / steps for step in range(len(quantiles))], quantiles

    traces = lines(entries, points, "%{x:.0%} of the nodes: %{y:.1%} or less")
    most = max((max(trace["y"]) for trace in traces), default=0.0)
    return Figure(
        "noise",
        "Noise over the nodes",
        "Nodes from the least to the most disturbed: the share of what a node received that it did not want. A line "
        "along the bottom is a system without noise.",
        "noise_quantiles: percentiles over the nodes that received anything, averaged over the seeds",
        traces,
        {
            "xaxis": {
                "title": {"text": "nodes, the least disturbed first"},
                "tickformat": ".0%",
                "range": [0, 1.01],
            },
            "yaxis": {
                "title": {"text": "unwanted share"},
                "tickformat": ".0%",
                "range": [-0.01, max(1.05 * most, 0.1)],
            },
        },
        LOAD,
    )


_LIKENESS = (
    "Correlation within this workload: nodes in five groups of about equal size, by how much of what they want the five "
    "nodes most like them want too. "
)
_LIKENESS_SOURCE = "cost_by_likeness: (likeness, links, noise) of up to 300 nodes, all seeds together"
_LIKENESS_AXIS = {
    "title": {"text": "likeness: share of topics in common"},
    "tickformat": ".0%",
}


def links_by_likeness(entries: Sequence[Entry]) -> Figure:
    return Figure(
        "likeness-links",
        "Links against likeness",
        f"{_LIKENESS}Where a line falls, whoever has company needs fewer links.",
        _LIKENESS_SOURCE,
        _by_likeness(entries, 1, math.inf, "%{x:.0%} alike: %{y:.1f} links"),
        {"xaxis": _LIKENESS_AXIS, "yaxis": {"title": {"text": "links per node"}, "rangemode": "tozero"}},
        LOAD,
    )


def noise_by_likeness(entries: Sequence[Entry]) -> Figure:
    """Only of those that have any: a line of nothing says nothing."""
    found = _by_likeness(entries, 2, 1.0, "%{x:.0%} alike: %{y:.1%} noise")
    traces = [trace for trace in found if any(trace["y"])]
    return Figure(
        "likeness-noise",
        "Noise against likeness",
        f"{_LIKENESS}Systems without noise are left out.",
        _LIKENESS_SOURCE,
        traces,
        {
            "xaxis": _LIKENESS_AXIS,
            "yaxis": {"title": {"text": "unwanted share"}, "tickformat": ".0%", "rangemode": "tozero"},
        },
        LOAD,
    )


def _by_likeness(entries: Sequence[Entry], column: int, most: float, hover: str) -> list[Trace]:
    def points(entry: Entry) -> tuple[list[float], list[float], list[float]]:
        rows = [
            row
            for result in entry.results
            for row in result.get("cost_by_likeness", ())
            if row[column] is not None
        ]
        if len(rows) < GROUPS * LEAST_GROUP:
            return [], [], []
        return grouped([row[0] for row in rows], [row[column] for row in rows])

    traces = []
    for place, entry in enumerate(entries):
        x, y, spread = points(entry)
        if len(x) > 1:
            trace = line(place, entry.label, x, y, hover, "linear")
            error = bars.whiskers(y, spread, colour_of(place), most) | {"thickness": 1}
            traces.append(trace | {"mode": "lines+markers", "error_y": error})
    return traces


def grouped(keys: Sequence[float], values: Sequence[float]) -> tuple[list[float], list[float], list[float]]:
    """Means of the keys and of the values in groups of about equal size by key, and half of the values' 95% intervals.

    Equal keys stay together, so there may be fewer groups.

    >>> grouped([1, 1, 2, 2, 3, 3, 4, 4, 5, 5], [1, 1, 2, 2, 3, 3, 4, 4, 5, 5])
    ([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 0.0, 0.0, 0.0, 0.0])
    """
    if not keys:
        return [], [], []
    ordered = sorted(keys)
    edges = [ordered[-(-len(keys) * group // GROUPS) - 1] for group in range(1, GROUPS)]
    group_of = np.searchsorted(edges, keys)
    groups = [group_of == group for group in np.unique(group_of)]
    x = [mean(np.asarray(keys)[group].tolist()) for group in groups]
    members = [np.asarray(values, np.float64)[group].tolist() for group in groups]
    return x, [mean(of) for of in members], [half_width(of) for of in members]


def hops_cdf(entries: Sequence[Entry]) -> Figure:
    def points(entry: Entry) -> tuple[list[float], list[float]]:
        counts = entry.summed("hops_counts")
        reached = entry.measure("hit_ratio")
        if not counts or math.isnan(reached):
            return [], []
        return [*range(len(counts))], [count * reached / sum(counts) for count in accumulate(counts)]

    return Figure(
        "hops",
        "Hops to a subscriber",
        "The share of expected deliveries made within so many hops (CDF); each line ends at the system's hit ratio.",
        "hops_counts, summed over the seeds, and hit_ratio",
        lines(entries, points, "%{x:.4~g} hops: %{y:.1%}", "hv"),
        {"xaxis": {"title": {"text": "hops"}}, "yaxis": share_axis("expected deliveries")},
        SPEED,
    )


def latency_cdf(entries: Sequence[Entry]) -> Figure:
    def points(entry: Entry) -> tuple[list[float], list[float]]:
        quantiles = entry.averaged("latency_quantiles")
        steps = max(len(quantiles) - 1, 1)
        reached = entry.measure("hit_ratio")
        if math.isnan(reached):
            return [], []
        return (
            [1000 * seconds for seconds in quantiles],
            [reached * step / steps for step in range(len(quantiles))],
        )

    return Figure(
        "latency",
        "Time to a subscriber",
        "The share of expected deliveries made within so many milliseconds (CDF); each line ends at the system's hit "
        "ratio.",
        "latency_quantiles: percentiles, averaged over the seeds, and hit_ratio",
        lines(entries, points, "%{x:.4~g} ms: %{y:.1%}"),
        {
            "xaxis": {"title": {"text": "milliseconds"}, "rangemode": "tozero"},
            "yaxis": share_axis("expected deliveries"),
        },
        SPEED,
    )
