"""Small random instances, and what NetworkX says of an overlay."""

from __future__ import annotations

from collections.abc import Iterable

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from topicweave.designs import Instance


@st.composite
def instances(draw: st.DrawFn, max_nodes: int = 12, max_topics: int = 7) -> Instance:
    topics = draw(st.integers(1, max_topics))
    wanted = st.frozensets(st.integers(0, topics - 1), max_size=5)
    return Instance.of_lists(draw(st.lists(wanted, min_size=1, max_size=max_nodes)), topics)


@st.composite
def instances_with_edges(draw: st.DrawFn) -> tuple[Instance, list[tuple[int, int]]]:
    instance = draw(instances())
    node = st.integers(0, instance.nodes - 1)
    pairs = draw(st.frozensets(st.tuples(node, node), max_size=2 * instance.nodes))
    return instance, sorted((u, v) for u, v in pairs if u < v)


def overlay(instance: Instance, *edges: Iterable[tuple[int, int]]) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(range(instance.nodes))
    for some in edges:
        graph.add_edges_from((int(u), int(v)) for u, v in some)
    return graph


def disconnected_topics(instance: Instance, graph: nx.Graph) -> list[int]:
    parted = []
    for topic in range(instance.topics):
        members = [v for v in range(instance.nodes) if topic in instance.interest(v)]
        if members and not nx.is_connected(graph.subgraph(members)):
            parted.append(topic)
    return parted


def degrees(instance: Instance, edges: np.ndarray) -> np.ndarray:
    return np.bincount(edges.ravel(), minlength=instance.nodes)
