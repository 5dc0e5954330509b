"""Measures of an overlay at one moment: degrees, and how well topics hold together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from topicweave.measures.columns import codes, distinct, mean, ratio
from topicweave.measures.graph import Overlay, TopicGraph, component_labels
from topicweave.model.arrays import IntArray

# Half the width of the interval that holds 95% of a normal distribution, in standard deviations.
NORMAL_95 = 1.959963984540054


def degree_measures(overlay: Overlay) -> dict[str, float]:
    """Distinct neighbours per node, over all nodes of the overlay.

    degree_mean
    degree_mean_ci95    half the width of the 95% confidence interval of the mean (SpiderCast Figure 7):
                        1.96 sample standard deviations over the root of the number of nodes; nan below two nodes
    degree_p95          95th percentile, interpolated
    degree_max
    """
    return DegreeCounts.of(overlay.graph.degrees).measures()


class DegreeCounts(NamedTuple):
    """How many nodes have which degree: a few numbers, however many nodes there are. Tasks that each hold a part
    add theirs up.

    >>> DegreeCounts(np.array([1, 3]), np.array([2, 2])).measures()["degree_mean"]
    2.0
    """

    degrees: IntArray
    """Growing."""
    nodes: IntArray

    @classmethod
    def of(cls, degrees: IntArray) -> DegreeCounts:
        """Of one for each node."""
        counts = np.bincount(degrees)
        return cls(np.flatnonzero(counts), counts[counts > 0])

    def measures(self) -> dict[str, float]:
        """See `degree_measures`."""
        nodes = int(self.nodes.sum())
        if not nodes:
            return dict.fromkeys(("degree_mean", "degree_mean_ci95", "degree_p95", "degree_max"), math.nan)
        mean = float((self.degrees * self.nodes).sum() / nodes)
        squares = float((self.nodes * (self.degrees - mean) ** 2).sum())
        return {
            "degree_mean": mean,
            "degree_mean_ci95": NORMAL_95 * math.sqrt(squares / (nodes - 1)) / nodes**0.5
            if nodes > 1
            else math.nan,
            "degree_p95": self._percentile(0.95 * (nodes - 1)),
            "degree_max": float(self.degrees[-1]),
        }

    def _percentile(self, place: float) -> float:
        """Between the two nodes beside this place, as `columns.percentile` interpolates, to the last bit."""
        ends = np.cumsum(self.nodes)
        low, high = (
            float(self.degrees[np.searchsorted(ends, rank, side="right")])
            for rank in (math.floor(place), math.ceil(place))
        )
        way = place - math.floor(place)
        return high - (high - low) * (1 - way) if way >= 0.5 else low + (high - low) * way


def links_by_kind(links: pa.Table, nodes: pa.Array) -> dict[str, float]:
    """For each kind in a snapshot: how many links of that kind a node lists, mean over `nodes` (sorted names).

    Unlike a degree this counts what a node itself keeps: friends are not fans. Links to nodes that are gone
    count, since they are kept.
    """
    kinds = distinct(links["kind"])
    listed = codes(links["kind"], kinds)[codes(links["node"], nodes) >= 0]
    counts = np.bincount(listed, minlength=len(kinds))
    return links_per_node(dict(zip(kinds.to_pylist(), counts.tolist(), strict=True)), len(nodes))


def links_per_node(listed: Mapping[str, int], nodes: int) -> dict[str, float]:
    """As `links_by_kind`, of how many links of each kind so many nodes list together."""
    return {kind: count / max(nodes, 1) for kind, count in listed.items()}


def topic_components(topics: TopicGraph) -> IntArray:
    """How many connected components each topic's subgraph has, in the order of `topics.interests.topics`."""
    labels = component_labels(topics.graph)
    roots = np.flatnonzero(labels == np.arange(len(labels)))
    return np.bincount(topics.interests.topic[roots], minlength=len(topics.interests.topics))


def clusters_per_topic(topics: TopicGraph) -> float:
    """Connected components of a topic's subgraph (Vitis' clusters), mean over the topics with a subscriber."""
    return mean(topic_components(topics))


def coverage(topics: TopicGraph, k: int = 1) -> float:
    """The share of (node, topic) subscriptions for which the node has at least k neighbours that want the topic.

    Where fewer than k other nodes want the topic, all of them must be neighbours: a share of 1 is always within
    reach, and a lone subscriber is covered.
    """
    return Connectivity.of(topics, k).coverage


class Connectivity(NamedTuple):
    """How topics hold together, counted. Tasks that each hold some topics add theirs up."""

    components: int
    partitioned: int
    """Topics of more than one component."""
    covered: int
    """Subscriptions; see `coverage`."""
    members: int
    """Subscriptions in all."""

    @classmethod
    def of(cls, topics: TopicGraph, k: int) -> Connectivity:
        components = topic_components(topics)
        others = topics.interests.subscribers[topics.interests.topic] - 1
        covered = topics.graph.degrees >= np.minimum(k, others)
        return cls(
            int(components.sum()),
            int(np.count_nonzero(components > 1)),
            int(np.count_nonzero(covered)),
            len(covered),
        )

    @property
    def coverage(self) -> float:
        return ratio(self.covered, self.members)

    def measures(self) -> dict[str, float]:
        """See `connectivity_measures`."""
        return {
            "components": float(self.components),
            "partitioned_topics": float(self.partitioned),
            "coverage": self.coverage,
        }


def connectivity_measures(topics: TopicGraph, k: int = 1) -> dict[str, float]:
    """Topics here are those with at least one subscriber in the overlay.

    components            connected components, all topics together (as many as topics when none is partitioned)
    partitioned_topics    topics of more than one component
    coverage              see `coverage`
    """
    return Connectivity.of(topics, k).measures()
