"""A real standalone cluster whose workers know nothing of the driver: every command runs there as it does here.

See `tests/pipeline/standalone.py` for what the workers do and do not have. The commands are typed as a user would.
"""

import json
import os
import signal
import subprocess
import tarfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.folders import contents
from tests.pipeline.grids import GRID
from tests.pipeline.standalone import (
    CONF,
    PROJECT,
    SPARK_HOME,
    TIMEOUT,
    Cluster,
    clean_environment,
    namespaces,
)
from topicweave.pipeline.generate import generate
from topicweave.pipeline.java import find_java
from topicweave.pipeline.packing import MINOR, cache_folder, environment
from topicweave.runs.overlay import SettledOverlay
from topicweave.runs.sources import ModelWorkload

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(3600)]


@pytest.fixture(scope="session")
def packed() -> Path:
    """What `topicweave cluster pack` makes; kept from one test run to the next."""
    return environment(cache_folder())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def installed(cluster: Cluster, packed: Path) -> Mapping[str, str]:
    """The archive unpacked on the workers once, as an administrator would for many commands."""
    folder = cluster.folder / "env"
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    return {"spark.pyspark.python": str(folder / "bin" / "python")}


def told(process: subprocess.CompletedProcess[str]) -> str:
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_docs_first_command_with_nothing_on_the_workers_but_a_python(
    cluster: Cluster, packed: Path, spark: SparkSession, tmp_path: Path
) -> None:
    """By `spark.archives`, on both workers, to the same bytes as here."""
    out = tmp_path / "there"
    made = cluster.run(
        *("workload", "generate", "vitis-low", "--nodes", "45000", "--out", str(out)),
        **{"spark.archives": f"{packed}#env"},
    )
    assert "2,250,000 subscriptions" in told(made)
    assert cluster.applications("worker1") == cluster.applications("worker2") == 1
    generate("vitis-low", {"nodes": 45_000}, 0, tmp_path / "here", spark=spark)
    assert contents(out) == contents(tmp_path / "here")
    assert len(list((out / "subscriptions.parquet").glob("part-*"))) == 3


