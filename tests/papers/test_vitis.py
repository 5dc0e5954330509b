"""The Vitis studies: every plan can be made at both scales, and tells what its experiments give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from topicweave.papers.levels import SIZES
from topicweave.papers.study import Scale
from topicweave.papers.vitis import READINGS, STUDIES
from topicweave.papers.vitis.runs import CycledDissemination
from topicweave.papers.vitis.settings import PATTERNS
from topicweave.papers.vitis.synthetic import _smaller


@pytest.mark.parametrize("scale", ["smoke", "tenth", "paper"])
@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_every_figure_has_its_experiments(study: Any, scale: Scale) -> None:
    plan = study.plan(scale, 0)
    systems = {experiment.system for experiment in plan.runs.values()}
    assert systems <= {"vitis", "rvr", "opt"}
    if scale == "paper" and study.name in ("vitis/fig4", "vitis/fig6", "vitis/fig7"):
        assert {experiment.workload.nodes for experiment in plan.runs.values()} == {10_000}
        assert {type(run) for run in plan.runs.values()} == {CycledDissemination}


def made_up(overhead: float, hops: float) -> dict[str, Any]:
    return {
        **dict.fromkeys(READINGS, overhead),
        "hit_ratio": 1.0,
        "hops_mean": hops,
        "relays_per_topic": 1.0,
        "degree_mean": 20.0,
        "degree_max": 30.0,
        "requested_paths": 1.0,
        "clusters_per_topic": 1.0,
        "nodes": 100,
        "events": 50,
        "workload": {"topics": 50},
        "settling": [],
    }


def test_rows_say_how_they_were_come_by() -> None:
    scales: tuple[Scale, ...] = ("smoke", "paper")
    (fig4,) = [study for study in STUDIES if study.name == "vitis/fig4"]
    for scale in scales:
        plan = fig4.plan(scale, 0)
        rows = plan.rows_of({label: made_up(0.3, 3.0) for label in plan.runs})
        assert {row.where["level"] for row in rows} == {"cycles"}


@pytest.mark.parametrize("nodes", sorted({nodes for sizes in SIZES.values() for nodes in sizes}))
def test_levels_have_workloads_of_every_size(nodes: int) -> None:
    for pattern in PATTERNS:
        lists = np.diff(_smaller(nodes, pattern, 0).load().offsets)
        assert len(lists) == nodes
        assert lists.min() == lists.max() > 0


@pytest.mark.parametrize("name", ["vitis/fig12", "vitis/fig12_4000"])
def test_points_under_churn_are_the_same_with_every_seed(name: str) -> None:
    # How many nodes are there differs with the seed: it is a number that came out, and no part of the point.
    (study,) = [study for study in STUDIES if study.name == name]
    plan = study.plan("smoke", 0)

    def points(nodes: float) -> list[tuple[str, dict[str, Any]]]:
        part = {
            "start": 40.0,
            "nodes": nodes,
            "hit_ratio": 1.0,
            "noise": 0.2,
            "noise_all": 0.2,
            "hops_mean": 3.0,
        }
        rows = plan.rows_of({label: {"parts": [part]} for label in plan.runs})
        return [(row.measure, dict(row.where)) for row in rows]

    assert points(60.0) == points(75.0)
