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

from topicweave.errors import BadInput
from topicweave.measures import measure_run
from topicweave.pipeline import measure_pass, quantiles
from topicweave.pipeline.measure import (
    MEASURED,
    measure_all,
    measure_folder,
    measure_on_spark,
    read_tables,
    runs_in,
    write_measures,
)
from topicweave.pipeline.measure_deliveries import delivery_measures, received
from topicweave.pipeline.quantiles import exact_quantiles
from topicweave.pipeline.session import spark_session
from topicweave.telemetry.schema import SCHEMAS
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
    """Two runs of random rows, with everything that makes measures differ: repetitions, noise, ties, strangers."""
    folder = tmp_path_factory.mktemp("telemetry")
    rng = np.random.default_rng(11)

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


@pytest.mark.parametrize(
    "options",
    [
        {"run": "two", "start": 5.0, "end": 22.0, "window": 1.0, "coverage_k": 2, "link_kinds": ["near"]},
        {
            "run": "one",
            "churn": True,
            "grace": 2.0,
            "window": 2.5,
            "snapshot_time": 20.0,
            "snapshot_within": 10.0,
        },
    ],
    ids=["options", "churn"],
)
def test_every_measure_is_the_same_on_spark(
    spark: SparkSession, recorded: Path, options: dict[str, Any]
) -> None:
    here, there = dict(options), dict(options)
    if options.get("churn"):
        here["churn"] = pq.read_table(recorded / "churn.parquet")
        there["churn"] = spark.read.parquet(str(recorded / "churn.parquet"))
    expected = measure_run(Tables.load(recorded), pq.read_table(recorded / "subscriptions.parquet"), **here)
    wishes = spark.read.parquet(str(recorded / "subscriptions.parquet"))
    assert_equal(measure_on_spark(read_tables(spark, recorded), wishes, **there), expected)


def test_all_runs_are_measured_after_one_pass(
    spark: SparkSession, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure_pass, "ROWS_PER_TASK", 500)  # several tasks, and several for a topic
    wishes = pq.read_table(recorded / "subscriptions.parquet")
    found = measure_all(
        read_tables(spark, recorded), spark.read.parquet(str(recorded / "subscriptions.parquet"))
    )
    assert set(found) == {"one", "two"}
    for run, measures in found.items():
        assert_equal(measures, measure_run(Tables.load(recorded), wishes, run=run))


def test_deliveries_are_measured_alike_with_the_settings_that_users_have(
    spark: SparkSession, recorded: Path
) -> None:
    one = Tables.load(recorded).of_run("one")
    expected = measure_run(one, pq.read_table(recorded / "subscriptions.parquet"))
    with spark_session(**PRODUCTION):
        tables = {name: table.where("run = 'one'") for name, table in read_tables(spark, recorded).items()}
        passed = measure_pass.one_pass(tables["publishes"], tables["deliveries"], 0.0, None)
        row = passed.events.select("run").first()
        assert row is not None
        found = delivery_measures(received(passed, row["run"]))
        for frame in passed:
            frame.unpersist()
    assert_equal(found, {name: expected[name] for name in found})


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
    write_measures(found, tmp_path / "out", {"command": "measure"}, False)
    table = pq.read_table(tmp_path / "out" / "measures.parquet")
    assert table.schema == MEASURED
    rows = {(row["run"], row["measure"]): row["value"] for row in table.to_pylist()}
    assert rows["two", "hit_ratio"] == found["two"]["hit_ratio"]
    assert len(rows) == sum(map(len, found.values()))


def brute_force_first(pair: list[int], time: list[float], order: list[int]) -> list[bool]:
    best: dict[int, tuple[float, int]] = {}
    for key, *place in zip(pair, time, order, strict=True):
        best[key] = min(best.get(key, (math.inf, 0)), (place[0], int(place[1])))
    return [best[key] == (when, at) for key, when, at in zip(pair, time, order, strict=True)]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=40), st.randoms())
def test_first_receptions_are_those_of_brute_force(rows: list[tuple[int, int]], random: Any) -> None:
    order = list(range(len(rows)))
    random.shuffle(order)
    pair, time = [key for key, _ in rows], [float(when) for _, when in rows]
    found = measure_pass._first(np.array(pair, np.int64), np.array(time), np.array(order, np.int64))
    assert found.tolist() == brute_force_first(pair, time, order)


def test_runs_are_never_measured_together(spark: SparkSession, recorded: Path) -> None:
    tables = read_tables(spark, recorded)
    assert runs_in(tables) == ["one", "two"]
    wishes = spark.read.parquet(str(recorded / "subscriptions.parquet"))
    with pytest.raises(BadInput, match=r"2 runs \(one, two\); say which"):
        measure_on_spark(tables, wishes)
    with pytest.raises(BadInput, match="no run 'three'"):
        measure_on_spark(tables, wishes, run="three")


def test_a_missing_table_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"links.parquet: no such telemetry table"):
        read_tables(spark, tmp_path)


@pytest.mark.parametrize("kind", ["spread", "few", "one"])
def test_quantiles_are_exact_however_the_values_are_spread_over_arrays(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(quantiles, "_MARKS", 8)
    rng = np.random.default_rng(3)
    values = {
        "spread": rng.lognormal(size=2001),
        "few": rng.integers(0, 3, 2001) * 0.5,
        "one": np.full(7, 2.0),
    }[kind]
    cuts = np.split(values, np.sort(rng.integers(0, len(values), 5)))
    cells = [np.sort(cut).tobytes() for cut in cuts]
    frame = spark.createDataFrame(pa.table({"x": pa.array(cells, pa.binary())}))
    shares = [0.0, 0.01, 0.5, 0.95, 1.0]
    assert (
        exact_quantiles(frame, "x", shares) == np.percentile(values, [100 * one for one in shares]).tolist()
    )
    assert all(math.isnan(one) for one in exact_quantiles(frame.where("false"), "x", [0.5]))
