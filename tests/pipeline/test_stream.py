"""Measures from a folder that grows: every row once, late ones left out, whatever is killed in between."""

import json
import math
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.cli.commands import COMMAND, call
from tests.live import together
from tests.pipeline.test_measure import assert_equal
from topicweave.data.places import Place
from topicweave.errors import BadInput
from topicweave.live.swarm import run_swarm
from topicweave.measures import measure_run
from topicweave.model.workload import Workload
from topicweave.pipeline import parts, stream_landing, stream_windows
from topicweave.pipeline import stream as streams
from topicweave.pipeline.stream import streaming
from topicweave.pipeline.stream_landing import Landing
from topicweave.pipeline.stream_progress import Progress, Windows
from topicweave.port import Link
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system
from topicweave.telemetry import MemoryTelemetry, PartsTelemetry, Tables, Telemetry
from topicweave.telemetry.interests import wanted_between
from topicweave.telemetry.schema import INTERESTS
from topicweave.telemetry.tables import read_table

WINDOW = 10.0
OPTIONS = {"window": WINDOW, "wait": 5.0, "lateness": 5.0}
NODES = {number: f"n{number}" for number in range(6)}
TOPICS = {number: f"t{number}" for number in range(3)}


def wishes() -> pa.Table:
    rows = [(node, topic) for node in NODES for topic in TOPICS if (node + topic) % 2 == 0]
    return pa.table(
        {"node": [NODES[node] for node, _ in rows], "topic": [TOPICS[topic] for _, topic in rows]}
    )


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    (tmp_path / "workload").mkdir()
    pq.write_table(wishes(), tmp_path / "workload" / "subscriptions.parquet")
    return tmp_path / "workload"


def record(telemetry: Telemetry, begin: float, end: float, seed: int = 1) -> None:
    """A second at a time: an event, who gets it (some of it twice, some that never asked), links, control."""
    rng = random.Random(f"{seed}/{begin}")
    moment = begin
    while moment < end:
        event, topic = rng.getrandbits(60), rng.randrange(3)
        telemetry.publish(event, topic, rng.randrange(6), moment)
        for _ in range(rng.randrange(1, 8)):
            node, sender = rng.randrange(6), rng.randrange(6)
            late = moment + rng.random() * 4
            telemetry.reception(event, node, late, rng.randrange(1, 5), sender, (node + topic) % 2 == 0)
        telemetry.control(moment + 1.0, rng.randrange(6), "Ping", 2, 60)  # Of the second that ends.
        for node in range(6):
            telemetry.links(moment, node, [Link((node + 1) % 6, "ring"), Link(rng.randrange(6), "far")])
        moment += 1.0


def append(folder: Path, begin: float, end: float, run: str = "run") -> None:
    with PartsTelemetry(folder, run, NODES, TOPICS) as telemetry:
        record(telemetry, begin, end)


def expected(begin: float, end: float, window: float) -> dict[str, float]:
    """What measuring everything at once says of one window."""
    telemetry = MemoryTelemetry("run", NODES, TOPICS)
    for start in range(int(begin), int(end), 10):
        record(telemetry, start, min(start + 10.0, end))
    tables = telemetry.tables()
    only = {
        name: getattr(tables, name).filter(
            pc.and_(
                pc.greater_equal(getattr(tables, name)["time"], window),
                pc.less(getattr(tables, name)["time"], window + WINDOW),
            )
        )
        for name in ("links", "publishes")
    }
    times = tables.control["time"]
    sent = pc.and_(pc.greater(times, window), pc.less_equal(times, window + WINDOW))
    only["control"] = tables.control.filter(sent)
    near = pc.less(tables.deliveries["time"], window + WINDOW + OPTIONS["wait"])
    near = pc.and_(near, pc.greater_equal(tables.deliveries["time"], window - OPTIONS["wait"]))
    return measure_run(
        Tables(**only, deliveries=tables.deliveries.filter(near)),
        wishes(),
        start=math.nextafter(window, -math.inf),
        end=window + WINDOW,
        window=OPTIONS["wait"],
    )


def drain(
    spark: SparkSession, folder: Path, workload: Path | None, out: Path, finish: bool = False, **options: Any
) -> Progress:
    """Take what is there, then stop."""
    with streaming(spark, folder, workload, out, **{**OPTIONS, **options}, until_idle=True) as (
        query,
        stream,
    ):
        assert query.awaitTermination(500), "it does not come to an end"
        if (failure := query.exception()) is not None:
            raise failure
        if finish:
            stream.finish()
        last = stream.last()
        return Progress() if last is None else stream.progress(last)


