"""A real standalone cluster whose workers know nothing of the driver: every command runs there as it does here.

See `tests/pipeline/standalone.py` for what the workers do and do not have. The commands are typed as a user would.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.folders import contents
from tests.pipeline.grids import GRID
from tests.pipeline.recording import recorded_run
from tests.pipeline.standalone import (
    CONF,
    PROJECT,
    SPARK_HOME,
    TIMEOUT,
    Cluster,
    Driver,
    namespaces,
    run_command,
)
from topicweave.pipeline.generate import generate
from topicweave.pipeline.java import find_java
from topicweave.pipeline.packing import MINOR, cache_folder, environment

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


@pytest.fixture(scope="module")
def driver(cluster: Cluster, installed: Mapping[str, str]) -> Iterator[Driver]:
    """Most commands share a session, as they would in a notebook: starting one takes longer than they do."""
    running = cluster.driver(**installed)
    yield running
    running.stop()


def told(process: subprocess.CompletedProcess[str]) -> str:
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def test_the_commands_of_the_docs_with_nothing_on_the_workers_but_a_python(
    cluster: Cluster, packed: Path, spark: SparkSession, tmp_path: Path
) -> None:
    """As they stand on the page, but for places and sizes; on both workers, to the same bytes as here."""
    blocks = re.findall(r"```sh\n(.*?)```", (PROJECT / "docs" / "cluster.md").read_text(), re.DOTALL)
    assert len(blocks) == 1
    script = blocks[0].replace("spark://head:7077", cluster.url).replace("/shared", str(tmp_path / "shared"))
    assert "--nodes 1000000 " in script
    defaults = tmp_path / "conf" / "spark-defaults.conf"
    defaults.parent.mkdir()
    defaults.write_text("".join(f"{name} {value}\n" for name, value in CONF.items()))
    ran = run_command(
        ["sh", "-ec", script.replace("1000000", "45000")],
        tmp_path,
        PATH=f"{Path(sys.executable).parent}:{os.defpath}",
        SPARK_CONF_DIR=str(defaults.parent),
        XDG_CACHE_HOME=str(packed.parents[2]),
    )
    assert "2,250,000 subscriptions" in told(ran)
    assert cluster.applications("worker1") == cluster.applications("worker2") >= 2
    out = tmp_path / "shared" / "w"
    generate("vitis-high", {"nodes": 45_000}, 0, tmp_path / "here", spark=spark)
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
    cluster: Cluster, installed: Mapping[str, str], tmp_path: Path
) -> None:
    if not namespaces():
        pytest.skip("no mount namespaces here")
    shared = tmp_path / "shared"
    shared.mkdir()
    cluster.start_worker("blind", hidden=[shared])
    try:
        cluster.wait_for_worker("blind")
        failed = cluster.run(
            *("workload", "generate", "vitis-low", "--nodes", "45000", "--out", str(shared / "out")),
            **installed,
            **{"spark.cores.max": "3"},
        )
    finally:
        cluster.stop_worker("blind")
    assert failed.returncode == 2
    assert f"working in {cluster.folder}/blind" in failed.stderr
    assert "does not see" in failed.stderr
    assert len(failed.stderr.strip().splitlines()) == 1
    assert not list(shared.rglob("about.json"))


def here(*words: str) -> str:
    """The same command in this process, with its own session."""
    from typer.testing import CliRunner

    from topicweave.cli.app import app

    done = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def close(found: Any, expected: Any) -> bool:
    """Sums of floating-point numbers arrive in any order: the last bit is not the cluster's promise."""
    return bool(found == pytest.approx(expected, rel=1e-12, nan_ok=True))


def test_import_sample_and_describe(driver: Driver, spark: SparkSession, tmp_path: Path) -> None:
    lines = "".join(f"{one} {(one * 7 + step) % 40}\n" for one in range(40) for step in range(5))
    (tmp_path / "edges.txt").write_text(lines)
    for place, run in (("there", lambda *words: told(driver.run(*words))), ("here", here)):
        raw, few = str(tmp_path / place / "raw"), str(tmp_path / place / "few")
        run("workload", "import", "edges", str(tmp_path / "edges.txt"), "--out", raw)
        run("workload", "sample", "topics", raw, "--topics", "15", "--out", few)
        described = json.loads(run("workload", "describe", few, "--sample", "2", "--format", "json"))
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
    assert one["topics"] == other["topics"] == 15
    assert close(one["likeness"]["tdi_20"], other["likeness"]["tdi_20"])


