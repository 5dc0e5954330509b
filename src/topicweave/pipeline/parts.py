"""Part files whose bytes depend on their rows alone.

Spark's own writer names files at random and cuts them as its partitions happen to fall. Here a table is cut by its
contents, parts are numbered, rows are in one order, and row groups have one size: the same rows give the same bytes
on one core or on a hundred executors. A part gets its name when it is whole, so a task that is killed, retried or
run twice does no harm.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS_PER_PART = 1_000_000
ROWS_PER_GROUP = 1 << 17


def part_path(table: Path, number: int) -> Path:
    return table / f"part-{number:05d}.parquet"


def write_part(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch | pa.Table]) -> int:
    """Write rows in the order they come; returns how many."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}.{threading.get_ident()}")
    rows = 0
    try:
        # Without Arrow's schema dictionary-encoded names read back as plain strings.
        with pq.ParquetWriter(
            partial, schema, compression="zstd", store_schema=False, write_page_checksum=True
        ) as writer:
            for group in _groups(schema, batches):
                writer.write_table(group, row_group_size=ROWS_PER_GROUP)
                rows += group.num_rows
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return rows


def _groups(schema: pa.Schema, batches: Iterable[pa.RecordBatch | pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of ROWS_PER_GROUP each, however they were batched."""
    pending: list[pa.Table] = []
    count = 0
    for batch in batches:
        table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        if table.schema != schema:
            table = table.select(schema.names).cast(schema)
        while count + table.num_rows >= ROWS_PER_GROUP:
            taken = ROWS_PER_GROUP - count
            yield _one(schema, [*pending, table.slice(0, taken)])
            table, pending, count = table.slice(taken), [], 0
        if table.num_rows:
            pending.append(table)
            count += table.num_rows
    if count:
        yield _one(schema, pending)


def _one(schema: pa.Schema, tables: Sequence[pa.Table]) -> pa.Table:
    # One chunk per column, so that pages and dictionaries do not show how the rows came.
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks().cast(schema)


def write_table(
    rows: DataFrame,
    table: Path,
    schema: pa.Schema,
    key: str,
    order: Sequence[str],
    at_most: int | None = None,
) -> int:
    """Write a DataFrame as a table of parts of about a million rows; returns the number of rows.

    Rows go to parts by a hash of their `key` column and are sorted by `order` within one, names by length, then by
    code point (the order of `topicweave.model.validation`). How many parts there are follows from the number of
    rows; where there are known to be `at_most` so many, and that is one part, they need not be counted first. An
    existing whole table (see `finished`) is kept.
    """
    if (done := finished(table)) is not None:
        return done
    if at_most is not None and at_most <= ROWS_PER_PART:
        return _write(rows.select(*schema.names), table, schema, key, order, 1)
    # What it takes to make the rows is done once, though they are first counted and then written.
    rows = rows.select(*schema.names).persist()
    try:
        parts = max(1, -(-rows.count() // ROWS_PER_PART))
        return _write(rows, table, schema, key, order, parts)
    finally:
        rows.unpersist()


def _write(
    rows: DataFrame, table: Path, schema: pa.Schema, key: str, order: Sequence[str], parts: int
) -> int:
    from pyspark.sql import functions as sf

    part = sf.pmod(sf.xxhash64(sf.col(key).cast("string")), sf.lit(parts)).cast("int")
    keys = [column for name in order for column in _sort_keys(rows, name)]
    placed = rows.select(part.alias("part"), *schema.names)
    laid_out = placed.repartition(parts, "part").sortWithinPartitions("part", *keys)
    count = run_writer(laid_out, _part_writer(str(table), schema))
    if not any(part_path(table, number).exists() for number in range(parts)):
        write_part(part_path(table, 0), schema, [])
    (table / "_SUCCESS").write_text(str(count))
    return count


def finished(table: Path) -> int | None:
    """The rows of a table that was written whole; None if it was not."""
    try:
        return int((table / "_SUCCESS").read_text())
    except (OSError, ValueError):
        return None


def mark_finished(table: Path, rows: int) -> None:
    (table / "_SUCCESS").write_text(str(rows))


def run_writer(frame: DataFrame, writer: Callable[[Iterator[Any]], Iterator[Any]]) -> int:
    """Run a function that writes files as the last step of a job; the sum of the numbers it yields as `rows`."""
    from pyspark.sql import functions as sf

    total = frame.mapInArrow(writer, "rows long").agg(sf.sum("rows")).first()
    return int(total[0] or 0) if total else 0


def _sort_keys(rows: DataFrame, name: str) -> list[Any]:
    from pyspark.sql import functions as sf

    column = sf.col(name)
    return [sf.length(column), column] if rows.schema[name].dataType.typeName() == "string" else [column]


def _part_writer(table: str, schema: pa.Schema) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """For mapInArrow: rows sorted by `part` come in, each part becomes a file, row counts go out."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = _pieces(batches)
        piece = next(pieces, None)
        while piece is not None:
            number = piece[0]

            def of_this_part() -> Iterator[pa.Table]:
                nonlocal piece
                while piece is not None and piece[0] == number:  # noqa: B023 -- consumed within the turn
                    yield piece[1]
                    piece = next(pieces, None)

            rows = write_part(part_path(Path(table), number), schema, of_this_part())
            yield pa.RecordBatch.from_pydict({"rows": pa.array([rows], pa.int64())})

    return write


def _pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    """Batches cut where the part changes."""
    import numpy as np

    for batch in batches:
        if not batch.num_rows:
            continue
        table = pa.Table.from_batches([batch])
        part = table["part"].to_numpy()
        cuts = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(part)]
        for start, stop in pairwise(cuts):
            yield int(part[start]), table.slice(start, stop - start).drop_columns(["part"])
