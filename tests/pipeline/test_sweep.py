"""Sweeps on Spark: results as they finish, failures beside them, nothing done twice, also after kill -9."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import topicweave
from tests.cli.commands import COMMAND, call
from tests.pipeline.folders import contents
from tests.pipeline.grids import GRID
from tests.runs.strangers import a_package
from topicweave.data.places import Place
from topicweave.errors import BadInput, TopicweaveError, UnknownName
from topicweave.pipeline.executor import SparkExecutor, attempt, sign_of
from topicweave.pipeline.grid import Cell, read_grid
from topicweave.pipeline.measuring.api import measure_folder
from topicweave.pipeline.sweep import Swept, failures, numbers_in, summary, sweep
from topicweave.runs import Processes, carry_out, run_all
from topicweave.runs.overlay import SettledOverlay
from topicweave.runs.registry import encode, from_plain
from topicweave.runs.runner import finished_runs
from topicweave.runs.sources import GeneratedWorkload
from topicweave.runs.store import ResultStore, key


@pytest.fixture
def cells(tmp_path: Path) -> list[Cell]:
    (tmp_path / "grid.toml").write_text(GRID)
    return read_grid(tmp_path / "grid.toml")


def test_results_are_those_of_the_runs_and_have_intervals(
    spark: SparkSession, tmp_path: Path, cells: list[Cell]
) -> None:
    told: list[tuple[int, int, str]] = []
    out, store, executor = tmp_path / "out", tmp_path / "runs", SparkExecutor(spark)
    swept = sweep(cells, out, store, executor, progress=lambda *what: told.append(what))
    assert swept == Swept(3, 0)
    assert told[0] == (0, 3, "")
    assert [done for done, _, _ in told[1:]] == [1, 2, 3]

    rows = pq.read_table(out / "results.parquet").to_pylist()
    values = []
    for cell in cells:
        expected = numbers_in(carry_out(cell.run))
        found = {row["measure"]: row["value"] for row in rows if row["run"] == cell.id}
        assert found == expected
        values.append(expected["degree_mean"])
        mine = [row for row in rows if row["run"] == cell.id]
        assert {(row["seed"], row["settings"]) for row in mine} == {(cell.seed, '{"settle": 4.0}')}

    (point,) = summary(spark, out, cells, ["degree_mean"])
    assert point["replications"] == 3
    assert point["mean"] == pytest.approx(sum(values) / 3)
    deviation = (sum((value - point["mean"]) ** 2 for value in values) / 2) ** 0.5
    assert point["ci95"] == pytest.approx(4.302652729911275 * deviation / 3**0.5)

    with pytest.raises(UnknownName, match="unknown measure 'hit_ratoi'"):
        summary(spark, out, cells, ["hit_ratoi"])
    assert len(summary(spark, out, cells, ["degree_mean", "no_such"], all_of_them=False)) == 1

    before = contents(out)
    told.clear()
    assert sweep(cells, out, store, executor, progress=lambda *what: told.append(what)) == Swept(3, 0)
    assert told == [(3, 3, "")], "finished runs are not run again"
    assert contents(out) == before


def test_a_failing_run_is_recorded_and_the_others_finish(
    spark: SparkSession, tmp_path: Path, cells: list[Cell]
) -> None:
    out, store, executor = tmp_path / "out", tmp_path / "runs", SparkExecutor(spark)
    bad = cells[0]._replace(run=_with(cells[0].run, membership="nonsense"))
    assert sweep([bad, *cells[1:]], out, store, executor) == Swept(3, 1)
    (failure,) = failures(out)
    assert failure["run"] == bad.id
    assert "nonsense" in failure["error"]
    assert sweep(cells, out, store, executor) == Swept(3, 1), "kept until told otherwise"
    assert sweep(cells, out, store, executor, retry=True) == Swept(3, 0)


def test_the_command_names_failed_runs_though_a_measure_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise UnknownName("measure", "repair_ms", ["degree_mean"])

    who = {"system": "random", "parameters": "{}", "settings": "{}", "workload": "small", "seed": 2}
    monkeypatch.setattr("topicweave.cli.spark.spark_for", lambda *_, **__: nullcontext())
    monkeypatch.setattr("topicweave.pipeline.sweep.sweep", lambda *_, **__: Swept(3, 1))
    monkeypatch.setattr("topicweave.pipeline.sweep.summary", unknown)
    monkeypatch.setattr("topicweave.pipeline.sweep.failures", lambda _: [{**who, "error": "it broke"}])
    (tmp_path / "grid.toml").write_text(GRID)
    ended = call("sweep", tmp_path / "grid.toml", "--out", tmp_path / "out", "--measures", "repair_ms")
    assert ended.exit_code == 2
    assert "error: unknown measure 'repair_ms'" in ended.stderr
    assert "failed: random {} {} on small, seed 2: it broke" in ended.stderr


def _with(run: Any, **changes: object) -> Any:
    return msgspec.structs.replace(run, **changes)


def test_a_run_that_takes_its_process_with_it_is_recorded_and_the_others_finish(
    spark: SparkSession, tmp_path: Path
) -> None:
    ship(spark, tmp_path, a_package(tmp_path))
    runs = {seed: from_plain({"type": "deadly", "folder": str(tmp_path), "seed": seed}) for seed in (1, 2, 3)}
    told: dict[int, str] = {}
    results = run_all(runs, tmp_path / "runs", SparkExecutor(spark), None, told)
    assert (tmp_path / "attempts").read_text() == "..."
    assert told == {2: "its process was killed 3 times (out of memory?)"}
    assert results == {1: {"seed": 1}, 3: {"seed": 3}}
    assert not list(tmp_path.glob("runs/*.begun"))


def ship(spark: SparkSession, folder: Path, site: Path) -> None:
    """Bring a package to Spark's workers and to this process, as a user would with `--conf spark.submit.pyFiles`."""
    archive = Path(shutil.make_archive(str(folder / f"strangers-{folder.name}"), "zip", site))
    spark.sparkContext.addPyFile(str(archive))
    sys.path_importer_cache.clear()