def found(out: Path) -> dict[tuple[str, float], dict[str, float]]:
    """By run and start of the window; a window is in the table once."""
    measures: dict[tuple[str, float], dict[str, float]] = {}
    for part in sorted((out / "windows.parquet").glob("part-*.parquet")):
        for row in pq.read_table(part).to_pylist():
            of_window = measures.setdefault((row["run"], row["start"]), {})
            assert row["measure"] not in of_window, "a window is measured once"
            of_window[row["measure"]] = row["value"]
            assert row["end"] == row["start"] + WINDOW
    return measures


def test_windows_have_all_measures_of_the_batch(
    spark: SparkSession, tmp_path: Path, workload: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, out = tmp_path / "live", tmp_path / "out"
    append(folder, 0, 10)
    drain(spark, folder, workload, out)
    assert found(out) == {}, "nothing is complete yet"
    append(folder, 10, 20)
    append(folder, 20, 25)
    progress = drain(spark, folder, workload, out)
    assert list(found(out)) == [("run", 0.0)], (
        "the newest row, less 5 and 5 seconds, is behind the first only"
    )

    # The next window by either engine, from what has landed for it in two batches.
    windows = Windows(**OPTIONS)
    span = progress.due(progress.none_waiting(), windows)[0]
    of_second = expected(0, 25, 10.0)
    for most in (stream_windows.IN_MEMORY, 0):
        monkeypatch.setattr(stream_windows, "IN_MEMORY", most)
        wanted = stream_windows.WorkloadTables.of(workload)
        one = stream_windows.due(Landing(Place(out)), span, windows, wanted)
        assert_equal(stream_windows.measured(spark, one, windows), of_second)
    monkeypatch.undo()

    drain(spark, folder, workload, out, finish=True)
    measured = found(out)
    assert [start for _, start in measured] == [0.0, 10.0, 20.0]
    for start in (0.0, 10.0, 20.0):
        assert_equal(measured["run", start], expected(0, 25, start))
    kept = [row for note in (out / "landed").glob("*/landed.json") for row in json.loads(note.read_bytes())]
    there = {file.name for file in (out / "landed").glob("*/part-*")}
    assert not {row["part"]["name"] for row in kept if row["place"] == 0} & there, (
        "what is needed no more is gone"
    )


def test_late_rows_are_counted_and_left_out(spark: SparkSession, tmp_path: Path, workload: Path) -> None:
    folder, out = tmp_path / "live", tmp_path / "out"
    append(folder, 0, 10)
    append(folder, 10, 25)
    drain(spark, folder, workload, out)
    before = found(out)
    assert [start for _, start in before] == [0.0]
    late = PartsTelemetry(folder, "run", NODES, TOPICS, writer="slow")
    late.publish(1, 1, 1, 9.5)  # its window has been measured
    late.publish(2, 1, 1, 10.5)  # old, but in time
    late.control(float("nan"), 1, "Ping", 1, 1)
    late.close()
    append(folder, 45, 46, run="another")  # a clock of its own: not ahead of the first, nor held up by it
    progress = drain(spark, folder, workload, out, finish=True)
    assert (progress.runs["run"].late, progress.unplaced) == (1, 1)
    aside = pq.read_table(out / "set_aside.parquet", partitioning=None).to_pylist()
    assert sorted((row["reason"], row["table"]) for row in aside) == [
        ("lacks a cell or a time", "control"),
        ("late", "publishes"),
    ]
    assert [row["event"] for row in aside if row["reason"] == "late"] == [1]
    after = found(out)
    assert after["run", 0.0] == before["run", 0.0]
    assert after["run", 10.0]["relays_per_topic"] >= 0
    assert ("another", 40.0) in after


def test_one_clock_that_is_ahead_makes_nobody_late_and_unknown_is_not_zero(
    spark: SparkSession, tmp_path: Path, workload: Path
) -> None:
    folder, out = tmp_path / "live", tmp_path / "out"
    append(folder, 0, 10)
    fast = PartsTelemetry(folder, "run", NODES, TOPICS, writer="fast")
    fast.control(5000.0, 5, "Ping", 1, 1)
    fast.close()
    drain(spark, folder, workload, out)
    append(folder, 10, 20)
    quiet = PartsTelemetry(folder, "run", NODES, TOPICS, writer="quiet")
    quiet.publish(7, 1, 1, 25.0)  # and nobody looks at the overlay
    quiet.close()
    progress = drain(spark, folder, workload, out, finish=True)
    assert (progress.runs["run"].late, progress.runs["run"].future) == (0, 1)
    measured = found(out)
    assert [start for _, start in measured] == [0.0, 10.0, 20.0]
    assert measured["run", 0.0]["degree_mean"] > 0
    assert math.isnan(measured["run", 20.0]["degree_mean"])
    assert math.isnan(measured["run", 20.0]["components"])


def test_finished_recordings_are_read_where_they_lie(
    spark: SparkSession, tmp_path: Path, workload: Path
) -> None:
    from topicweave.telemetry import ParquetTelemetry

    folder = tmp_path / "runs"
    for run in ("one", "two"):
        with ParquetTelemetry(folder / run, run, NODES, TOPICS) as telemetry:
            record(telemetry, 0, 10)
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "deliveries.parquet").write_text("not yet whole")
    drain(spark, folder, workload, tmp_path / "out", finish=True)
    measured = found(tmp_path / "out")
    assert {run for run, _ in measured} == {"one", "two"}
    assert_equal(measured["one", 0.0], measured["two", 0.0])
    assert_equal(measured["one", 0.0], expected(0, 10, 0.0))


