"""Feeds under churn: whose sessions become whose."""

from __future__ import annotations

import pytest

from topicweave.data.networks import NetworkSpec
from topicweave.papers.rappel import world
from topicweave.papers.rappel.feeds import ContinuousChurn, Feeds
from topicweave.papers.rappel.workloads import CommunityFeeds, SingleFeed
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


def test_rejoins_at_the_publisher_are_counted_as_often_as_nodes_rejoin() -> None:
    def rejoins(period: float) -> float:
        run = Feeds(
            workload=SingleFeed(30),
            network=NetworkSpec("generated", 0, False),
            duration=1800.0,
            window=30.0,
            update_every=0.0,
            control=True,
            parameters={"rejoin_period": period},
        )
        per_minute: float = carry_out(run)["control"]["publisher_rejoins"]
        return per_minute

    often, seldom = rejoins(60.0), rejoins(600.0)
    assert 4 * seldom < often < 30
    assert seldom > 0


def test_copies_sent_leave_out_what_every_subscriber_gets() -> None:
    """With Scribe, who relays is not who subscribes; but each gets a copy for every feed that it wants."""
    run = Feeds(
        system="scribe",
        workload=CommunityFeeds(),
        network=NetworkSpec("generated", 0, False),
        duration=90.0,
        window=1.0,
        update_every=0.0,
        last_update_of_all=True,
    )
    result = carry_out(run)
    assert result["reached"] == result["expected"]
    assert abs(result["sent_correlation"]) < result["data_correlation"]
