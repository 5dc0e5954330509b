"""Whole OMen networks in the simulator, and what to look at."""

from __future__ import annotations

from typing import Any

import msgspec
import networkx as nx

from topicweave.model.ids import clockwise
from topicweave.sim.simulation import Simulation
from topicweave.systems.omen import OMEN, OMenNode, OMenParameters
from topicweave.workloads import generate

SETTLED = 60.0


def network(nodes: int = 40, seed: int = 1, **parameters: Any) -> Simulation:
    workload = generate(nodes, 12, "rss", 2, 5, seed=seed)
    simulation = Simulation(workload, OMEN, OMenParameters(**parameters), seed=seed)
    simulation.run(SETTLED)
    return simulation


def node_of(simulation: Simulation, index: int) -> OMenNode:
    node = simulation.node(index)
    assert isinstance(node, OMenNode)
    return node


def nodes_of(simulation: Simulation) -> list[OMenNode]:
    return [node_of(simulation, index) for index in simulation.up()]


def by_the_paper_alone(simulation: Simulation) -> None:
    """Turn off what mends parted topics beyond the paper: repair must do it."""
    for node in nodes_of(simulation):
        coordinator = node.coordinator
        coordinator.parameters = msgspec.structs.replace(coordinator.parameters, bridges=False)


def parted_topics(simulation: Simulation) -> list[int]:
    nodes = {node.id: node for node in nodes_of(simulation)}
    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from((node.id, link.peer) for node in nodes.values() for link in node.links())
    parted = []
    for topic in sorted({topic for node in nodes.values() for topic in node.subscriptions}):
        members = [node.id for node in nodes.values() if topic in node.subscriptions]
        if not nx.is_connected(graph.subgraph(members)):
            parted.append(topic)
    return parted


def around_the_circle(simulation: Simulation, first: int, how_many: int) -> list[int]:
    """`first` and those who follow it on the circle."""
    start = node_of(simulation, first).id
    order = sorted(simulation.up(), key=lambda index: clockwise(start, node_of(simulation, index).id))
    return order[:how_many]


def busiest(simulation: Simulation) -> int:
    return max(simulation.up(), key=lambda index: (node_of(simulation, index).degree, index))