def test_measure_stream_and_graph(
    driver: Driver, spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    recorded_run(tmp_path)
    telemetry, workload = str(tmp_path / "telemetry"), str(tmp_path / "workload")
    words = ("measure", telemetry, "--workload", workload, "--format", "json")
    (found,) = json.loads(told(driver.run(*words, "--master", cluster.url))).values()
    (expected,) = json.loads(here(*words)).values()
    assert set(found) == set(expected)
    assert found["hit_ratio"] > 0
    assert all(close(found[name], expected[name]) for name in expected if expected[name] is not None)
    streaming = ("stream", telemetry, "--workload", workload, "--once", "--finish", "--format", "json")
    streamed = told(driver.run(*streaming, "--out", str(tmp_path / "streamed")))
    assert streamed
    assert streamed == here(*streaming, "--out", str(tmp_path / "streamed here"))
    for name in ("components", "diameter"):
        graph = ("graph", name, telemetry, "--workload", workload, "--format", "json")
        of_topics = json.loads(told(driver.run(*graph)))
        assert of_topics
        assert sorted(map(repr, of_topics)) == sorted(map(repr, json.loads(here(*graph))))


def test_a_sweep_outlives_an_executor(
    driver: Driver, spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    """In its midst one of the executors is killed, as when a spot machine goes away."""
    grid = tmp_path / "grid.toml"
    grid.write_text(GRID.replace("[1, 2, 3]", "[1, 2, 3, 4, 5, 6]").replace("nodes = 20", "nodes = 60"))
    there = tmp_path / "there"
    driver.begin("sweep", str(grid), "--out", str(there))
    wait_until(lambda: list((tmp_path / "runs").glob("*.json")) or driver.has_ended())
    kill_executors(cluster, "worker2")
    assert "6 runs, 0 failed" in told(driver.outcome())
    mine = tmp_path / "mine"
    here("sweep", str(grid), "--out", str(tmp_path / "here"), "--runs", str(mine))
    assert contents(tmp_path / "runs") == contents(mine)
    assert contents(there / "results.parquet") == contents(tmp_path / "here" / "results.parquet")


def wait_until(condition: Callable[[], object]) -> None:
    deadline, tick = time.monotonic() + TIMEOUT, threading.Event()
    while not condition():
        assert time.monotonic() < deadline
        tick.wait(0.05)


def kill_executors(cluster: Cluster, worker: str) -> None:
    victims = cluster.executors(worker)
    assert victims
    for victim in victims:
        os.kill(victim, signal.SIGKILL)


def test_compare_plans_by_the_cluster_and_outlives_an_executor(
    driver: Driver, cluster: Cluster, tmp_path: Path
) -> None:
    """Pilots and runs are tasks; how many go on at a time is what the cluster has. An executor is lost meanwhile."""
    told(driver.run("workload", "generate", "--nodes", "410", "--out", str(tmp_path / "w")))
    words = ("compare", str(tmp_path / "w"), "--systems", "random", "--seeds", "4", "--events", "5")
    driver.begin(
        *(*words, "--settle", "3", "--crash", "0", "--master", cluster.url, "--budget", "2h"),
        *("--out", str(tmp_path / "compared")),
    )
    wait_until(lambda: list((tmp_path / "runs").glob("*.json")) or driver.has_ended())
    kill_executors(cluster, "worker1")
    compared = driver.outcome()
    assert "random" in told(compared)
    assert "(2 at a time, on the cluster)" in compared.stderr
    assert len(list((tmp_path / "runs").glob("*.json"))) == 4


def test_study_and_reproduce(driver: Driver, cluster: Cluster, tmp_path: Path) -> None:
    """Each with runs of its own: what the first has finished the second does not ask the cluster for."""
    words = ("study", "run", "omen/fig6", "--out", str(tmp_path / "studied"), "--format", "json")
    studied = driver.run(*words, "--master", cluster.url)
    assert json.loads(told(studied))["rows"]
    again = ("reproduce", "omen/fig6", "--scale", "smoke", "--seed", "1", "--out", str(tmp_path / "again"))
    reproduced = driver.run(*again, "--master", cluster.url, "--format", "json")
    assert json.loads(told(reproduced))
    assert "finished in an earlier run" not in reproduced.stderr
    assert "2/2 " in reproduced.stderr
    assert len(list((tmp_path / "runs").glob("*.json"))) == 4


def test_spark_submit_says_where_and_with_what(
    cluster: Cluster, installed: Mapping[str, str], tmp_path: Path
) -> None:
    main = tmp_path / "main.py"
    main.write_text("from topicweave.cli import main\nmain()\n")
    settings = {**CONF, **installed, "spark.pyspark.driver.python": sys.executable}
    words = ("cluster", "check")
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    submitted = run_command(
        [*(str(SPARK_HOME / "bin" / "spark-submit"), "--master", cluster.url), *options, str(main), *words],
        cluster.folder,
        JAVA_HOME=str(find_java().home),
    )
    workers = told(submitted).splitlines()[:2]  # what goes to stderr comes here, too, by spark-submit
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
