"""The measures on Spark and in memory: one definition, two engines, equal results."""

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tests.pipeline.measured_here import measured_here
from topicweave.errors import BadInput
from topicweave.measures import measure_run
from topicweave.pipeline import measure
from topicweave.pipeline.measuring import receptions
from topicweave.pipeline.measuring import spark as on_spark
from topicweave.pipeline.measuring.api import (
    MEASURED,
    measure_folder,
    measure_frames,
    measure_one,
    write_measures,
)
from topicweave.pipeline.measuring.kernels import first_receptions
from topicweave.pipeline.measuring.latencies import LatencyMarks, quantiles, second_look, wanted
from topicweave.pipeline.rounds import hashes
from topicweave.pipeline.session import spark_session
from topicweave.telemetry.schema import INTERESTS, SCHEMAS
from topicweave.telemetry.tables import Tables

NODES, TOPICS = 30, 8

# What the tests' own session turns off because it takes longer than the jobs do.
PRODUCTION = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.shuffle.partitions": "64",
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("telemetry"), 11)


def record(folder: Path, seed: int) -> Path:
    """Two runs of random rows, with everything that makes measures differ: repetitions, noise, ties, strangers."""
    rng = np.random.default_rng(seed)

    def node(count: int, limit: int = NODES) -> list[str]:
        return [f"n{number}" for number in rng.integers(0, limit, count)]

    rows: dict[str, dict[str, Any]] = {}
    count = 300
    rows["links"] = {
        "time": rng.choice([10.0, 20.0], count),
        "node": node(count),
        "peer": node(count, NODES + 2),
        "kind": rng.choice(["near", "far"], count),
    }
    events = 40
    rows["publishes"] = {
        "event": np.arange(events),
        "topic": [f"t{number}" for number in rng.integers(0, TOPICS + 1, events)],
        "node": node(events),
        "time": np.sort(rng.uniform(0, 30, events)),
    }
    count = 900
    event = rng.integers(0, events + 3, count)
    published = np.append(rows["publishes"]["time"], [0.0, 0.0, 0.0])[event]
    rows["deliveries"] = {
        "event": event,
        "node": node(count),
        "time": published + rng.integers(0, 6, count) * 0.5,  # many at the same moment
        "hops": rng.integers(1, 7, count),
        "sender": node(count, NODES + 3),
        "wanted": rng.random(count) < 0.7,
    }
    count = 100
    rows["control"] = {
        "time": rng.uniform(0, 30, count),
        "node": node(count),
        "kind": rng.choice(["gossip", "ping"], count),
        "messages": rng.integers(1, 5, count),
        "bytes": rng.integers(10, 500, count),
    }
    for name, columns in rows.items():
        length = len(next(iter(columns.values())))
        table = pa.table({"run": ["one"] * length, **columns})
        other = table.slice(0, length // 2).set_column(0, "run", pa.array(["two"] * (length // 2)))
        pq.write_table(pa.concat_tables([table, other]).cast(SCHEMAS[name]), folder / f"{name}.parquet")
    pairs = {
        (f"n{n}", f"t{t}")
        for n, t in zip(rng.integers(0, NODES, 90), rng.integers(0, TOPICS, 90), strict=True)
    }
    listed = sorted(pairs)
    wishes = pa.table({"node": [one for one, _ in listed], "topic": [two for _, two in listed]})
    pq.write_table(wishes, folder / "subscriptions.parquet")
    changes = [(5.0, "n1", "leave"), (9.0, "n1", "join"), (4.0, "n2", "join"), (18.5, "n3", "join")]
    churn = pa.table(
        {name: [change[at] for change in changes] for at, name in enumerate(("time", "node", "change"))}
    )
    pq.write_table(churn, folder / "churn.parquet")
    return folder


def assert_equal(found: dict[str, float], expected: dict[str, float]) -> None:
    assert set(found) == set(expected)
    for name, value in expected.items():
        same = (
            math.isnan(found[name]) if math.isnan(value) else found[name] == pytest.approx(value, rel=1e-12)
        )
        assert same, f"{name}: {found[name]} on Spark, {value} in memory"


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "options": {"start": 5.0, "end": 22.0, "window": 1.0, "coverage_k": 2, "link_kinds": ["near"]},
    "snapshot": {"grace": 2.0, "window": 2.5, "snapshot_time": 20.0, "snapshot_within": 10.0},
    "nothing": {"start": 1000.0, "end": 2000.0, "snapshot_time": -5.0},
}


