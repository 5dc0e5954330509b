"""What a sheet prints."""

from __future__ import annotations

import io

from rich.console import Console

from benchmarks.sheet import WIDTH, Sheet


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
    assert set(sheet.note.split()) <= words
