"""Studies from the command line, on two that take no time."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.commands import call
from topicweave.papers import STUDIES, Plan, Row, Scale, Study
from topicweave.runs.overlay import SettledOverlay
from topicweave.runs.sources import GeneratedWorkload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def plan(scale: Scale, seed: int) -> Plan:
    workload = GeneratedWorkload(20 if scale == "smoke" else 30, 6, "rss", 2, 2, seed=seed)

    def judge(results: Any) -> list[Row]:
        degree = results["one"]["degree_mean"]
        return [
            Row({"nodes": results["one"]["nodes"]}, "degree_mean", 1000.0, degree, False, "within 1%"),
            Row({}, "noise", None, float("nan"), None, "reported"),
        ]

    return Plan({"one": SettledOverlay(system="random", workload=workload, seed=seed, settle=1.0)}, judge)


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("toy/one", "toy/two"):
        monkeypatch.setitem(STUDIES, name, Study(name, f"what {name} shows", "nowhere §1", plan))


def test_the_list_names_every_study() -> None:
    shown = call("study", "list").stdout
    assert all(name in shown for name in STUDIES)
    assert "what toy/one shows" in shown


def test_one_study_is_one_object_and_a_file(tmp_path: Path) -> None:
    ended = call("study", "run", "toy/one", "--format", "json", "--out", tmp_path / "out", "--seed", 3)
    assert ended.exit_code == 0  # Although what it claims does not hold.
    told = json.loads(ended.stdout)
    assert (told["study"], told["scale"], told["seed"]) == ("toy/one", "smoke", 3)
    first, second = told["rows"]
    keys = {"where", "measure", "paper", "measured", "holds", "tolerance", "deviation"}
    assert first.keys() == keys
    assert (first["where"], first["holds"]) == ({"nodes": 20}, False)
    assert (second["paper"], second["measured"], second["holds"]) == (None, None, None)
    assert json.loads((tmp_path / "out" / "toy" / "one.json").read_text()) == told


def test_a_pattern_gives_a_list_and_shared_runs_are_run_once(tmp_path: Path) -> None:
    ended = call("study", "run", "toy/*", "--format", "json", "--out", tmp_path / "out")
    assert [one["study"] for one in json.loads(ended.stdout)] == ["toy/one", "toy/two"]
    assert "1/1 finished in an earlier run" in ended.stderr
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_several_names_are_several_tables_each_once(tmp_path: Path) -> None:
    shown = call("study", "run", "toy/two", "toy/*", "--out", tmp_path / "out").stdout
    assert [line.partition(":")[0] for line in shown.splitlines() if "nowhere §1" in line] == [
        "toy/two",
        "toy/one",
    ]
    assert shown.count("✗") == 2


def test_the_papers_scale_is_asked_for(tmp_path: Path) -> None:
    ended = call("study", "run", "toy/one", "--scale", "paper", "--format", "json", "--out", tmp_path / "out")
    told = json.loads(ended.stdout)
    assert told["scale"] == "paper"
    assert told["rows"][0]["where"] == {"nodes": 30}


def test_on_spark_all_studies_share_one_session(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []

    @contextmanager
    def counting(*settings: object, **more: object) -> Iterator["SparkSession"]:
        opened.append((settings, more))
        yield spark

    monkeypatch.setattr("topicweave.cli.spark.spark_for", counting)
    words = ["study", "run", "toy/*", "--out", tmp_path / "out", "--master", "local[2]", "--format", "json"]
    ended = call(*words)
    assert [one["study"] for one in json.loads(ended.stdout)] == ["toy/one", "toy/two"]
    assert len(opened) == 1
    assert len(list((tmp_path / "runs").glob("*.json"))) == 1
