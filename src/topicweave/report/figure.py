"""What a figure is: the plain data that plotly.js draws, and words around it.

Built by hand and not with plotly's Python classes: the same results must give the same bytes, and the browser sets
the colours of text and grid, which depend on its light or dark mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

Trace = dict[str, Any]
Layout = dict[str, Any]

# To be told apart by the colour-blind, and to be seen on white and on black.
COLOURS = ("#2b7bd4", "#e0662b", "#1d9e74", "#c35fa6", "#b98300", "#2f9bc4", "#8b75e0", "#858b94")
GREY = COLOURS[-1]
DASHES = ("solid", "dash", "dot")
SYMBOLS = ("circle", "diamond", "square")
HEIGHT = 320
"""In pixels, of a figure that says nothing else."""


@dataclass(frozen=True)
class Figure:
    name: str
    """Of the element it is drawn in, and of the files it is saved to."""
    title: str
    reading: str
    """How to read it, in a sentence or two."""
    source: str
    """Which numbers it is drawn from, and how several seeds were put together."""
    traces: list[Trace]
    layout: Layout
    question: str = ""
    """The heading it stands under."""


def colour_of(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def dash_of(place: int) -> str:
    """When colours come round again, the line tells."""
    return DASHES[place // len(COLOURS) % len(DASHES)]


def symbol_of(place: int) -> str:
    return SYMBOLS[place // len(COLOURS) % len(SYMBOLS)]


def line(place: int, name: str, x: Sequence[float], y: Sequence[float], hover: str, shape: str) -> Trace:
    """The line of the system at a place; `hover` is what is said of a point."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        # More digits than can be seen would only make the page larger.
        "x": [round(value, 6) for value in x],
        "y": [round(value, 6) for value in y],
        "line": {"color": colour_of(place), "dash": dash_of(place), "shape": shape, "width": 2.5},
        "hovertemplate": f"{hover}<extra>{escaped(name)}</extra>",
    }


def share_axis(title: str) -> dict[str, Any]:
    return {"title": {"text": f"share of {title}"}, "range": [0, 1.03], "tickformat": ".0%"}


def escaped(text: str) -> str:
    """For hover texts, in which plotly.js understands a little HTML and `%{…}`."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("%", "&#37;")


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


def histogram_ccdf(histogram: Sequence[Sequence[int]]) -> list[tuple[int, float]]:
    """(x, P(value ≥ x)) for each x that occurs, out of (value, how often) by value.

    >>> histogram_ccdf([[1, 3], [5, 1]])
    [(1, 1.0), (5, 0.25)]
    """
    total = sum(times for _, times in histogram)
    below = [0, *accumulate(times for _, times in histogram)]
    return [(value, 1 - before / total) for (value, _), before in zip(histogram, below, strict=False)]
