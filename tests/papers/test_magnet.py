"""Magnet's studies: every plan can be made at both scales, and judges what its experiments give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from topicweave.papers.magnet import STUDIES
from topicweave.papers.magnet.settings import SEEDS, SYSTEMS
from topicweave.papers.study import Scale, Study, run_study
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


def test_savings_that_do_not_rise_or_are_none_are_reported_as_such() -> None:
    plan = named("fig4a").plan("smoke", 0)
    cost = {"magnet": 50.0, "strawman": 100.0}
    rows = plan.judge({label: made_up(cost[label[1]]) for label in plan.runs})
    assert [row.measured for row in rows if row.measure == "relays_saved"][:3] == [0.5] * 3
    assert [row.holds for row in rows if row.paper == "rises with alpha"] == [False]
    worse = plan.judge({label: made_up(100.0) for label in plan.runs})
    assert [row.holds for row in worse if row.paper == "fewer than the strawman"] == [False] * 3


def test_one_wrong_tree_is_a_miss() -> None:
    plan = named("fig4a").plan("smoke", 0)
    rows = plan.judge({label: made_up(50.0, wrong=label[2]) for label in plan.runs})
    assert not any(row.holds for row in rows if row.measure.startswith("trees that do not"))


def test_costs_at_smoke_scale_are_as_claimed(tmp_path: Path) -> None:
    for name in ("fig3a", "uncorrelated"):
        result = run_study(named(name), "smoke", 0, tmp_path, Processes(1))
        assert [row for row in result.rows if row.holds is False] == []
