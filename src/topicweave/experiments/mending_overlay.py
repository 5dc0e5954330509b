"""An overlay under churn, for round-based experiments: who is up, who is linked, and which topics hold together."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
import pyarrow as pa

from topicweave.designs import Edges, Instance
from topicweave.measures.graph import Graph, Overlay, TopicGraph
from topicweave.measures.overlay import topic_components
from topicweave.model.workload import Workload

Pair = tuple[int, int]


class LiveOverlay:
    """Nodes and topics by their index in the workload."""

    def __init__(self, workload: Workload, up: Collection[int]) -> None:
        self.workload = workload
        self.interest = [frozenset(workload.interests(node).tolist()) for node in range(workload.nodes)]
        self.up = set(up)
        self.links: list[set[int]] = [set() for _ in range(workload.nodes)]
        self._subscribers: list[set[int]] = [set() for _ in range(workload.topics)]
        for node in self.up:
            for topic in self.interest[node]:
                self._subscribers[topic].add(node)

    def subscribers(self, topic: int) -> set[int]:
        """Those of them who are up."""
        return self._subscribers[topic]

    def join(self, node: int) -> None:
        self.up.add(node)
        for topic in self.interest[node]:
            self._subscribers[topic].add(node)

    def leave(self, node: int) -> set[int]:
        """Returns who its neighbours were."""
        self.up.discard(node)
        for topic in self.interest[node]:
            self._subscribers[topic].discard(node)
        neighbours, self.links[node] = self.links[node], set()
        for peer in neighbours:
            self.links[peer].discard(node)
        return neighbours

    def link(self, pairs: Iterable[Pair]) -> None:
        for one, other in pairs:
            self.links[one].add(other)
            self.links[other].add(one)

    def parts(self, topic: int) -> list[set[int]]:
        """The connected components of a topic's sub-overlay."""
        left, parts = set(self._subscribers[topic]), []
        while left:
            part, edge = set(), {left.pop()}
            while edge:
                part |= edge
                edge = {peer for node in edge for peer in self.links[node] if peer in left}
                left -= edge
            parts.append(part)
        return parts

    def parted(self, topics: Iterable[int]) -> list[int]:
        return [topic for topic in topics if len(self.parts(topic)) > 1]

    def instance(self) -> tuple[list[int], Instance]:
        """The nodes that are up, and the instance over them."""
        nodes = sorted(self.up)
        return nodes, Instance.of_lists([self.interest[node] for node in nodes], self.workload.topics)

    def edges(self, nodes: list[int]) -> Edges:
        place = {node: number for number, node in enumerate(nodes)}
        pairs = [(place[node], place[peer]) for node in nodes for peer in self.links[node] if node < peer]
        return np.array(sorted(pairs), np.int64).reshape(-1, 2)

    def degrees(self) -> list[int]:
        return [len(self.links[node]) for node in sorted(self.up)]

    def topic_graph(self) -> TopicGraph:
        """For the measures that all overlays share."""
        nodes = sorted(self.up, key=lambda node: self.workload.node_names[node])
        place = {node: number for number, node in enumerate(nodes)}
        ends = np.array(
            [(place[node], place[peer]) for node in nodes for peer in self.links[node] if node < peer],
            np.int64,
        ).reshape(-1, 2)
        names = pa.array([self.workload.node_names[node] for node in nodes], pa.string())
        graph = Graph.of_edges(len(nodes), ends[:, 0], ends[:, 1])
        return TopicGraph.of(Overlay(names, graph), self.workload.tables()["subscriptions"])

    def partitioned_topics(self) -> int:
        return int(np.count_nonzero(topic_components(self.topic_graph()) > 1))
