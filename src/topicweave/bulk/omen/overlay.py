"""An overlay under churn, for round-based experiments: who is up, who is linked, and which topics hold together."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain

import numpy as np
import pyarrow as pa

from topicweave.bulk.omen import kernels
from topicweave.designs import Instance
from topicweave.measures.graph import Graph, Overlay, TopicGraph
from topicweave.measures.overlay import topic_components
from topicweave.model.arrays import IntArray
from topicweave.model.workload import Workload

Pair = tuple[int, int]


class LiveOverlay:
    """Nodes and topics by their index in the workload; sets for what changes, arrays for what the kernels read."""

    def __init__(self, workload: Workload, up: Collection[int]) -> None:
        self.workload = workload
        self.offsets = workload.offsets.astype(np.int64)
        self.topic = workload.topic_index.astype(np.int64)
        self.interest = [frozenset(workload.interests(node).tolist()) for node in range(workload.nodes)]
        owner = np.repeat(np.arange(workload.nodes), np.diff(self.offsets))
        # Who wants what, as bits; and per topic its subscribers, up or not.
        self.bits = np.zeros((workload.nodes, (workload.topics + 63) // 64), np.uint64)
        np.bitwise_or.at(
            self.bits,
            (owner, self.topic >> 6),
            np.left_shift(np.uint64(1), (self.topic & 63).astype(np.uint64)),
        )
        self.members = owner[np.argsort(self.topic, kind="stable")]
        self.members_at = np.zeros(workload.topics + 1, np.int64)
        np.cumsum(np.bincount(self.topic, minlength=workload.topics), out=self.members_at[1:])
        self.rank = np.argsort(np.argsort(np.array(workload.node_ids, np.uint64), kind="stable"))
        """The nodes' order on the identifier circle."""
        self.up = set(up)
        self.is_up = np.zeros(workload.nodes, np.bool_)
        self.is_up[list(self.up)] = True
        self.links: list[set[int]] = [set() for _ in range(workload.nodes)]
        self._network: kernels.OverlayArrays | None = None

    def topics_of(self, node: int) -> IntArray:
        return self.topic[self.offsets[node] : self.offsets[node + 1]]

    def subscribers(self, topic: int) -> IntArray:
        """Those of them who are up, in ascending order."""
        everybody = self.members[self.members_at[topic] : self.members_at[topic + 1]]
        return everybody[self.is_up[everybody]]

    def join(self, node: int) -> None:
        self.up.add(node)
        self.is_up[node] = True

    def leave(self, node: int) -> set[int]:
        """Returns who its neighbours were."""
        self.up.discard(node)
        self.is_up[node] = False
        neighbours, self.links[node] = self.links[node], set()
        for peer in neighbours:
            self.links[peer].discard(node)
        self._network = None
        return neighbours

    def link(self, pairs: Iterable[Pair]) -> None:
        for one, other in pairs:
            self.links[one].add(other)
            self.links[other].add(one)
        self._network = None

    def unlink_all(self) -> None:
        self.links = [set() for _ in self.links]
        self._network = None

    @property
    def network(self) -> kernels.OverlayArrays:
        """All of it as arrays."""
        if self._network is None:
            starts = np.zeros(len(self.links) + 1, np.int64)
            np.cumsum([len(peers) for peers in self.links], out=starts[1:])
            ends = np.fromiter(chain.from_iterable(map(sorted, self.links)), np.int64, int(starts[-1]))
            self._network = kernels.OverlayArrays(
                *(self.offsets, self.topic, self.bits, self.members_at, self.members, self.rank, self.is_up),
                *(starts, ends),
            )
        return self._network

    def parted(self, topics: Collection[int]) -> list[int]:
        """Those of the topics whose sub-overlay is in several parts."""
        asked = np.array(sorted(topics), np.int64)
        found: list[int] = kernels.parted(asked, self.network).tolist()
        return found

    def instance(self) -> tuple[list[int], Instance]:
        """The nodes that are up, and the instance over them."""
        nodes = sorted(self.up)
        return nodes, Instance.of_lists([self.interest[node] for node in nodes], self.workload.topics)

    def highest_degree(self) -> int:
        return max(map(len, self.links))

    def overlay(self) -> Overlay:
        """For the measures that all overlays share."""
        nodes = sorted(self.up, key=lambda node: self.workload.node_names[node])
        place = {node: number for number, node in enumerate(nodes)}
        ends = np.array(
            [(place[node], place[peer]) for node in nodes for peer in self.links[node] if node < peer],
            np.int64,
        ).reshape(-1, 2)
        names = pa.array([self.workload.node_names[node] for node in nodes], pa.string())
        return Overlay(names, Graph.of_edges(len(nodes), ends[:, 0], ends[:, 1]))

    def topic_graph(self) -> TopicGraph:
        return TopicGraph.of(self.overlay(), self.workload.tables()["subscriptions"])

    def partitioned_topics(self) -> int:
        return int(np.count_nonzero(topic_components(self.topic_graph()) > 1))
