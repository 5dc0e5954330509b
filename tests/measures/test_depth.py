"""Depths from one subscriber of each topic."""

from __future__ import annotations

import pyarrow as pa

from topicweave.measures.depth import depth_measures, depths, topics_per_link
from topicweave.measures.graph import Overlay, TopicGraph


def graph(links: list[tuple[str, str]], wants: dict[str, str]) -> TopicGraph:
    rows = pa.table(
        {"node": [a for a, _ in links], "peer": [b for _, b in links], "kind": ["x"] * len(links)}
    )
    pairs = [(node, topic) for node, topics in wants.items() for topic in topics]
    table = pa.table({"node": [node for node, _ in pairs], "topic": [topic for _, topic in pairs]})
    return TopicGraph.of(Overlay.of(rows, pa.array(sorted(wants))), table)


def test_a_line_is_as_deep_as_it_is_long_from_its_end() -> None:
    line = graph([("a", "b"), ("b", "c"), ("c", "d")], {"a": "s", "b": "s", "c": "s", "d": "s"})
    assert depths(line).tolist() == [0, 1, 2, 3]
    assert depth_measures(line) == {"topic_depth_max": 3.0, "topic_depth_mean": 3.0, "topic_path_mean": 2.0}


def test_only_links_between_those_who_want_the_topic_count_and_what_is_apart_is_not_reached() -> None:
    wants = {"a": "s", "b": "t", "c": "st", "d": "t"}
    parted = graph([("a", "b"), ("b", "c"), ("c", "d")], wants)
    found = dict(zip(parted.interests.topics.to_pylist(), (0, 0), strict=True))
    assert set(found) == {"s", "t"}
    assert depth_measures(parted) == {"topic_depth_max": 2.0, "topic_depth_mean": 1.0, "topic_path_mean": 1.5}
    assert depths(parted).tolist().count(-1) == 1, "c does not hear of s"


def test_topics_per_link() -> None:
    both = graph([("a", "b"), ("b", "c")], {"a": "st", "b": "st", "c": "s"})
    assert topics_per_link(both, links=2) == 1.5
