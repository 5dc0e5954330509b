"""Figures with the systems along an axis: measures side by side, with their confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from topicweave.report.comparison import Entry
from topicweave.report.figure import COLOURS, GREY, Figure, Layout, Trace, escaped

KINDS_SHOWN = len(COLOURS) - 1
"""Kinds of control messages with a colour of their own; the rest share the last, grey."""

LONGEST_LINE = 24
"""Characters of a line beside an axis."""

_INTERVALS = "Whiskers are 95% confidence intervals over the seeds."


def coverage(entries: Sequence[Entry], topics: int, question: str) -> Figure:
    """How much of what there is to reach and to connect is reached and connected.

    topics  that have two subscribers or more: those of one are in one piece whatever a system does
    """
    kinds = (
        ("hit_ratio", "deliveries made (hit ratio)", "circle"),
        ("coverage", "subscriptions shared with a neighbour", "diamond"),
        ("partitioned_topics", "topics in one piece", "square"),
    )
    traces = []
    for place, (measure, name, symbol) in enumerate(kinds):
        known = _measured(_measured(entries, "coverage"), measure)
        counted = measure == "partitioned_topics"
        scale = 1 / max(topics, 1) if counted else 1.0
        shares = [scale * entry.measure(measure) for entry in known]
        values = [round(1 - share if counted else share, 6) for share in shares]
        if known:
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": name,
                    "x": values,
                    "y": [entry.label for entry in known],
                    "marker": {"color": COLOURS[place], "symbol": symbol, "size": 11, "opacity": 0.85},
                    "error_x": whiskers(values, intervals(known, measure, scale), COLOURS[place], 1.0),
                    "hovertemplate": f"{escaped(name)}: %{{x:.1%}}<extra>%{{y}}</extra>",
                }
            )
    return Figure(
        "coverage",
        "Coverage",
        "What was delivered; how many subscriptions have a neighbour who shares them; and how many topics hold together "
        f"through their own subscribers. A system may deliver everything over relays although topics fall apart. {_INTERVALS}",
        "hit_ratio, coverage and partitioned_topics, means over the seeds",
        traces,
        _by_system(entries, {"title": {"text": "share"}, "tickformat": ".0%"}, legend=True),
        question,
    )


def links(entries: Sequence[Entry], question: str) -> Figure:
    """The mean as a bar, what few and what one node have as marks."""
    known = _measured(entries, "degree_mean")
    traces: list[Trace] = []
    if known:
        traces.append(_bar(known, "degree_mean", "mean", "%{x:,.1f} links on average"))
        for measure, name, symbol in (
            ("degree_p95", "95% of nodes have no more", "line-ns-open"),
            ("degree_max", "most of any node", "diamond"),
        ):
            marked = _measured(known, measure)
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": name,
                    "x": [entry.measure(measure) for entry in marked],
                    "y": [entry.label for entry in marked],
                    "marker": {
                        "color": COLOURS[1],
                        "symbol": symbol,
                        "size": 9 if measure == "degree_max" else 13,
                        "line": {"width": 3 if measure == "degree_p95" else 0, "color": COLOURS[1]},
                    },
                    "hovertemplate": f"{escaped(name)}: %{{x:,.0f}}<extra>%{{y}}</extra>",
                }
            )
    return Figure(
        "links",
        "Links: mean, p95 and most",
        f"What a node keeps on average, and what the busiest nodes keep. {_INTERVALS}",
        "degree_mean, degree_p95 and degree_max, means over the seeds",
        traces,
        _by_system(entries, {"title": {"text": "links per node"}}, legend=True),
        question,
    )


def repair(entries: Sequence[Entry], question: str) -> Figure:
    """Only of those that were repaired with every seed; the others are named."""
    known = _measured(entries, "repair_time")
    mended = [entry for entry in known if math.isfinite(entry.measure("repair_time"))]
    never = [entry.label for entry in known if entry not in mended]
    said = f" Not within the time looked at, with some seed: {', '.join(never)}." if never else ""
    return Figure(
        "repair-time",
        "Time to repair",
        f"Seconds from the crash until probes reach 99% of what they reached before it, for good. {_INTERVALS}{said}",
        "repair_time, means over the seeds",
        [_bar(mended, "repair_time", "repair time", "%{x:.1f} s") | _said(mended)] if mended else [],
        _by_system(mended, {"title": {"text": "seconds"}, "range": [0.0, _room_for_text(mended)]}),
        question,
    )


def _room_for_text(mended: Sequence[Entry]) -> float:
    """The end of the axis: beyond the longest bar there is room for what is said beside it."""
    return 1.25 * max((entry.measure("repair_time") for entry in mended), default=1.0) or 1.0


def _said(mended: Sequence[Entry]) -> Trace:
    """Beside the bars: one of no length would not be seen."""
    times = [entry.measure("repair_time") for entry in mended]
    return {
        "text": [f" {time:.1f} s" if time else " no gap" for time in times],
        "textposition": "outside",
        "cliponaxis": False,
    }


def control(entries: Sequence[Entry], question: str) -> Figure:
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
    stacked = {kind: [kinds.get(kind, 0.0) for kinds in by_entry] for kind in shown}
    if rest := by_size[len(shown) :]:
        stacked["all others"] = [sum(kinds.get(kind, 0.0) for kind in rest) for kinds in by_entry]
    labels = [entry.label for entry in entries]
    traces: list[Trace] = [
        {
            "type": "bar",
            "orientation": "h",
            "name": kind,
            "x": [round(value, 3) for value in values],
            "y": labels,
            "marker": {"color": GREY if kind not in totals else COLOURS[place]},
            "hovertemplate": f"{escaped(kind)}: %{{x:,.1f}} B/s<extra>%{{y}}</extra>",
        }
        for place, (kind, values) in enumerate(stacked.items())
    ]
    if traces:
        sums = [round(sum(kinds.values()), 3) for kinds in by_entry]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "sum",
                "x": sums,
                "y": labels,
                "marker": {"color": GREY, "symbol": "line-ns-open", "size": 9, "line": {"width": 2}},
                "error_x": whiskers(sums, intervals(entries, "control_bytes"), GREY),
                "hovertemplate": "in all: %{x:,.0f} B/s<extra>%{y}</extra>",
            }
        )
    layout = _by_system(
        entries, {"title": {"text": "bytes per node and second"}, "tickformat": ","}, legend=True
    )
    return Figure(
        "control",
        "Control traffic by kind of message",
        f"Bytes that a node sends per second to keep the overlay, apart from the events themselves. {_INTERVALS}",
        "control_bytes and control_bytes.*, means over the seeds",
        traces,
        layout | {"barmode": "stack", "height": layout["height"] + 12 * len(traces)},
        question,
    )


def memory(entries: Sequence[Entry], question: str) -> Figure:
    known = _measured(entries, "memory_bytes")
    return Figure(
        "memory",
        "Memory",
        f"What a node keeps in memory to take part, in thousands of bytes of Python objects. {_INTERVALS}",
        "memory_bytes: the mean over a sample of 20 nodes, and over the seeds",
        [_bar(known, "memory_bytes", "memory", "%{x:,.1f} kB", 1 / 1000)] if known else [],
        _by_system(known, {"title": {"text": "kB per node"}, "tickformat": ",", "rangemode": "tozero"}),
        question,
    )


def whiskers(
    values: Sequence[float], widths: Sequence[float], colour: str, most: float = math.inf
) -> dict[str, Any]:
    """Error bars; of no length where the interval is not known, and not beyond what there can be: 0, and `most`."""
    known = [width if math.isfinite(width) else 0.0 for width in widths]
    pairs = list(zip(values, known, strict=True))
    return {
        "type": "data",
        "symmetric": False,
        "array": [round(max(min(width, most - value), 0.0), 6) for value, width in pairs],
        "arrayminus": [round(max(min(width, value), 0.0), 6) for value, width in pairs],
        "color": colour,
        "thickness": 1.5,
        "width": 4,
    }


def intervals(entries: Sequence[Entry], measure: str, scale: float = 1.0) -> list[float]:
    return [scale * entry.interval(measure) for entry in entries]


def _bar(entries: Sequence[Entry], measure: str, name: str, hover: str, scale: float = 1.0) -> Trace:
    values = [round(scale * entry.measure(measure), 6) for entry in entries]
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": values,
        "y": [entry.label for entry in entries],
        "marker": {"color": COLOURS[0], "opacity": 0.9},
        "error_x": whiskers(values, intervals(entries, measure, scale), GREY),
        "hovertemplate": f"{hover}<extra>%{{y}}</extra>",
    }


def _by_system(entries: Sequence[Entry], axis: dict[str, Any], legend: bool = False) -> Layout:
    """Systems downwards, in the table's order; one with parameters takes a line for each."""
    labels = [entry.label for entry in entries]
    lines = max((label.count(":") + 1 for label in labels), default=1)
    return {
        "showlegend": legend,
        "legend": {"orientation": "h", "traceorder": "normal", "x": 0, "xanchor": "left", "y": -0.2},
        "xaxis": axis,
        "yaxis": {
            "autorange": "reversed",
            "automargin": True,
            "type": "category",
            "tickvals": labels,
            "ticktext": [_in_lines(label) for label in labels],
        },
        "height": (180 if legend else 110) + (10 + 16 * lines) * max(len(entries), 3),
        "bargap": 0.35,
    }


def _in_lines(label: str) -> str:
    """Broken where parameters begin, and shortened: a plot has to fit beside it, on a phone as well."""
    parts = (
        part if len(part) <= LONGEST_LINE else f"{part[: LONGEST_LINE - 1]}…" for part in label.split(":")
    )
    return "<br>".join(escaped(part) for part in parts)


def _measured(entries: Sequence[Entry], measure: str) -> list[Entry]:
    return [entry for entry in entries if not math.isnan(entry.measure(measure))]
