"""Traces in Parquet as Spark rows: as `lines.parsed_lines`, with a row in the place of a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from topicweave.data.formats import Format, LineOptions
from topicweave.data.lines import LineBlock, Wrong
from topicweave.data.places import Place
from topicweave.errors import BadInput
from topicweave.pipeline.lines import BOOKKEEPING, in_groups, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NAMED = {"edges": ("node", "topic"), "pairs": ("node", "topic"), "edits": ("node", "topic", "time")}
"""Formats that are columns and nothing else."""


def parsed_parquet(
    spark: SparkSession, files: Sequence[Place], wanted: Format, options: LineOptions
) -> DataFrame:
    """A row for every row; those without a value where one is needed are wrong."""
    from pyspark.sql.pandas.types import from_arrow_schema

    if wanted.name not in _NAMED:
        raise BadInput(
            f"{files[0]}: Parquet of the format {wanted.name!r} is not read; {', '.join(_NAMED)} are"
        )
    columns = _columns(files[0], _NAMED[wanted.name], options)
    schema = pa.schema([*BOOKKEEPING, *wanted.columns])
    tasks = [
        {"file": str(file), "group": group, "first": first}
        for file in files
        for group, first in enumerate(_first_rows(file, list(columns.values())))
    ]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                system, path = Place(row["file"]).opened()
                with pq.ParquetFile(path, filesystem=system) as file:
                    table = file.read_row_group(row["group"], columns=list(columns.values()))
                yield from rows_of(_block(row["file"], row["first"], table, columns, wanted.columns), schema)

    return in_groups(spark, tasks, range(len(tasks))).mapInArrow(read, from_arrow_schema(schema))


def _columns(file: Place, needed: Sequence[str], options: LineOptions) -> dict[str, str]:
    """Which of the file's columns is which: by option, by the name itself, or by place."""
    names = _metadata(file).schema.to_arrow_schema().names
    given = {"node": options.node, "topic": options.topic, "time": options.time}
    found: dict[str, str] = {}
    for place, name in enumerate(needed):
        by_place = names[place] if place < len(names) else name
        column = given[name] or (name if name in names else by_place)
        if column not in names:
            raise BadInput(f"{file}: no column {column!r}; it has {', '.join(names)[:200]}")
        found[name] = column
    if len(set(found.values())) < len(found):
        raise BadInput(
            f"{file}: say which column is the --node and which the --topic; it has {', '.join(names)[:200]}"
        )
    return found


def _metadata(file: Place) -> pq.FileMetaData:
    system, path = file.opened()
    try:
        return pq.read_metadata(path, filesystem=system)
    except (OSError, pa.ArrowException) as error:
        raise BadInput(
            f"{file}: not a Parquet file ({str(error).splitlines()[0]}); name it by what it is"
        ) from None


def _first_rows(file: Place, columns: Sequence[str]) -> list[int]:
    """The number of the first row of each row group, from 1."""
    metadata = _metadata(file)
    missing = [name for name in columns if name not in metadata.schema.to_arrow_schema().names]
    if missing:
        raise BadInput(f"{file}: no column {missing[0]!r}, which the first file has")
    firsts, first = [], 1
    for group in range(metadata.num_row_groups):
        firsts.append(first)
        first += metadata.row_group(group).num_rows
    return firsts


def _block(file: str, first: int, table: pa.Table, columns: dict[str, str], schema: pa.Schema) -> LineBlock:
    cells = {name: _cell(table[column], schema.field(name).type) for name, column in columns.items()}
    whole = pc.fill_null(pc.and_(pc.is_valid(cells["node"]), pc.is_valid(cells["topic"])), False)
    for cell in cells.values():
        whole = pc.and_(whole, pc.is_valid(cell))
    at = pa.array(range(table.num_rows), pa.int64())
    rows = pa.table({"at": at, **cells}).filter(whole)
    gone = pc.filter(at, pc.invert(whole)).to_pylist()
    wrong = [
        Wrong(
            file,
            first + row,
            "a cell is empty, or not of its column's type",
            str([table[c][row].as_py() for c in columns.values()])[:120],
        )
        for row in gone
    ]
    for field in schema:
        if field.name not in rows.column_names:
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    return LineBlock(file, first, rows, rows.num_rows, wrong)


def _cell(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Names as text; an empty one is none."""
    if not pa.types.is_string(kind):
        return column.cast(kind, safe=False)
    text = column.cast(pa.string())
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)
