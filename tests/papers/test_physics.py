"""The world that a study's rows name is the one that its nodes live in."""

from __future__ import annotations

import pytest

from topicweave.data.networks import NetworkSpec
from topicweave.papers.catalogue import STUDIES
from topicweave.papers.physics import physics, world_of
from topicweave.papers.rappel.feeds import Feeds
from topicweave.papers.rappel.workloads import SingleFeed
from topicweave.runs.overlay import SettledOverlay
from topicweave.runs.sources import GeneratedWorkload

ALL = "every node knows all others"


@pytest.mark.parametrize("system", ["vitis", "rvr", "magnet"])
def test_a_system_with_a_membership_of_its_own_knows_nobody_by_decree(system: str) -> None:
    run = SettledOverlay(system=system, workload=GeneratedWorkload(10))
    assert physics(run) == "50 ms one way, no loss, nodes find each other as the system does"


@pytest.mark.parametrize("system", ["spidercast", "omen", "scribe"])
def test_others_know_all_unless_a_membership_is_named(system: str) -> None:
    assert physics(SettledOverlay(system=system, workload=GeneratedWorkload(10))).endswith(ALL)
    named = SettledOverlay(system=system, workload=GeneratedWorkload(10), membership="gossip:20")
    assert physics(named).endswith("views by gossip of 20")


def test_rappel_with_given_publishers_enters_no_view() -> None:
    one = Feeds(workload=SingleFeed(10), network=NetworkSpec("generated", 0))
    assert physics(one).endswith("nodes know the publishers of their feeds")
    assert physics(Feeds(system="scribe", workload=SingleFeed(10))).endswith(ALL)


@pytest.mark.parametrize("name", [name for name in STUDIES if "/" in name])
def test_every_study_says_in_which_world(name: str) -> None:
    study = STUDIES[name]
    for scale in study.scales:
        assert world_of(study, study.plan(scale, 0))


def test_omen_by_messages_says_that_its_samples_are_an_oracle() -> None:
    study = STUDIES["omen/counted"]
    assert world_of(study, study.plan("smoke", 0)).endswith("an oracle: OMen's peer sampling is uniform")
