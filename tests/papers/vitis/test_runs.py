"""Vitis' own workloads and runs: how real samples are drawn, and what a trace does."""

from __future__ import annotations

import math
from typing import Literal

import pytest

from topicweave.errors import BadInput
from topicweave.papers.vitis.churned import UnderChurn, crashing
from topicweave.papers.vitis.lists import CorrelatedLists
from topicweave.papers.vitis.workloads import FollowersSample, TraceLists
from topicweave.runs.registry import from_plain
from topicweave.sim.churn import Change, Churn
from topicweave.sim.faults import Crash

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


def test_who_goes_crashes_and_who_comes_again_has_forgotten() -> None:
    changes = (Change(1.0, 0, False), Change(2.0, 1, True), Change(3.0, 0, True), Change(4.0, 0, False))
    churn, crashes = crashing(Churn(frozenset({0}), changes))
    assert churn == Churn(frozenset({0}), (Change(2.0, 1, True),))
    assert crashes == [
        Crash(1.0, 3.0, 0, keeps_memory=False),
        Crash(4.0, math.inf, 0, keeps_memory=False),
    ]


@needs_data
def test_nobody_hears_of_a_departure() -> None:
    """By a goodbye neighbours drop the link at once; by silence they keep it for a while."""
    lists = CorrelatedLists(40, 20, "random", 5, 4)
    trace = TraceLists(lists, hours=1.0, quiet=10.0, duration=20.0)
    hits = {}
    ways: tuple[Literal["crash", "goodbye"], ...] = ("crash", "goodbye")
    for way in ways:
        result = UnderChurn(system="rvr", workload=trace, departures=way, parts=1).run()
        hits[way] = result["changes"]
    assert hits["crash"] < hits["goodbye"], "crashes are no changes that somebody is told of"
