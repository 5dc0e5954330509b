"""Lines of a figure, one per system."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from topicweave.report.comparison import Entry
from topicweave.report.figure import Trace, line


def lines(
    entries: Sequence[Entry],
    points: Callable[[Entry], tuple[list[float], list[float]]],
    hover: str,
    shape: str = "linear",
) -> list[Trace]:
    """Of the systems that have any points."""
    traces = []
    for place, entry in enumerate(entries):
        x, y = points(entry)
        if x:
            traces.append(line(place, entry.label, x, y, hover, shape))
    return traces
