"""Measures from a folder that grows: every row once, late ones left out, and a restart goes on where it was."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from topicweave.errors import BadInput
from topicweave.pipeline.stream import start_stream

SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("event", pa.int64()),
        ("node", pa.string()),
        ("time", pa.float64()),
        ("hops", pa.int32()),
        ("sender", pa.string()),
        ("wanted", pa.bool_()),
    ]
)


def append(folder: Path, name: str, times: list[float]) -> None:
    (folder / "deliveries").mkdir(exist_ok=True)
    rows = [
        {
            "run": "live",
            "event": 1,
            "node": "a",
            "time": time,
            "hops": 2 + at % 2,
            "sender": "b",
            "wanted": at % 2 == 0,
        }
        for at, time in enumerate(times)
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), folder / "deliveries" / f"{name}.parquet")


def drain(spark: SparkSession, folder: Path) -> dict[tuple[float, float], tuple[int, int]]:
    """Count what is there, then stop: (window) -> (receptions, unwanted)."""
    query = start_stream(spark, folder, folder / "out", window=10.0, lateness=5.0, until_idle=True)
    query.awaitTermination(120)
    assert query.exception() is None
    parts = sorted((folder / "out" / "windows.parquet").glob("part-*.parquet"))
    rows = [row for part in parts for row in pq.read_table(part).to_pylist()]
    spans = [(row["start"], row["end"]) for row in rows]
    assert len(set(spans)) == len(spans), "a window is written once"
    return {(row["start"], row["end"]): (row["receptions"], row["unwanted"]) for row in rows}


def test_rows_are_counted_once_across_restarts_and_late_ones_left_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    append(tmp_path, "first", [1.0, 2.0, 9.9, 12.0])
    assert drain(spark, tmp_path) == {}, "nothing is final before the watermark has passed it"
    append(tmp_path, "second", [8.0, 26.0])  # late, but within five seconds of 12
    assert drain(spark, tmp_path) == {(0.0, 10.0): (4, 1), (10.0, 20.0): (1, 1)}
    append(tmp_path, "third", [3.0, 50.0])  # the first comes after its window was closed
    assert drain(spark, tmp_path) == {
        (0.0, 10.0): (4, 1),
        (10.0, 20.0): (1, 1),
        (20.0, 30.0): (1, 1),
    }
    before = {file: file.read_bytes() for file in (tmp_path / "out" / "windows.parquet").iterdir()}
    drain(spark, tmp_path)
    assert {file: file.read_bytes() for file in (tmp_path / "out" / "windows.parquet").iterdir()} == before


def test_a_folder_that_is_not_there(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such folder; nodes append files"):
        start_stream(spark, tmp_path, tmp_path / "out")
