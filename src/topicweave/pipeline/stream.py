"""Measures over a folder that nodes keep appending telemetry to: Structured Streaming, checkpointed.

Nodes append whole Parquet files to `FOLDER/deliveries/` (a file is moved there when it is complete). The stream counts
every reception once, in windows of event time; a row that comes later than the watermark allows is left out. What it
has counted is in the checkpoint: killed and started again
it goes on with the files it has not counted yet, and neither loses nor repeats a row.

Windows are by the time of reception. Per window and run:

    receptions, unwanted    messages that carry events, and those the receiver did not want
    noise_all               unwanted / receptions
    wanted                  the others; hops_mean and hops_max are over these

Which reception of an event is the *first* at a node is not known before the watermark has passed all of them, and
needs a state as large as the events within it; so what is measured here are the measures over all receptions. The
others are `topicweave measure`'s, over the same folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from topicweave.errors import BadInput
from topicweave.pipeline.parts import write_part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_DELIVERIES = "run string, event long, node string, time double, hops int, sender string, wanted boolean"
WINDOWS = pa.schema(
    [
        ("run", pa.string()),
        ("start", pa.float64()),
        ("end", pa.float64()),
        ("receptions", pa.int64()),
        ("unwanted", pa.int64()),
        ("noise_all", pa.float64()),
        ("wanted", pa.int64()),
        ("hops_mean", pa.float64()),
        ("hops_max", pa.int64()),
    ]
)


def start_stream(
    spark: SparkSession,
    folder: Path,
    out: Path,
    *,
    window: float = 60.0,
    lateness: float = 300.0,
    until_idle: bool = False,
) -> StreamingQuery:
    """Count `folder`/deliveries into `out`/windows.parquet; with `until_idle` only what is there now.

    A window is written once, when nothing for it can come any more within `lateness`.
    """
    source = folder / "deliveries"
    if not source.is_dir():
        raise BadInput(f"{source}: no such folder; nodes append files of deliveries there")
    if not (window > 0 and lateness >= 0):
        raise BadInput(
            f"window {window}, lateness {lateness}: choose a positive window and no negative lateness"
        )
    rows = spark.readStream.schema(_DELIVERIES).parquet(str(source.absolute()))
    target = str((out / "windows.parquet").absolute())

    def append(batch: DataFrame, number: int) -> None:
        # The batch's number names its file: a batch that is done again after a crash replaces itself.
        table = batch.toArrow()  # windows that closed just now, not rows
        ordered = table.sort_by([("run", "ascending"), ("start", "ascending")])
        if ordered.num_rows:
            write_part(Path(target) / f"part-{number:08d}.parquet", WINDOWS, [ordered.cast(WINDOWS)])

    writer = (
        counted(rows, window, lateness)
        .writeStream.outputMode("append")
        .option("checkpointLocation", str((out / "checkpoint").absolute()))
        .foreachBatch(append)
    )
    writer = writer.trigger(availableNow=True) if until_idle else writer.trigger(processingTime="1 second")
    return writer.start()


def counted(rows: DataFrame, window: float, lateness: float) -> DataFrame:
    """Receptions by run and window of event time; times are seconds since the run's fixed moment."""
    from pyspark.sql import functions as sf

    moment = sf.timestamp_micros((sf.col("time") * 1e6).cast("long"))
    late = f"{round(lateness * 1e6)} microseconds"
    span = sf.window("moment", f"{round(window * 1e6)} microseconds")
    windows = (
        rows.withColumn("moment", moment)
        .withWatermark("moment", late)
        .groupBy("run", span.alias("span"))
        .agg(
            sf.count("*").alias("receptions"),
            sf.count_if(~sf.col("wanted")).alias("unwanted"),
            sf.count_if(sf.col("wanted")).alias("wanted"),
            sf.avg(sf.when(sf.col("wanted"), sf.col("hops"))).alias("hops_mean"),
            sf.max(sf.when(sf.col("wanted"), sf.col("hops"))).cast("long").alias("hops_max"),
        )
    )
    return windows.select(
        "run",
        (sf.unix_micros("span.start") / 1e6).alias("start"),
        (sf.unix_micros("span.end") / 1e6).alias("end"),
        "receptions",
        "unwanted",
        (sf.col("unwanted") / sf.col("receptions")).alias("noise_all"),
        "wanted",
        "hops_mean",
        "hops_max",
    )
