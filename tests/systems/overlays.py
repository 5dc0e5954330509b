"""What tests of whole systems share: a simulation at rest, looked at with NetworkX."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import networkx as nx

from topicweave.blocks.membership import Membership
from topicweave.model.ids import TopicId
from topicweave.model.workload import Workload
from topicweave.sim.churn import Churn
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system
from topicweave.telemetry.writer import MemoryTelemetry


def settle(
    system: str,
    workload: Workload,
    seed: int = 0,
    until: float = 20.0,
    membership: str = "full",
    churn: Churn | None = None,
    telemetry: bool = False,
    **parameters: Any,
) -> Simulation:
    """A run up to some moment, when everything should be quiet."""
    found = find_system(system)
    simulation = Simulation(
        workload,
        found,
        found.settings(**parameters),
        seed=seed,
        membership=Membership.parse(membership),
        churn=churn,
        telemetry=MemoryTelemetry("test", {}, {}) if telemetry else None,
    )
    simulation.run(until)
    return simulation


def graph_of(simulation: Simulation, kind: str | None = None) -> nx.Graph:
    """The overlay as its nodes see it: an arc per link end, by node index."""
    index = {host.name: host.index for host in simulation.hosts}
    graph = nx.DiGraph()
    graph.add_nodes_from(simulation.up())
    graph.add_edges_from(
        (node, index[link.peer])
        for node in simulation.up()
        for link in simulation.node(node).links()
        if kind in (None, link.kind)
    )
    return graph


def asymmetric(graph: nx.DiGraph) -> list[tuple[int, int]]:
    return [(a, b) for a, b in graph.edges if not graph.has_edge(b, a)]


def members(simulation: Simulation, among: Collection[int] | None = None) -> Mapping[TopicId, list[int]]:
    """Who wants each topic, of some nodes or of all that are up."""
    wanting: dict[TopicId, list[int]] = {}
    for node in simulation.up() if among is None else among:
        for topic in sorted(simulation.node(node).subscriptions):
            wanting.setdefault(topic, []).append(node)
    return wanting


def parted_topics(simulation: Simulation, among: Collection[int] | None = None) -> list[TopicId]:
    """Topics whose subscribers are not all connected through subscribers."""
    graph = graph_of(simulation).to_undirected()
    return [
        topic
        for topic, wanting in members(simulation, among).items()
        if not nx.is_connected(graph.subgraph(wanting))
    ]


def uncovered(simulation: Simulation, k: int) -> list[tuple[int, TopicId]]:
    """Subscriptions with fewer than K neighbours for them, though there are others who want the topic."""
    graph = graph_of(simulation).to_undirected()
    return [
        (node, topic)
        for topic, wanting in members(simulation).items()
        for node in wanting
        if graph.subgraph(wanting).degree(node) < min(k, len(wanting) - 1)
    ]


def mean_degree(simulation: Simulation) -> float:
    return sum(simulation.node(node).degree for node in simulation.up()) / len(simulation.up())


def publish_everywhere(simulation: Simulation, seed: int = 0) -> tuple[Counter[Any], Counter[Any]]:
    """An event on each topic by a random subscriber: who should get what, and who got it how often."""
    rng = random.Random(f"publishers/{seed}")
    got: Counter[Any] = Counter()
    simulation.on_delivery(lambda host, event: got.update([(host.index, event.id)]))
    topics = {topic_id: topic for topic, topic_id in enumerate(simulation.workload.topic_ids)}
    expected: Counter[Any] = Counter()
    for topic_id, wanting in members(simulation).items():
        event = simulation.publish(rng.choice(wanting), topics[topic_id]).event
        expected.update((node, event.id) for node in wanting)
    simulation.run(simulation.now + 5.0)
    return expected, got
