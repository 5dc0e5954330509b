"""A run is a function of its inputs and its seed: the same tables, to the byte, whatever PYTHONHASHSEED is.

The test starts this file as a program, three times at once: twice with one seed, once with another.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from topicweave.blocks.membership import Membership
from topicweave.sim.churn import exponential
from topicweave.sim.faults import Crash, Duplication, Fault, Loss, Partition, Reordering, SlowNode
from topicweave.sim.latency import Uniform
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system
from topicweave.telemetry.schema import SCHEMAS, file_name
from topicweave.telemetry.writer import ParquetTelemetry
from topicweave.workloads import generate

NODES, TOPICS, SECONDS = 60, 20, 30

FAULTS: tuple[Fault, ...] = (
    Loss(8.0, 14.0, 0.1),
    Duplication(10.0, 20.0, 0.1),
    Reordering(12.0, 22.0, 0.2, delay=1.0),
    Partition(12.0, 24.0, frozenset(range(20))),
    SlowNode(5.0, 25.0, node=3, delay=0.5),
    Crash(9.0, 13.0, node=7, keeps_memory=True),
    Crash(11.0, 16.0, node=8, keeps_memory=False),
)


def run(seed: int, folder: Path) -> None:
    """A small world in which everything happens that can happen."""
    workload = generate(NODES, TOPICS, min_size=1, max_size=6, seed=1)
    system = find_system("spidercast")
    with ParquetTelemetry(folder, "run", *workload.names()) as telemetry:
        simulation = Simulation(
            workload,
            system,
            # Soon to notice the partition: the run is short.
            system.settings(beacons={"max_age": 4.0, "period": 1.0, "patience": 2.0}),
            seed=seed,
            membership=Membership.parse("directory:40"),
            latency=Uniform(0.01, 0.1, random.Random(f"latency/{seed}")),
            churn=exponential(NODES, 40.0, 10.0, SECONDS, seed)._replace(start_window=2.0),
            faults=FAULTS,
            telemetry=telemetry,
        )
        draw = random.Random(f"events/{seed}")
        for second in range(4, SECONDS):
            for _ in range(3):
                simulation.at(second, simulation.publish, draw.randrange(NODES), draw.randrange(TOPICS))
            simulation.at(second, simulation.subscribe, draw.randrange(NODES), draw.randrange(TOPICS))
            simulation.at(second, simulation.unsubscribe, draw.randrange(NODES), draw.randrange(TOPICS))
        for end in range(10, SECONDS + 1, 10):
            simulation.run(end)
            simulation.snapshot()


Runs = dict[str, dict[str, Path]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Table files by run: the first two differ in the hash seed alone, the third in the seed as well."""
    started = {}
    for name, (seed, hash_seed) in {"one": (1, "0"), "again": (1, "4711"), "other": (2, "0")}.items():
        folder = tmp_path_factory.mktemp(name)
        process = subprocess.Popen(
            [sys.executable, __file__, str(seed), str(folder)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stderr=subprocess.PIPE,
            text=True,
        )
        started[name] = (folder, process)
    for _, process in started.values():
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    return {
        name: {table: folder / file_name(table) for table in SCHEMAS} for name, (folder, _) in started.items()
    }


@pytest.mark.parametrize("table", SCHEMAS)
def test_same_seed_same_bytes(runs: Runs, table: str) -> None:
    assert runs["one"][table].read_bytes() == runs["again"][table].read_bytes()


@pytest.mark.parametrize("table", SCHEMAS)
def test_another_seed_gives_other_tables(runs: Runs, table: str) -> None:
    assert runs["one"][table].read_bytes() != runs["other"][table].read_bytes()


def test_the_runs_are_worth_comparing(runs: Runs) -> None:
    rows = {table: pq.read_metadata(path).num_rows for table, path in runs["one"].items()}
    assert rows["publishes"] > 50
    assert rows["deliveries"] > 300
    assert rows["links"] > 500
    assert "bridge" in pq.read_table(runs["one"]["links"])["kind"].to_pylist(), "a partition was noticed"
    kinds = set(pq.read_table(runs["one"]["control"])["kind"].to_pylist())
    assert {
        "sc-connect",
        "sc-heartbeat",
        "sampling.names-offer",
        "profiles.tell",
        "tree-prune",
        "tree-ihave",
        "tree-graft",
    } <= kinds


if __name__ == "__main__":
    run(int(sys.argv[1]), Path(sys.argv[2]))
