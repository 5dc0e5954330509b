"""Where rows come from: files, which tasks read as arrays themselves, or DataFrames.

Files are cut into chunks of up to two million rows (64 to 256 MB as arrays): whole small files together, large ones by
row groups. Names are read as Parquet keeps them, each once and numbered, and are hashed once each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from topicweave.data.places import Place
from topicweave.errors import BadInput
from topicweave.pipeline.rounds import MESSAGES, Letter, packed
from topicweave.telemetry.schema import SCHEMAS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHUNK_ROWS = 2_000_000

COLUMNS: dict[str, tuple[str, ...]] = {
    **{name: tuple(schema.names) for name, schema in SCHEMAS.items()},
    "subscriptions": ("node", "topic"),
    "churn": ("time", "node", "change"),
    "nodes": ("node",),
}
"""What is read of each table."""

Scan = Callable[[str, pa.Table, int], Iterator[Letter]]
"""From a table's name, rows of it, and their rank to messages."""

_CHUNK = "at int, number long, source string, files array<string>, groups array<array<int>>"


class Chunk(NamedTuple):
    """Some rows of a table; `number` grows with their place in it."""

    source: str
    number: int
    files: list[str]
    groups: list[list[int]]
    """Of each file."""
    rows: int


def chunks_of(
    tables: Mapping[str, Sequence[Place]],
    most: int = CHUNK_ROWS,
    columns: Mapping[str, Sequence[str]] = COLUMNS,
) -> list[Chunk]:
    """All rows of some tables in chunks, from what the files' footers say."""
    chunks = []
    for source, files in tables.items():
        with ThreadPoolExecutor(8) as pool:
            sizes = list(pool.map(lambda file: _groups(file, columns[source]), files))  # noqa: B023 -- done here
        names: list[str] = []
        groups: list[list[int]] = []
        rows = number = 0
        for file, of_file in zip(files, sizes, strict=True):
            for group, size in enumerate(of_file):
                if rows and rows + size > most:
                    chunks.append(Chunk(source, number, names, groups, rows))
                    names, groups, rows, number = [], [], 0, number + 1
                if not names or names[-1] != str(file):
                    names.append(str(file))
                    groups.append([])
                groups[-1].append(group)
                rows += size
        if rows:
            chunks.append(Chunk(source, number, names, groups, rows))
    return chunks


def _groups(file: Place, columns: Sequence[str]) -> list[int]:
    system, path = file.opened()
    try:
        with pq.ParquetFile(path, filesystem=system) as parquet:
            footer, names = parquet.metadata, parquet.schema_arrow.names
            sizes = [footer.row_group(at).num_rows for at in range(footer.num_row_groups)]
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise BadInput(f"{file}: not a whole Parquet table ({reason}); make it anew") from None
    for column in columns:
        if column not in names:
            raise BadInput(f"{file}: needs one column {column!r}, has {', '.join(names)}")
    return sizes


def read_chunk(chunk: Chunk, columns: Sequence[str]) -> pa.Table:
    parts = []
    names = [name for name in columns if name in _NAMES]
    for file, groups in zip(chunk.files, chunk.groups, strict=True):
        system, path = Place(file).opened()
        with pq.ParquetFile(path, filesystem=system, read_dictionary=names) as parquet:
            part = parquet.read_row_groups(groups, columns=list(columns), use_threads=False)
        _refuse_nulls(part, file)
        parts.append(_conformed(part.select(list(columns)), chunk.source, file))
    return pa.concat_tables(parts, promote_options="permissive")


_NAMES = ("run", "node", "peer", "sender", "topic", "kind", "change")


def _refuse_nulls(rows: pa.Table, where: str) -> None:
    for name in rows.column_names:
        if rows[name].null_count:
            raise BadInput(f"{where}: column {name!r}: null; every cell needs a value")


def _conformed(rows: pa.Table, source: str, where: str) -> pa.Table:
    """Numbers in the schema's types; names as they come, text or numbered."""
    schema = SCHEMAS.get(source)
    for at, name in enumerate(rows.column_names):
        known = schema is not None and name in schema.names and name not in _NAMES
        wanted = schema.field(name).type if schema is not None and known else None
        wanted = pa.float64() if name == "time" else wanted
        if wanted is not None and rows[name].type != wanted:
            try:
                rows = rows.set_column(at, name, rows[name].cast(wanted))
            except pa.ArrowException as error:
                reason = str(error).splitlines()[0]
                raise BadInput(
                    f"{where}: column {name!r}: {rows[name].type}, not {wanted} ({reason})"
                ) from None
    return rows


def from_chunks(
    spark: SparkSession, chunks: Iterable[Chunk], scan: Scan, only: Mapping[str, Sequence[str]] | None = None
) -> DataFrame:
    """What a scan makes of chunks, a task each; with `only`, of some columns of some tables."""
    columns = {**COLUMNS, **(only or {})}
    wanted = [chunk for chunk in chunks if chunk.source in columns and (only is None or chunk.source in only)]
    wanted.sort(key=lambda chunk: -chunk.rows)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                chunk = Chunk(row["source"], row["number"], row["files"], row["groups"], 0)
                yield from packed(scan(chunk.source, read_chunk(chunk, columns[chunk.source]), chunk.number))

    rows = [(at, one.number, one.source, one.files, one.groups) for at, one in enumerate(wanted)]
    listed = spark.createDataFrame(rows, _CHUNK)
    tasks = max(len(rows), 1)
    placed = (
        listed.repartitionById(tasks, "at")
        if hasattr(listed, "repartitionById")
        else listed.repartition(tasks, "at")
    )
    return placed.mapInArrow(read, MESSAGES)


def from_frames(
    frames: Mapping[str, DataFrame], scan: Scan, only: Mapping[str, Sequence[str]] | None = None
) -> DataFrame:
    """What a scan makes of DataFrames. A column `order`, if there is one, says which rows come first."""
    from functools import reduce

    made = []
    for source, frame in frames.items():
        if only is not None and source not in only:
            continue
        columns = list((only or COLUMNS)[source])
        ordered = ["order"] if only is None and "order" in frame.columns else []
        made.append(frame.select(*columns, *ordered).mapInArrow(_of_frame(source, scan), MESSAGES))
    return reduce(lambda one, other: one.unionByName(other), made)


def _of_frame(source: str, scan: Scan) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        for number, rows in enumerate(_gathered(batches)):
            _refuse_nulls(rows, source)
            yield from packed(scan(source, _conformed(rows, source, source), (partition << 32) + number))

    return read


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    pending: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        pending.append(batch)
        rows += batch.num_rows
        if rows >= CHUNK_ROWS // 2:
            yield pa.Table.from_batches(pending)
            pending, rows = [], 0
    if pending:
        yield pa.Table.from_batches(pending)
