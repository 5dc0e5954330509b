"""Vitis' own workloads and runs: how real samples are drawn, and what a trace does."""

from __future__ import annotations

import pytest

from topicweave.errors import BadInput
from topicweave.papers.vitis.lists import CorrelatedLists
from topicweave.papers.vitis.workloads import FollowersSample, TraceLists
from topicweave.runs.registry import from_plain

LISTS = CorrelatedLists(60, 40, "high", 4, 4)
needs_data = pytest.mark.usefixtures("made_up_data")


def test_events_under_churn_need_a_trace() -> None:
    with pytest.raises(BadInput, match="Invalid value 'vitis-lists'"):
        from_plain({"type": "vitis-churn", "system": "rvr", "workload": {"type": "vitis-lists", "nodes": 60}})


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
