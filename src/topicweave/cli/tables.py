"""Studies as tables of the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from topicweave.papers import StudyResult

HOLDS = {True: Text("✓", "green"), False: Text("✗", "bold red"), None: Text("–", "dim")}


def study_table(result: StudyResult) -> Table:
    """The paper's figures beside ours."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in ("where", "measure", "paper", "measured", "tolerance", "holds"):
        table.add_column(heading, justify="center" if heading == "holds" else "left", overflow="fold")
    for row in result.rows:
        where = ", ".join(f"{name}={_value(value)}" for name, value in row.where.items())
        table.add_row(
            Text(where), row.measure, _value(row.paper), _value(row.measured), row.tolerance, HOLDS[row.holds]
        )
    return table


def _value(value: float | str | None) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
