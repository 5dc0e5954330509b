"""Measures of an overlay at one moment: degrees, and how well topics hold together."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from topicweave.measures.columns import codes, distinct, mean, percentile
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
    degrees = overlay.graph.degrees
    nodes = len(degrees)
    return {
        "degree_mean": mean(degrees),
        "degree_mean_ci95": NORMAL_95 * float(degrees.std(ddof=1)) / nodes**0.5 if nodes > 1 else math.nan,
        "degree_p95": percentile(degrees, 95),
        "degree_max": percentile(degrees, 100),
    }


def links_by_kind(links: pa.Table, nodes: pa.Array) -> dict[str, float]:
    """For each kind in a snapshot: how many links of that kind a node lists, mean over `nodes` (sorted names).

    Unlike a degree this counts what a node itself keeps: friends are not fans. Links to nodes that are gone
    count, since they are kept.
    """
    kinds = distinct(links["kind"])
    listed = codes(links["kind"], kinds)[codes(links["node"], nodes) >= 0]
    counts = np.bincount(listed, minlength=len(kinds))
    return dict(zip(kinds.to_pylist(), (counts / max(len(nodes), 1)).tolist(), strict=True))


def topic_components(topics: TopicGraph) -> IntArray:
    """How many connected components each topic's subgraph has, in the order of `topics.interests.topics`."""
    labels = component_labels(topics.graph)
    roots = np.flatnonzero(labels == np.arange(len(labels)))
    return np.bincount(topics.interests.topic[roots], minlength=len(topics.interests.topics))


def coverage(topics: TopicGraph, k: int = 1) -> float:
    """The share of (node, topic) subscriptions for which the node has at least k neighbours that want the topic.

    Where fewer than k other nodes want the topic, all of them must be neighbours: a share of 1 is always within
    reach, and a lone subscriber is covered.
    """
    others = topics.interests.subscribers[topics.interests.topic] - 1
    return mean(topics.graph.degrees >= np.minimum(k, others))


def connectivity_measures(topics: TopicGraph, k: int = 1) -> dict[str, float]:
    """Topics here are those with at least one subscriber in the overlay.

    components            connected components, all topics together (as many as topics when none is partitioned)
    partitioned_topics    topics of more than one component
    coverage              see `coverage`
    """
    components = topic_components(topics)
    return {
        "components": float(components.sum()),
        "partitioned_topics": float(np.count_nonzero(components > 1)),
        "coverage": coverage(topics, k),
    }
