"""Figures of a comparison, as the plain data that plotly.js draws: traces and a layout each.

Built by hand and not with plotly's Python classes: the same comparison must give the same bytes, and the browser sets
the colours of text and grid, which depend on its light or dark mode.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from topicweave.report.columns import one_decimal, percent
from topicweave.report.comparison import Comparison, Entry

Trace = dict[str, Any]
Layout = dict[str, Any]

# To be told apart by the colour-blind, and to be seen on white and on black.
COLOURS = ("#2b7bd4", "#e0662b", "#1d9e74", "#c35fa6", "#c98f00", "#45a9cf", "#8b75e0", "#858b94")
DASHES = ("solid", "dash", "dot")

KINDS_SHOWN = len(COLOURS) - 1
"""Kinds of control messages with a colour of their own; the rest share the last, grey."""


@dataclass(frozen=True)
class Figure:
    name: str
    title: str
    reading: str
    """How to read it, in a sentence."""
    traces: list[Trace]
    layout: Layout


def colour_of(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def dash_of(place: int) -> str:
    """When colours come round again, the line tells."""
    return DASHES[place // len(COLOURS) % len(DASHES)]


def figures(comparison: Comparison) -> list[Figure]:
    """All that the results allow: without events there are no hops."""
    makers = (links_against_hits, degree_ccdf, hops_cdf, latency_cdf, control_by_kind)
    return [figure for make in makers if (figure := make(comparison.entries)).traces]


def links_against_hits(entries: Sequence[Entry]) -> Figure:
    traces = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": entry.label,
            "x": [entry.measure("degree_mean")],
            "y": [entry.measure("hit_ratio")],
            "marker": {"size": 14, "color": colour_of(place)},
            "hovertemplate": (
                f"{_escaped(entry.label)}<br>{one_decimal(entry.measure('degree_mean'))} links per node"
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
        "expected it delivers.",
        traces,
        {
            "xaxis": {"title": {"text": "links per node (mean)"}, "rangemode": "tozero"},
            "yaxis": {"title": {"text": "hit ratio"}, "tickformat": ".1~%"},
        },
    )


def degree_ccdf(entries: Sequence[Entry]) -> Figure:
    return Figure(
        "degrees",
        "Links per node",
        "For each number of links, the share of nodes that keep at least so many. A long tail on the right means "
        "that a few nodes carry many links.",
        _lines(
            entries,
            lambda entry: ccdf([int(degree) for degree in entry.collected("degrees")]),
            "links",
            shape="vh",
        ),
        {"xaxis": {"title": {"text": "links"}}, "yaxis": _share_axis("nodes")},
    )


def hops_cdf(entries: Sequence[Entry]) -> Figure:
    def points(entry: Entry) -> tuple[list[float], list[float]]:
        counts = entry.summed("hops_counts")
        if not counts:
            return [], []
        reached = _reached(entry) / sum(counts)
        return [*range(len(counts))], [count * reached for count in accumulate(counts)]

    return Figure(
        "hops",
        "Hops to a subscriber",
        "The share of expected deliveries made within so many hops; each line ends at the system's hit ratio.",
        _lines(entries, points, "hops", shape="hv"),
        {"xaxis": {"title": {"text": "hops"}}, "yaxis": _share_axis("expected deliveries")},
    )


def latency_cdf(entries: Sequence[Entry]) -> Figure:
    def points(entry: Entry) -> tuple[list[float], list[float]]:
        quantiles = entry.averaged("latency_quantiles")
        steps = max(len(quantiles) - 1, 1)
        return (
            [1000 * seconds for seconds in quantiles],
            [_reached(entry) * step / steps for step in range(len(quantiles))],
        )

    return Figure(
        "latency",
        "Time to a subscriber",
        "The share of expected deliveries made within so many milliseconds; each line ends at the system's hit ratio.",
        _lines(entries, points, "ms"),
        {
            "xaxis": {"title": {"text": "milliseconds"}, "rangemode": "tozero"},
            "yaxis": _share_axis("expected deliveries"),
        },
    )


def control_by_kind(entries: Sequence[Entry]) -> Figure:
    """Stacked bars, the largest kind first."""
    prefix = "control_bytes."
    by_entry = [
        {
            name.removeprefix(prefix): value
            for name, value in entry.measures.items()
            if name.startswith(prefix)
        }
        for entry in entries
    ]
    totals: dict[str, float] = {}
    for kinds in by_entry:
        for kind, value in kinds.items():
            totals[kind] = totals.get(kind, 0.0) + value
    by_size = sorted(totals, key=lambda kind: (-totals[kind], kind))
    shown = by_size[:KINDS_SHOWN]
    bars = {kind: [kinds.get(kind, 0.0) for kinds in by_entry] for kind in shown}
    if rest := by_size[len(shown) :]:
        bars["all others"] = [sum(kinds.get(kind, 0.0) for kind in rest) for kinds in by_entry]
    labels = [entry.label for entry in entries]
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "name": kind,
            "x": values,
            "y": labels,
            "marker": {"color": COLOURS[-1] if kind not in totals else colour_of(place)},
            "hovertemplate": f"{_escaped(kind)}: %{{x:,.1f}} B/s<extra>%{{y}}</extra>",
        }
        for place, (kind, values) in enumerate(bars.items())
    ]
    return Figure(
        "control",
        "Control traffic by kind of message",
        "Bytes that a node sends per second to keep the overlay, apart from the events themselves.",
        traces,
        {
            "barmode": "stack",
            "showlegend": True,
            "legend": {"orientation": "h", "traceorder": "normal", "x": 0, "xanchor": "left", "y": -0.25},
            "xaxis": {"title": {"text": "bytes per node and second"}, "tickformat": ","},
            "yaxis": {"autorange": "reversed", "automargin": True, "type": "category"},
            "height": 220 + 34 * len(entries) + 12 * len(bars),
        },
    )


def ccdf(values: Sequence[int]) -> tuple[list[float], list[float]]:
    """P(value ≥ x) for each whole x up to one beyond the largest.

    >>> ccdf([1, 3])
    ([0, 1, 2, 3, 4], [1.0, 1.0, 0.5, 0.5, 0.0])
    """
    if not values:
        return [], []
    counts = [0] * (max(values) + 2)
    for value in values:
        counts[value] += 1
    below = [0, *accumulate(counts)]
    return [*range(len(counts))], [1 - below[x] / len(values) for x in range(len(counts))]


def _lines(
    entries: Sequence[Entry],
    points: Callable[[Entry], tuple[list[float], list[float]]],
    unit: str,
    shape: str = "linear",
) -> list[Trace]:
    traces = []
    for place, entry in enumerate(entries):
        x, y = points(entry)
        if x:
            line = {"color": colour_of(place), "dash": dash_of(place), "shape": shape, "width": 2.5}
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": entry.label,
                    # More digits than can be seen would only make the page larger.
                    "x": [round(value, 6) for value in x],
                    "y": [round(value, 6) for value in y],
                    "line": line,
                    "hovertemplate": (
                        f"%{{x:.4~g}} {unit}: %{{y:.1%}}<extra>{_escaped(entry.label)}</extra>"
                    ),
                }
            )
    return traces


def _share_axis(title: str) -> dict[str, Any]:
    return {"title": {"text": f"share of {title}"}, "range": [0, 1.03], "tickformat": ".0%"}


def _reached(entry: Entry) -> float:
    """What a line of deliveries rises to; without anything expected there is nothing to miss."""
    reached = entry.measure("hit_ratio")
    return 1.0 if math.isnan(reached) else reached


def _escaped(text: str) -> str:
    """For hover texts, in which plotly.js understands a little HTML and `%{…}`."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("%", "&#37;")
