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

from topicweave.data.places import Place
from topicweave.errors import BadInput
from topicweave.measures.summary import measure_run
from topicweave.pipeline.measuring.api import measure_one
from topicweave.pipeline.recorded_lists import wanted_on_spark
from topicweave.pipeline.session import is_local
from topicweave.pipeline.stream_landing import Landing
from topicweave.pipeline.stream_progress import LISTS, Span, Windows
from topicweave.pipeline.workers import described
from topicweave.telemetry.interests import wanted_between
from topicweave.telemetry.schema import RECORDED, SCHEMAS
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
_OF_THE_LISTS = (
    "hit_ratio",
    "fairness",
    "partitioned_topics",
    "coverage",
    "topic_diameter_",
    "relays_per_topic",
)


class Due(NamedTuple):
    """A window that can be measured, and the files with its rows by table: all that a task needs."""

    span: Span
    files: dict[str, list[str]]
    workload: WorkloadTables | None
    """Who wants what; None if that is among the rows."""
    rows: int
    """It takes no more than these to measure it."""


def due(landing: Landing, span: Span, windows: Windows, workload: WorkloadTables | None) -> Due:
    tables = [name for name in RECORDED if name != LISTS or workload is None]
    lists = landing.lists(span.number) if workload is None else workload.rows
    files = {name: landing.files(span, windows, name) for name in tables}
    return Due(span, files, workload, span.rows + lists)


def measured_all(
    spark: SparkSession,
    landing: Landing,
    spans: Sequence[Span],
    windows: Windows,
    workload: WorkloadTables | None,
) -> list[dict[str, float]]:
    """Every measure of some windows: the small ones by a task each, large ones one after the other."""
    work = [due(landing, span, windows, workload) for span in spans]
    small = {at: one for at, one in enumerate(work) if one.rows <= IN_MEMORY}
    found: dict[int, dict[str, float]] = {}
    if len(small) > 1 or (small and not is_local(spark.sparkContext.master)):
        found = _by_tasks(spark, small, windows)
    return [found.get(at) or measured(spark, one, windows) for at, one in enumerate(work)]


def _by_tasks(spark: SparkSession, work: Mapping[int, Due], windows: Windows) -> dict[int, dict[str, float]]:
    def measure(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for at in batch["at"].to_pylist():
                measures = json.dumps(_known(_in_memory(work[at], windows), work[at]))
                yield pa.RecordBatch.from_pylist([{"at": at, "measures": measures}])

    tasks = spark.createDataFrame(pa.table({"at": pa.array(list(work), pa.int64())}))
    with described(spark, f"measure {len(work)} windows"):
        told = (
            tasks.repartitionByRange(len(work), "at")
            .mapInArrow(measure, "at long, measures string")
            .toArrow()
        )
    return {row["at"]: json.loads(row["measures"]) for row in told.to_pylist()}  # one per window


def measured(spark: SparkSession, one: Due, windows: Windows) -> dict[str, float]:
    """Every measure of one window."""
    small = one.rows <= IN_MEMORY
    return _known(_in_memory(one, windows) if small else _on_spark(spark, one, windows), one)


def _known(found: dict[str, float], one: Due) -> dict[str, float]:
    """Of an overlay that nobody looked at in the window nothing is known, nor of lists that nobody told: nan, not 0."""
    unknown: tuple[str, ...] = () if one.files["links"] else _OF_THE_OVERLAY
    if one.workload is None and not one.files[LISTS]:
        unknown += _OF_THE_LISTS
    return {name: math.nan if name.startswith(unknown) else value for name, value in found.items()}


def _options(span: Span, windows: Windows) -> dict[str, Any]:
    # A few roundings wider than the window: its rows have been picked, none may be lost to a comparison.
    rounding = 4 * math.ulp(max(abs(span.start), abs(span.end)))
    return {
        "start": span.start - rounding,
        "end": span.end + rounding,
        "grace": windows.grace,
        "window": windows.wait,
    }


def _in_memory(one: Due, windows: Windows) -> dict[str, float]:
    def read(table: str) -> pa.Table:
        schema = RECORDED[table]
        parts = [_read_file(file, schema) for file in one.files[table]]
        return pa.concat_tables([schema.empty_table(), *parts]).unify_dictionaries()

    tables = {name: read(name) for name in SCHEMAS}
    time = tables["deliveries"]["time"]
    low, high = _receptions(one.span, windows)
    near = pc.and_(pc.greater_equal(time, low), pc.less(time, high))
    tables["deliveries"] = tables["deliveries"].filter(near)
    options = _options(one.span, windows)
    if one.workload is not None:
        wishes = pq.read_table(one.workload.subscriptions)
        churn = None if one.workload.churn is None else pq.read_table(one.workload.churn)
    else:
        wishes, churn = wanted_between(read(LISTS), options["start"], options["end"])
    return measure_run(Tables(**tables), wishes, churn=churn, **options)


def _read_file(name: str, schema: pa.Schema) -> pa.Table:
    system, path = Place(name).opened()
    return pq.read_table(path, filesystem=system, columns=schema.names, partitioning=None).cast(schema)


def _on_spark(spark: SparkSession, one: Due, windows: Windows) -> dict[str, float]:
    from pyspark.sql import functions as sf

    # Rows of one moment are in one file per batch; see `stream_landing.Landing.land`.
    batch = sf.regexp_extract("_metadata.file_path", r"/batch=(\d+)/", 1).cast("long")
    order = (sf.shiftleft(batch, 40) + sf.col("_metadata.row_index")).alias("order")

    def read(table: str) -> DataFrame:
        if not one.files[table]:
            empty = RECORDED[table].append(pa.field("order", pa.int64())).empty_table()
            return spark.createDataFrame(empty)
        return spark.read.parquet(*one.files[table]).select(*RECORDED[table].names, order)

    tables = {name: read(name) for name in SCHEMAS}
    low, high = _receptions(one.span, windows)
    tables["deliveries"] = tables["deliveries"].where((sf.col("time") >= low) & (sf.col("time") < high))
    options = _options(one.span, windows)
    churn: DataFrame | None
    if one.workload is not None:
        wishes = spark.read.parquet(str(one.workload.subscriptions))
        churn = None if one.workload.churn is None else spark.read.parquet(str(one.workload.churn))
    else:
        wishes, churn = wanted_on_spark(read(LISTS), options["start"], options["end"])
    return measure_one(tables, wishes, churn=churn, **options)


def _receptions(span: Span, windows: Windows) -> tuple[float, float]:
    """When the window's events may be received: a little before it, too, because clocks differ."""
    return span.start - windows.wait, span.end + windows.wait
