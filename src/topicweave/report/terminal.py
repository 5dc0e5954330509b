"""A comparison as a table of the terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from topicweave.report.columns import COLUMNS, NOBODY_MARKED, Column, Mark, column_marks, who_is_marked
from topicweave.report.comparison import Comparison, membership_in_words, times_in_words

# Signs as well as colours: a pipe has none, and not everybody tells them apart.
SIGNS = {"best": "▴", "worst": "▾", "": ""}
STYLES = {"best": "bold green", "worst": "red", "": ""}


def legend(comparison: Comparison) -> list[str]:
    """What stands below a table."""
    setting = comparison.setting
    marked = who_is_marked(comparison.entries)
    return [
        f"{f'▴ best, ▾ worst {marked}' if marked else NOBODY_MARKED}; links, messages and bytes are per node",
        f"times {times_in_words(setting.preset)}",
        f"membership {membership_in_words(setting.membership)}",
    ]


def comparison_tables(comparison: Comparison, width: int | None) -> list[Table]:
    """One table; or, where it would be wider than the terminal, several below each other with whole columns."""
    entries = comparison.entries
    cells = {column.measure: _cells(column, comparison) for column in COLUMNS}
    names = max(len(entry.label) for entry in entries)
    groups: list[list[Column]] = [[]]
    used = names
    for column in COLUMNS:
        needed = 2 + max(len(column.group), len(column.title), *(len(cell) for cell in cells[column.measure]))
        if width is not None and groups[-1] and used + needed > width:
            groups.append([])
            used = names
        groups[-1].append(column)
        used += needed
    return [_comparison_table(comparison, group, cells) for group in groups]


def _comparison_table(
    comparison: Comparison, columns: Sequence[Column], cells: dict[str, list[Text]]
) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("\nsystem", overflow="fold")
    for column in columns:
        # Without a title of its own, the group's stands on the lower line.
        heading = f"{column.group}\n{column.title}" if column.title else f"\n{column.group}"
        table.add_column(heading, justify="right", no_wrap=True)
    for place, entry in enumerate(comparison.entries):
        table.add_row(entry.label, *(cells[column.measure][place] for column in columns))
    return table


def _cells(column: Column, comparison: Comparison) -> list[Text]:
    marks = column_marks(column, comparison.entries)
    return [
        _marked(
            column.cell(entry.measure(column.measure)) + column.spread(entry.interval(column.measure)), mark
        )
        for entry, mark in zip(comparison.entries, marks, strict=True)
    ]


def _marked(text: str, mark: Mark) -> Text:
    return Text(SIGNS[mark] + text, STYLES[mark])


def as_plain_text(comparison: Comparison, width: int | None = None) -> str:
    """The same without colours, with lines of at most `width` characters if given, and the legend below."""
    out = io.StringIO()
    console = Console(file=out, width=width or 10_000, markup=False, highlight=False)
    for table in comparison_tables(comparison, width):
        console.print(table)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    return "\n".join([*lines, *legend(comparison)])
