"""`topicweave graph …` on a small network: what it prints, what it writes, and what it says of bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.cli.commands import call
from topicweave.pipeline.graphs.api import TABLES
from topicweave.pipeline.staging import mark_of, read_about


@pytest.fixture
def network(tmp_path: Path) -> Path:
    """Two rings of four; everybody wants `all`, each ring its own topic and half of each a third."""
    folder = tmp_path / "network"
    folder.mkdir()
    links = [(f"{ring}{at}", f"{ring}{(at + 1) % 4}") for ring in "ab" for at in range(4)]
    count = len(links)
    table = {"run": ["x"] * count, "time": [1.0] * count, "node": [one for one, _ in links]}
    pq.write_table(pa.table({**table, "peer": [other for _, other in links]}), folder / "links.parquet")
    wishes = [(node, topic) for node, _ in links for topic in ("all", node[0])]
    wishes += [(node, f"{node[0]}-more") for node, _ in links if node[1] in "01"]
    lists = {"node": [one for one, _ in wishes], "topic": [two for _, two in wishes]}
    pq.write_table(pa.table(lists), folder / "subscriptions.parquet")
    changes = {
        "time": [0.0, 0.0, 3.0, 9.0],
        "node": ["a0", "a1", "a0", "a2"],
        "change": ["join", "join", "leave", "join"],
    }
    pq.write_table(pa.table(changes), folder / "churn.parquet")
    return folder


def test_every_command_answers_and_keeps_a_table(spark: SparkSession, network: Path, tmp_path: Path) -> None:
    def told(name: str, *words: str) -> list[dict[str, object]]:
        out = () if name == "survival" else ("--out", str(tmp_path / name))
        result = call("graph", name, str(network), "--format", "json", *words, *out)
        assert result.exit_code == 0, result.output
        found: list[dict[str, object]] = json.loads(result.stdout)
        return found

    by_topic = {row["topic"]: row for row in told("components", "--workload", str(network))}
    assert by_topic["all"] == {"topic": "all", "nodes": 8, "components": 2}
    assert by_topic["a-more"] == {"topic": "a-more", "nodes": 2, "components": 1}
    assert pq.read_table(tmp_path / "components" / "components.parquet").schema == TABLES["components"]

    [whole] = told("diameter", "--registers", "256")
    assert (whole["topic"], whole["vertices"], whole["diameter"]) == (None, 8, 2)

    pairs = told("similar", "--threshold", "0.99")
    assert {(row["node"], row["other"]) for row in pairs} | {
        (row["other"], row["node"]) for row in pairs
    } >= {
        ("a0", "a1"),
        ("b2", "b3"),
    }
    counts = {frozenset((row["topic"], row["other"])): row["nodes"] for row in told("cooccurrence")}
    assert counts[frozenset(("all", "a"))] == 4
    assert counts[frozenset(("a", "a-more"))] == 2
    assert sum(int(str(row["topics"])) for row in told("communities")) == 5

    for name, option in (("components", "run"), ("diameter", "registers"), ("similar", "threshold")):
        about = read_about(tmp_path / name)
        assert about["made"]["parents"] == {str(network): mark_of(network)}, name
        assert option in about
    again = call("graph", "similar", str(network), "--out", str(tmp_path / "similar"))
    assert (again.exit_code, "already there" in again.output) == (2, True)

    result = call("graph", "survival", str(network), "--end", "10")
    assert result.exit_code == 0, result.output
    assert "1 sessions ended, 2 go on" in result.stdout

    missing = call("graph", "components", str(network), "--run", "y")
    assert missing.exit_code == 2
    assert "the links hold no run 'y'; they hold x" in missing.output
