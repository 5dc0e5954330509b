"""Whole OMen networks in the simulator."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.seeds import seeds
from tests.systems.omen.networks import (
    around_the_circle,
    busiest,
    by_the_paper_alone,
    network,
    node_of,
    nodes_of,
    parted_topics,
)
from topicweave.model.workload import Workload
from topicweave.sim.simulation import Simulation
from topicweave.systems.omen import OMEN, OMenParameters
from topicweave.systems.omen.invariants import at_rest
from topicweave.systems.omen.local_view import Predecessor
from topicweave.systems.omen.messages import Label, Links, Survey
from topicweave.testing import draw_scenario, run_scenario


def test_a_network_weaves_itself_and_events_reach_all_who_want_them() -> None:
    simulation = network()
    assert parted_topics(simulation) == []
    got: list[int] = []
    simulation.on_delivery(lambda host, event: got.append(host.index))
    for topic in range(simulation.workload.topics):
        subscribers = simulation.workload.subscribers(topic).tolist()
        if subscribers:
            got.clear()
            simulation.publish(subscribers[0], topic)
            simulation.run(simulation.now + 5.0)
            assert sorted(got) == subscribers
    for node in nodes_of(simulation):
        assert len(node.local.records) <= 2 * node.parameters.resilience
        assert not node.coordinator.churn.standby
        assert not node.coordinator.churn.executing


@pytest.mark.parametrize("resilience", [1, 2, 3, 5])
def test_as_many_concurrent_departures_as_it_is_made_for(resilience: int) -> None:
    """L neighbours on the circle crash in one instant: the worst case for coordinators (§3.3)."""
    simulation = network(seed=resilience, resilience=resilience)
    by_the_paper_alone(simulation)
    for index in around_the_circle(simulation, busiest(simulation), resilience):
        simulation.stop(index, orderly=False)
    assert parted_topics(simulation) != []
    simulation.run(simulation.now + 40.0)
    assert parted_topics(simulation) == []


def test_an_orderly_leave_is_mended_at_once() -> None:
    simulation = network(seed=4)
    by_the_paper_alone(simulation)
    for _ in range(5):
        simulation.stop(busiest(simulation), orderly=True)
        # Nobody waits for a silence to get suspicious: new beacons and answers take their time, and no more.
        simulation.run(simulation.now + 8.0)
        assert parted_topics(simulation) == []


def test_joining_and_wanting_more() -> None:
    simulation = network(seed=8)
    by_the_paper_alone(simulation)
    index = busiest(simulation)
    node = node_of(simulation, index)
    simulation.stop(index, orderly=True)
    simulation.run(simulation.now + 30.0)
    simulation._join(index, None)
    simulation.run(simulation.now + 20.0)
    assert parted_topics(simulation) == []
    wanted = next(
        t for t, topic in enumerate(simulation.workload.topic_ids) if topic not in node.subscriptions
    )
    simulation.subscribe(index, wanted)
    simulation.run(simulation.now + 20.0)
    assert parted_topics(simulation) == []
    # And to leave a topic that others are held together by.
    node = node_of(simulation, index)
    held = sorted(node.links_kept.held(frozenset(node.subscriptions)))
    simulation.unsubscribe(index, simulation.workload.topic_ids.index(held[0]))
    simulation.run(simulation.now + 20.0)
    assert parted_topics(simulation) == []


@pytest.mark.parametrize(
    "parameters",
    [
        {"global_view": True},
        {"components": "shadow"},
        {"components": "spread", "ceiling": "shadow"},
        {"builder": "greedy"},
        {"covers": "multi"},
    ],
)
def test_variants(parameters: dict[str, Any]) -> None:
    simulation = network(nodes=25, seed=9, **parameters)
    by_the_paper_alone(simulation)
    simulation.stop(busiest(simulation), orderly=False)
    simulation.run(simulation.now + 20.0)
    assert parted_topics(simulation) == []


def test_a_small_part_is_found_however_many_the_others_are() -> None:
    """The lowest subscriber and another one, linked to each other alone: whoever leads the rest must look for
    the lower, not among all.
    """
    workload = Workload.from_lists({f"n{number:03d}": ["news"] for number in range(150)})
    simulation = Simulation(workload, OMEN, OMenParameters(), seed=2)
    simulation.run(40.0)
    assert parted_topics(simulation) == []
    everybody = {node.id: node for node in nodes_of(simulation)}
    lowest = everybody[min(everybody)]
    other = everybody[min(lowest.links_kept.neighbours)]
    for node in (lowest, other):
        for peer in set(node.links_kept.neighbours) - {lowest.id, other.id}:
            node.links_kept.remove(peer)
            everybody[peer].links_kept.remove(node.id)
    assert parted_topics(simulation) != []
    simulation.run(100.0)  # Labels of the lost part have to grow old first.
    assert parted_topics(simulation) == []


def test_backups_are_ready_ahead_of_the_failure() -> None:
    """§4.3: B, N and R of every predecessor, kept current by gossip."""
    simulation = network(seed=3)
    everyone = {node.id: node for node in nodes_of(simulation)}
    for node in everyone.values():
        assert len(node.local.predecessors) == node.parameters.resilience
        for peer in node.local.predecessors:
            record = node.local.records[peer]
            assert record.ready
            assert record.links is not None
            assert set(record.links.neighbours) == set(everyone[peer].links_kept.neighbours)
            for topic in everyone[peer].subscriptions:
                others = sum(topic in other.subscriptions for other in everyone.values()) - 1
                covered = sum(topic in interest for interest in record.backups.values())
                # Gossip brings what it brings; a topic that others want has at least one backup.
                assert covered >= min(1, others)


def test_hostile_messages_are_kept_within_bounds() -> None:
    simulation = network(nodes=12, seed=2)
    node = nodes_of(simulation)[0]
    stranger = next(iter(node.local.successors))
    topics = frozenset(node.subscriptions)
    for number in range(500):
        node.receive(stranger, Survey(number, topics, tuple(range(50)), 0.0, topics, True))
        node.receive(stranger, Label(number, number, tuple((topic, number) for topic in topics)))
    node.receive(stranger, Links(9, topics, tuple(range(100_000)), topics, topics))
    assert len(node._member.surveys) <= 64
    assert len(node._labels._states) <= 64
    assert all(
        record.links is None or len(record.links.neighbours) <= node.parameters.most_links
        for record in node.local.records.values()
    )
    simulation.run(simulation.now + 30.0)
    assert not node._member.surveys
    assert not node._labels.known_peers()


@seeds([1, 4, 5])
def test_faults(seed: int) -> None:
    """A taste of the campaign (`topicweave campaign`): partitions, loss, crashes, churn, changes of interest."""
    verdict = run_scenario(OMEN, draw_scenario(seed, nodes=30))
    assert verdict.violations == ()


def test_a_node_needs_no_compiler() -> None:
    """Repair runs LowODA with NumPy alone: neither Numba nor SciPy is loaded."""
    code = "import sys, topicweave.systems.omen; print([m for m in ('numba', 'scipy', 'pyspark') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_departures_left_over_are_complained_of() -> None:
    """What the campaign holds against a node (§5): unfinished departures, lists or records beyond 2L."""
    node = nodes_of(network(nodes=12, seed=2))[0]
    assert list(at_rest({node.id: node})) == []
    events, most = node.coordinator.churn, 2 * node.parameters.resilience
    for departed in range(most + 3):
        events.handle(departed, coordinator=1)
    assert events.most == most
    assert list(at_rest({node.id: node})) == [
        f"{node.id:x} has {most} departures that nobody reported as handled"
    ]
    for departed in range(most + 1):
        node.local.records[departed] = Predecessor(frozenset())
    events.most = most + 1
    assert len(list(at_rest({node.id: node}))) == 3