def test_a_kind_and_a_source_of_another_package_run_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    ship(spark, tmp_path, a_package(tmp_path))
    run = from_plain({"type": "count", "workload": {"type": "line", "nodes": 4}})
    assert run_all({"a": run}, tmp_path / "runs", SparkExecutor(spark)) == {"a": {"nodes": 4, "seed": 0}}


TINY = SettledOverlay(system="random", workload=GeneratedWorkload(20, 10, min_size=3, max_size=3), settle=3.0)


def test_both_executors_share_the_store_and_its_format(spark: SparkSession, tmp_path: Path) -> None:
    there = run_all({"a": TINY, "b": TINY}, tmp_path / "there", SparkExecutor(spark))
    here = run_all({"a": TINY, "b": TINY}, tmp_path / "here", Processes(1))
    assert there == here == dict.fromkeys("ab", carry_out(TINY))
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    news: list[int] = []
    run_all({"a": TINY}, tmp_path / "there", Processes(1), lambda done, *_: news.append(done))
    assert news == [1]


def test_when_the_time_is_up_runs_under_way_are_ended(spark: SparkSession, tmp_path: Path) -> None:
    long = msgspec.structs.replace(TINY, settle=1e9)
    finished = run_all({"a": TINY}, tmp_path, Processes(1))
    found = run_all({"a": TINY, "b": long}, tmp_path, SparkExecutor(spark, until=time.perf_counter() + 1.0))
    assert found == finished
    tracker, patience = spark.sparkContext.statusTracker(), time.perf_counter() + 120.0
    while tracker.getActiveJobsIds() and time.perf_counter() < patience:
        threading.Event().wait(0.1)
    assert list(tracker.getActiveJobsIds()) == []


