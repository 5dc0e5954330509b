"""The studies of SpiderCast §3: every plan can be made, and small ones run to rows of the common form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from topicweave.papers import find_study, run_study, spidercast
from topicweave.papers.running import StudyResult
from topicweave.papers.spidercast import rivals, settings
from topicweave.papers.spidercast.regular import LikeItsLargestTopic, diameter, random_neighbours
from topicweave.papers.study import Row, Scale
from topicweave.runs import Processes
from topicweave.runs.registry import decode, encode
from topicweave.runs.run import OnSystem, size
from topicweave.systems.registry import find_system

FIGURES = [study.name for study in spidercast.STUDIES]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "SMOKE_SIZES", (60, 90))


def test_all_figures_are_there() -> None:
    figures = [f"spidercast/fig{number}" for number in range(6, 15)]
    assert [
        *figures,
        "spidercast/disconnect",
        "spidercast/links",
        "spidercast/ties",
        "spidercast/why",
    ] == FIGURES
    for name in FIGURES:
        study = find_study(name)
        assert study.title
        assert study.source.startswith("SpiderCast (DEBS 2007) §")


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("scale", ["smoke", "paper"])
@pytest.mark.parametrize("name", FIGURES)
def test_every_plan_is_made_of_experiments_that_can_be_run(name: str, scale: Scale) -> None:
    plan = find_study(name).plan(scale, 3)
    assert plan.runs
    for experiment in plan.runs.values():
        assert decode(encode(experiment)) == experiment
        if isinstance(experiment, LikeItsLargestTopic):
            continue
        assert isinstance(experiment, OnSystem)
        settings = find_system(experiment.system).settings(**experiment.parameters)
        assert settings.bridges == 0  # mending is ours, not the paper's
        assert experiment.seed in (3, 30, 31, 32)  # some draw several networks of a seed


def test_a_plan_of_the_paper_has_its_sizes() -> None:
    experiments = find_study("spidercast/fig12").plan("paper", 0).runs
    assert len(experiments) == 7 * 6
    assert {size(run) for run in experiments.values()} == set(settings.PAPER_SIZES)


def test_figures_12_and_13_share_their_runs() -> None:
    one, other = (find_study(f"spidercast/{figure}").plan("smoke", 0) for figure in ("fig12", "fig13"))
    assert one.runs == other.runs


def check(result: StudyResult, name: str) -> list[Row]:
    """The common form; returns the rows."""
    written: dict[str, Any] = json.loads(json.dumps(result.to_json()))
    assert (written["study"], written["scale"], written["seed"]) == (name, "smoke", 1)
    assert written["rows"]
    for row in written["rows"]:
        assert set(row) == set(Row.__struct_fields__)
        assert isinstance(row["where"], dict)
        assert row["where"]
        assert isinstance(row["measure"], str)
        assert isinstance(row["measured"], (int, float, str))
    points = [(json.dumps(row["where"], sort_keys=True), row["measure"]) for row in written["rows"]]
    assert len(points) == len(set(points))
    return result.rows


@pytest.mark.usefixtures("tiny")
def test_figure_12_runs(tmp_path: Path) -> None:
    name = "spidercast/fig12"
    rows = check(run_study(find_study(name), "smoke", 1, tmp_path, Processes(1)), name)
    degrees = {
        (row.where["system"], row.where["nodes"]): row.measured
        for row in rows
        if row.measure == "degree_mean"
    }
    assert set(degrees) == {(system, nodes) for system in rivals.TABLE_12 for nodes in (60, 90)}
    assert degrees["similarity(20,0)", 90] == pytest.approx(20, rel=0.05)
    assert degrees["random(10)", 90] == pytest.approx(10, rel=0.08)
    parted = [row for row in rows if row.measure == "partitioned_topics"]
    assert [row.where["system"] for row in parted] == ["spidercast(3,0)"] * 2


@pytest.mark.usefixtures("tiny")
def test_figure_6_runs(tmp_path: Path) -> None:
    name = "spidercast/fig6"
    rows = check(run_study(find_study(name), "smoke", 1, tmp_path, Processes(1)), name)
    coverages = {row.where["coverage"] for row in rows}
    assert coverages == {"(3,0)", "(3,1)", "(4,0)", "adaptive"}
    share = {row.where["workload"]: row for row in rows if row.measure == "random_coverage_share"}
    assert set(share) == {"zipf2", "rss", "nyse", "uniform"}
    assert all(share[popularity].measured == 0 for popularity in ("rss", "nyse", "uniform"))
    degrees = {row.where["coverage"]: row.measured for row in rows if row.measure == "degree_mean"}
    assert float(degrees["(3,1)"] or 0) > float(degrees["(3,0)"] or 0)


def test_ties_that_go_to_the_first_make_hubs() -> None:
    anybody, the_first = (
        settings.settled(200, 0, popularity="zipf2", parameters={"ties": ties}).run()["degree_max"]
        for ties in ("random", "first")
    )
    assert the_first > 1.5 * anybody


@pytest.mark.parametrize(("vertices", "cycles"), [(5, 1), (90, 1), (200, 2)])
def test_diameters_of_random_graphs_are_those_that_networkx_finds(vertices: int, cycles: int) -> None:
    neighbours = random_neighbours(vertices, cycles, seed=1)
    assert neighbours.shape == (vertices, 2 * cycles)
    graph = nx.Graph((one, int(other)) for one, row in enumerate(neighbours) for other in row)
    assert diameter(neighbours) == nx.diameter(graph)
