"""The Rappel studies: every plan can be made at every scale; the small ones come out as the paper says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from topicweave.papers.rappel import STUDIES
from topicweave.papers.rappel.trees import between, middle
from topicweave.papers.running import run_study
from topicweave.papers.study import Scale
from topicweave.runs import Processes
from topicweave.runs.registry import decode, encode
from topicweave.systems.rappel.messages import Ping

BY_NAME = {study.name.removeprefix("rappel/"): study for study in STUDIES}


@pytest.mark.parametrize("scale", ["smoke", "tenth", "paper"])
@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_every_figure_has_its_experiments(study: Any, scale: Scale) -> None:
    plan = study.plan(scale, 0)
    assert plan.runs
    for run in plan.runs.values():
        assert decode(encode(run)) == run


def test_all_figures_of_the_paper_are_there() -> None:
    wanted = (
        "fig1 fig5 fig7 fig8a fig8b fig9a fig9b fig9c fig10a fig10b fig10c fig11a fig11b fig11c fig11d bloom"
        " fig6 beta rejoining places publisher newcomers returners friends why"
    )
    assert set(BY_NAME) == set(wanted.split())


def test_figures_that_show_the_same_runs_share_them() -> None:
    plans = {name: study.plan("paper", 0).runs for name, study in BY_NAME.items()}
    assert plans["fig8a"]["as"] == plans["fig8b"]["static"]
    assert plans["fig9b"]["both"] == plans["fig10c"]["rappel"] == plans["fig11d"]["twitter"]


def test_filters_are_as_stated(tmp_path: Path) -> None:
    rows = run_study(BY_NAME["bloom"], "smoke", 0, tmp_path, Processes(1)).rows
    assert [row.measured for row in rows] == [pytest.approx(row.paper, rel=0.15) for row in rows]


def test_one_update_beside_scribe(tmp_path: Path) -> None:
    rows = run_study(BY_NAME["fig10a"], "smoke", 0, tmp_path, Processes(1)).rows
    kept = {row.measure: row for row in rows if row.where.get("system") == "rappel"}
    assert kept["noise (receptions)"].measured == 0
    reached = kept["subscribers reached"]
    assert reached.paper == f"all {reached.measured}"
    (relays,) = [row.measured for row in rows if row.measure == "carriers that do not subscribe"]
    assert isinstance(relays, int)
    assert relays > 0


def test_a_single_noisy_reception_is_told() -> None:
    plan = BY_NAME["fig8a"].plan("smoke", 0)
    part = {"stretch_p50": 1.2, "stretch_p95": 1.5, "distance": 0.1}
    update = {"latency_p50": 0.1, "latency_p95": 0.2}
    result = {
        "noise": 1,
        "final": {"by_distance": [part] * 10, "height_mean": 3.0, "height_max": 5},
        "updates": [update],
    }
    rows = plan.rows_of(dict.fromkeys(plan.runs, result))
    assert [row.measured for row in rows if row.measure == "noise (receptions)"] == [1]


def test_a_ping_is_mostly_the_names_of_friends() -> None:
    """As rp-11b-bytes says."""
    names = tuple(2**62 + number for number in range(6))
    size = {
        told: len(msgspec.msgpack.encode(Ping(10, 1, True, friends, feeds)))
        for told, friends, feeds in (
            ("a friend's", names, ()),
            ("a parent's", names, (2**62,)),
            ("no names", (), ()),
        )
    }
    assert size == {"a friend's": 68, "a parent's": 77, "no names": 14}


def test_medians_leave_out_what_is_not_known() -> None:
    assert middle([3.0, float("nan"), 1.0, 2.0]) == 2.0
    assert between([{"time": 1.0}, {"time": 2.0}], 1.5, 3.0) == [{"time": 2.0}]
