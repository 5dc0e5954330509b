"""Arrays beside messages: whether an engine of `topicweave.bulk` gives what the nodes in the simulator give.

Each paper whose figures come from an engine has a study `PAPER/levels`: the same networks both ways, in every
measure that one of its figures uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from topicweave.papers.study import Row, Scale
from topicweave.runs.run import Result

SIZES: dict[Scale, tuple[int, ...]] = {"smoke": (150,), "tenth": (300,), "paper": (300, 1000)}
"""Networks that nodes reach by messages in reasonable time."""


def beside(where: Mapping[str, Any], messages: Result, arrays: Result, measures: Iterable[str]) -> list[Row]:
    """One row for each measure: arrays over messages."""
    rows = []
    for measure in measures:
        one, other = float(arrays[measure]), float(messages[measure])
        ratio = 1.0 if one == other else one / other if other else float("inf")
        rows.append(Row(where, f"{measure}, arrays over messages", None, ratio))
    return rows
