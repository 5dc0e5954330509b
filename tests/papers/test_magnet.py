"""Magnet's studies: every plan can be made at both scales, and tells what its experiments give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from topicweave.papers.magnet import STUDIES
from topicweave.papers.magnet.settings import SEEDS, SYSTEMS
from topicweave.papers.running import run_study
from topicweave.papers.study import Scale, Study
from topicweave.runs import Processes


def named(name: str) -> Study:
    (study,) = [study for study in STUDIES if study.name == f"magnet/{name}"]
    return study


@pytest.mark.parametrize("scale", ["smoke", "paper"])
@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_every_figure_has_its_experiments(study: Any, scale: Scale) -> None:
    plan = study.plan(scale, 0)
    assert {experiment.system for experiment in plan.runs.values()} == set(SYSTEMS)
    if study.name != "magnet/levels":
        assert {experiment.seed for experiment in plan.runs.values()} == set(range(SEEDS[scale]))
    if scale == "paper" and study.name in ("magnet/fig2", "magnet/fig3a", "magnet/fig3b", "magnet/fig5"):
        sizes = {experiment.workload.nodes for experiment in plan.runs.values()}
        assert sizes == {10_000}


def made_up(relays: float, wrong: int = 0) -> dict[str, Any]:
    return {
        "relays_per_topic": relays,
        "relays_by_rate": relays,
        "wrong_trees": wrong,
        "overlay_degree": 19.0,
    }


def test_what_is_saved_is_told_over_the_seeds() -> None:
    plan = named("fig4a").plan("smoke", 0)
    cost = {"magnet": 50.0, "strawman": 100.0}
    rows = plan.rows_of({label: made_up(cost[label[1]]) for label in plan.runs})
    assert [row.measured for row in rows if row.measure == "relays_saved"][:3] == [0.5] * 3
    assert [row.deviation for row in rows if row.measure == "relays_saved"][:3] == [0.0] * 3


def test_wrong_trees_are_counted() -> None:
    plan = named("fig4a").plan("smoke", 0)
    rows = plan.rows_of({label: made_up(50.0, wrong=label[2]) for label in plan.runs})
    wrong = [row.measured for row in rows if row.measure.startswith("trees that do not")]
    assert wrong == [2 * sum(range(SEEDS["smoke"]))] * 3


@pytest.mark.parametrize(("name", "least"), [("fig3a", 0.0), ("uncorrelated", -0.05)])
def test_costs_at_smoke_scale_are_as_claimed(name: str, least: float, tmp_path: Path) -> None:
    rows = run_study(named(name), "smoke", 0, tmp_path, Processes(1)).rows
    saved = [row.measured for row in rows if row.measure == "relays_saved"]
    assert min(value for value in saved if isinstance(value, float)) > least
    assert {row.measured for row in rows if row.measure.startswith("trees that do not")} == {0}
