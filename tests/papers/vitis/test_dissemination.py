"""Static settings, small: what is published and what is measured."""

from __future__ import annotations

import pytest

from topicweave.papers.vitis.dissemination import Dissemination
from topicweave.papers.vitis.lists import CorrelatedLists
from topicweave.runs import carry_out

LISTS = CorrelatedLists(60, 40, "high", 4, 4)


@pytest.mark.parametrize("system", ["vitis", "rvr"])
def test_a_static_setting_reaches_everybody_and_has_four_readings_of_overhead(system: str) -> None:
    result = carry_out(
        Dissemination(
            system=system,
            parameters={"table_size": 6, "spreading": {"inline": 1}},
            workload=LISTS,
            settle=25.0,
            distribution=True,
        )
    )
    assert result["hit_ratio"] == 1.0
    assert result["events"] == 40
    for reading in ("noise", "noise_node_mean", "noise_all", "noise_all_node_mean"):
        assert 0.0 <= result[reading] < 1.0
    assert sum(result["overhead_by_node"]) == pytest.approx(1.0)
    assert len(result["degrees"]) == 60
    # If nobody were linked to anybody, each of a topic's subscribers would be a cluster.
    assert 1.0 <= result["clusters_per_topic"] < 60 * 4 / 40


def test_given_rates_are_the_workloads() -> None:
    lists = CorrelatedLists(20, 40, "random", 4, 4, alpha=2.0)
    workload = lists.load()
    given, equal = (
        Dissemination(system="vitis", workload=lists, parameters={"rates": rates}).given(workload)
        for rates in ("given", "equal")
    )
    assert sorted(given["topic_rates"].values()) == sorted(workload.rates.tolist())
    assert equal == {"rates": "equal"}
