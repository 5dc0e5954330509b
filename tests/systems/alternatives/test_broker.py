"""The broker: one hop up, one down; whoever is lowest when it fails takes over."""

from __future__ import annotations

import pytest

from tests.systems.overlays import publish_everywhere, settle
from topicweave.model.workload import Workload
from topicweave.sim.faults import Crash
from topicweave.sim.simulation import Simulation
from topicweave.systems.alternatives.broker import BROKER, BrokerNode
from topicweave.telemetry.writer import MemoryTelemetry
from topicweave.testing import draw_scenario, run_scenario
from topicweave.testing.invariants import DeliveryLog
from topicweave.workloads import generate

WORKLOAD = generate(40, 10, "uniform", min_size=3, max_size=3, seed=1)


def broker_of(simulation: Simulation, index: int) -> int | None:
    node = simulation.node(index)
    assert isinstance(node, BrokerNode)
    return node.broker


def lowest(workload: Workload, rank: int = 0) -> int:
    """The index of the node with the lowest identifier, or the next ones."""
    return sorted(range(workload.nodes), key=lambda index: workload.node_ids[index])[rank]


@pytest.mark.parametrize("membership", ["full", "gossip"])
def test_everybody_is_linked_to_the_lowest_and_gets_what_it_wants(membership: str) -> None:
    simulation = settle("broker", WORKLOAD, until=40.0, membership=membership)
    star = lowest(WORKLOAD)
    hub = simulation.hosts[star].name
    assert [broker_of(simulation, index) for index in range(WORKLOAD.nodes) if index != star] == [hub] * 39
    assert simulation.node(star).degree == 39
    expected, got = publish_everywhere(simulation)
    assert got == expected


def test_a_client_stays_with_its_broker_when_its_view_forgets_it() -> None:
    """Views of 20 of 120 nodes name others all the time."""
    workload = generate(120, 10, "uniform", min_size=3, max_size=3, seed=1)
    simulation = settle("broker", workload, until=100.0, membership="gossip:20")
    before = [broker_of(simulation, index) for index in range(120)]
    hub = simulation.hosts[lowest(workload)].name
    for until in range(105, 145, 5):
        simulation.run(float(until))
        after = [broker_of(simulation, index) for index in range(120)]
        rises = [
            (one, other)
            for one, other in zip(before, after, strict=True)
            if one is not None and (other is None or other > one)
        ]
        assert rises == []
        before = after
    assert before.count(hub) == 119


def test_events_take_two_hops_and_only_the_broker_gets_what_it_does_not_want() -> None:
    telemetry = MemoryTelemetry("test", {}, {})
    simulation = Simulation(WORKLOAD, BROKER, seed=1, telemetry=telemetry)
    simulation.run(10.0)
    publish_everywhere(simulation)
    rows = telemetry.tables().deliveries.to_pylist()
    assert {row["hops"] for row in rows if row["wanted"]} <= {1, 2}
    assert len({row["node"] for row in rows if not row["wanted"]}) == 1


def test_the_next_lowest_takes_over_from_a_dead_broker_and_gives_way_again() -> None:
    first, second = lowest(WORKLOAD), lowest(WORKLOAD, 1)
    simulation = Simulation(WORKLOAD, BROKER, seed=3, faults=[Crash(20.0, 40.0, first, keeps_memory=False)])
    others = [index for index in range(WORKLOAD.nodes) if index not in (first, second)]
    simulation.run(35.0)
    assert {broker_of(simulation, index) for index in others} == {simulation.hosts[second].name}
    simulation.run(60.0)
    assert {broker_of(simulation, index) for index in others} == {simulation.hosts[first].name}
    expected, got = publish_everywhere(simulation)
    assert got == expected


def test_an_event_published_without_a_broker_waits_for_one() -> None:
    first, second, publisher = (lowest(WORKLOAD, rank) for rank in (0, 1, 5))
    simulation = Simulation(WORKLOAD, BROKER, seed=3, faults=[Crash(20.0, 60.0, first, keeps_memory=True)])
    log = DeliveryLog(simulation)
    simulation.run(20.0)
    simulation.node(publisher).peer_lost(simulation.hosts[first].name)
    receipt = simulation.publish(publisher, int(WORKLOAD.interests(second)[0]))
    assert (receipt.sent_to, "waits" in receipt.reason) == (0, True)
    simulation.run(25.0)
    assert log.missed({receipt.event.id: {second}}) == []


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_campaign(seed: int) -> None:
    assert run_scenario(BROKER, draw_scenario(seed, nodes=30)).violations == ()


def test_the_tree_of_brokers_becomes_a_star_though_views_name_few() -> None:
    """With the membership of live nodes, whose views of ten rarely name the lowest of 150."""
    workload = generate(150, 10, "uniform", min_size=3, max_size=3, seed=1)
    simulation = settle("broker", workload, until=30.0, membership="directory:10")
    star = lowest(workload)
    hub = simulation.hosts[star].name
    assert [broker_of(simulation, index) for index in range(150) if index != star] == [hub] * 149
    simulation.stop(star, orderly=False)
    simulation.run(50.0)
    second = lowest(workload, 1)
    hub = simulation.hosts[second].name
    assert [broker_of(simulation, index) for index in simulation.up() if index != second] == [hub] * 148
    expected, got = publish_everywhere(simulation)
    assert got == expected
