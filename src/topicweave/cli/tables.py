"""Studies as tables of the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from topicweave.papers import StudyResult
    from topicweave.papers.judging import ClaimVerdict


def study_table(result: StudyResult) -> Table:
    """The paper's figures beside ours."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in ("where", "measure", "paper", "measured"):
        table.add_column(heading, overflow="fold")
    for row in result.rows:
        where = ", ".join(f"{name}={_value(value)}" for name, value in row.where.items())
        table.add_row(*map(Text, (where, row.measure, _value(row.paper), _value(row.measured))))
    return table


def claims_table(verdicts: Iterable[ClaimVerdict], study: str) -> Table:
    """Claims as they are judged on this study, case by case."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in ("claim", "case", "paper", "ours", "verdict"):
        table.add_column(heading, overflow="fold")
    for verdict in verdicts:
        claim, state = verdict.claim, str(verdict.state)
        if state == "not run yet" and (others := sorted(claim.studies - {study})):
            state += f": needs {', '.join(others)} too"
        told = [(one.name, one.paper, one.ours, one.miss) for one in verdict.judged] or [("", "", "", "")]
        first = f"{claim.id} ({claim.at})\n{claim.says}"
        for name, paper, ours, miss in told:
            table.add_row(*map(Text, (first, name, paper, ours, "\n".join(filter(None, (state, miss))))))
            first = state = ""
        table.add_section()
    return table


def _value(value: float | str | None) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
