"""Tables in part files whose bytes depend on their rows alone, and which are known to be whole.

Spark's own writer names files at random, cuts them as its partitions happen to fall, and takes it on trust that what
executors wrote is there. Here a table is cut by its contents, parts are numbered, rows are in one order, and row groups
have one size: the same rows give the same bytes on one core or on a hundred executors.

A task returns each part's name, rows, bytes and hash. The driver looks at every part's footer with its own eyes and
notes the table as finished when all is as it was told; what is not in the note is not in the table. A part is named by
its number and its contents: a task that is killed, retried, run twice or left over from another command harms nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from topicweave.data.places import Place
from topicweave.errors import TopicweaveError
from topicweave.pipeline.workers import described, here

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_PER_PART = 1_000_000
ROWS_PER_GROUP = 1 << 17
_PART = "name string, rows long, bytes long, sha256 string"


class Part(NamedTuple):
    """A file of a table, as whoever wrote it saw it."""

    name: str
    rows: int
    bytes: int
    sha256: str

    @property
    def number(self) -> int:
        return int(self.name.split("-")[1])


class Target(NamedTuple):
    """A table to be made."""

    folder: Place
    note: Place
    """A folder with what says that it is whole, and which parts it has."""
    mark: Place
    """A file that only whoever sees the right storage can read, …"""
    attempt: bytes
    """… and what is in it while this attempt at the work goes on."""

    def __truediv__(self, name: str) -> Target:
        """One of several tables under one name."""
        return self._replace(folder=self.folder / name, note=self.note / name)

    def check(self) -> None:
        """Raise if this machine sees other storage than the driver, or another command has taken over."""
        found = self.mark.read()
        if found is None:
            raise TopicweaveError(
                f"worker {here()}: does not see {self.mark}; the output must be one place for all machines"
            )
        if found != self.attempt:
            raise TopicweaveError(f"{self.mark}: another command writes there; this one's work is not needed")

    def exists(self) -> bool:
        return (self.note / "whole").exists()


def write_part(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch | pa.Table]) -> int:
    """Write rows in the order they come to a file of its own; returns how many."""
    with Place(path).filling() as partial:
        return _write_file(partial, schema, batches)


def add_part(
    target: Target, number: int, schema: pa.Schema, batches: Iterable[pa.RecordBatch | pa.Table]
) -> Part:
    """Write rows in the order they come as a part of a table."""
    target.check()
    # On a disk the name that is given up again keeps it beside its final one.
    with (target.folder / f"part-{number:05d}").filling_only() as partial:
        rows = _write_file(partial, schema, batches)
        with partial.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        part = Part(f"part-{number:05d}-{digest[:12]}.parquet", rows, partial.stat().st_size, digest)
        final = target.folder / part.name
        if final.size() != part.bytes:  # else it is there: named by its contents, it can be no other
            final.take(partial)
    return part


def part_once(
    target: Target, number: int, schema_and_rows: Callable[[], tuple[pa.Schema, Iterable[pa.Table]]]
) -> Part:
    """A part that stands for itself: made unless it is noted as finished, and there."""
    receipt = target.note / f"{number:05d}"
    if (content := receipt.read()) is not None:
        part = Part(**json.loads(content))
        if (target.folder / part.name).size() == part.bytes:
            return part
    schema, rows = schema_and_rows()
    part = add_part(target, number, schema, rows)
    receipt.put(json.dumps(part._asdict()).encode())
    return part


def _write_file(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch | pa.Table]) -> int:
    rows = 0
    # Without Arrow's schema dictionary-encoded names read back as plain strings.
    with pq.ParquetWriter(
        path, schema, compression="zstd", store_schema=False, write_page_checksum=True
    ) as writer:
        for group in _groups(schema, batches):
            writer.write_table(group, row_group_size=ROWS_PER_GROUP)
            rows += group.num_rows
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
    target: Target,
    schema: pa.Schema,
    key: str,
    order: Sequence[str],
    at_most: int | None = None,
    step: str = "",
) -> int:
    """Write a DataFrame as a table of parts of about a million rows; returns the number of rows.

    Rows go to parts by a hash of their `key` column and are sorted by `order` within one, names by length, then by
    code point (the order of `topicweave.model.validation`). How many parts there are follows from the number of
    rows; where there are known to be `at_most` so many, and that is one part, they need not be counted first. A
    table that is finished is kept. `step` is what the work goes by, if not by the table's name.
    """
    if (done := finished(target)) is not None:
        return done
    with described(rows.sparkSession, step or f"write {target.folder.name}"):
        if at_most is not None and at_most <= ROWS_PER_PART:
            return _write(rows.select(*schema.names), target, schema, key, order, 1)
        # What it takes to make the rows is done once, though they are first counted and then written.
        rows = rows.select(*schema.names).persist()
        try:
            parts = max(1, -(-rows.count() // ROWS_PER_PART))
            return _write(rows, target, schema, key, order, parts)
        finally:
            rows.unpersist()


def _write(
    rows: DataFrame, target: Target, schema: pa.Schema, key: str, order: Sequence[str], parts: int
) -> int:
    from pyspark.sql import functions as sf

    part = sf.pmod(sf.xxhash64(sf.col(key).cast("string")), sf.lit(parts)).cast("int")
    keys = [column for name in order for column in _sort_keys(rows, name)]
    placed = rows.select(part.alias("part"), *schema.names)
    laid_out = placed.repartition(parts, "part").sortWithinPartitions("part", *keys)
    told = run_writer(laid_out, _part_writer(target, schema))
    return finish(target, told or [add_part(target, 0, schema, [])])


def write_numbered(rows: DataFrame, target: Target) -> list[Part]:
    """Write rows that lie sorted by a column `part`, a file for each of its numbers; what tasks tell of them."""
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(rows.drop("part").schema)
    return run_writer(rows.select("part", *schema.names), _part_writer(target, schema))


def spill(rows: DataFrame, target: Target) -> DataFrame:
    """Keep rows on disk on the way to something else: as they fall, a part per task. What is finished is kept."""
    from pyspark.sql import functions as sf
    from pyspark.sql.pandas.types import to_arrow_schema

    spark = rows.sparkSession
    if finished(target) is None:
        schema = to_arrow_schema(rows.schema)
        placed = rows.select(sf.spark_partition_id().alias("part"), "*")
        with described(spark, f"keep {target.folder.name.removeprefix('scratch-')}"):
            told = run_writer(placed, _part_writer(target, schema))
            finish(target, told or [add_part(target, 0, schema, [])])
    return read(spark, target)


def run_writer(frame: DataFrame, writer: Callable[[Iterator[Any]], Iterator[Any]]) -> list[Part]:
    """Run a function that writes parts as the last step of a job; what it tells of them, a row each."""
    told = frame.mapInArrow(writer, _PART).toArrow()
    return sorted(Part(**row) for row in told.to_pylist())


def finish(target: Target, parts: Sequence[Part]) -> int:
    """Look at every part, then note the table as whole; returns its rows."""
    look_at_all(target, parts)
    rows = sum(part.rows for part in parts)
    note = {"rows": rows, "parts": [part._asdict() for part in parts]}
    target.check()
    (target.note / "whole").put(json.dumps(note).encode())
    return rows


def look_at_all(target: Target, parts: Sequence[Part]) -> None:
    """Raise unless every part is there as it was told."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda part: _look_at(target.folder / part.name, part), parts))


