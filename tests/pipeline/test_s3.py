"""Tables on an object store: moto's server, which speaks S3 over HTTP, written and read through PyArrow."""

import gzip
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tests.live.together import kept_port
from tests.pipeline.folders import contents
from tests.pipeline.grids import GRID
from tests.pipeline.recording import recorded_run
from topicweave.cli.app import app
from topicweave.data.places import Place
from topicweave.errors import BadInput
from topicweave.pipeline import sample
from topicweave.pipeline.describe import describe
from topicweave.pipeline.executor import SparkExecutor
from topicweave.pipeline.frames import tables_in
from topicweave.pipeline.generate import generate
from topicweave.pipeline.grid import read_grid
from topicweave.pipeline.importing import import_trace
from topicweave.pipeline.staging import mark_of, read_about
from topicweave.pipeline.sweep import Swept, summary, sweep
from topicweave.runs.runner import Processes

pytest.importorskip("moto")


@pytest.fixture(scope="module")
def bucket() -> Iterator[Place]:
    with kept_port() as address, moto_server(address):
        place = Place(
            f"s3://key:secret@bucket?endpoint_override={address}&scheme=http&region=us-east-1"
            "&allow_bucket_creation=true"
        )
        system, path = place.opened()
        system.create_dir(path)
        yield place


@contextmanager
def moto_server(address: str) -> Iterator[None]:
    host, port = address.split(":")
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", host, "-p", port],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                urlopen(f"http://{address}/moto-api/", timeout=5).close()
                break
            except (URLError, OSError):
                try:
                    server.wait(timeout=0.1)
                except subprocess.TimeoutExpired:
                    continue
                raise AssertionError("moto's server ended") from None
        yield
    finally:
        server.kill()
        server.wait()


def fetched(place: Place, folder: Path) -> Path:
    """All of a folder of the store, on disk."""
    from pyarrow import fs

    system, path = place.opened()
    folder.mkdir()
    fs.copy_files(path, str(folder), source_filesystem=system)
    return folder


def test_a_workload_is_made_and_sampled_there_to_the_same_bytes(
    spark: SparkSession, bucket: Place, tmp_path: Path
) -> None:
    there, here = bucket / "w", tmp_path / "w"
    assert generate("vitis-low", {"nodes": 300}, 1, there, spark=spark) == generate(
        "vitis-low", {"nodes": 300}, 1, here
    )
    assert contents(fetched(there, tmp_path / "fetched")) == contents(here)
    assert mark_of(there) == mark_of(here)
    # As the command line hands them over: as paths.
    source, target = Path(str(there)), Path(str(bucket / "few"))
    few = sample.random_topics(spark, source, target, topics=20, seed=3)
    assert few == sample.random_topics(spark, here, tmp_path / "few", topics=20, seed=3)
    parts = [read_about(place)["tables"] for place in (bucket / "few", Place(tmp_path / "few"))]
    assert parts[0] == parts[1]
    found, expected = (describe(spark, place, sample=20) for place in (target, tmp_path / "few"))
    assert {**found, "folder": ""} == {**expected, "folder": ""}


def test_what_is_there_is_replaced_only_when_told_and_then_wholly(bucket: Place) -> None:
    out = bucket / "again"
    generate("vitis-low", {"nodes": 30}, 1, out)
    with pytest.raises(BadInput, match="already there"):
        generate("vitis-low", {"nodes": 30}, 2, out)
    (old,) = (out / "subscriptions.parquet").names()
    generate("vitis-low", {"nodes": 30}, 2, out, overwrite=True)
    (new,) = (out / "subscriptions.parquet").names()
    assert new != old
    assert "_work" not in out.names()


