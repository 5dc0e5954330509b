"""Measuring one window of a stream from the rows that have landed.

A window of up to a million rows is measured in memory, which takes a moment; a larger one on Spark. Both give the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from topicweave.errors import BadInput
from topicweave.measures.summary import measure_run
from topicweave.pipeline.measure import measure_on_spark
from topicweave.pipeline.session import is_local
from topicweave.pipeline.stream_progress import Span, Windows
from topicweave.pipeline.workers import described
from topicweave.telemetry.schema import SCHEMAS
from topicweave.telemetry.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

IN_MEMORY = 1_000_000
"""Rows (the workload's included) up to which a window is measured in memory."""


class WorkloadTables(NamedTuple):
    """Who wants what, and who comes and goes: the tables' places, and how many rows they have."""

    subscriptions: Path
    churn: Path | None
    rows: int

    @classmethod
    def of(cls, folder: Path) -> WorkloadTables:
        import pyarrow.dataset as ds

        subscriptions, churn = (folder.absolute() / f"{name}.parquet" for name in ("subscriptions", "churn"))
        if not subscriptions.exists():
            raise BadInput(
                f"{folder}: no subscriptions.parquet; give the folder of the workload that was run"
            )
        there = [path for path in (subscriptions, churn) if path.exists()]
        try:
            rows = sum(ds.dataset(path, format="parquet").count_rows() for path in there)
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0]
            raise BadInput(f"{folder}: not a whole workload ({reason}); make it anew") from None
        return cls(subscriptions, churn if churn.exists() else None, rows)


_OF_THE_OVERLAY = ("degree_", "components", "partitioned_topics", "coverage", "topic_diameter_")


def measured_all(
    spark: SparkSession, landed: Path, spans: Sequence[Span], windows: Windows, workload: WorkloadTables
) -> list[dict[str, float]]:
    """Every measure of some windows: the small ones by a task each, large ones one after the other."""
    small = [at for at, span in enumerate(spans) if span.rows + workload.rows <= IN_MEMORY]
    found: dict[int, dict[str, float]] = {}
    if len(small) > 1 or (small and not is_local(spark.sparkContext.master)):
        found = _by_tasks(spark, landed, {at: spans[at] for at in small}, windows, workload)
    return [
        found.get(at) or measured(spark, landed, span, windows, workload) for at, span in enumerate(spans)
    ]


def _by_tasks(
    spark: SparkSession, landed: Path, spans: Mapping[int, Span], windows: Windows, workload: WorkloadTables
) -> dict[int, dict[str, float]]:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for at in batch["at"].to_pylist():
                measures = json.dumps(_known(landed, spans[at], windows, workload))
                yield pa.RecordBatch.from_pylist([{"at": at, "measures": measures}])

    tasks = spark.createDataFrame(pa.table({"at": pa.array(list(spans), pa.int64())}))
    with described(spark, f"measure {len(spans)} windows"):
        told = (
            tasks.repartitionByRange(len(spans), "at").mapInArrow(work, "at long, measures string").toArrow()
        )
    return {row["at"]: json.loads(row["measures"]) for row in told.to_pylist()}  # one per window


def measured(
    spark: SparkSession, landed: Path, span: Span, windows: Windows, workload: WorkloadTables
) -> dict[str, float]:
    """Every measure of one window."""
    if span.rows + workload.rows <= IN_MEMORY:
        return _known(landed, span, windows, workload)
    found = _on_spark(spark, landed, span, windows, workload, _options(span, windows))
    return _without_unknown(found, landed, span, windows)


def _known(landed: Path, span: Span, windows: Windows, workload: WorkloadTables) -> dict[str, float]:
    found = _in_memory(landed, span, windows, workload, _options(span, windows))
    return _without_unknown(found, landed, span, windows)


def _without_unknown(found: dict[str, float], landed: Path, span: Span, windows: Windows) -> dict[str, float]:
    """Of an overlay that nobody looked at in the window nothing is known: nan, not 0."""
    if _files(landed, span, windows, "links"):
        return found
    return {name: math.nan if name.startswith(_OF_THE_OVERLAY) else value for name, value in found.items()}


def _options(span: Span, windows: Windows) -> dict[str, Any]:
    # A few roundings wider than the window: its rows have been picked, none may be lost to a comparison.
    rounding = 4 * math.ulp(max(abs(span.start), abs(span.end)))
    return {
        "start": span.start - rounding,
        "end": span.end + rounding,
        "grace": windows.grace,
        "window": windows.wait,
    }


def _files(landed: Path, span: Span, windows: Windows, table: str) -> list[Path]:
    """The files with the rows of a table that a window needs, in the order in which they came."""
    reach = windows.reach if table == "deliveries" else 0
    return [
        file
        for batch in sorted(landed.glob("batch=*"))
        for place in range(span.place - reach, span.place + reach + 1)
        for file in sorted(
            (batch / f"table={table}" / f"number={span.number}" / f"place={place}").glob("*.parquet")
        )
    ]


def _in_memory(
    landed: Path, span: Span, windows: Windows, workload: WorkloadTables, options: dict[str, Any]
) -> dict[str, float]:
    def read(table: str) -> pa.Table:
        schema = SCHEMAS[table]
        files = _files(landed, span, windows, table)
        parts = [pq.read_table(file, columns=schema.names, partitioning=None) for file in files]
        return pa.concat_tables(
            [schema.empty_table(), *(part.cast(schema) for part in parts)]
        ).unify_dictionaries()

    tables = {name: read(name) for name in SCHEMAS}
    time = tables["deliveries"]["time"]
    low, high = _receptions(span, windows)
    near = pc.and_(pc.greater_equal(time, low), pc.less(time, high))
    tables["deliveries"] = tables["deliveries"].filter(near)
    wishes = pq.read_table(workload.subscriptions)
    churn = None if workload.churn is None else pq.read_table(workload.churn)
    return measure_run(Tables(**tables), wishes, churn=churn, **options)


def _on_spark(
    spark: SparkSession,
    landed: Path,
    span: Span,
    windows: Windows,
    workload: WorkloadTables,
    options: dict[str, Any],
) -> dict[str, float]:
    from pyspark.sql import functions as sf

    # Rows of one moment are in one file per batch; see `stream.Stream._land`.
    batch = sf.regexp_extract("_metadata.file_path", r"/batch=(\d+)/", 1).cast("long")
    order = (sf.shiftleft(batch, 40) + sf.col("_metadata.row_index")).alias("order")

    def read(table: str) -> DataFrame:
        files = _files(landed, span, windows, table)
        if not files:
            empty = SCHEMAS[table].append(pa.field("order", pa.int64())).empty_table()
            return spark.createDataFrame(empty)
        return spark.read.parquet(*map(str, files)).select(*SCHEMAS[table].names, order)

    tables = {name: read(name) for name in SCHEMAS}
    low, high = _receptions(span, windows)
    tables["deliveries"] = tables["deliveries"].where((sf.col("time") >= low) & (sf.col("time") < high))
    wishes = spark.read.parquet(str(workload.subscriptions))
    churn = None if workload.churn is None else spark.read.parquet(str(workload.churn))
    return measure_on_spark(tables, wishes, churn=churn, **options)


def _receptions(span: Span, windows: Windows) -> tuple[float, float]:
    """When the window's events may be received: a little before it, too, because clocks differ."""
    return span.start - windows.wait, span.end + windows.wait
