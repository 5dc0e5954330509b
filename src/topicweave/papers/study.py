"""What a study is: runs, and the numbers that come of them, beside the paper's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from topicweave.runs.run import Result, Run

Scale = Literal["smoke", "tenth", "paper"]
"""Small, to see that it works; a tenth of the paper's size, where a study has that; the paper's own size."""
Level = Literal["messages", "bulk", "messages and bulk", "data"]
Where = Mapping[str, Any]
"""Names a point of a study: system, nodes, topics, workload, …"""
Results = Mapping[Any, Result]
"""Of a study's runs, by its own labels."""


class Row(msgspec.Struct, frozen=True):
    """A number of ours beside what the paper gives there; not judged (`topicweave.papers.judging` does that)."""

    where: Where
    measure: str
    paper: float | str | None
    """The paper's number, or what it says; None where it says nothing."""
    measured: float | str | None
    deviation: float | None = None
    """The standard deviation over the seeds that the study runs by itself, where this is their mean."""


@dataclass(frozen=True)
class Plan:
    """The runs of a study by a label of its own, and what is made of their results."""

    runs: Mapping[Any, Run]
    rows_of: Callable[[Results], list[Row]]

    @classmethod
    def of_parts(cls, parts: Mapping[str, Plan]) -> Plan:
        """All of several plans; their rows one after another."""
        runs = {(name, label): run for name, part in parts.items() for label, run in part.runs.items()}

        def rows_of(results: Results) -> list[Row]:
            return [
                row
                for name, part in parts.items()
                for row in part.rows_of({label: results[name, label] for label in part.runs})
            ]

        return cls(runs, rows_of)


@dataclass(frozen=True)
class Study:
    """A figure or table of a paper."""

    name: str
    title: str
    source: str
    plan: Callable[[Scale, int], Plan]
    scales: tuple[Scale, ...] = ("smoke", "paper")
    level: Level = "messages"
    """How its runs are carried out, where a row does not say it; `data`: no network is built."""
    oracle: str = ""
    """What its nodes know at once that the paper's have to find out."""
    seeds: Mapping[Scale, int] = field(default_factory=dict, hash=False)
    """Of how many seeds its numbers are means, where it runs several by itself."""
    clocked: bool = False
    """Its numbers are times of this machine's processor: no two runs give the same."""


def listed(values: Iterable[float], digits: int = 3) -> str:
    """
    >>> listed([1, 0.5], digits=1)
    '1.0, 0.5'
    """
    return ", ".join(f"{value:.{digits}f}" for value in values)
