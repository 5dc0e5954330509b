"""What a study is: runs, and a judgement that sets the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from topicweave.errors import BadInput
from topicweave.runs.run import Result, Run
from topicweave.runs.runner import Executor, Progress, run_all

Scale = Literal["smoke", "tenth", "paper"]
"""Small, to see that it works; a tenth of the paper's size, where a study has that; the paper's own size."""
Level = Literal["messages", "bulk", "messages and bulk", "data"]
Where = Mapping[str, Any]
"""Names a point of a study: system, nodes, topics, workload, …"""
Results = Mapping[Any, Result]
"""Of a study's runs, by its own labels."""


class Row(msgspec.Struct, frozen=True):
    """One figure or claim of a paper beside ours."""

    where: Where
    measure: str
    paper: float | str | None
    """The paper's number or claim; None where it says nothing and ours is reported for information."""
    measured: float | str | None
    holds: bool | None = None
    """Whether the paper's figure was met within the tolerance; None where there is nothing to hold it to."""
    tolerance: str = ""
    deviation: float | None = None
    """The standard deviation over the seeds that the study runs by itself, where this is their mean."""


@dataclass(frozen=True)
class Plan:
    """The runs of a study by a label of its own, and what is made of their results."""

    runs: Mapping[Any, Run]
    judge: Callable[[Results], list[Row]]

    @classmethod
    def of_parts(cls, parts: Mapping[str, Plan]) -> Plan:
        """All of several plans; their rows one after another."""
        runs = {(name, label): run for name, part in parts.items() for label, run in part.runs.items()}

        def judge(results: Results) -> list[Row]:
            return [
                row
                for name, part in parts.items()
                for row in part.judge({label: results[name, label] for label in part.runs})
            ]

        return cls(runs, judge)


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


@dataclass(frozen=True)
class StudyResult:
    study: str
    scale: Scale
    seed: int
    rows: list[Row]

    def to_json(self) -> dict[str, Any]:
        rows: list[Any] = msgspec.to_builtins(self.rows)
        return {"study": self.study, "scale": self.scale, "seed": self.seed, "rows": rows}


def run_study(
    study: Study,
    scale: Scale,
    seed: int,
    store: Path,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Run what has not been run yet, and judge."""
    if scale not in study.scales:
        raise BadInput(f"study {study.name!r} has no scale {scale!r}; it has {' and '.join(study.scales)}")
    plan = study.plan(scale, seed)
    results = run_all(plan.runs, store, executor, progress)
    return StudyResult(study.name, scale, seed, plan.judge(results))


# Ways to judge a figure. Each says its tolerance in words, to be printed with it.


def close_to(where: Where, measure: str, paper: float, measured: float, share: float) -> Row:
    """Met when within a share of the paper's number."""
    holds = abs(measured - paper) <= share * abs(paper)
    return Row(where, measure, paper, measured, holds, f"within {share:.0%}")


def at_most(where: Where, measure: str, limit: float, measured: float, tolerance: str = "") -> Row:
    """Met when not above the paper's number (plus what the tolerance text says was added to it)."""
    return Row(where, measure, limit, measured, measured <= limit, tolerance or f"at most {limit:g}")


def claim(where: Where, measure: str, words: str, measured: float | str, holds: bool) -> Row:
    """A claim in words."""
    return Row(where, measure, words, measured, holds, "as claimed")


def reported(where: Where, measure: str, paper: float | str | None, measured: float | str) -> Row:
    """Set beside the paper's without holding ours to it."""
    return Row(where, measure, paper, measured, None, "reported")
