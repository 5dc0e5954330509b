"""One study: its rows and, at the paper's scale, the claims that rest on it, judged on them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from topicweave.errors import BadInput
from topicweave.papers.reproducing import batch_of
from topicweave.papers.results import as_numbers
from topicweave.papers.scoreboard import PaperBoard, board_of, to_json
from topicweave.papers.study import Row, Scale, Study
from topicweave.runs.runner import Executor, Progress, run_all


@dataclass(frozen=True)
class StudyResult:
    study: str
    scale: Scale
    seed: int
    rows: list[Row]
    board: PaperBoard | None = None
    """The paper's claims that rest on this study; None below the paper's scale, at which claims are judged."""

    def to_json(self) -> dict[str, Any]:
        rows: list[Any] = msgspec.to_builtins(self.rows)
        told = {"study": self.study, "scale": self.scale, "seed": self.seed, "rows": rows}
        if self.board:
            told |= {name: part for name, part in to_json([self.board]).items() if name != "headline"}
        return told


def run_study(
    study: Study,
    scale: Scale,
    seed: int,
    store: Path,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Run what has not been run yet. Claims are judged on these numbers alone: one that needs other studies too is
    not run yet.
    """
    if scale not in study.scales:
        raise BadInput(f"study {study.name!r} has no scale {scale!r}; it has {' and '.join(study.scales)}")
    plan = study.plan(scale, seed)
    results = run_all(plan.runs, store, executor, progress)
    rows = plan.rows_of(results)
    if scale != "paper":
        return StudyResult(study.name, scale, seed, rows)
    numbers = as_numbers(batch_of(study, plan, scale, seed), rows)
    return StudyResult(study.name, scale, seed, rows, board_of(study.name, numbers))
