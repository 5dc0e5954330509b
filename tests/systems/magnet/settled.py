"""What tests of Magnet and its strawman share: networks at rest, and a look at their trees by other code than
theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx

from topicweave.model.ids import NodeId, TopicId
from topicweave.model.workload import Workload
from topicweave.sim.churn import Change, Churn
from topicweave.sim.simulation import Simulation
from topicweave.systems.magnet.home_trees import HomeTreeNode
from topicweave.systems.registry import find_system
from topicweave.workloads.catalogue import build

BOTH = ("magnet", "strawman")


def modal(nodes: int = 60, topics: int = 40, size: int = 6, categories: int = 4, seed: int = 1) -> Workload:
    """Each node wants topics of one of a few categories."""
    return build(
        "magnet-multi-modal", seed, nodes=nodes, topics=topics, size=size, chosen=1, categories=categories
    )


def one_by_one(workload: Workload, seconds: float) -> Churn:
    """Nodes arrive evenly over some time."""
    count = workload.nodes
    return Churn(frozenset({0}), tuple(Change(i * seconds / count, i, True) for i in range(1, count)))


def network(
    system: str, workload: Workload, seed: int = 0, churn: Churn | None = None, **more: Any
) -> Simulation:
    found = find_system(system)
    faults = more.pop("faults", ())
    return Simulation(workload, found, found.settings(**more), seed=seed, churn=churn, faults=faults)


def nodes_of(simulation: Simulation) -> dict[NodeId, HomeTreeNode]:
    nodes: dict[NodeId, HomeTreeNode] = {}
    for index in simulation.up():
        node = simulation.node(index)
        assert isinstance(node, HomeTreeNode)
        nodes[node.id] = node
    return nodes


def homes(simulation: Simulation, topic: TopicId) -> list[NodeId]:
    return [number for number, node in nodes_of(simulation).items() if node.trees.is_home(topic)]


def tree_of(simulation: Simulation, topic: TopicId) -> nx.DiGraph:
    graph = nx.DiGraph()
    for number, node in nodes_of(simulation).items():
        if node.trees.is_in(topic) or topic in node.subscriptions:
            graph.add_node(number)
        graph.add_edges_from((number, child) for child in node.trees.children(topic))
    return graph


def greedy_route(nodes: dict[NodeId, HomeTreeNode], start: NodeId, target: NodeId) -> list[NodeId]:
    """Clockwise and without overstepping, by looking at every link there is."""
    order = sorted(node.overlay.here for node in nodes.values())
    rank = {place[1]: index for index, place in enumerate(order)}
    route = [start]
    while route[-1] != target and len(route) <= len(nodes):
        here = route[-1]
        links = [
            link.peer
            for link in nodes[here].overlay.links()
            if link.kind in ("successor", "predecessor", "finger")
        ]
        left = (rank[target] - rank[here]) % len(order)
        allowed = [peer for peer in links if 0 < (rank[peer] - rank[here]) % len(order) <= left]
        route.append(max(allowed, key=lambda peer: (rank[peer] - rank[here]) % len(order)))
    return route


def wrong_trees(simulation: Simulation) -> Iterator[str]:
    """What is wrong with the trees: one home, all subscribers below it, no cycle, every path the home's
    greedy route.
    """
    nodes = nodes_of(simulation)
    for topic in simulation.workload.topic_ids:
        subscribers = [number for number, node in nodes.items() if topic in node.subscriptions]
        if not subscribers:
            continue
        at = homes(simulation, topic)
        if len(at) != 1:
            yield f"{topic}: {len(at)} homes"
            continue
        graph = tree_of(simulation, topic)
        graph.add_node(at[0])
        if not nx.is_arborescence(graph):
            yield f"{topic}: no tree"
            continue
        for subscriber in subscribers:
            path = nx.shortest_path(graph, at[0], subscriber)
            if path != greedy_route(nodes, at[0], subscriber):
                yield f"{topic}: the path to {subscriber} is not the greedy route"
        useless = [n for n in graph if graph.out_degree(n) == 0 and n not in subscribers and n != at[0]]
        if useless:
            yield f"{topic}: {len(useless)} leaves that do not want it"


def wrong_after(simulation: Simulation, seconds: float) -> list[str]:
    """What is still wrong with the trees after so long. Looked at every few seconds: now and then a node
    draws new fingers, and the trees take a moment to follow.
    """
    end = simulation.now + seconds
    while simulation.now < end and any(True for _ in wrong_trees(simulation)):
        simulation.run(simulation.now + 5.0)
    return list(wrong_trees(simulation))


def relays_per_topic(simulation: Simulation) -> float:
    counts = []
    for topic in simulation.workload.topic_ids:
        graph = tree_of(simulation, topic)
        graph.add_nodes_from(homes(simulation, topic))
        wanting = {n for n, node in nodes_of(simulation).items() if topic in node.subscriptions}
        if wanting:
            counts.append(len(set(graph) - wanting))
    return sum(counts) / len(counts)


def missed(simulation: Simulation) -> list[tuple[NodeId, TopicId]]:
    """An event on every topic from somebody who wants it, and from somebody who does not: who did not get it (once)."""
    got: dict[Any, list[NodeId]] = {}
    simulation.on_delivery(lambda host, event: got.setdefault(event.id, []).append(host.name))
    expected = {}
    index = {host.name: host.index for host in simulation.hosts}
    for number, topic in enumerate(simulation.workload.topic_ids):
        wanting = sorted(n for n, node in nodes_of(simulation).items() if topic in node.subscriptions)
        others = sorted(set(nodes_of(simulation)) - set(wanting))
        for publisher in [*wanting[:1], *others[:1]] if wanting else []:
            event = simulation.publish(index[publisher], number).event
            expected[event.id] = wanting
    simulation.run(simulation.now + 6.0)
    return [
        (node, event.topic)
        for event, wanting in expected.items()
        for node in wanting
        if got.get(event, []).count(node) != 1
    ]
