"""The study that sets live runs beside simulated ones."""

from __future__ import annotations

import pytest

from topicweave.papers.agreement import MEASURES, beside, plan
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
    ("simulated", "mean", "deviation"), [([0.05], 0.05, None), ([0.25, 0.75], 0.5, 0.5**1.5)]
)
def test_a_live_figure_stands_beside_the_mean_of_the_simulators_seeds(
    simulated: list[float], mean: float, deviation: float | None
) -> None:
    row = beside({"system": "vitis"}, "noise", simulated, 0.6)
    assert (row.paper, row.measured) == (mean, 0.6)
    assert row.deviation == pytest.approx(deviation)


def test_every_figure_of_every_system_is_told() -> None:
    made = plan("paper", 0)
    figures = dict.fromkeys(MEASURES, 1.0) | {"loop_lag_max": 0.1, "node_errors": 0}
    rows = made.rows_of(dict.fromkeys(made.runs, figures))
    assert len(rows) == len(SYSTEMS) * (len(MEASURES) + 2)