@pytest.mark.parametrize("torn", [b"", b"{", b'{"result": [1]}', b"\xff\xfe"])
def test_what_cannot_be_read_is_run_again(spark: SparkSession, tmp_path: Path, torn: bytes) -> None:
    first = run_all({"a": TINY}, tmp_path, SparkExecutor(spark))
    path = ResultStore(tmp_path).path(key(TINY)).local
    assert path is not None
    whole = path.read_bytes()
    path.write_bytes(torn)
    assert run_all({"a": TINY}, tmp_path, SparkExecutor(spark)) == first
    assert path.read_bytes() == whole


def test_without_a_list_of_failures_the_first_ends_the_whole(spark: SparkSession, tmp_path: Path) -> None:
    wrong = _with(TINY, membership="nonsense")
    with pytest.raises(TopicweaveError, match="nonsense"):
        run_all({"a": TINY, "b": wrong}, tmp_path, SparkExecutor(spark))


VARIED = """
kind = "trial"
settle = 3.0
events = 5
repair_seconds = 2
latency = ["10ms", "50ms"]
churn = ["", "20/5"]
crash = [0.0, 0.2]
[[systems]]
name = "random"
[[workloads]]
model = "spidercast"
nodes = 15
topics = 6
min_size = 2
max_size = 2
"""


def test_every_field_of_a_kind_can_be_varied(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "varied.toml").write_text(VARIED)
    cells = read_grid(tmp_path / "varied.toml")
    assert len(cells) == 8
    out = tmp_path / "out"
    assert sweep(cells, out, tmp_path / "runs", Processes(1)) == Swept(8, 0)
    rows = summary(spark, out, cells, ["latency_p50", "repair_time"])
    by_latency = {
        latency: [
            row["mean"]
            for row in rows
            if row["measure"] == "latency_p50" and json.loads(row["settings"])["latency"] == latency
        ]
        for latency in ("10ms", "50ms")
    }
    assert max(by_latency["10ms"]) < min(by_latency["50ms"])
    crashed = {json.loads(row["settings"])["crash"] for row in rows if row["measure"] == "repair_time"}
    assert 0.0 not in crashed


LONG = GRID.replace("[1, 2, 3]", "[1, 2, 3, 4, 5, 6]").replace("nodes = 20", "nodes = 60")


