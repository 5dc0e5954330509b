"""A real standalone cluster on this machine: generate, sweep and measure there, and the tables are those of local mode.

The driver is the command line, as a user would run it; the master and the two workers are those that come with
PySpark. Nothing is installed on the workers but the libraries: the project is shipped to them.
"""

import json
import os
import re
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
from topicweave.cli.output import json_text
from topicweave.experiments.experiment import Experiment, _simulate
from topicweave.experiments.model_workload import ModelWorkload
from topicweave.pipeline import sweep as sweeping
from topicweave.pipeline.generate import generate
from topicweave.pipeline.grid import read_grid
from topicweave.pipeline.java import find_java
from topicweave.pipeline.measure import measure_on_spark, read_tables

GRID = """
name = "cluster"
seeds = [1, 2]
settle = 3.0
[[systems]]
name = "random"
[[workloads]]
model = "spidercast"
nodes = 20
topics = 10
min_size = 3
max_size = 3
"""


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


def command(cluster: Cluster, *arguments: str) -> str:
    """What a user would type, with the cluster's URL for the master."""
    settings = (
        "spark.driver.host=127.0.0.1",
        "spark.driver.bindAddress=127.0.0.1",
        "spark.executor.memory=512m",
        f"spark.pyspark.python={sys.executable}",
        "spark.sql.shuffle.partitions=3",
        # On a handful of rows, planning anew and compiling each query takes longer than running it.
        "spark.sql.adaptive.enabled=false",
        "spark.sql.codegen.wholeStage=false",
    )
    done = subprocess.run(
        [sys.executable, "-m", "topicweave.cli", *arguments, "--master", cluster.url]
        + [part for setting in settings for part in ("--conf", setting)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def record(folder: Path) -> None:
    """A simulated run's telemetry and its workload."""
    spec = ModelWorkload("spidercast", {"nodes": 20, "topics": 10, "min_size": 3, "max_size": 3}, 1)
    workload = spec.load()
    workload.save(folder / "workload")
    experiment = Experiment(system="random", workload=spec, settle=3.0)
    simulation, telemetry = _simulate(experiment, workload)
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
    there, here = tmp_path / "there", tmp_path / "here"
    command(
        cluster, "workload", "generate", "vitis-low", "--nodes", "45000", "--out", str(there / "workload")
    )
    generate("vitis-low", {"nodes": 45_000}, 0, here / "workload", spark=spark)
    assert contents(there / "workload") == contents(here / "workload")
    assert len(list((here / "workload" / "subscriptions.parquet").glob("part-*"))) == 3

    grid = tmp_path / "grid.toml"
    grid.write_text(GRID)
    command(cluster, "sweep", str(grid), "--out", str(there / "sweep"))
    assert sweeping.sweep(spark, read_grid(grid), here / "sweep") == (2, 0)
    results = [contents(folder / "sweep" / "results.parquet") for folder in (there, here)]
    assert results[0] == results[1]

    record(tmp_path)
    telemetry, workload = tmp_path / "telemetry", tmp_path / "workload"
    told = command(cluster, "measure", str(telemetry), "--workload", str(workload), "--format", "json")
    wishes = spark.read.parquet(str(workload / "subscriptions.parquet"))
    measured = measure_on_spark(read_tables(spark, telemetry), wishes)
    found = json.loads(told)["random"]
    # Sums of floating-point numbers arrive in any order: the last bit is not the cluster's promise.
    assert found == pytest.approx(json.loads(json_text(measured)), rel=1e-12)
    assert found["hit_ratio"] > 0

    used = [entry for number in (1, 2) for entry in (cluster.folder / f"work{number}").glob("app-*")]
    assert len(used) == 6, "both workers took part in all three"
