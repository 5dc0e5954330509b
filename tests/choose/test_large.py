"""Very many subscriptions are sampled where they lie; what is read here is the sample."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from topicweave.choose import large
from topicweave.choose.running import Engine
from topicweave.model.workload import Workload
from topicweave.pipeline.generate import generate


class OnACluster(Engine):
    is_cluster = True


def test_executors_draw_what_the_driver_reads(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate("vitis-high", {"nodes": 300}, 1, tmp_path / "w")
    notes: list[str] = []
    with OnACluster(spark=spark) as engine:
        same = large.read_on_executors(tmp_path / "w", tmp_path / "out", engine, 0, notes.append)
        assert (same, notes) == (tmp_path / "w", [])
        monkeypatch.setattr(large, "LARGE", 1000)
        monkeypatch.setattr(large, "NODES", 4)
        folder = large.read_on_executors(tmp_path / "w", tmp_path / "out", engine, 0, notes.append)
        assert folder == large.read_on_executors(tmp_path / "w", tmp_path / "out", engine, 0, notes.append)
    whole, few = Workload.load(tmp_path / "w"), Workload.load(folder)
    assert few.nodes == 4
    lists = {name: set(whole.interests(at).tolist()) for at, name in enumerate(whole.node_names)}
    for at, name in enumerate(few.node_names):
        mine = {few.topic_names[topic] for topic in few.interests(at).tolist()}
        assert mine == {whole.topic_names[topic] for topic in lists[name]}
    assert "15,000 subscriptions, read on executors" in notes[0]
    with Engine(spark=spark) as engine:
        assert (
            large.read_on_executors(tmp_path / "w", tmp_path / "out", engine, 0, notes.append)
            == tmp_path / "w"
        )
