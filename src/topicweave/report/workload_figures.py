"""Figures of a workload: how long nodes' lists are and how popular topics, on double logarithmic scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from topicweave.report.figure import COLOURS, GREY, Figure, Trace, histogram_ccdf

Curve = Sequence[Sequence[float]]
"""(value, share of that many or more), by value."""


def histogram_figures(facts: Mapping[str, Any]) -> list[Figure]:
    """From the histograms among a comparison's facts; nothing of a distribution that is a single value."""
    drawn = []
    for name, key, make in (
        ("list-sizes", "list_sizes", list_sizes),
        ("popularity", "audiences", popularity),
    ):
        # There is no place for 0 on a logarithmic scale; its share is what the first point lacks to 1.
        curve = [point for point in histogram_ccdf(facts.get(key, ())) if point[0] > 0]
        if len(curve) > 1:
            drawn.append(make(name, curve, f"workload.{key} in compare.json: (value, how often)"))
    return drawn


def list_sizes(name: str, curve: Curve, source: str, fitted: Mapping[str, Any] | None = None) -> Figure:
    return _ccdf_figure(
        name,
        "How many topics nodes want",
        "The share of nodes that want at least so many topics (CCDF). Both scales are logarithmic: a line that falls "
        "steeply means that all want about as many.",
        source,
        curve,
        ("topics", "nodes"),
        fitted,
    )


def popularity(name: str, curve: Curve, source: str, fitted: Mapping[str, Any] | None = None) -> Figure:
    return _ccdf_figure(
        name,
        "How popular topics are",
        "The share of topics with at least so many subscribers (CCDF). Both scales are logarithmic: close to a straight "
        "line, a few topics are wanted by very many and most by few.",
        source,
        curve,
        ("subscribers", "topics"),
        fitted,
    )


def _ccdf_figure(
    name: str,
    title: str,
    reading: str,
    source: str,
    curve: Curve,
    words: tuple[str, str],
    fitted: Mapping[str, Any] | None,
) -> Figure:
    of, share_of = words
    found = points("found", curve, COLOURS[0])
    found["hovertemplate"] = f"%{{x:,}} {of} or more: %{{y:.2%}} of the {share_of}<extra></extra>"
    traces = [found]
    if fitted and fitted["tail"]:
        traces.append(_power_law(fitted, curve))
    return Figure(
        name,
        title,
        reading,
        source,
        traces,
        {
            # With a format, what is between powers of ten is written out: 50 and not 5.
            "xaxis": {"title": {"text": of}, "type": "log", "dtick": "D2", "tickformat": ","},
            "yaxis": {
                "title": {"text": f"share of {share_of}"},
                "type": "log",
                "dtick": "D2",
                "tickformat": ".3~p",
            },
            **LEGEND_BELOW,
            "showlegend": len(traces) > 1,
        },
    )


LEGEND_BELOW = {"legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": -0.25}}


def points(name: str, curve: Curve, colour: str, dash: str = "solid") -> Trace:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": [x for x, _ in curve],
        "y": [round(y, 9) for _, y in curve],
        "marker": {"color": colour, "size": 5},
        "line": {"color": colour, "dash": dash, "width": 2},
    }


def _power_law(fitted: Mapping[str, Any], curve: Curve) -> Trace:
    """From where it holds, set at the height of the found curve there."""
    tail = [(x, share) for x, share in curve if x >= fitted["x_min"]]
    start, height = tail[0]
    along = [(x, height * (x / start) ** (1 - fitted["alpha"])) for x, _ in tail]
    name = f"power law, alpha = {fitted['alpha']:.2f} ± {fitted['error']:.2f}"
    if not fitted.get("fits", True):
        name = f"{name} (does not fit)"
    return points(name, along, GREY, "dot") | {"mode": "lines"}