def test_a_worker_without_the_libraries_is_told_of_in_a_line(cluster: Cluster, tmp_path: Path) -> None:
    failed = cluster.run("workload", "generate", "vitis-low", "--out", str(tmp_path / "out"))
    assert failed.returncode == 2
    assert "its Python has no" in failed.stderr
    assert "topicweave cluster pack" in failed.stderr
    assert len(failed.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_another_minor_version_is_told_of_in_a_line(cluster: Cluster, tmp_path: Path) -> None:
    other = _another_python()
    if other is None:
        pytest.skip("there is no other Python here")
    failed = cluster.run("cluster", "check", **{"spark.pyspark.python": other})
    assert failed.returncode == 2
    assert f"this is {MINOR}: both must have the same minor version" in failed.stderr
    assert len(failed.stderr.strip().splitlines()) == 1


def _another_python() -> str | None:
    places = [*os.environ["PATH"].split(":"), *map(str, Path.home().glob(".pyenv/versions/*/bin"))]
    for version in ("3.12", "3.13", "3.14", "3.11"):
        found = [path for place in places if (path := Path(place, f"python{version}")).exists()]
        for path in found if version != MINOR else []:
            if not subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode:
                return str(path)
    return None


def test_a_worker_that_does_not_see_the_output_is_named_before_work_starts(
    packed: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    if not namespaces():
        pytest.skip("no mount namespaces here")
    shared = tmp_path / "shared"
    shared.mkdir()
    running = Cluster(tmp_path_factory.mktemp("half-blind"))
    with tarfile.open(packed) as archive:
        archive.extractall(running.folder / "env", filter="data")
    try:
        running.start(hidden=((), (shared,)))
        failed = running.run(
            *("workload", "generate", "vitis-low", "--nodes", "45000", "--out", str(shared / "out")),
            **{"spark.pyspark.python": str(running.folder / "env" / "bin" / "python")},
        )
    finally:
        running.stop()
    assert failed.returncode == 2
    assert f"working in {running.folder}/worker2" in failed.stderr
    assert "does not see" in failed.stderr
    assert len(failed.stderr.strip().splitlines()) == 1
    assert not list(shared.rglob("about.json"))


def record(folder: Path) -> None:
    """A simulated run's telemetry and its workload."""
    import pyarrow.parquet as pq

    spec = ModelWorkload("spidercast", {"nodes": 20, "topics": 10, "min_size": 3, "max_size": 3}, 1)
    workload = spec.load()
    workload.save(folder / "workload")
    simulation, telemetry = SettledOverlay(system="random", workload=spec, settle=3.0).simulate(workload)
    simulation.run(3.0)
    simulation.snapshot()
    simulation.publish(0, int(workload.interests(0)[0]))
    simulation.run(5.0)
    simulation.flush_control()
    tables = telemetry.tables()
    (folder / "telemetry").mkdir()
    for name in ("links", "publishes", "deliveries", "control"):
        pq.write_table(getattr(tables, name), folder / "telemetry" / f"{name}.parquet")


def here(*words: str, folder: Path) -> str:
    """The same command without a cluster."""
    import sys

    options = [part for name, value in CONF.items() for part in ("--conf", f"{name}={value}")]
    return told(
        subprocess.run(
            [sys.executable, "-m", "topicweave.cli", *words, "--master", "local[2]", *options],
            cwd=folder,
            env=clean_environment(folder),
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    )


def close(found: Any, expected: Any) -> bool:
    """Sums of floating-point numbers arrive in any order: the last bit is not the cluster's promise."""
    return bool(found == pytest.approx(expected, rel=1e-12, nan_ok=True))


def test_import_sample_and_describe(cluster: Cluster, installed: Mapping[str, str], tmp_path: Path) -> None:
    lines = "".join(f"{one} {(one * 7 + step) % 40}\n" for one in range(40) for step in range(5))
    (tmp_path / "edges.txt").write_text(lines)

    def there(*words: str) -> str:
        return told(cluster.run(*words, **installed))

    def locally(*words: str) -> str:
        return here(*words, folder=tmp_path)

    for place, run in (("there", there), ("here", locally)):
        raw, few = str(tmp_path / place / "raw"), str(tmp_path / place / "few")
        run("workload", "import", "edges", str(tmp_path / "edges.txt"), "--out", raw)
        run("workload", "sample", "bfs", raw, "--nodes", "15", "--seeds", "2", "--out", few)
        described = json.loads(run("workload", "describe", few, "--format", "json"))
        (tmp_path / place / "described.json").write_text(json.dumps({**described, "folder": ""}))
    assert contents(tmp_path / "there" / "raw") == contents(tmp_path / "here" / "raw")
    tables = [
        {
            name: content
            for name, content in contents(tmp_path / place / "few").items()
            if name != "about.json"
        }
        for place in ("there", "here")
    ]
    assert tables[0] == tables[1]
    one, other = (
        json.loads((tmp_path / place / "described.json").read_text()) for place in ("there", "here")
    )
    assert one["nodes"] == other["nodes"] == 15
    assert close(one["likeness"]["tdi_20"], other["likeness"]["tdi_20"])


def test_measure_and_stream(cluster: Cluster, installed: Mapping[str, str], tmp_path: Path) -> None:
    record(tmp_path)
    telemetry, workload = str(tmp_path / "telemetry"), str(tmp_path / "workload")
    words = ("measure", telemetry, "--workload", workload, "--format", "json")
    (found,) = json.loads(told(cluster.run(*words, **installed))).values()
    (expected,) = json.loads(here(*words, folder=tmp_path)).values()
    assert set(found) == set(expected)
    assert found["hit_ratio"] > 0
    assert all(close(found[name], expected[name]) for name in expected if expected[name] is not None)
    streaming = ("stream", telemetry, "--workload", workload, "--once", "--finish", "--format", "json")
    streamed = told(cluster.run(*streaming, "--out", str(tmp_path / "streamed"), **installed))
    assert streamed
    assert streamed == here(*streaming, "--out", str(tmp_path / "streamed here"), folder=tmp_path)


def test_a_sweep_outlives_an_executor(cluster: Cluster, installed: Mapping[str, str], tmp_path: Path) -> None:
    """In its midst one of the executors is killed, as when a spot machine goes away."""
    grid = tmp_path / "grid.toml"
    grid.write_text(GRID.replace("[1, 2, 3]", "[1, 2, 3, 4, 5, 6]").replace("nodes = 20", "nodes = 60"))
    there = tmp_path / "there"
    process = subprocess.Popen(
        cluster.command("sweep", str(grid), "--out", str(there), **installed),
        cwd=cluster.folder,
        env=clean_environment(cluster.folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + TIMEOUT
    while not list((tmp_path / "runs").glob("*.json")) and time.monotonic() < deadline:
        try:
            process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError(process.communicate()[1])
    victims = cluster.executors("worker2")
    for victim in victims:
        os.kill(victim, signal.SIGKILL)
    assert victims
    words, complaints = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, complaints
    assert "6 runs, 0 failed" in words
    mine = tmp_path / "mine"
    here("sweep", str(grid), "--out", str(tmp_path / "here"), "--runs", str(mine), folder=tmp_path)
    assert contents(tmp_path / "runs") == contents(mine)
    assert contents(there / "results.parquet") == contents(tmp_path / "here" / "results.parquet")


def test_compare_study_and_reproduce(cluster: Cluster, installed: Mapping[str, str], tmp_path: Path) -> None:
    record(tmp_path)
    compared = cluster.run(
        *("compare", str(tmp_path / "workload"), "--systems", "random,spidercast", "--seeds", "1"),
        *("--events", "5", "--settle", "5", "--out", str(tmp_path / "compared")),
        **installed,
    )
    assert "spidercast" in told(compared)
    studied = cluster.run(
        *("study", "run", "omen/fig6", "--out", str(tmp_path / "studied"), "--format", "json"), **installed
    )
    assert json.loads(told(studied))["rows"]
    reproduced = cluster.run(
        *(
            "reproduce",
            "omen/fig6",
            "--scale",
            "smoke",
            "--seeds",
            "1",
            "--out",
            str(tmp_path / "reproduced"),
        ),
        **installed,
    )
    assert reproduced.returncode in (0, 1), reproduced.stderr
    assert "omen/fig6" in reproduced.stdout + reproduced.stderr


def test_spark_submit_says_where_and_with_what(
    cluster: Cluster, installed: Mapping[str, str], tmp_path: Path
) -> None:
    import sys

    main = tmp_path / "main.py"
    main.write_text("from topicweave.cli import main\nmain()\n")
    settings, words = {**CONF, **installed}, ("cluster", "check")
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    submitted = subprocess.run(
        [*(str(SPARK_HOME / "bin" / "spark-submit"), "--master", cluster.url), *options, str(main), *words],
        cwd=cluster.folder,
        env={
            **clean_environment(cluster.folder),
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "JAVA_HOME": str(find_java().home),
        },
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    workers = told(submitted).splitlines()
    assert [f"{cluster.folder}/worker{number}" in worker for number, worker in enumerate(workers, 1)] == [
        True,
        True,
    ]


def test_no_worker_saw_the_project(cluster: Cluster) -> None:
    """What the other tests rest on: in a worker's place the project's folder is empty."""
    if not namespaces():
        pytest.skip("no mount namespaces here")
    pid = cluster.processes["worker1"].pid
    seen = subprocess.run(
        ["nsenter", "-m", "-t", str(pid), "ls", str(PROJECT)], capture_output=True, text=True, check=False
    )
    assert (seen.returncode, seen.stdout) == (0, "")