def test_live_nodes_and_simulations_write_what_it_reads(spark: SparkSession, tmp_path: Path) -> None:
    """Both in one folder, each by its own clock; all of either run falls into one window."""
    interests = {"n0": ["a", "b"], "n1": ["a"], "n2": ["a", "b"], "n3": ["b"]}
    workload = Workload.from_lists(interests)
    workload.save(tmp_path / "workload")
    folder, out = tmp_path / "both", tmp_path / "out"

    async def live() -> None:
        settings = msgspec.structs.replace(together.local(), telemetry=str(folder))
        async with run_swarm(list(interests.values()), settings, names=list(interests)) as nodes:
            await together.eventually(lambda: together.linked(*nodes))
            for node in nodes:
                assert node.recorder is not None
                node.recorder.snapshot()
                await node.publish(sorted(node.subscriptions)[0], b"x")
            await together.eventually(lambda: [len(together.taken(node)) for node in nodes] == [4, 3, 4, 1])

    together.run(live)
    with PartsTelemetry(folder, "simulated", *workload.names(), writer="simulator") as telemetry:
        simulation = Simulation(workload, find_system("spidercast"), seed=1, telemetry=telemetry)
        simulation.run(5.0)
        simulation.snapshot()
        telemetry.rotate()
        simulation.publish(0, int(workload.interests(0)[0]))
        simulation.run(10.0)
        simulation.flush_control()

    window = 1e7  # from 1970 on: about four months
    options = {"window": window, "wait": 60.0, "lateness": 0.0}
    drain(spark, folder, tmp_path / "workload", out, finish=True, **options)
    rows = pq.read_table(out / "windows.parquet").to_pylist()
    tables, wanted = Tables.load(folder), workload.tables()["subscriptions"]
    assert {row["run"] for row in rows} == {"topicweave", "simulated"} == set(tables.runs())
    for run in tables.runs():
        start = next(row["start"] for row in rows if row["run"] == run)
        begin = math.nextafter(start, -math.inf)
        expected = measure_run(tables, wanted, run=run, start=begin, end=start + window, window=60.0)
        assert_equal({row["measure"]: row["value"] for row in rows if row["run"] == run}, expected)
        assert expected["hit_ratio"] == 1.0

    # The same from what the nodes themselves say they want; another swarm in the same folder has other lists.
    async def another() -> None:
        settings = msgspec.structs.replace(together.local(), telemetry=str(folder), swarm="other")
        async with run_swarm([["a"], ["a"]], settings, names=["n0", "n1"]) as nodes:
            await together.eventually(lambda: together.linked(*nodes))
            await nodes[0].publish("a", b"x")
            await together.eventually(lambda: len(together.taken(nodes[1])) == 1)

    together.run(another)
    drain(spark, folder, None, tmp_path / "recorded", finish=True, **options)
    again = pq.read_table(tmp_path / "recorded" / "windows.parquet").to_pylist()
    of = {(row["run"], row["measure"]): row["value"] for row in again}
    before = {(row["run"], row["measure"]): row["value"] for row in rows}
    for measure in ("hit_ratio", "hops_mean", "duplicates", "topic_diameter_mean", "fairness"):
        assert of["simulated", measure] == pytest.approx(before["simulated", measure])
    # Who leaves within the time that events have to arrive is not waited for.
    assert math.isnan(of["topicweave", "hit_ratio"])
    assert of["topicweave", "hops_mean"] == before["topicweave", "hops_mean"]
    assert of["other", "hops_mean"] == 1.0
    recorded = read_table(folder / "interests.parquet", INTERESTS)
    for swarm, lists in (("topicweave", interests), ("other", {"n0": ["a"], "n1": ["a"]})):
        mine = wanted_between(recorded.filter(pc.equal(recorded["run"], swarm)), 0.0, math.inf).subscriptions
        told: dict[str, list[str]] = {}
        for row in mine.to_pylist():
            told.setdefault(row["node"], []).append(row["topic"])
        assert {node: sorted(topics) for node, topics in told.items()} == lists


