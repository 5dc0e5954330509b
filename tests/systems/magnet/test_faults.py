"""What may go wrong, by name: the home dies, an inner node dies, the rings are cut, nodes come and go,
interests change all at once.
"""

from __future__ import annotations

import random

import pytest

from tests.systems.magnet.settled import (
    BOTH,
    homes,
    missed,
    modal,
    network,
    nodes_of,
    tree_of,
    wrong_after,
)
from topicweave.model.ids import NodeId
from topicweave.sim.churn import Change, Churn
from topicweave.sim.faults import Partition
from topicweave.sim.simulation import Simulation
from topicweave.systems.magnet import MagnetNode
from topicweave.testing.invariants import check_at_rest, kept_for_the_departed

SETTLED, MENDED = 60.0, 60.0
"""Nodes that start all at once look for better places twice, and draw their fingers anew after each move."""


def settled(system: str) -> Simulation:
    simulation = network(system, modal(36, 24, 5, 3))
    simulation.run(SETTLED)
    assert wrong_after(simulation, MENDED) == []
    return simulation


def crash(simulation: Simulation, victims: set[NodeId]) -> None:
    for host in simulation.hosts:
        if host.name in victims:
            simulation.stop(host.index, orderly=False)
    simulation.run(simulation.now + 10.0)


@pytest.mark.parametrize("system", BOTH)
def test_home_location_crash(system: str) -> None:
    simulation = settled(system)
    victims = {home for topic in simulation.workload.topic_ids[:4] for home in homes(simulation, topic)}
    crash(simulation, victims)
    assert wrong_after(simulation, MENDED) == []
    assert missed(simulation) == []


@pytest.mark.parametrize("system", BOTH)
def test_interior_tree_node_crash(system: str) -> None:
    simulation = settled(system)
    tree = tree_of(simulation, simulation.workload.topic_ids[0])
    inner = {node for node in tree if tree.out_degree(node) and tree.in_degree(node)}
    assert inner
    crash(simulation, set(sorted(inner)[:4]))
    assert wrong_after(simulation, MENDED) == []
    assert missed(simulation) == []


@pytest.mark.parametrize("system", BOTH)
def test_ring_partition_and_heal(system: str) -> None:
    """Both halves have rings and homes of their own; afterwards each topic has one home again."""
    workload = modal(36, 24, 5, 3)
    island = frozenset(range(0, workload.nodes, 2))
    simulation = network(system, workload, faults=[Partition(SETTLED, SETTLED + 40.0, island)])
    simulation.run(SETTLED + 39.0)
    ids = {workload.node_ids[index] for index in island}
    for number, node in nodes_of(simulation).items():
        assert all((peer in ids) == (number in ids) for ring in node.rings for _, peer in ring.table)
    assert any(len(homes(simulation, topic)) == 2 for topic in workload.topic_ids)
    simulation.run(SETTLED + 40.0 + 20.0)
    assert wrong_after(simulation, MENDED) == []
    assert missed(simulation) == []


def test_churn_during_sampling_rounds() -> None:
    """A third of all nodes comes and goes while views are made; those who stay have views of the living only."""
    workload = modal(40, 24, 5, 3)
    rng = random.Random(5)
    moving = rng.sample(range(40), 13)
    changes = [
        Change(20.0 + rng.random() * 25.0 + turn * 5.0, node, turn % 2 == 1)
        for node in moving
        for turn in range(rng.choice([1, 2, 3]))
    ]
    simulation = network("magnet", workload, churn=Churn(frozenset(range(40)), tuple(sorted(changes))))
    simulation.run(60.0 + 75.0)
    assert [*check_at_rest(simulation), *kept_for_the_departed(simulation)] == []
    assert wrong_after(simulation, MENDED) == []
    alive = nodes_of(simulation)
    for node in alive.values():
        assert isinstance(node, MagnetNode)
        for topic in node.subscriptions:
            sample = node.samples.sample(topic)
            assert {person.contact.id for person in sample} <= set(alive)
            assert all(topic in person.interest for person in sample)
            others = [one for one in alive.values() if topic in one.subscriptions and one is not node]
            assert len(sample) >= min(len(others), 1), "at least one other subscriber is known (§3.4)"
    assert missed(simulation) == []


def test_a_similar_node_that_does_not_answer_is_left_out() -> None:
    """Those most like a newcomer die just before it comes: the views still name them, and it stands next to
    another one (§3.2).
    """
    workload = modal(36, 24, 5, 3)
    newcomer = 35
    simulation = network(
        "magnet", workload, churn=Churn(frozenset(range(35)), (Change(SETTLED + 0.5, newcomer, True),))
    )
    simulation.run(SETTLED)
    wanted = {workload.topic_ids[topic] for topic in workload.interests(newcomer).tolist()}
    alike = sorted(simulation.up(), key=lambda index: -len(simulation.node(index).subscriptions & wanted))
    dead = {simulation.hosts[index].name for index in alike[:4]}
    for index in alike[:4]:
        simulation.stop(index, orderly=False)
    simulation.run(SETTLED + 25.0)
    node = simulation.node(newcomer)
    assert isinstance(node, MagnetNode)
    assert node.moves >= 1, "next to a similar node, not where its name is hashed to"
    assert not {peer for _, peer in node.overlay.table} & dead
    assert wrong_after(simulation, MENDED) == []
    assert missed(simulation) == []


@pytest.mark.parametrize("system", BOTH)
def test_subscription_change_storm(system: str) -> None:
    simulation = settled(system)
    rng = random.Random(3)
    topics = simulation.workload.topics
    for index in simulation.up():
        for _ in range(4):
            act = simulation.subscribe if rng.random() < 0.5 else simulation.unsubscribe
            simulation.at(simulation.now + rng.random() * 5.0, act, index, rng.randrange(topics))
    moves = sum(getattr(node, "moves", 0) for node in nodes_of(simulation).values())
    simulation.run(simulation.now + 20.0)
    assert wrong_after(simulation, MENDED) == []
    assert missed(simulation) == []
    if system == "magnet":
        more = (
            sum(node.moves for node in nodes_of(simulation).values() if isinstance(node, MagnetNode)) - moves
        )
        # 144 changes of 36 nodes: each may look for another place a few times, not for every change.
        assert more <= 3 * 36