def _look_at(file: Place, part: Part) -> None:
    system, path = file.opened()
    try:
        size = system.get_file_info(path).size
        rows = pq.read_metadata(path, filesystem=system).num_rows
    except (OSError, pa.ArrowException) as error:
        raise TopicweaveError(
            f"{file}: a task wrote {part.rows:,} rows there, and this machine cannot read it ({_first(error)}); "
            "the output must be one place for all machines"
        ) from None
    if (size, rows) != (part.bytes, part.rows):
        raise TopicweaveError(
            f"{file}: {rows:,} rows in {size:,} bytes, but a task wrote {part.rows:,} in {part.bytes:,}; "
            "the storage lost something, run the same command again"
        )


def _first(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def note_of(target: Target) -> dict[str, Any] | None:
    """{"rows": …, "parts": […]} of a finished table."""
    content = (target.note / "whole").read()
    return None if content is None else json.loads(content)


def finished(target: Target) -> int | None:
    """The rows of a table that was written whole; None if it was not."""
    note = note_of(target)
    return None if note is None else int(note["rows"])


def read(spark: SparkSession, *targets: Target) -> DataFrame:
    """The rows of finished tables of one form."""
    files = []
    for target in targets:
        note = note_of(target)
        if note is None:
            raise TopicweaveError(f"{target.folder}: not finished; run the same command again")
        files += [target.folder / part["name"] for part in note["parts"]]
    return read_files(spark, files)


def read_files(spark: SparkSession, files: Sequence[Place]) -> DataFrame:
    """Parquet files of one form: by Spark's own reader from a disk, by PyArrow from elsewhere."""
    if all(file.local for file in files):
        return spark.read.parquet(*map(str, files))
    from pyspark.sql.pandas.types import from_arrow_schema

    system, path = files[0].opened()
    schema = pa.schema([_plain(field) for field in pq.read_schema(path, filesystem=system)])

    def load(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for name in batch["file"].to_pylist():
                system, path = Place(name).opened()
                with pq.ParquetFile(path, filesystem=system) as file:
                    for piece in file.iter_batches(1 << 16):
                        yield piece.cast(schema)

    names = spark.createDataFrame(pa.table({"file": [str(file) for file in files]}))
    return names.repartitionByRange(len(files), "file").mapInArrow(load, from_arrow_schema(schema))


def _plain(field: pa.Field) -> pa.Field:
    return field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field


def _sort_keys(rows: DataFrame, name: str) -> list[Any]:
    from pyspark.sql import functions as sf

    column = sf.col(name)
    return [sf.length(column), column] if rows.schema[name].dataType.typeName() == "string" else [column]


def _part_writer(target: Target, schema: pa.Schema) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """For mapInArrow: rows sorted by `part` come in, each part becomes a file, what it became goes out."""

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

            yield pa.RecordBatch.from_pylist([add_part(target, number, schema, of_this_part())._asdict()])

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