def test_what_does_not_land_is_not_taken_for_landed(
    spark: SparkSession, tmp_path: Path, workload: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that loses a file, or a task that writes fewer rows than there were, ends the batch with an error."""
    folder = tmp_path / "live"
    append(folder, 0, 10)
    append(folder, 10, 25)
    real = parts.write_numbered

    def losing(rows: Any, target: Any) -> Any:
        written = real(rows, target)
        (target.folder / written[0].name).delete()
        return written

    def fewer(rows: Any, target: Any) -> Any:
        return real(rows.where("hops is null or hops > 1"), target)

    for number, (loss, words) in enumerate(
        ((losing, "cannot read it"), (fewer, "rows were counted for a window"))
    ):
        out = tmp_path / f"out{number}"
        with monkeypatch.context() as patch:
            patch.setattr(stream_landing, "write_numbered", loss)
            with pytest.raises(Exception, match=words):
                drain(spark, folder, workload, out)
        assert not list(out.glob("progress/*.json"))
        drain(spark, folder, workload, out, finish=True)
        assert [start for _, start in found(out)] == [0.0, 10.0, 20.0]


def test_a_batch_may_be_cut_off_anywhere(
    spark: SparkSession, tmp_path: Path, workload: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same batch, cut off before its first step or after any: done again, it gives the same measures."""
    folder = tmp_path / "live"
    append(folder, 0, 10)
    append(folder, 10, 35)
    drain(spark, folder, workload, tmp_path / "whole", finish=True)

    def cut_off(real: Any, after: bool) -> Any:
        def cut(*arguments: Any) -> None:
            if after:
                real(*arguments)
            raise RuntimeError("cut off")

        return cut

    steps = [("_land", False), ("_land", True), ("write_part", True), ("_tidy", False), ("_tidy", True)]
    for number, (step, after) in enumerate(steps):
        out = tmp_path / f"out{number}"
        owner: Any = streams if hasattr(streams, step) else streams.Stream
        with monkeypatch.context() as patch:
            patch.setattr(owner, step, cut_off(getattr(owner, step), after))
            with pytest.raises(Exception, match="cut off"):
                drain(spark, folder, workload, out)
        drain(spark, folder, workload, out, finish=True)
        assert found(out) == found(tmp_path / "whole"), f"cut off {'after' if after else 'before'} {step}"


def test_killed_with_kill_9_it_goes_on_where_it_was(
    spark: SparkSession, tmp_path: Path, workload: Path
) -> None:
    """The real command as a process, killed while it runs and while nodes write; then it goes on.

    A batch may hold some of the tables that are just written, and lack others: up to 15 s here.
    """
    folder, out = tmp_path / "live", tmp_path / "out"
    append(folder, 0, 10)
    append(folder, 10, 45)
    command = ["stream", str(folder), "--workload", str(workload), "--out", str(out)]
    command += ["--window", "10", "--wait", "5", "--lateness", "20"]
    process = subprocess.Popen(
        [*COMMAND, *command, "--master", "local[1]", "--conf", "spark.sql.shuffle.partitions=2"],
        start_new_session=True,  # Spark's Java dies with it, as in a power cut
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: list((out / "progress").glob("*.json")), process)
        append(folder, 45, 60)
        wait_for(lambda: len(list((out / "landed").glob("batch=*"))) > 1, process)  # in the midst of the next
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    append(folder, 60, 75)
    done = call(*command, "--once", "--finish", "--format", "json")
    assert done.exit_code == 0, done.output
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert "windows measured" in done.stderr

    drain(spark, folder, workload, tmp_path / "whole", finish=True, lateness=20.0)
    assert found(out) == found(tmp_path / "whole")
    assert {row["start"] for row in told} < {start for _, start in found(out)}, (
        "what was measured is not again"
    )


def wait_for(condition: Any, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < deadline
        try:
            process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError("it ended")


@pytest.fixture
def begun(spark: SparkSession, tmp_path: Path, workload: Path) -> Path:
    append(tmp_path / "live", 0, 1)
    drain(spark, tmp_path / "live", workload, tmp_path / "out")
    return tmp_path / "out"


def test_what_cannot_be_done_is_told(
    spark: SparkSession, tmp_path: Path, workload: Path, begun: Path
) -> None:
    live, odd = tmp_path / "live", tmp_path / "live [1]"
    odd.mkdir()
    cases: list[tuple[Path, Path, dict[str, Any], str]] = [
        (tmp_path / "nowhere", workload, {}, "no such folder; give the one that nodes write"),
        (odd, workload, {}, "its path holds '\\[', which Spark takes for a pattern"),
        (live, tmp_path, {}, "no subscriptions.parquet"),
        (live, workload, {"window": 0.0}, "window 0: choose a number"),
        (live, workload, {"wait": -1.0}, "wait -1: choose"),
        (live, workload, {"window": 20.0}, "was begun with window 10.0, not 20.0"),
    ]
    for folder, wanted, options, message in cases:
        with pytest.raises(BadInput, match=message):
            drain(spark, folder, wanted, begun, **options)