def workload_of(recorded: Path, folder: Path, churned: bool) -> Path:
    folder.mkdir()
    for name in ["subscriptions.parquet"] + ["churn.parquet"] * churned:
        shutil.copy(recorded / name, folder)
    return folder


def in_memory(recorded: Path, workload: Path, run: str, **options: Any) -> dict[str, float]:
    churn = workload / "churn.parquet"
    options["churn"] = pq.read_table(churn) if churn.exists() else None
    wishes = pq.read_table(workload / "subscriptions.parquet")
    return measure_run(Tables.load(recorded), wishes, run=run, **options)


@pytest.mark.parametrize("churned", [False, True], ids=["steady", "churned"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_rounds_give_what_memory_gives(tmp_path: Path, options: dict[str, Any], churned: bool) -> None:
    for seed in range(4):
        folder = tmp_path / f"{seed}"
        folder.mkdir()
        recorded = record(folder, seed)
        workload = workload_of(recorded, tmp_path / f"workload-{seed}", churned)
        for tasks, chunk_rows, told in [(1, 10_000, True), (5, 90, True), (3, 300, False)]:
            found = measured_here(
                recorded, workload, tasks=tasks, chunk_rows=chunk_rows, events_told=told, **options
            )
            assert list(found) == ["one", "two"]
            for run, measures in found.items():
                assert_equal(measures, in_memory(recorded, workload, run, **options))


def test_a_large_topic_is_counted_by_several_tasks(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_spark, "ROWS_PER_TASK", 50)
    monkeypatch.setattr(receptions, "MARKS", 8)
    workload = workload_of(recorded, tmp_path / "workload", False)
    for run, measures in measured_here(recorded, workload, tasks=4).items():
        assert_equal(measures, in_memory(recorded, workload, run))


def frames(session: SparkSession, recorded: Path) -> dict[str, Any]:
    return {name: session.read.parquet(str(recorded / f"{name}.parquet")) for name in SCHEMAS}


def shuffled(session: SparkSession, recorded: Path) -> dict[str, Any]:
    """In any order, and with a column that says which it was."""
    made = {}
    for name in SCHEMAS:
        table = pq.read_table(recorded / f"{name}.parquet")
        table = table.append_column("order", pa.array(range(len(table)), pa.int64()))
        made[name] = session.createDataFrame(table.take(np.random.default_rng(1).permutation(len(table))))
    return made


def test_on_spark_files_and_frames_give_what_memory_gives(
    spark: SparkSession, recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = workload_of(recorded, tmp_path / "workload", True)
    monkeypatch.setattr(on_spark, "ROWS_PER_TASK", 500)  # several tasks
    options = OPTIONS["snapshot"]
    from_files = measure_folder(recorded, workload, spark_session, in_memory=False, **options)
    tables = frames(spark, recorded)
    wishes, churn = (
        spark.read.parquet(str(workload / f"{name}.parquet")) for name in ("subscriptions", "churn")
    )
    from_frames = measure_frames(tables, wishes, churn=churn, **options)
    for run in ("one", "two"):
        expected = in_memory(recorded, workload, run, **options)
        assert_equal(from_files[run], expected)
        assert_equal(from_frames[run], expected)

    lists = pq.read_table(workload / "subscriptions.parquet")
    rows = {
        "time": [0.0] * len(lists),
        "node": lists["node"],
        "topic": lists["topic"],
        "wanted": [True] * len(lists),
    }
    both = [pa.table({"run": [run] * len(lists), **rows}).select(INTERESTS.names) for run in ("one", "two")]
    told = Path(shutil.copytree(recorded, tmp_path / "told"))
    pq.write_table(pa.concat_tables(both).cast(INTERESTS), told / "interests.parquet")
    by_nodes = measure_folder(told, None, spark_session, in_memory=False)
    for run, expected in measure_folder(told, None, spark_session).items():
        assert_equal(by_nodes[run], expected)

    tables = shuffled(spark, recorded)
    nodes = spark.createDataFrame([(f"n{number}",) for number in range(20)], "node string")
    names = [f"n{number}" for number in range(20)]
    expected = measure_run(
        Tables.load(recorded), pq.read_table(workload / "subscriptions.parquet"), run="two", nodes=names
    )
    with spark_session(**PRODUCTION):
        table = measure(tables, wishes, run="two", nodes=nodes)
        assert table.columns == MEASURED.names
        rows = {row["measure"]: row["value"] for row in table.collect()}
    assert_equal(rows, expected)
    table.write.partitionBy("run").parquet(str(tmp_path / "by-run"))
    assert [path.name for path in (tmp_path / "by-run").glob("run=*")] == ["run=two"]


def test_runs_are_never_measured_together(spark: SparkSession, recorded: Path) -> None:
    tables = frames(spark, recorded)
    wishes = spark.read.parquet(str(recorded / "subscriptions.parquet"))
    with pytest.raises(BadInput, match=r"2 runs \(one, two\); say which"):
        measure_one(tables, wishes)
    with pytest.raises(BadInput, match="no run 'three'"):
        measure_one(tables, wishes, run="three")


def test_what_is_small_is_measured_without_spark_and_kept_as_a_table(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)

    def no_spark() -> Any:
        raise AssertionError("for so little?")

    workload = tmp_path / "workload"
    workload.mkdir()
    shutil.copy(recorded / "subscriptions.parquet", workload)
    found = measure_folder(recorded, workload, no_spark, window=2.0)
    tables, wishes = Tables.load(recorded), pq.read_table(recorded / "subscriptions.parquet")
    assert found["two"] == pytest.approx(measure_run(tables, wishes, run="two", window=2.0), nan_ok=True)
    write_measures(found, tmp_path / "out", {"command": "measure"}, False, {"telemetry": "abc"})
    table = pq.read_table(tmp_path / "out" / "measures.parquet")
    assert table.schema == MEASURED
    rows = {(row["run"], row["measure"]): row["value"] for row in table.to_pylist()}
    assert rows["two", "hit_ratio"] == found["two"]["hit_ratio"]
    assert len(rows) == sum(map(len, found.values()))


def brute_force_first(pair: list[Any], time: list[float], order: list[int]) -> list[bool]:
    best: dict[Any, tuple[float, int]] = {}
    for key, *place in zip(pair, time, order, strict=True):
        best[key] = min(best.get(key, (math.inf, 0)), (place[0], int(place[1])))
    return [best[key] == (when, at) for key, when, at in zip(pair, time, order, strict=True)]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-2, 2), st.integers(0, 3)), max_size=40))
