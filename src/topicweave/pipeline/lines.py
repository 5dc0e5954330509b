"""Lines of text files as Spark rows, with file and line number (see `topicweave.data.lines`).

A compressed file is read by one task, since it can only be read from its start. A plain file is cut into pieces of
64 MiB, one task each; a first pass counts the pieces' lines, so that every line still knows its number. Of many small
files a task reads as many as make up a piece.

A line that is wrong becomes a row that says so; so does a file that cannot be read. No exception leaves a task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from topicweave.data.files import BLOCK_BYTES, COMPRESSIONS, is_tar, raw
from topicweave.data.lines import LineBlock, Parse, Piece, parsed_blocks
from topicweave.data.places import Place
from topicweave.errors import BadInput, without_secrets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PIECE_BYTES = 64 << 20
_OPENING = 64 << 10
"""What it takes to open a file, in bytes that could be read meanwhile."""

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


def parsed_lines(spark: SparkSession, files: Sequence[Place], parse: Parse, columns: pa.Schema) -> DataFrame:
    """A row for every row that `parse` makes, every wrong line and every unreadable file (see BOOKKEEPING)."""
    sizes = _sizes(files)
    pieces = _pieces(spark, sizes)
    schema = pa.schema([*BOOKKEEPING, *columns])

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield from _read_piece(Piece(**row), parse, schema)

    from pyspark.sql.pandas.types import from_arrow_schema

    groups = grouped([piece.end - piece.start if piece.end >= 0 else sizes[piece.file] for piece in pieces])
    return in_groups(spark, [piece._asdict() for piece in pieces], groups).mapInArrow(
        read, from_arrow_schema(schema)
    )


def in_groups(spark: SparkSession, rows: Sequence[dict[str, Any]], groups: Sequence[int]) -> DataFrame:
    """Rows by the groups that they are in, which grow from 0: a task for each."""
    table = pa.Table.from_pylist([dict(row) for row in rows]).append_column(
        "task", pa.array(groups, pa.int64())
    )
    placed = spark.createDataFrame(table).repartitionByRange(groups[-1] + 1, "task")
    return placed.sortWithinPartitions("task").drop("task")


def grouped(sizes: Sequence[int]) -> list[int]:
    """Of each of some files the task that reads it: neighbours share one as long as they are small together.

    >>> grouped([10, 20, PIECE_BYTES, 5, 5])
    [0, 0, 1, 2, 2]
    """
    groups, task, filled = [], 0, 0
    for size in sizes:
        cost = size + _OPENING
        if filled and filled + cost > PIECE_BYTES:
            task, filled = task + 1, 0
        filled += cost
        groups.append(task)
    return groups


def _sizes(files: Sequence[Place]) -> dict[str, int]:
    with ThreadPoolExecutor(16) as pool:
        return {str(file): size or 0 for file, size in zip(files, pool.map(Place.size, files), strict=True)}


def _pieces(spark: SparkSession, sizes: Mapping[str, int]) -> list[Piece]:
    """One entry per file or 64 MiB: nothing that grows with the lines."""
    whole, cut = [], []
    for name, size in sizes.items():
        if is_tar(name):
            # By one task: to get at a member of a compressed archive, all before it are unpacked too.
            whole.append(Piece(name, archive=True))
        elif Place(name).name.endswith(COMPRESSIONS) or size <= PIECE_BYTES:
            whole.append(Piece(name))
        else:
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
                with raw(file) as stream:
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
            "file": pa.repeat(pa.scalar(without_secrets(block.file)), count),
            "line": pc.add(block.rows["at"].cast(pa.int64()), block.first),
            "reason": pa.repeat(pa.scalar(""), count),
            "text": pa.repeat(pa.scalar(""), count),
            **{name: block.rows[name] for name in schema.names[len(BOOKKEEPING) :]},
        }
        yield from pa.table(columns).cast(schema).to_batches(max_chunksize=1 << 16)


def _notes(notes: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    shown = [{"text": "", **note, "file": without_secrets(note["file"])} for note in notes]
    return pa.RecordBatch.from_pylist(shown, schema=schema)