def test_a_trace_is_imported_from_there(spark: SparkSession, bucket: Place, tmp_path: Path) -> None:
    lines = "".join(f"{one} {(one * 7 + step) % 40}\n" for one in range(40) for step in range(5)) + "odd\n"
    for name, content in (("edges.txt", lines.encode()), ("more.txt.gz", gzip.compress(b"1 39\n2 39\n"))):
        (tmp_path / "raw").mkdir(exist_ok=True)
        (tmp_path / "raw" / name).write_bytes(content)
        (bucket / "raw" / name).put(content)
    there = import_trace(spark, "edges", Path(str(bucket / "raw")), Path(str(bucket / "graph")))
    assert there == import_trace(spark, "edges", tmp_path / "raw", tmp_path / "graph")
    assert (there["lines"], there["rejects"]) == (202, 1)
    tables = [read_about(place)["tables"] for place in (bucket / "graph", Place(tmp_path / "graph"))]
    assert tables[0]["subscriptions.parquet"] == tables[1]["subscriptions.parquet"]
    (reject,) = tables_in(spark, bucket / "graph")["rejects"].collect()
    assert (reject["line"], reject["text"]) == (201, "odd")
    assert reject["file"].startswith("s3://***@bucket/raw/edges.txt")


def test_a_sweep_keeps_results_there(spark: SparkSession, bucket: Place, tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(GRID)
    cells = read_grid(tmp_path / "grid.toml")
    out, runs = Path(str(bucket / "swept")), Path(str(bucket / "runs"))
    assert sweep(cells, out, runs, SparkExecutor(spark)) == Swept(3, 0)
    assert sweep(cells, tmp_path / "swept", tmp_path / "runs", Processes(1)) == Swept(3, 0)
    assert contents(fetched(bucket / "swept" / "results.parquet", tmp_path / "fetched")) == contents(
        tmp_path / "swept" / "results.parquet"
    )
    (found,) = summary(spark, out, cells, ["degree_mean"])
    (expected,) = summary(spark, tmp_path / "swept", cells, ["degree_mean"])
    assert (found["replications"], found["mean"]) == (3, pytest.approx(expected["mean"]))


def test_runs_are_measured_there(spark: SparkSession, bucket: Place, tmp_path: Path) -> None:
    """In memory and on Spark, with a workload's folder and with what the nodes recorded; the table goes there, too."""
    recorded_run(tmp_path)
    for file in sorted(tmp_path.rglob("*.parquet")):
        if file.is_file():
            (bucket / "recorded" / str(file.relative_to(tmp_path))).put(file.read_bytes())
    telemetry, workload = bucket / "recorded" / "telemetry", bucket / "recorded" / "workload"
    for words in ((), ("--workload", str(workload))):
        local = [word if word != str(workload) else str(tmp_path / "workload") for word in words]
        expected = json.loads(command("measure", str(tmp_path / "telemetry"), *local, "--format", "json"))
        out = str(bucket / f"measured-{len(words)}")
        here = command("measure", str(telemetry), *words, "--format", "json", "--out", out)
        assert json.loads(here) == expected
        on_spark = command("measure", str(telemetry), *words, "--format", "json", "--master", "local[2]")
        (found,), (known,) = json.loads(on_spark).values(), expected.values()
        assert found == pytest.approx(known, rel=1e-12, nan_ok=True)
        assert known["hit_ratio"] > 0
        about = Place(out) / "about.json"
        assert b"measures.parquet" in (content := about.read() or b"")
        assert b"secret" not in content


def command(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.stderr
    assert "secret" not in done.stdout + done.stderr
    return done.stdout


def test_keys_are_in_no_error_and_where_a_disk_is_needed_it_is_said(bucket: Place, tmp_path: Path) -> None:
    nowhere, target = str(bucket / "nowhere"), str(bucket / "out")
    (tmp_path / "some.csv").write_text("node,topic\na,x\nb,x\n")
    for words, complaint in (
        (("measure", nowhere), "no such telemetry table"),
        (("workload", "describe", nowhere), "no tables of ours"),
        (("compare", str(tmp_path / "some.csv"), "--out", target), "an object store"),
        (("compare", str(tmp_path / "some.csv"), "--telemetry", target), "an object store"),
        (("stream", nowhere, "--out", str(tmp_path / "streamed")), "an object store"),
        (("study", "run", "omen/fig6", "--out", target), "an object store"),
        (("reproduce", "omen/fig6", "--out", target), "an object store"),
    ):
        failed = CliRunner().invoke(app, list(words))
        assert failed.exit_code == 2
        assert complaint in failed.stderr
        assert "s3:/" in failed.stderr
        assert "secret" not in failed.stdout + failed.stderr
        assert len(failed.stderr.strip().splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["some.csv"]
