"""A workload described on one HTML page."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from html import escape
from typing import Any

from topicweave.report.figure import COLOURS, Figure
from topicweave.report.skeleton import figure_markup, file_name, whole_page
from topicweave.report.workload_figures import LEGEND_BELOW, list_sizes, points, popularity


def workload_page(description: dict[str, Any]) -> str:
    """The whole page. Raises `PlotlyMissing`."""
    drawn = _figures(description)
    name = description["folder"]
    return whole_page(name, file_name(name), _body(description, drawn), drawn)


def _body(description: dict[str, Any], drawn: list[Figure]) -> Iterator[str]:
    from topicweave.pipeline.describe import facts

    yield f"<h1>{escape(description['folder'])}</h1>"
    yield f'<p class="about">Made by: {escape(str(description.get("made_by", "unknown")))}</p>'
    yield '<div class="figures">'
    command = shlex.join(["topicweave", "workload", "describe", description["folder"], "--html", "page.html"])
    for figure in drawn:
        yield from figure_markup(figure, command)
    yield "</div>"
    yield "<h2>Numbers</h2>"
    yield '<div class="wide" role="region" aria-label="Numbers" tabindex="0"><table><tbody>'
    for name, value in facts(description):
        yield f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
    yield "</tbody></table></div>"


def _figures(description: dict[str, Any]) -> list[Figure]:
    """Those that the description has numbers for."""
    drawn: list[Figure] = []
    for name, make in (("popularity", popularity), ("list_sizes", list_sizes)):
        found = description.get(name, {})
        if curve := found.get("ccdf"):
            drawn.append(make(name, curve, f"{name}.ccdf of the description", found.get("exponent")))
    if steps := description.get("likeness", {}).get("friends"):
        drawn.append(_friends(steps))
    return drawn


def _friends(steps: list[dict[str, Any]]) -> Figure:
    lines = (
        ("topics covered, mean", "coverage_mean", "solid"),
        ("nodes fully covered", "fully_covered", "dash"),
    )
    return Figure(
        "friends",
        "What a few best friends cover",
        "Each node takes friends greedily, each time the one who wants most of what is still uncovered of its own topics. A "
        "line that rises fast means that interests are alike, and that few links can serve many topics.",
        "likeness.friends of the description",
        [
            points(name, [(step["friends"], step[measure]) for step in steps], COLOURS[place], dash)
            for place, (name, measure, dash) in enumerate(lines)
        ],
        {
            "xaxis": {"title": {"text": "friends"}},
            "yaxis": {"title": {"text": "share"}, "tickformat": ".0%", "range": [0, 1.03]},
            "showlegend": True,
            **LEGEND_BELOW,
        },
    )
