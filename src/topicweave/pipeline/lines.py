"""Lines of text files as Spark rows, with file and line number (see `topicweave.data.lines`).

A compressed file is read by one task, since it can only be read from its start. A plain file is cut into pieces of
64 MiB, one task each; a first pass counts the pieces' lines, so that every line still knows its number.

A line that is wrong becomes a row that says so; so does a file that cannot be read. No exception leaves a task.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from topicweave.data.files import BLOCK_BYTES, COMPRESSIONS, is_tar
from topicweave.data.lines import LineBlock, Parse, Piece, parsed_blocks
from topicweave.errors import BadInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PIECE_BYTES = 64 << 20

ROW, REJECT, COUNT, UNREADABLE = 0, 1, 2, 3
"""What a parsed row is: data; a line that is wrong; a number of good lines; a file that cannot be read."""

BOOKKEEPING = pa.schema(
    [
        ("kind", pa.int8()),
        ("file", pa.string()),
        ("line", pa.int64()),
        ("reason", pa.string()),
        ("text", pa.string()),
    ]
)


def parsed_lines(spark: SparkSession, files: list[Path], parse: Parse, columns: pa.Schema) -> DataFrame:
    """A row for every row that `parse` makes, every wrong line and every unreadable file (see BOOKKEEPING)."""
    pieces = _pieces(spark, files)
    schema = pa.schema([*BOOKKEEPING, *columns])

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield from _read_piece(Piece(**row), parse, schema)

    from pyspark.sql.pandas.types import from_arrow_schema

    table = pa.Table.from_pylist([piece._asdict() for piece in pieces])
    tasks = spark.createDataFrame(table).repartitionByRange(len(pieces), "file", "start")
    return tasks.mapInArrow(read, from_arrow_schema(schema))


def _pieces(spark: SparkSession, files: list[Path]) -> list[Piece]:
    """One entry per file or 64 MiB: nothing that grows with the lines."""
    whole, cut = [], []
    for file in files:
        name = str(file.absolute())
        if is_tar(file):
            # By one task: to get at a member of a compressed archive, all before it are unpacked too.
            whole.append(Piece(name, archive=True))
        elif file.suffix in COMPRESSIONS or file.stat().st_size <= PIECE_BYTES:
            whole.append(Piece(name))
        else:
            size = file.stat().st_size
            cut += [
                Piece(name, start=start, end=min(start + PIECE_BYTES, size))
                for start in range(0, size, PIECE_BYTES)
            ]
    return whole + _numbered(spark, cut)


def _numbered(spark: SparkSession, pieces: list[Piece]) -> list[Piece]:
    if not pieces:
        return []

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for file, start, end in zip(
                *(batch[name].to_pylist() for name in ("file", "start", "end")), strict=True
            ):
                with open(file, "rb") as stream:
                    stream.seek(start)
                    newlines, left = 0, end - start
                    while left and (block := stream.read(min(left, BLOCK_BYTES))):
                        newlines += block.count(b"\n")
                        left -= len(block)
                yield pa.RecordBatch.from_pylist([{"file": file, "start": start, "newlines": newlines}])

    table = pa.Table.from_pylist([piece._asdict() for piece in pieces])
    tasks = spark.createDataFrame(table).repartitionByRange(len(pieces), "file", "start")
    counted = tasks.mapInArrow(count, "file string, start long, newlines long").toArrow()  # one row per piece
    newlines = {(row["file"], row["start"]): row["newlines"] for row in counted.to_pylist()}
    numbered, line = [], 1
    for piece in pieces:
        line = 1 if piece.start == 0 else line
        # A line belongs to the piece it starts in: the rest of one that starts earlier is skipped there.
        numbered.append(piece._replace(first_line=line))
        line += newlines[piece.file, piece.start]
    return numbered


def _read_piece(piece: Piece, parse: Parse, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    try:
        for block in parsed_blocks(piece, parse):
            yield from rows_of(block, schema)
    except BadInput as error:
        yield _notes([{"kind": UNREADABLE, "file": piece.file, "line": 0, "reason": str(error)}], schema)


def rows_of(block: LineBlock, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    notes = [{"kind": REJECT, **wrong._asdict()} for wrong in block.wrong]
    yield _notes([*notes, {"kind": COUNT, "file": block.file, "line": block.good, "reason": ""}], schema)
    if count := block.rows.num_rows:
        columns = {
            "kind": pa.repeat(pa.scalar(ROW, pa.int8()), count),
            "file": pa.repeat(pa.scalar(block.file), count),
            "line": pc.add(block.rows["at"].cast(pa.int64()), block.first),
            "reason": pa.repeat(pa.scalar(""), count),
            "text": pa.repeat(pa.scalar(""), count),
            **{name: block.rows[name] for name in schema.names[len(BOOKKEEPING) :]},
        }
        yield from pa.table(columns).cast(schema).to_batches(max_chunksize=1 << 16)


def _notes(notes: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"text": "", **note} for note in notes], schema=schema)
