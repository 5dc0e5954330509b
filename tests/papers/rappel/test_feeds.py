"""Feeds under churn: whose sessions become whose."""

from __future__ import annotations

import pytest

from topicweave.data.networks import NetworkSpec
from topicweave.papers.rappel import world
from topicweave.papers.rappel.feeds import ContinuousChurn, Feeds
from topicweave.papers.rappel.workloads import SingleFeed
from topicweave.runs import carry_out


def test_hosts_that_left_before_they_had_come_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those up at the trace's start come at some moment of the window; a session may have ended before that."""
    gone_at_once = ((0.0, 1e-6),)
    coming_and_going = ((0.0, 40.0), (60.0, 100.0))
    hosts = tuple(gone_at_once if number % 3 == 0 else coming_and_going for number in range(60))
    monkeypatch.setattr(world, "host_sessions", lambda: hosts)
    run = Feeds(
        workload=SingleFeed(30),
        network=NetworkSpec("generated", 0, False),
        duration=400.0,
        window=30.0,
        update_every=60.0,
        churn=ContinuousChurn(30.0, 5),
    )
    result = carry_out(run)
    assert result["noise"] == 0
    assert len(result["updates"]) > 3