def test_first_receptions_are_those_of_brute_force(rows: list[tuple[int, int, int]]) -> None:
    pairs, time = [(event, node) for event, node, _ in rows], [float(when) for *_, when in rows]
    event, node = (np.array([pair[at] for pair in pairs], np.int64) for at in (0, 1))
    found = first_receptions(event, node, np.array(time))
    assert found.tolist() == brute_force_first(pairs, time, list(range(len(rows))))


def test_a_missing_table_or_column_is_named(recorded: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"links.parquet: no such telemetry table"):
        measure_folder(tmp_path, recorded, spark_session)
    for name in SCHEMAS:
        shutil.copy(recorded / f"{name}.parquet", tmp_path)
    lacking = pq.read_table(recorded / "deliveries.parquet").drop_columns(["hops"])
    pq.write_table(lacking, tmp_path / "deliveries.parquet")
    with pytest.raises(BadInput, match=r"deliveries.parquet: needs one column 'hops'"):
        measured_here(tmp_path, recorded)


@pytest.mark.parametrize("kind", ["spread", "few", "one"])
def test_quantiles_are_exact_however_the_values_are_spread_over_arrays(kind: str) -> None:
    rng = np.random.default_rng(3)
    values = {
        "spread": rng.lognormal(size=2001),
        "few": rng.integers(0, 3, 2001) * 0.5,
        "one": np.full(7, 2.0),
    }[kind]
    cells = [np.sort(cut) for cut in np.split(values, np.sort(rng.integers(0, len(values), 5))) if len(cut)]
    shares = [0.0, 0.01, 0.5, 0.95, 1.0]
    for stride in (1, 3, 700):
        asked = wanted([LatencyMarks(len(cell), stride, cell[::stride]) for cell in cells], shares)
        looks = [look for cell in cells for look in second_look(1, cell, asked.spans)]
        assert quantiles(asked, looks, 1) == np.percentile(values, [100 * one for one in shares]).tolist()


def test_names_have_one_hash_however_they_are_kept() -> None:
    names = pa.array(["a", "", "ü", "a"])
    plain = hashes(names)
    assert plain.tolist() == hashes(names.dictionary_encode()).tolist()
    assert plain.tolist() == hashes(pa.chunked_array([names[:1], names[1:]])).tolist()
    assert len(set(plain.tolist())) == 3
    assert plain[0] == -4496393130729816112  # the same on every machine
