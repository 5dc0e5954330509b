"""Who wants what, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from topicweave.measures.columns import codes, distinct, growing, offsets_of
from topicweave.model.arrays import IntArray


@dataclass(frozen=True)
class Interests:
    """The distinct (node, topic) pairs of a subscriptions table, by topic, then node.

    Every topic has a subscriber. Topics with more subscribers come first (then by name), so that work done on
    runs of topics meets topics of like size together.
    """

    nodes: pa.Array
    topics: pa.Array
    node: IntArray
    topic: IntArray
    offsets: IntArray
    """Topic t's pairs are offsets[t] up to offsets[t + 1]."""

    @classmethod
    def of(cls, subscriptions: pa.Table, nodes: pa.Array | None = None) -> Interests:
        """Of a table (node, topic) of names; with `nodes` (sorted names), only of those nodes."""
        if nodes is None:
            nodes = distinct(subscriptions["node"])
        topics = distinct(subscriptions["topic"])
        node, topic = codes(subscriptions["node"], nodes), codes(subscriptions["topic"], topics)
        return cls.of_codes(nodes, topics, node, topic)

    @classmethod
    def of_codes(cls, nodes: pa.Array, topics: pa.Array, node: IntArray, topic: IntArray) -> Interests:
        """Of pairs in any order, as places in `nodes` and `topics`; nodes of -1 do not count."""
        pairs = growing(topic[node >= 0] * len(nodes) + node[node >= 0])
        topic, node = np.divmod(pairs, max(len(nodes), 1))
        sizes = np.bincount(topic, minlength=len(topics))
        by_size = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
        rank = np.empty(len(topics), np.int64)
        rank[by_size] = np.arange(len(by_size))
        order = np.argsort(rank[topic], kind="stable")
        topic, node = rank[topic][order], node[order]
        return cls(nodes, topics.take(pa.array(by_size)), node, topic, offsets_of(topic, len(by_size)))

    @property
    def subscribers(self) -> IntArray:
        """How many nodes want each topic."""
        return np.diff(self.offsets)

    @cached_property
    def topics_per_node(self) -> IntArray:
        return np.bincount(self.node, minlength=len(self.nodes))

    def find(self, topic: IntArray, node: IntArray) -> IntArray:
        """Which pair each (topic, node) is; -1 if the node does not want the topic. Codes of -1 are allowed."""
        if not len(self.node):
            return np.full(len(topic), -1)
        wanted = topic * len(self.nodes) + node
        place = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        found = (self._keys[place] == wanted) & (topic >= 0) & (node >= 0)
        return np.where(found, place, -1)

    @cached_property
    def _keys(self) -> IntArray:
        return self.topic * len(self.nodes) + self.node
