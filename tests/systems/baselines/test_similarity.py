"""Similar neighbours where a node gets to know the others by and by."""

from __future__ import annotations

from tests.systems.overlays import settle
from topicweave.sim.simulation import Simulation
from topicweave.systems.spidercast.node import OverlayNode
from topicweave.workloads import generate

NODES = 60


def likeness(simulation: Simulation) -> float:
    """Topics that two neighbours share, on average."""
    shared = [
        len(neighbour.shared)
        for index in simulation.up()
        if isinstance(node := simulation.node(index), OverlayNode)
        for neighbour in node.tasks["similar"].neighbours.values()
    ]
    return sum(shared) / len(shared)


def test_neighbours_become_as_similar_as_those_of_nodes_that_know_everybody() -> None:
    workload = generate(NODES, 100, "rss", 10, 10)
    oracle = settle("similarity", workload, membership="full", similar=5)
    by_and_by = settle("similarity", workload, membership="directory", until=4.0, similar=5)
    early = likeness(by_and_by)
    by_and_by.run(60.0)
    assert early < 0.9 * likeness(oracle) <= likeness(by_and_by)
    degrees = [by_and_by.node(index).degree for index in by_and_by.up()]
    assert max(degrees) <= 5 + 5
    assert sum(degrees) / NODES < 6
