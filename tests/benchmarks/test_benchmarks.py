"""Every benchmark runs, at a small size, and what it prints can be read in a terminal of 80 columns."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from benchmarks.sheet import WIDTH, Column, Sheet

pytest.importorskip("duckdb")
pytest.importorskip("simpy")

from benchmarks.__main__ import BENCHMARKS


def printed(sheet: Sheet) -> str:
    console = Console(width=WIDTH, file=io.StringIO())
    console.print(sheet.shown())
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def assert_whole(sheet: Sheet) -> None:
    """Every word of every heading and cell stands in what is printed, within the width."""
    text = printed(sheet)
    assert max(map(len, text.splitlines())) <= WIDTH
    words = set(text.split())
    for column in sheet.columns:
        assert set(column.heading.split()) <= words, column.heading
    for row in sheet.rows:
        for cell, column in zip(row, sheet.columns, strict=True):
            if cell is not None:
                assert set(format(cell, column.form).split()) <= words, cell


@pytest.mark.bench
@pytest.mark.parametrize("name", BENCHMARKS)
def test_it_runs_and_fits(name: str) -> None:
    sheets = BENCHMARKS[name](True)
    assert sheets
    for sheet in sheets:
        assert sheet.rows
        assert_whole(sheet)


def test_headings_take_lines_and_texts_make_room() -> None:
    numbers = [Column(f"a long heading, {number}", ",d", "less") for number in range(5)]
    sheet = Sheet("sheet", "a title", 1, Column("what was done"), *numbers)
    sheet.add("a text that goes on for so long that it needs lines of its own", *[1_000_000] * 4, None)
    assert_whole(sheet)


def test_a_row_has_a_cell_for_each_column() -> None:
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        Sheet("sheet", "a title", 1, Column("a"), Column("b")).add(1)
