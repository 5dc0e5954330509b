"""The study that sets live runs beside simulated ones."""

from __future__ import annotations

import pytest

from topicweave.papers.agreement import MEASURES, agrees, plan
from topicweave.papers.study import Scale
from topicweave.runs.live_run import LiveRun
from topicweave.runs.overlay import SettledOverlay
from topicweave.systems.registry import SYSTEMS


@pytest.mark.parametrize("scale", ["smoke", "paper"])
def test_both_worlds_do_the_same_in_the_same_time(scale: Scale) -> None:
    runs = plan(scale, 4).runs
    for system in SYSTEMS:
        live, simulated = runs[system, "live"], runs[system, 4]
        assert isinstance(live, LiveRun)
        assert isinstance(simulated, SettledOverlay)
        for field in ("workload", "parameters", "seed", "settle", "start_window", "events", "publishing"):
            assert getattr(live, field) == getattr(simulated, field), field
        assert live.start_window > 0


@pytest.mark.parametrize(
    ("simulated", "live", "holds"),
    [
        ([0.05], 0.0549, True),
        ([0.05], 0.056, False),
        ([0.04, 0.06], 0.0549, True),
        ([0.04, 0.06], 0.06, False),
        ([0.04, 0.06], 0.044, False),
        ([0.0, 0.0], 0.0, True),
        ([0.0, 0.0], 0.001, False),
    ],
)
def test_a_live_figure_is_held_to_the_mean_of_the_simulators_seeds(
    simulated: list[float], live: float, holds: bool
) -> None:
    assert agrees({"system": "vitis"}, "noise", simulated, live).holds is holds


def test_every_figure_of_every_system_is_judged() -> None:
    made = plan("paper", 0)
    figures = dict.fromkeys(MEASURES, 1.0) | {"loop_lag_max": 0.1, "node_errors": 0}
    rows = made.judge(dict.fromkeys(made.runs, figures))
    assert len(rows) == len(SYSTEMS) * (len(MEASURES) + 2)
    assert all(row.holds in (True, None) for row in rows)
