"""A real standalone cluster on this machine: generate, sweep and measure there, and the tables are those of local mode.

The driver is the command line, as a user would run it; the master and the two workers are those that come with
PySpark. Nothing is installed on the workers but the libraries: the project is shipped to them.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from tests.pipeline.folders import contents
from tests.pipeline.grids import GRID
from topicweave.pipeline import sweep as sweeping
from topicweave.pipeline.executor import SparkExecutor
from topicweave.pipeline.generate import generate
from topicweave.pipeline.grid import read_grid
from topicweave.pipeline.java import find_java
from topicweave.pipeline.measure import measure_on_spark, read_tables
from topicweave.report.files import json_text
from topicweave.runs.overlay import SettledOverlay
from topicweave.runs.sources import ModelWorkload

pytestmark = pytest.mark.cluster


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Cluster:
    """A master and two workers with one core each, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"spark://127.0.0.1:{self.port}"
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        self._java(
            "master",
            "org.apache.spark.deploy.master.Master",
            *("--host", "127.0.0.1", "--port", str(self.port), "--webui-port", str(free_port())),
        )
        self._wait_for("master", r"I have been elected leader")
        for number in (1, 2):
            self._java(
                f"worker{number}",
                "org.apache.spark.deploy.worker.Worker",
                *(
                    "--host",
                    "127.0.0.1",
                    "--webui-port",
                    str(free_port()),
                    "--cores",
                    "1",
                    "--memory",
                    "700m",
                ),
                *("--work-dir", str(self.folder / f"work{number}"), self.url),
            )
        self._wait_for("worker1", r"Successfully registered with master")
        self._wait_for("worker2", r"Successfully registered with master")

    def executors(self, worker: int) -> list[int]:
        """The processes that a worker has started: a launcher, or the Java it became."""
        parent = self.processes[worker].pid
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            if int(fields[1]) == parent:
                found.append(int(entry.name))
        return found

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.kill()
        for process in self.processes:
            process.wait()

    def _java(self, name: str, main: str, *arguments: str) -> None:
        home = Path(pyspark.__file__).parent
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes.append(
                subprocess.Popen(
                    [home / "bin" / "spark-class", main, *arguments],  # becomes the Java process
                    # Not this project's folder: a worker must get the project from the driver.
                    cwd=self.folder,
                    env={
                        "PATH": os.environ["PATH"],
                        "SPARK_HOME": str(home),
                        "JAVA_HOME": str(find_java().home),
                        "SPARK_DAEMON_MEMORY": "256m",
                    },
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )

    def _wait_for(self, name: str, words: str) -> None:
        deadline = time.monotonic() + 120
        log = self.folder / f"{name}.log"
        while not re.search(words, log.read_text(errors="replace")):
            assert time.monotonic() < deadline, f"{name}: {log.read_text(errors='replace')[-2000:]}"
            try:
                # A moment, or at once when the newest process has ended.
                self.processes[-1].wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
            raise AssertionError(log.read_text(errors="replace")[-2000:])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        running.start()
        yield running
    finally:
        running.stop()


SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.pyspark.python": sys.executable,
    "spark.sql.shuffle.partitions": "3",
    # On a handful of rows, planning anew and compiling each query takes longer than running it.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
}

DRIVER = """
import json, sys
from pathlib import Path
from topicweave.report.files import json_text
from topicweave.cli.spark import spark_for
from topicweave.pipeline.generate import generate
from topicweave.pipeline.measure import measure_on_spark, read_tables

master, settings, out, telemetry, workload = sys.argv[1:]
with spark_for("test", master, json.loads(settings), verbose=False) as spark:
    generate("vitis-low", {"nodes": 45_000}, 0, Path(out), spark=spark)
    wishes = spark.read.parquet(workload + "/subscriptions.parquet")
    print(json_text(measure_on_spark(read_tables(spark, Path(telemetry)), wishes)))
"""


def conf() -> list[str]:
    return [f"{name}={value}" for name, value in SETTINGS.items()]


def record(folder: Path) -> None:
    """A simulated run's telemetry and its workload."""
    spec = ModelWorkload("spidercast", {"nodes": 20, "topics": 10, "min_size": 3, "max_size": 3}, 1)
    workload = spec.load()
    workload.save(folder / "workload")
    simulation, telemetry = SettledOverlay(system="random", workload=spec, settle=3.0).simulate(workload)
    simulation.run(3.0)
    simulation.snapshot()
    simulation.publish(0, int(workload.interests(0)[0]))
    simulation.run(5.0)
    simulation.flush_control()
    import pyarrow.parquet as pq

    tables = telemetry.tables()
    (folder / "telemetry").mkdir()
    for name in ("links", "publishes", "deliveries", "control"):
        pq.write_table(getattr(tables, name), folder / "telemetry" / f"{name}.parquet")


def test_a_cluster_makes_the_tables_of_local_mode_to_the_byte(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    record(tmp_path)
    telemetry, workload = tmp_path / "telemetry", tmp_path / "workload"
    arguments = cluster.url, json.dumps(conf()), *map(str, (tmp_path / "there", telemetry, workload))
    driver = subprocess.run(
        [sys.executable, "-c", DRIVER, *arguments], capture_output=True, text=True, timeout=600, check=False
    )
    assert driver.returncode == 0, driver.stderr
    used = [entry for number in (1, 2) for entry in (cluster.folder / f"work{number}").glob("app-*")]
    assert len(used) == 2, "both workers took part"

    generate("vitis-low", {"nodes": 45_000}, 0, tmp_path / "here", spark=spark)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert len(list((tmp_path / "here" / "subscriptions.parquet").glob("part-*"))) == 3

    measured = measure_on_spark(
        read_tables(spark, telemetry), spark.read.parquet(str(workload / "subscriptions.parquet"))
    )
    found = json.loads(driver.stdout)
    # Sums of floating-point numbers arrive in any order: the last bit is not the cluster's promise.
    assert found == pytest.approx(json.loads(json_text(measured)), rel=1e-12)
    assert found["hit_ratio"] > 0


def test_a_sweep_outlives_an_executor_and_gives_the_results_of_local_mode(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    """The command that a user would type; in its midst one of the executors is killed."""
    grid = tmp_path / "grid.toml"
    grid.write_text(GRID.replace("[1, 2, 3]", "[1, 2, 3, 4, 5, 6]").replace("nodes = 20", "nodes = 60"))
    there, here = tmp_path / "there", tmp_path / "here"
    command = [sys.executable, "-m", "topicweave.cli", "sweep", str(grid), "--out", str(there)]
    command += ["--master", cluster.url, *(part for setting in conf() for part in ("--conf", setting))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 240
    while not list((tmp_path / "runs").glob("*.json")) and time.monotonic() < deadline:
        try:
            process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError(process.communicate()[1])
    victims = cluster.executors(2)
    for victim in victims:
        os.kill(victim, signal.SIGKILL)
    assert victims
    told, complaints = process.communicate(timeout=240)
    assert process.returncode == 0, complaints
    assert "6 runs, 0 failed" in told

    mine = tmp_path / "mine"
    assert sweeping.sweep(read_grid(grid), here, mine, SparkExecutor(spark)) == (6, 0)
    assert contents(tmp_path / "runs") == contents(mine)
    assert contents(there / "results.parquet") == contents(here / "results.parquet")
