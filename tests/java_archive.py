"""Spark's classes as Java keeps them in memory, archived once: every Spark that a test starts is up with half the work.

`make test` runs this module, which does nothing where the archive is there. Java checks by itself that an
archive is of the same Java and the same jars, and does without one that is not.
"""

import os
import sys
from importlib.metadata import version
from pathlib import Path

ARCHIVE = Path(sys.prefix, f"spark-{version('pyspark')}.jsa")

# Javas of tests live for seconds: what a better compiler or a second collector's thread would gain they never
# earn back.
SHORT_LIFE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
SILENT = "-Xlog:disable"


def options() -> dict[str, str]:
    """Environment variables for the Javas of tests."""
    with_archive = f" {SILENT} -XX:SharedArchiveFile={ARCHIVE}" if ARCHIVE.exists() else ""
    return {
        "SPARK_LAUNCHER_OPTS": SHORT_LIFE,
        "SPARK_SUBMIT_OPTS": f"{SHORT_LIFE} -Xmn256m{with_archive}",
    }


def make() -> None:
    from tempfile import TemporaryDirectory

    from pyspark.sql import functions as sf

    from topicweave.pipeline.session import spark_session

    with TemporaryDirectory(dir=ARCHIVE.parent) as folder:
        made, rows, stream = (f"{folder}/{name}" for name in ("archive", "rows", "stream"))
        os.environ |= options()
        os.environ["SPARK_SUBMIT_OPTS"] += f" {SILENT} -XX:ArchiveClassesAtExit={made}"
        with spark_session(
            "local[2]", **{"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
        ) as spark:
            java = spark.sparkContext._gateway.proc  # type: ignore[union-attr]  # it runs, so there is one
            # What most tests do: rows to Python and back, shuffles, tables written and read, a stream.
            numbers = spark.range(1000).select(
                "id", (sf.col("id") % 7).alias("part"), sf.col("id").cast("string").alias("name")
            )
            numbers.mapInArrow(lambda batches: batches, numbers.schema).write.partitionBy("part").parquet(
                rows
            )
            read = spark.read.parquet(rows)
            read.join(read.groupBy("part").agg(sf.count("*"), sf.max("name")), "part").orderBy("id").toArrow()
            writer = (
                spark.readStream.schema(read.schema)
                .parquet(rows)
                .writeStream.option("checkpointLocation", stream)
            )
            writer.foreachBatch(lambda batch, _: batch.write.format("noop").mode("append").save()).trigger(
                availableNow=True
            ).start().awaitTermination()
        java.stdin.close()  # then Java ends and writes the archive
        java.wait(300)
        if Path(made).exists():  # not every Java can
            Path(made).rename(ARCHIVE)


if __name__ == "__main__" and not ARCHIVE.exists():
    make()