def test_killed_at_any_moment_it_goes_on_where_it_was(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(LONG)
    out = tmp_path / "out"
    command = [*COMMAND, "sweep", str(tmp_path / "long.toml"), "--out", str(out)]
    # A group of its own, so that Spark's Java and Python workers die with it, as in a power cut.
    process = subprocess.Popen(
        [*command, "--master", "local[1]"],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 240
    kept = tmp_path / "runs"
    while not list(kept.glob("*.json")) and process.poll() is None and time.monotonic() < deadline:
        try:
            process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            continue
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    finished = {file: file.stat().st_mtime_ns for file in kept.glob("*.json")}
    assert 1 <= len(finished) < 6, "killed in the middle"

    cells = read_grid(tmp_path / "long.toml")
    assert sweep(cells, out, kept, SparkExecutor(spark)) == Swept(6, 0)
    assert {file: file.stat().st_mtime_ns for file in finished} == finished, "not repeated"
    whole = tmp_path / "whole"
    sweep(cells, whole, tmp_path / "others", SparkExecutor(spark))
    mine, theirs = (
        {name: data for name, data in contents(folder).items() if name.startswith("results")}
        for folder in (out, whole)
    )
    assert mine == theirs


def test_what_a_killed_process_had_begun_to_write_goes_and_what_others_write_stays(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    table = tmp_path / "results.parquet"
    table.mkdir()
    names = [f".part-ab.parquet.{os.uname().nodename}.{process}.7" for process in (gone.pid, os.getpid())]
    names += [f".part-ab.parquet.elsewhere.{gone.pid}.7", ".kept", "part-ab.parquet"]
    for name in names:
        (table / name).touch()
    Place(table).drop_begun()
    assert {file.name for file in table.iterdir()} == set(names[1:])
    Place(tmp_path / "not there").drop_begun()


def test_a_comparison_and_a_sweep_share_their_runs(tmp_path: Path) -> None:
    lists = {"ann": ["news", "go"], "bob": ["news"], "eve": ["go", "news"]}
    topicweave.compare(
        lists,
        systems=["random"],
        preset="paper",
        seeds=2,
        events=5,
        settle=5,
        out=tmp_path / "out",
        workers=1,
    )
    (folder,) = (tmp_path / "out" / "workloads").iterdir()
    (tmp_path / "same.toml").write_text(
        f'kind = "trial"\nmembership = "directory"\nseeds = [0, 1, 2]\nsettle = 5.0\nevents = 5\nrepair_seconds = 20\n'
        f'[[systems]]\nname = "random"\n[[workloads]]\nfolder = "{folder}"\n'
    )
    runs = {cell.seed: cell.run for cell in read_grid(tmp_path / "same.toml")}
    assert finished_runs(runs, tmp_path / "runs").keys() == {0, 1}


def test_runs_leave_telemetry_that_measures_the_same(tmp_path: Path) -> None:
    """Also a run whose result is known already; and what another grid left in the tables is gone from them."""
    lines = VARIED.replace('["10ms", "50ms"]', '"10ms"').replace("[0.0, 0.2]", "0.0")
    (tmp_path / "varied.toml").write_text(lines)
    cells = read_grid(tmp_path / "varied.toml")
    out, store, telemetry = tmp_path / "out", tmp_path / "runs", tmp_path / "telemetry"
    assert sweep(cells[:1], out, store, Processes(1)) == Swept(1, 0)
    assert sweep(cells, out, store, Processes(1), telemetry=telemetry) == Swept(2, 0)
    results = {
        (row["run"], row["measure"]): row["value"]
        for row in pq.read_table(out / "results.parquet").to_pylist()
    }
    measured = measure_folder(telemetry, None, no_spark, window=10.0)
    assert measured.keys() == {cell.id for cell in cells}
    for run, measures in measured.items():
        for name in ("hops_mean", "noise", "duplicates", "topic_diameter_mean"):
            assert measures[name] == pytest.approx(results[run, name], nan_ok=True), name
    (steady,) = (cell.id for cell in cells if json.loads(cell.settings)["churn"] == "")
    # Under churn a trial gives newcomers some time, which `measure` was not told of.
    for name in ("hit_ratio", "latency_p50"):
        assert measured[steady][name] == results[steady, name]

    about = json.loads((telemetry / "about.json").read_bytes())
    assert about["made"]["version"] == topicweave.__version__
    assert {part["rows"] for part in about["tables"]["interests.parquet"]["parts"]} >= {30}
    before = contents(telemetry)
    assert sweep(cells[:1], out, store, Processes(1), telemetry=telemetry) == Swept(1, 0, 1)
    assert {name for name in contents(telemetry) if name != "about.json"} == {
        name for name in before if name != "about.json"
    }
    assert {row["run"] for row in pq.read_table(out / "results.parquet").to_pylist()} == {cells[0].id}

    note = telemetry / "_runs" / f"{cells[0].id}.json"
    note.write_text(note.read_text().replace('"key": "', '"key": "0'))
    with pytest.raises(BadInput, match="of other code"):
        sweep(cells, out, tmp_path / "others", Processes(1), telemetry=telemetry)


def no_spark() -> Any:
    raise AssertionError("so little is measured in memory")


def test_executors_that_went_away_are_no_fault_of_the_run(tmp_path: Path) -> None:
    """Three that were never heard of again cost nothing; three that went on with other runs tell of a run
    that kills.
    """
    store, name = ResultStore(tmp_path), key(TINY)
    marks = json.dumps([["one", 1], ["two", 5], ["three", 2]]).encode()
    store.begun(name).put(marks)
    attempt(store, name, encode(TINY).decode())
    assert store.get(name) == carry_out(TINY)

    store.clear(name)
    store.begun(name).put(marks)
    for executor, turns in (("one", 2), ("two", 6), ("three", 9)):
        sign_of(store, executor).put(str(turns).encode())
    attempt(store, name, encode(TINY).decode())
    assert store.get(name) is None
    assert store.failure(name) == "its process was killed 3 times (out of memory?)"
