"""What Spark reads and samples is what memory does: one reading of each format and of each paper's section."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.pipeline.folders import rows
from topicweave.data import availability, sampling
from topicweave.data.formats import REAL
from topicweave.data.networks import measured_slices
from topicweave.data.reading import read_rows, read_workload, real_rows, real_workload
from topicweave.model.workload import Workload
from topicweave.pipeline import sample
from topicweave.pipeline.importing import import_trace
from topicweave.pipeline.session import spark_session

SUBSCRIPTIONS = [name for name, real in REAL.items() if real.file.startswith("subscriptions/")]


def imported(spark: SparkSession, data: Path, name: str, out: Path) -> Path:
    real = REAL[name]
    import_trace(spark, real.format, data / real.file, out, real.options)
    return out


@pytest.mark.parametrize("name", SUBSCRIPTIONS)
def test_subscriptions(spark: SparkSession, made_up_data: Path, tmp_path: Path, name: str) -> None:
    assert Workload.load(imported(spark, made_up_data, name, tmp_path / "out")) == real_workload(name)


def test_opml(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "readers"
    folder.mkdir()
    (folder / "ann.opml").write_text('<opml><body><outline xmlUrl="http://a"/></body></opml>')
    (folder / "none.opml").write_text("<opml><body/></opml>")
    import_trace(spark, "opml", folder, tmp_path / "out")
    assert Workload.load(tmp_path / "out") == read_workload("opml", folder)


def test_machine_events(spark: SparkSession, made_up_data: Path, tmp_path: Path) -> None:
    out = imported(spark, made_up_data, "google", tmp_path / "out")
    kept = availability.alternating(real_rows("google")).to_pylist()
    key: Callable[[dict[str, Any]], Any] = lambda row: (row["time"], row["node"])  # noqa: E731
    assert len(kept) > 300
    assert sorted(rows(out, "churn"), key=key) == sorted(kept, key=key)


def test_sessions(spark: SparkSession, made_up_data: Path, tmp_path: Path) -> None:
    out = imported(spark, made_up_data, "gnutella", tmp_path / "out")
    by_host: dict[str, list[float]] = {row["node"]: [] for row in rows(out, "hosts")}
    for row in sorted(rows(out, "churn"), key=lambda row: row["time"]):
        by_host[row["node"]].append(row["time"])
    flat = [
        tuple(time for session in sessions for time in session) for sessions in availability.host_sessions()
    ]
    assert {host: tuple(times) for host, times in by_host.items()} == {
        str(host): times for host, times in enumerate(flat)
    }


def test_round_trips(spark: SparkSession, made_up_data: Path, tmp_path: Path) -> None:
    out = imported(spark, made_up_data, "planetlab", tmp_path / "out")
    slices = measured_slices()
    found = np.full(slices.shape, math.nan)
    for row in rows(out, "rtt"):
        found[row["slice"], int(row["node"]), int(row["peer"])] = row["rtt"] * 1000.0
    assert slices.shape == (18, 24, 24)
    np.testing.assert_allclose(found, slices, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "table"),
    [("king", "hosts"), ("oversim", "hosts"), ("caida", "as_links"), ("as-2013", "as_links")],
)
def test_places_and_links(
    spark: SparkSession, made_up_data: Path, tmp_path: Path, name: str, table: str
) -> None:
    out = imported(spark, made_up_data, name, tmp_path / "out")
    stored = rows(out, table)
    read = real_rows(name).select(list(stored[0])).to_pylist()
    key: Callable[[dict[str, Any]], Any] = lambda row: tuple(str(cell) for cell in row.values())  # noqa: E731
    assert sorted(stored, key=key) == sorted(read, key=key)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory, miniature: Path) -> tuple[Path, Workload]:
    """The made-up Epinions as a folder; with places and changes, which samples keep."""
    real = REAL["epinions"]
    users = read_workload(real.format, miniature / real.file, real.options)
    tables = users.tables()
    names = list(users.node_names)
    tables["hosts"] = pa.table(
        {"node": names, "x": np.arange(users.nodes) / 7, "y": np.arange(users.nodes) / 3}
    )
    tables["churn"] = pa.table({"time": [5.0] * 30, "node": names[:30], "change": ["leave"] * 30})
    whole = Workload.from_tables(tables["subscriptions"], tables["topics"], tables["churn"], tables["hosts"])
    folder = tmp_path_factory.mktemp("epinions") / "w"
    whole.save(folder)
    return folder, whole


SAMPLES: dict[str, dict[str, Any]] = {
    "breadth_first": {"nodes": 70, "seed": 5},
    "breadth_first out": {"nodes": 60, "seeds": 2, "follow": "out", "seed": 1},
    "followed": {"nodes": 50, "seed": 3},
    "universe": {"seeds": 4, "publishers": 6, "seed": 2},
    "random_topics": {"topics": 12, "seed": 7},
    "neighbourhood": {"nodes": 15, "seed": 4},
}


@pytest.mark.parametrize("name", SAMPLES)
def test_samples(spark: SparkSession, graph: tuple[Path, Workload], tmp_path: Path, name: str) -> None:
    """The same in memory and on Spark; once also in a single partition."""
    folder, whole = graph
    function, options = name.split(maxsplit=1)[0], SAMPLES[name]
    expected = getattr(sampling, function)(whole, **options)
    assert 0 < expected.nodes < whole.nodes
    for partitions in ("1", "5") if name == "breadth_first" else ("5",):
        with spark_session(**{"spark.sql.shuffle.partitions": partitions}):
            getattr(sample, function)(spark, folder, tmp_path / partitions, **options)
        assert Workload.load(tmp_path / partitions) == expected


def test_churn_laid_over(spark: SparkSession, made_up_data: Path, tmp_path: Path) -> None:
    workload = real_workload("youtube")
    workload.save(tmp_path / "w")
    trace = imported(spark, made_up_data, "gnutella", tmp_path / "trace")
    sample.with_churn(spark, tmp_path / "w", trace, tmp_path / "out", seconds=100.0, seed=3)
    changes, hosts = (pq.read_table(trace / f"{name}.parquet") for name in ("churn", "hosts"))
    expected = availability.with_churn(workload, changes, hosts, seconds=100.0, seed=3)
    assert Workload.load(tmp_path / "out") == expected


def test_a_file_read_in_memory_keeps_its_wrong_lines(tmp_path: Path) -> None:
    file = tmp_path / "edges.txt"
    file.write_text("".join(f"{number} {number + 1}\n" for number in range(300)) + "1 2 3\n")
    read = read_rows("edges", file)
    assert (read.lines, [(wrong.line, wrong.reason) for wrong in read.wrong]) == (
        300,
        [(301, "3 fields between white space, not 2")],
    )
