"""Static settings and churned ones, small: what is published, what is measured, how real samples are drawn."""

from __future__ import annotations

import pytest

from topicweave.errors import BadInput
from topicweave.runs import Experiment, run_experiment
from topicweave.runs.churned import TraceLists, UnderChurn
from topicweave.runs.dissemination import (
    CorrelatedLists,
    Dissemination,
    FollowersSample,
    with_given_rates,
)

LISTS = CorrelatedLists(60, 40, "high", 4, 4)
needs_data = pytest.mark.usefixtures("made_up_data")


@pytest.mark.parametrize("system", ["vitis", "rvr"])
def test_a_static_setting_reaches_everybody_and_has_four_readings_of_overhead(system: str) -> None:
    result = run_experiment(
        Experiment(
            system=system,
            parameters={"table_size": 6, "spreading": {"inline": 1}},
            workload=LISTS,
            settle=25.0,
            dissemination=Dissemination(distribution=True),
        )
    )
    assert result["hit_ratio"] == 1.0
    assert result["events"] == 40
    for reading in ("noise", "noise_node_mean", "noise_all", "noise_all_node_mean"):
        assert 0.0 <= result[reading] < 1.0
    assert sum(result["overhead_by_node"]) == pytest.approx(1.0)
    assert len(result["degrees"]) == 60


def test_given_rates_are_the_workloads() -> None:
    workload = CorrelatedLists(20, 40, "random", 4, 4, alpha=2.0).load()
    rates = with_given_rates({"rates": "given"}, workload)["topic_rates"]
    assert sorted(rates.values()) == sorted(workload.rates.tolist())
    assert with_given_rates({"rates": "equal"}, workload) == {"rates": "equal"}


def test_events_under_churn_need_a_trace() -> None:
    with pytest.raises(BadInput, match="TraceLists"):
        run_experiment(Experiment(system="rvr", workload=LISTS, under_churn=UnderChurn()))


@needs_data
def test_a_real_sample_has_users_for_topics() -> None:
    workload = FollowersSample("epinions", 100, seed=1).load()
    assert 100 <= workload.nodes < 200
    assert set(workload.topic_names) <= set(workload.node_names)


@needs_data
def test_a_trace_has_a_flash_crowd_in_the_middle() -> None:
    trace = TraceLists(LISTS, hours=1.0, quiet=10.0, duration=100.0, crowd=0.3)
    workload = trace.load()
    assert workload.initially_up().sum() >= 20, "those that settle before the stretch begins"
    churn = workload.churn
    joins = churn["time"][(churn["change"] == 1)]
    assert ((joins >= 60.0) & (joins <= 65.0)).sum() >= 18
