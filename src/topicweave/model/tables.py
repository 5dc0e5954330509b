"""Tables that come from outside, brought to one type per column, and errors that name the cell.

A table is a Parquet file, a folder of Parquet part files (what Spark writes), or columns made in Python. A
reader states the columns it wants; others are left unread. Names (nodes, topics, words) may come as strings,
dictionary-encoded strings or integers and end up as strings; numbers of any kind end up as float64.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from topicweave.errors import BadInput
from topicweave.model.committed import counted_parts

# 64-bit string offsets: a column of a whole table may hold more than 2 GB of text in one piece.
NAME_TYPE = pa.large_string()
NUMBER_TYPE = pa.float64()


@dataclass(frozen=True)
class ColumnRule:
    """What a column must hold; `demand` is the advice at the end of every error about it."""

    kind: Literal["name", "number"]
    demand: str


Columns = Mapping[str, ColumnRule]


@dataclass(frozen=True)
class Table:
    """The wanted columns of one table, all of one length and without nulls or empty names."""

    label: str
    wanted: Columns
    cells: Mapping[str, Any]  # column -> pyarrow.ChunkedArray
    parts: tuple[tuple[str, int], ...]  # label and number of rows of each piece the table was read from

    def names(self, column: str) -> Any:
        """A column of names, as a pyarrow.ChunkedArray of strings."""
        return self.cells[column]

    def value(self, row: int, column: str) -> str:
        """A cell as errors print it: on one line, and not a page of it."""
        return _shown(self.cells[column][row].as_py())

    def numbers(self, column: str) -> npt.NDArray[np.float64]:
        # Adding 0.0 makes -0.0 into 0.0: equal tables then have equal bytes.
        return np.asarray(self.cells[column].to_numpy(), dtype=np.float64) + 0.0

    def place(self, row: int) -> tuple[str, int]:
        """The piece a row was read from, and its number there, from 1."""
        for label, rows in self.parts:
            if row < rows:
                return label, row + 1
            row -= rows
        raise IndexError(row)

    def error(self, row: int, column: str, problem: str, advice: str | None = None) -> BadInput:
        """The error to raise about a cell (rows count from 0 here)."""
        label, number = self.place(row)
        demand = advice or self.wanted[column].demand
        return BadInput(f"{label}: row {number}, column {column!r}: {problem}; {demand}")

    def refuse_where(self, bad: npt.NDArray[np.bool_], column: str) -> None:
        """Raise about the first cell marked bad, if any."""
        if bad.any():
            row = int(np.argmax(bad))
            raise self.error(row, column, self.value(row, column))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def read_parquet(path: Path, wanted: Columns, optional: Columns | None = None) -> Table:
    """Read a Parquet file, or a folder of part files in the order of their names."""
    pieces = [(str(part), _read_file(part, {**wanted, **(optional or {})})) for part in _part_files(path)]
    return _table(str(path), pieces, wanted, optional or {})


def from_arrow(label: str, table: Any, wanted: Columns, optional: Columns | None = None) -> Table:
    """Take the wanted columns of a pyarrow.Table."""
    return _table(label, [(label, table)], wanted, optional or {})


def from_rows(label: str, wanted: Columns, rows: Iterable[Sequence[object]]) -> Any:
    """Make a pyarrow.Table of Python rows whose values stand in the order of the columns."""
    listed = list(rows)
    for number, row in enumerate(listed, start=1):
        if isinstance(row, str) or len(row) != len(wanted):
            raise BadInput(f"{label}: row {number}: {_shown(row)}; give ({', '.join(wanted)})")
    return pa.table(
        {
            name: _python_column(label, name, column, [row[place] for row in listed])
            for place, (name, column) in enumerate(wanted.items())
        }
    )


def _python_column(label: str, name: str, column: ColumnRule, values: list[Any]) -> Any:
    accepted: tuple[type, ...] = (str, Integral) if column.kind == "name" else (Real,)
    for number, value in enumerate(values, start=1):
        if value is not None and (isinstance(value, bool) or not isinstance(value, accepted)):
            kind = type(value).__name__
            raise BadInput(
                f"{label}: row {number}, column {name!r}: {_shown(value)} is of type {kind}; {column.demand}"
            )
    if column.kind == "number":
        return pa.array([None if value is None else float(value) for value in values], NUMBER_TYPE)
    texts = [value if value is None else str(value) for value in values]
    try:
        return pa.array(texts, NAME_TYPE)
    except UnicodeEncodeError as error:
        row, problem = texts.index(error.object) + 1, f"{_shown(error.object)} is not valid Unicode"
        raise BadInput(f"{label}: row {row}, column {name!r}: {problem}; {column.demand}") from None


def _part_files(path: Path) -> list[Path]:
    counted = counted_parts(path)
    if counted:
        return counted
    if counted is not None or not path.exists():
        raise BadInput(f"{path}: no such file; put the table there or correct the folder")
    if not path.is_dir():
        return [path]
    if (path / "_temporary").exists():
        raise BadInput(f"{path}: an unfinished write (it holds '_temporary'); write the table again")
    parts = sorted(part for part in path.iterdir() if not part.name.startswith(("_", ".")))
    if not parts:
        raise BadInput(f"{path}: a folder without part files; write the table again")
    return parts


def _read_file(path: Path, columns: Columns) -> Any:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read(columns=[name for name in columns if name in file.schema_arrow.names])
            # Text that is not UTF-8 passes the reader and breaks whoever looks at it later.
            table.validate(full=True)
            return table
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = (str(error).splitlines() or ["unreadable"])[0]
        raise BadInput(f"{path}: not readable as Parquet ({reason}); write it again") from None


def _table(label: str, pieces: list[tuple[str, Any]], wanted: Columns, optional: Columns) -> Table:
    present = [name for name in optional if any(name in piece.column_names for _, piece in pieces)]
    columns = {**wanted, **{name: optional[name] for name in present}}
    cells = {
        name: pa.chunked_array(
            [
                chunk
                for piece_label, piece in pieces
                for chunk in _one_type(piece_label, piece, name, column).chunks
            ],
            NAME_TYPE if column.kind == "name" else NUMBER_TYPE,
        )
        for name, column in columns.items()
    }
    parts = tuple((piece_label, piece.num_rows) for piece_label, piece in pieces)
    table = Table(label, columns, cells, parts)
    for name, column in columns.items():
        _refuse_nothing(table, name, column)
    return table


def _one_type(label: str, piece: Any, name: str, column: ColumnRule) -> Any:
    found = piece.column_names.count(name)
    if found != 1:
        problem = "missing" if found == 0 else f"there {found} times"
        raise BadInput(f"{label}: column {name!r}: {problem}; {column.demand}")
    cells = piece.column(name)
    if pa.types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    if not _fits(cells.type, column):
        raise BadInput(f"{label}: column {name!r}: of type {cells.type}; {column.demand}")
    if column.kind == "name":
        return cells.cast(NAME_TYPE)
    return cells.cast(NUMBER_TYPE, safe=False)  # integers above 2**53 round


def _fits(type_: Any, column: ColumnRule) -> bool:
    kinds = pa.types
    if kinds.is_null(type_) or kinds.is_integer(type_):
        return True
    if column.kind == "name":
        return bool(kinds.is_string(type_) or kinds.is_large_string(type_) or kinds.is_string_view(type_))
    return bool(kinds.is_floating(type_) or kinds.is_decimal(type_))


def _refuse_nothing(table: Table, name: str, column: ColumnRule) -> None:
    """Raise about the first null, or the first empty name, of a column."""
    cells = table.cells[name]
    if cells.null_count:
        row = pc.index(pc.is_null(cells), True).as_py()
        raise table.error(row, name, "null")
    if column.kind == "name":
        row = pc.index(cells, pa.scalar("", NAME_TYPE)).as_py()
        if row >= 0:
            raise table.error(row, name, "'' (empty)")
