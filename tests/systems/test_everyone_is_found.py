"""With the membership of live nodes and small views, those who want a rare topic find each other: in every
system that promises to connect topics by subscribers.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.seeds import seeds
from tests.systems.overlays import parted_topics
from topicweave.blocks.directory_view import DirectoryView
from topicweave.blocks.interest_node import ViewNode
from topicweave.blocks.membership import Membership
from topicweave.model.workload import Workload
from topicweave.sim.churn import Churn
from topicweave.sim.faults import Partition
from topicweave.sim.simulation import Simulation
from topicweave.systems.rappel.parameters import paced
from topicweave.systems.registry import find_system
from topicweave.workloads import generate
from topicweave.workloads.catalogue import build

NODES = 60
SYSTEMS: list[tuple[str, dict[str, Any], int]] = [
    ("spidercast", {}, 6),
    ("gossipsub", {}, 6),
    ("omen", {}, 6),
    # Coordinators link whom their views hold, and nobody else.
    ("omen", {"finds": "coordinators"}, NODES),
    ("rappel", dict(paced(6.0).parameters), 6),
    ("ring-per-topic", {}, 6),
    ("weave", {}, 6),
]


@pytest.mark.parametrize(("system", "parameters", "view"), SYSTEMS, ids=str)
def test_no_topic_stays_apart_and_none_after_a_crash(
    system: str, parameters: dict[str, Any], view: int
) -> None:
    found = find_system(system)
    simulation = Simulation(
        build("rare", 1, nodes=NODES),
        found,
        found.settings(**parameters),
        seed=1,
        membership=Membership.parse(f"directory:{view}"),
        churn=Churn(frozenset(range(NODES)), (), start_window=10.0),
    )
    simulation.seeds = (0, 1, 2)
    simulation.run(60.0)
    assert parted_topics(simulation) == []
    assert 6 <= simulation.gauges()["membership_contacts"] <= 20
    for index in random.Random(2).sample(simulation.up(), NODES // 10):
        simulation.stop(index, orderly=False)
    simulation.run(90.0)
    assert parted_topics(simulation) == []


def test_who_crashed_is_reported_to_the_home_which_names_others() -> None:
    """Records last two minutes. Those who call in vain say so, and newcomers are told of others at once."""
    readers = {f"reader{number}": ["shared"] for number in range(10)}
    workload = Workload.from_lists(readers | {f"other{number}": [f"{number % 4}"] for number in range(20)})
    simulation = Simulation(
        *(workload, find_system("spidercast")), seed=1, membership=Membership.parse("directory")
    )
    simulation.run(20.0)
    names, newcomer = workload.node_names.index, workload.node_names.index("other0")
    for number in range(8):
        simulation.stop(names(f"reader{number}"), orderly=False)
    alive = {workload.node_ids[names(f"reader{number}")] for number in (8, 9)}
    simulation.run(35.0)
    simulation.subscribe(newcomer, workload.topic_names.index("shared"))
    simulation.run(45.0)
    topic = workload.topic_ids[workload.topic_names.index("shared")]
    views = [node.view for node in map(simulation.node, simulation.up()) if isinstance(node, ViewNode)]
    directories = [view.directory for view in views if isinstance(view, DirectoryView)]
    [home] = [directory.home for directory in directories if directory.ring.owns(topic)]
    assert set(home.subscribers(topic)) == alive | {workload.node_ids[newcomer]}
    assert parted_topics(simulation) == []


def test_gossip_alone_with_such_views_does_not() -> None:
    """What the directory is for: this test fails if the one above could not."""
    simulation = Simulation(
        build("rare", 1, nodes=NODES),
        find_system("rappel"),
        find_system("rappel").settings(**paced(6.0).parameters),
        seed=1,
        membership=Membership.parse("gossip:6"),
        churn=Churn(frozenset(range(NODES)), (), start_window=10.0),
    )
    simulation.seeds = (0, 1, 2)
    simulation.run(60.0)
    assert parted_topics(simulation)


@seeds(range(12), always=4)
def test_parts_of_a_thin_overlay_are_one_soon(seed: int) -> None:
    """Links that coverage does not need are trimmed, and with two per topic that parts some topics soon after
    the start.
    """
    found = find_system("spidercast")
    simulation = Simulation(
        generate(40, 12, "rss", 4, 4, seed=seed),
        found,
        found.settings(**found.paced("lan", {"k_greedy": 2})),
        seed=seed,
        membership=Membership.parse("directory"),
    )
    simulation.run(25.0)
    assert parted_topics(simulation) == []


@pytest.mark.parametrize("system", ["spidercast", "omen", "gossipsub", "weave", "rappel", "ring-per-topic"])
def test_what_an_introduction_joined_stays_joined(system: str) -> None:
    """Two halves that cover all their topics by themselves: no rule of the overlay needs the links between
    them, and yet they stay.
    """
    found = find_system(system)
    nodes = 30
    simulation = Simulation(
        generate(nodes, 6, "rss", 3, 3, seed=1),
        found,
        found.settings(**found.paced("lan", {})),
        seed=1,
        membership=Membership.parse("directory:5"),
        faults=(Partition(0.0, 60.0, frozenset(range(0, nodes, 2))),),
    )
    simulation.run(60.0)
    assert parted_topics(simulation)
    simulation.run(150.0)
    for _ in range(6):
        assert parted_topics(simulation) == []
        simulation.run(simulation.now + 10.0)


def test_only_those_who_need_subscribers_run_the_directory() -> None:
    kinds = {}
    for name in ("vitis", "scribe", "spidercast"):
        simulation = Simulation(
            build("rare", 1, nodes=10), find_system(name), membership=Membership.parse("directory")
        )
        simulation.run(1.0)
        kinds[name] = simulation.membership_kinds
    assert kinds["vitis"] == frozenset()
    assert kinds["scribe"] == {"sampling.offer", "sampling.answer"}
    assert {"dir-carry", "sampling.names-offer"} <= kinds["spidercast"]
