"""Measuring one window of a stream from the rows that have landed.

A window of up to a million rows is measured in memory, which takes a moment; a larger one on Spark. Both give the same.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from topicweave.errors import BadInput
from topicweave.measures.summary import measure_run
from topicweave.pipeline.measure import measure_on_spark
from topicweave.pipeline.stream_progress import Span, Windows
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


def measured(
    spark: SparkSession, landed: Path, span: Span, windows: Windows, workload: WorkloadTables
) -> dict[str, float]:
    """Every measure of one window."""
    # A few roundings wider than the window: its rows have been picked, none may be lost to a comparison.
    rounding = 4 * math.ulp(max(abs(span.start), abs(span.end)))
    options = {
        "start": span.start - rounding,
        "end": span.end + rounding,
        "grace": windows.grace,
        "window": windows.wait,
    }
    if span.rows + workload.rows <= IN_MEMORY:
        return _in_memory(landed, span, windows, workload, options)
    return _on_spark(spark, landed, span, windows, workload, options)


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
