"""Every benchmark runs, at a small size, and what it prints can be read in a terminal of 80 columns."""

from __future__ import annotations

import pytest

from benchmarks.sheet import Column, Sheet
from tests.benchmarks.sheets import assert_whole

pytest.importorskip("duckdb")
pytest.importorskip("simpy")

from benchmarks.__main__ import BENCHMARKS


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


def test_a_table_to_paste() -> None:
    sheet = Sheet("sheet", "a title", 1, Column("what"), Column("how many", ",d"), Column("share", ".1%"))
    sheet.add("one", 1234, 0.25)
    sheet.leave_out("other", "not there")
    assert sheet.markdown().splitlines() == [
        "| what | how many | share |",
        "|---|---:|---:|",
        "| one | 1,234 | 25.0% |",
        "| other | – | – |",
    ]


def test_a_row_has_a_cell_for_each_column() -> None:
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        Sheet("sheet", "a title", 1, Column("a"), Column("b")).add(1)
