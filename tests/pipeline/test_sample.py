"""Samples of workloads: what each paper's procedure promises."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.pipeline.folders import contents, pairs, rows
from topicweave.errors import BadInput
from topicweave.model.workload import Workload
from topicweave.pipeline import parts, sample, workers


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty users in a circle, each following the next two; and two who follow only each other."""
    lists = {f"u{n}": [f"u{(n + 1) % 20}", f"u{(n + 2) % 20}"] for n in range(20)}
    lists |= {"x": ["y"], "y": ["x"]}
    folder = tmp_path_factory.mktemp("graph") / "ring"
    Workload.from_lists(lists).save(folder)
    return folder


def test_breadth_first_keeps_all_links_among_those_it_reached(
    spark: SparkSession, ring: Path, tmp_path: Path
) -> None:
    made = sample.breadth_first(spark, ring, tmp_path / "out", nodes=9, seeds=1, seed=3)
    assert (made.nodes, made.topics) == (9, len({topic for _, topic in pairs(tmp_path / "out")}))
    reached = {row["node"] for row in rows(tmp_path / "out", "hosts")}
    assert pairs(tmp_path / "out") == [
        (node, topic) for node, topic in pairs(ring) if node in reached and topic in reached
    ]
    with spark_partitions(spark, "5"):
        sample.breadth_first(spark, ring, tmp_path / "again", nodes=9, seeds=1, seed=3)
    assert contents(tmp_path / "again") == contents(tmp_path / "out")


def test_a_search_that_runs_dry_starts_again_elsewhere(
    spark: SparkSession, ring: Path, tmp_path: Path
) -> None:
    sample.breadth_first(spark, ring, tmp_path / "out", nodes=22, seeds=1)
    assert len(rows(tmp_path / "out", "hosts")) == 22
    with pytest.raises(BadInput, match="22 nodes, fewer than the 23 asked for"):
        sample.breadth_first(spark, ring, tmp_path / "more", nodes=23)


def test_only_a_graph_of_users_is_searched(spark: SparkSession, tmp_path: Path) -> None:
    Workload.from_lists({"1": ["2", "7"], "2": ["1"]}).save(tmp_path / "places")
    for search in (sample.breadth_first, sample.followed):
        with pytest.raises(BadInput, match="topic '7' is no node"):
            search(spark, tmp_path / "places", tmp_path / "out", nodes=2)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("sampler", ["breadth_first", "neighbourhood"])
def test_an_interrupted_sample_goes_on_and_says_where_it_is(
    spark: SparkSession, ring: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sampler: str
) -> None:
    """What is finished is not named again, and what is begun says how far it is."""
    first, again = (
        ("level 1, 0 of 9 nodes so far", "level 2, 3 of 9 nodes so far")
        if sampler == "breadth_first"
        else ("round 1 of 5", "round 2 of 5")
    )
    steps: list[str] = []
    monkeypatch.setattr(workers, "listeners", [steps.append])
    written = parts.write_table

    def only_one(*rows: Any, **more: Any) -> int:
        if steps[-1:] == [first]:
            raise KeyboardInterrupt
        return written(*rows, **more)

    monkeypatch.setattr(sample, "write_table", only_one)
    take = getattr(sample, sampler)
    with pytest.raises(KeyboardInterrupt):
        take(spark, ring, tmp_path / "out", nodes=9)
    assert steps[-1] == first
    steps.clear()
    monkeypatch.setattr(sample, "write_table", written)
    take(spark, ring, tmp_path / "out", nodes=9)
    assert steps[0] == again
    take(spark, ring, tmp_path / "whole", nodes=9)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_random_topics_come_with_everybody_who_wants_one(
    spark: SparkSession, ring: Path, tmp_path: Path
) -> None:
    made = sample.random_topics(spark, ring, tmp_path / "out", topics=5, seed=2)
    chosen = {row["topic"] for row in rows(tmp_path / "out", "topics")}
    assert made.topics == len(chosen) == 5
    assert pairs(tmp_path / "out") == [pair for pair in pairs(ring) if pair[1] in chosen]


def test_churn_is_dealt_out_and_scaled(spark: SparkSession, ring: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.mkdir()
    changes = pa.table(
        {"time": [10.0, 100.0, 50.0], "node": ["a", "a", "b"], "change": ["join", "leave", "join"]}
    )
    pq.write_table(changes, trace / "churn.parquet")
    pq.write_table(pa.table({"node": ["a", "b", "c"], "sessions": [1, 1, 0]}), trace / "hosts.parquet")
    made = sample.with_churn(spark, ring, trace, tmp_path / "out", seconds=20.0)
    workload = Workload.load(tmp_path / "out")
    assert made.changes == workload.churn.size
    lives: dict[str, list[tuple[float, str]]] = {}
    for row in rows(tmp_path / "out", "churn"):
        lives.setdefault(row["node"], []).append((row["time"], row["change"]))
    assert len(lives) == 22
    kinds = sorted({tuple(sorted(life)) for life in lives.values()})
    # Host c was never up: its nodes join when the trace ends.
    assert kinds == [((2.0, "join"), (20.0, "leave")), ((10.0, "join"),), ((20.0, "join"),)]


def spark_partitions(spark: SparkSession, count: str) -> AbstractContextManager[SparkSession]:
    from topicweave.pipeline.session import spark_session

    return spark_session(**{"spark.sql.shuffle.partitions": count})
