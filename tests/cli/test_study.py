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

    def rows_of(results: Any) -> list[Row]:
        degree = results["one"]["degree_mean"]
        return [
            Row({"nodes": results["one"]["nodes"]}, "degree_mean", 1000.0, degree),
            Row({}, "noise", None, float("nan")),
        ]

    return Plan({"one": SettledOverlay(system="random", workload=workload, seed=seed, settle=1.0)}, rows_of)


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
    assert ended.exit_code == 0
    told = json.loads(ended.stdout)
    assert (told["study"], told["scale"], told["seed"]) == ("toy/one", "smoke", 3)
    first, second = told["rows"]
    assert told.keys() == {"study", "scale", "seed", "rows"}  # claims are judged at paper scale
    assert first.keys() == {"where", "measure", "paper", "measured", "deviation"}
    assert (first["where"], first["paper"]) == ({"nodes": 20}, 1000.0)
    assert (second["paper"], second["measured"]) == (None, None)
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
    assert shown.splitlines()[-1] == "Claims are judged at --scale paper."
    assert shown.count("judged") == 1


def test_the_papers_scale_is_asked_for(tmp_path: Path) -> None:
    ended = call("study", "run", "toy/one", "--scale", "paper", "--format", "json", "--out", tmp_path / "out")
    told = json.loads(ended.stdout)
    assert told["scale"] == "paper"
    assert told["rows"][0]["where"] == {"nodes": 30}


def opt_without_a_bound(scale: Scale, seed: int) -> Plan:
    """Figure 11's rows of one workload, near the paper's and far from it, on a run of no time."""

    def rows_of(_: Any) -> list[Row]:
        return [
            Row({"system": "opt", "workload": workload, "level": "messages"}, measure, paper, measured)
            for measure, paper, *both in (
                ("hit_ratio", 1.0, 1.0, 0.9995),
                ("share of nodes of degree above 15", "above 0.67", 0.668, 0.6),
                ("share of nodes of degree above 200", 0.003, 0.0034, 0.0031),
                ("degree_max", 708, 708, 1300),
            )
            for workload, measured in zip(("twitter", "epinions"), both, strict=True)
        ]

    return Plan(plan(scale, seed).runs, rows_of)


def test_claims_are_judged_as_on_the_scoreboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "vitis/fig11"
    monkeypatch.setitem(STUDIES, name, Study(name, "OPT", "§IV-E", opt_without_a_bound))
    words = (name, "--scale", "paper", "--out", tmp_path / "out")
    board = json.loads(call("reproduce", *words, "--results", tmp_path, "--format", "json").stdout)
    told = json.loads(call("study", "run", *words, "--format", "json").stdout)
    states = {claim["id"]: claim["state"] for claim in told["claims"]}
    assert {"holds", "does not hold"} == {states.pop("vt-11-hit"), states.pop("vt-11-708")}
    for kind in ("claims", "checks"):
        judged = [claim for claim in board[kind] if claim["cases"]]
        assert [{**claim, "made": []} for claim in judged] == [
            claim for claim in told[kind] if claim["cases"]
        ]
    assert all("holds" not in row and "tolerance" not in row for row in told["rows"])
    shown = " ".join(call("study", "run", *words).stdout.split())
    assert all(claim in shown for claim in states)
    assert "epinions 708 1300 worse (higher)" in shown


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
