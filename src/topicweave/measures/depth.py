"""How far a topic's subscribers are from one of them: what an event that it publishes has before it."""

from __future__ import annotations

import numpy as np

from topicweave.measures.graph import TopicGraph
from topicweave.model.arrays import IntArray


def depths(topics: TopicGraph) -> IntArray:
    """Hops from the first subscriber of each topic to each (node, topic) pair, within the topic; -1 where it
    is not reached.

    One breadth-first search serves all topics, since they never meet.
    """
    graph, starts = topics.graph, topics.interests.offsets[:-1]
    found = np.full(graph.vertices, -1, np.int64)
    found[starts] = 0
    ahead, hops = np.asarray(starts, np.int64), 0
    while len(ahead):
        hops += 1
        counts = graph.degrees[ahead]
        first = np.repeat(graph.offsets[ahead], counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        reached = np.unique(graph.neighbours[first + within])
        ahead = reached[found[reached] < 0]
        found[ahead] = hops
    return found


def depth_measures(topics: TopicGraph) -> dict[str, float]:
    """From one subscriber of each topic:

    topic_depth_max     the farthest of all
    topic_depth_mean    the farthest of a topic, mean over topics
    topic_path_mean     how far the others are, mean over all of them
    """
    found, topic = depths(topics), topics.interests.topic
    if not len(found):
        return {"topic_depth_max": 0.0, "topic_depth_mean": 0.0, "topic_path_mean": 0.0}
    farthest = np.zeros(len(topics.interests.topics), np.int64)
    np.maximum.at(farthest, topic, found)
    others = found[found > 0]
    return {
        "topic_depth_max": float(farthest.max()),
        "topic_depth_mean": float(farthest.mean()),
        "topic_path_mean": float(others.mean()) if len(others) else 0.0,
    }


def topics_per_link(topics: TopicGraph, links: int) -> float:
    """How many topics both ends of a link want, mean over an overlay's links."""
    return len(topics.graph.neighbours) / 2 / links if links else 0.0
