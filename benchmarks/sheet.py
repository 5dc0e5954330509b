"""What a benchmark measured: rows under headings, to print in 80 columns, to record and to set beside a record."""

from __future__ import annotations

import textwrap
from typing import Any, Literal, NamedTuple

from rich import box
from rich.console import Group
from rich.table import Table

WIDTH = 80


class Column(NamedTuple):
    heading: str
    form: str = ""
    """How a number is printed (`format`'s specification); a column of text has none and stands left."""
    better: Literal["less", "more"] | None = None
    """Which way is progress; none for what only says what was measured."""


class Sheet:
    """A table whose first `keys` columns say what was measured, and the others with what outcome."""

    def __init__(self, name: str, title: str, keys: int, *columns: Column, note: str = "") -> None:
        self.name, self.title, self.keys, self.columns, self.note = name, title, keys, columns, note
        self.rows: list[tuple[Any, ...]] = []

    def add(self, *cells: Any) -> None:
        """None stands for what was not measured."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{self.name}: {len(cells)} cells for {len(self.columns)} columns")
        self.rows.append(cells)

    def leave_out(self, name: str, why: str) -> None:
        """A row of what could not be measured; the reason stands below the table."""
        self.add(name, *[None] * (len(self.columns) - 1))
        self.note = "\n".join(filter(None, [self.note, f"{name}: {why}"]))

    def key(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        return row[: self.keys]

    def markdown(self) -> str:
        """The same to paste into a page.

        >>> sheet = Sheet("costs", "What it costs", 1, Column("system"), Column("bytes/s", ",.0f", "less"))
        >>> sheet.add("omen", 2270.4)
        >>> print(sheet.markdown())
        | system | bytes/s |
        |---|---:|
        | omen | 2,270 |
        """
        cells = [
            [_shown(cell, column) for cell, column in zip(row, self.columns, strict=True)]
            for row in self.rows
        ]
        lines = [[column.heading for column in self.columns], *cells]
        written = [f"| {' | '.join(line)} |" for line in lines]
        written.insert(1, f"|{'|'.join('---:' if column.form else '---' for column in self.columns)}|")
        return "\n".join(written)

    def shown(self) -> Group:
        """Numbers and headings are never cut: a heading takes several lines, and long texts make room."""
        table = plain_table()
        for at, column in enumerate(self.columns):
            cells = [_shown(row[at], column) for row in self.rows]
            roomy = not column.form and any(" " in cell for cell in cells)
            table.add_column(
                column.heading if roomy else _in_lines(column.heading, cells),
                justify="right" if column.form else "left",
                no_wrap=not roomy,
            )
        for row in self.rows:
            table.add_row(*map(_shown, row, self.columns))
        return Group(self.title, table, *filter(None, [self.note]), "")


def plain_table() -> Table:
    return Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)


def _in_lines(heading: str, cells: list[str]) -> str:
    """As few lines as fit over the cells; a word stays whole."""
    words = heading.split(" ")
    return "\n".join(textwrap.wrap(heading, max(map(len, words + cells)), break_on_hyphens=False))


def _shown(cell: Any, column: Column) -> str:
    return "–" if cell is None else format(cell, column.form)
