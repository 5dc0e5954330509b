"""Sweeps on Spark: results as they finish, failures beside them, nothing done twice, also after kill -9."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.pipeline.folders import contents
from tests.pipeline.grids import GRID
from topicweave.pipeline.grid import Run, read_grid
from topicweave.pipeline.runs import Task, carry_out, numbers_in
from topicweave.pipeline.sweep import failures, run_all_on_spark, summary, sweep
from topicweave.runs import GeneratedWorkload, run_experiment
from topicweave.runs.experiment import Experiment, Result


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    (tmp_path / "grid.toml").write_text(GRID)
    return read_grid(tmp_path / "grid.toml")


def test_results_are_those_of_the_experiments_and_have_intervals(
    spark: SparkSession, tmp_path: Path, runs: list[Run]
) -> None:
    told: list[tuple[int, int, str]] = []
    swept = sweep(spark, runs, tmp_path / "out", progress=lambda *what: told.append(what))
    assert swept == (3, 0)
    assert told[0] == (0, 3, "")
    assert [done for done, _, _ in told[1:]] == [1, 2, 3]

    rows = pq.read_table(tmp_path / "out" / "results.parquet").to_pylist()
    values = []
    for run in runs:
        expected = numbers_in(run_experiment(run.experiment))
        found = {row["measure"]: row["value"] for row in rows if row["run"] == run.id}
        assert found == expected
        values.append(expected["degree_mean"])
        assert {row["seed"] for row in rows if row["run"] == run.id} == {run.seed}

    (point,) = summary(spark, tmp_path / "out", runs, ["degree_mean"])
    assert point["replications"] == 3
    assert point["mean"] == pytest.approx(sum(values) / 3)
    deviation = (sum((value - point["mean"]) ** 2 for value in values) / 2) ** 0.5
    assert point["ci95"] == pytest.approx(4.302652729911275 * deviation / 3**0.5)

    before = contents(tmp_path / "out")
    told.clear()
    assert sweep(spark, runs, tmp_path / "out", progress=lambda *what: told.append(what)) == (3, 0)
    assert told == [(3, 3, "")], "finished runs are not run again"
    assert contents(tmp_path / "out") == before


def test_a_failing_run_is_recorded_and_the_others_finish(
    spark: SparkSession, tmp_path: Path, runs: list[Run]
) -> None:
    broken = runs[0].experiment
    bad = runs[0]._replace(id="0" * 20, experiment=_with(broken, membership="nonsense"))
    assert sweep(spark, [bad, *runs[1:]], tmp_path / "out") == (3, 1)
    (failure,) = failures(tmp_path / "out")
    assert failure["run"] == bad.id
    assert "nonsense" in failure["error"]
    mended = bad._replace(experiment=broken)
    assert sweep(spark, [mended, *runs[1:]], tmp_path / "out") == (3, 1), "kept until told otherwise"
    assert sweep(spark, [mended, *runs[1:]], tmp_path / "out", retry=True) == (3, 0)


def test_a_run_that_takes_its_process_with_it_is_recorded_and_the_others_finish(
    spark: SparkSession, tmp_path: Path, runs: list[Run]
) -> None:
    tasks = [Task(str(tmp_path / f"{run.seed}.done"), "", run.experiment) for run in runs]
    deadly = tasks[1].path

    def keep(path: Path, result: Result | None, error: str, _seconds: float) -> None:
        if str(path) == deadly and result is not None:
            with (tmp_path / "attempts").open("a") as file:
                file.write(".")
            os.kill(os.getpid(), signal.SIGKILL)  # as the system does when memory runs out
        path.write_text(error)

    carry_out(spark, tasks, keep)
    assert (tmp_path / "attempts").read_text() == "..."
    assert Path(deadly).read_text() == "its process was killed 3 times (out of memory?)"
    assert [Path(task.path).read_text() for task in tasks if task.path != deadly] == ["", ""]
    assert not list(tmp_path.glob("*.begun"))


def _with(experiment: Experiment, **changes: object) -> Experiment:
    import msgspec

    return msgspec.structs.replace(experiment, **changes)


def test_studies_run_on_spark_share_the_store_of_results(spark: SparkSession, tmp_path: Path) -> None:
    experiment = Experiment(
        system="random", workload=GeneratedWorkload(20, 10, min_size=3, max_size=3), settle=3.0
    )
    results = run_all_on_spark(spark, {"a": experiment, "b": experiment}, tmp_path)
    assert results["a"] == results["b"] == run_experiment(experiment)
    assert len(list(tmp_path.glob("*.json"))) == 1


LONG = GRID.replace("[1, 2, 3]", "[1, 2, 3, 4, 5, 6]").replace("nodes = 20", "nodes = 60")


def test_killed_at_any_moment_it_goes_on_where_it_was(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(LONG)
    out = tmp_path / "out"
    command = [
        sys.executable,
        "-m",
        "topicweave.cli",
        "sweep",
        str(tmp_path / "long.toml"),
        "--out",
        str(out),
    ]
    # A group of its own, so that Spark's Java and Python workers die with it, as in a power cut.
    process = subprocess.Popen(
        [*command, "--master", "local[1]"],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 240
    while not list(out.glob("runs/*.done")) and process.poll() is None and time.monotonic() < deadline:
        try:
            process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            continue
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    finished = {file: file.stat().st_mtime_ns for file in out.glob("runs/*.done")}
    assert 1 <= len(finished) < 6, "killed in the middle"

    runs = read_grid(tmp_path / "long.toml")
    assert sweep(spark, runs, out) == (6, 0)
    assert {file: file.stat().st_mtime_ns for file in finished} == finished, "not repeated"
    whole = tmp_path / "whole"
    sweep(spark, runs, whole)
    mine, theirs = (
        {name: data for name, data in contents(folder).items() if name.startswith("results")}
        for folder in (out, whole)
    )
    assert mine == theirs
