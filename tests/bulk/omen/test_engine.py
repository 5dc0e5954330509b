"""Rounds of churn on whole overlays: every system keeps or restores what it promises, round by round."""

from __future__ import annotations

import random
from typing import Any

import pytest

from topicweave.bulk.omen.churn import churn_sequence
from topicweave.bulk.omen.engine import run_mending
from topicweave.bulk.omen.overlay import LiveOverlay
from topicweave.bulk.omen.plan import Mending
from topicweave.bulk.omen.systems import OMenMender
from topicweave.data.files import VARIABLE
from topicweave.errors import BadInput
from topicweave.papers.omen.mending import Mended
from topicweave.papers.omen.workloads import SocialSample, SyntheticLists
from topicweave.runs import carry_out

LISTS = SyntheticLists(80, 30, "zipf", 3, 12, seed=1)


def run(system: str = "omen", rounds: int = 40, **plan: Any) -> dict[str, Any]:
    return run_mending(system, LISTS.load(), Mending(rounds=rounds, warm_up=4, **plan), seed=3)


@pytest.mark.parametrize("concurrent", [1, 2, 3, 5])
def test_every_round_of_omen_ends_topic_connected(concurrent: int) -> None:
    result = run(concurrent=concurrent, resilience=concurrent, rounds=60)
    assert result["unrestored_rounds"] == 0
    assert result["partitioned_topics"] == 0
    assert all(look["partitioned_topics"] == 0 for look in result["looks"])


@pytest.mark.parametrize(
    "plan",
    [
        {"components": "spread"},
        {"components": "shadow"},
        {"ceiling": "shadow"},
        {"global_view": True},
        {"builder": "greedy", "covers": "multi"},
        {"coverage": 0},
    ],
)
def test_variants_restore_it_too(plan: dict[str, Any]) -> None:
    result = run(**plan)
    assert result["unrestored_rounds"] == 0
    assert result["partitioned_topics"] == 0


@pytest.mark.parametrize("system", ["lowoda-inc", "lowoda-re", "spidercast"])
def test_rivals_run(system: str) -> None:
    result = run(system)
    assert len(result["looks"]) == 11
    if system != "spidercast":
        assert result["partitioned_topics"] == 0


def test_degrees_stay_near_the_design_and_below_spidercast() -> None:
    """And Algorithm 1 to the letter lets them run away."""
    mean = {system: run(system)["degree_mean_mean"] for system in ("lowoda-re", "omen", "spidercast")}
    assert abs(mean["omen"] - mean["lowoda-re"]) <= 1.12
    assert mean["omen"] < 0.8 * mean["spidercast"]
    assert run(components="shadow")["degree_mean_mean"] > mean["omen"]


def test_beacons_spare_most_of_the_labels() -> None:
    by_beacons, spread = run(labels=True), run(labels=True, components="spread")
    assert by_beacons["label_messages_per_leave"] < 0.5 * spread["label_messages_per_leave"]


def test_a_run_is_a_value_and_repeats() -> None:
    run = Mended(system="omen", workload=LISTS, seed=5, rounds=15, warm_up=2)
    untimed = [
        {name: value for name, value in carry_out(run).items() if "seconds" not in name} for _ in range(2)
    ]
    assert untimed[0] == untimed[1]


def test_prepared_backups_are_ready_and_coordinators_alive() -> None:
    workload = LISTS.load()
    overlay = LiveOverlay(workload, range(workload.nodes))
    mender = OMenMender(overlay, Mending(rounds=0), random.Random(0), everybody=False)
    for _ in range(5):
        mender.gossip()
    for node in range(0, workload.nodes, 7):
        assert mender.views.coordinator(node) != node
        backups = mender.views.backups_of(node)
        assert node not in backups
        assert all(overlay.interest[peer] & overlay.interest[node] for peer in backups)


def test_random_churn_alternates_per_node() -> None:
    up, happenings = churn_sequence("random", 50, 200, seed=1)
    assert len(happenings) == 200
    for node, joins in happenings:
        assert joins == (node not in up)
        (up.add if joins else up.discard)(node)


def test_without_the_data_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(BadInput, match=f"set {VARIABLE}"):
        SocialSample("facebook", 100).load()


@pytest.mark.usefixtures("made_up_data")
def test_a_social_graph_under_a_clusters_churn() -> None:
    workload = SocialSample("facebook", 120, seed=2).load()
    assert workload.nodes == 120
    up, happenings = churn_sequence("google", workload.nodes, 100, seed=2)
    assert len(up) == workload.nodes
    assert len(happenings) == 100
    for node, joins in happenings:
        assert joins == (node not in up)
        (up.add if joins else up.discard)(node)
    result = run_mending("omen", workload, Mending(rounds=30, churn="google", warm_up=2), seed=2)
    assert result["unrestored_rounds"] == 0
