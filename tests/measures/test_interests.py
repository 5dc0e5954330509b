import numpy as np
import pyarrow as pa

from tests.measures.builders import subscriptions_table
from topicweave.measures.interests import Interests

TABLE = subscriptions_table(
    [("b", "y"), ("a", "x"), ("c", "y"), ("a", "y"), ("b", "y"), ("a", "z"), ("d", "x")]
)


def listed(interests: Interests) -> list[tuple[str, str]]:
    nodes, topics = interests.nodes.to_pylist(), interests.topics.to_pylist()
    return [(topics[t], nodes[n]) for t, n in zip(interests.topic, interests.node, strict=True)]


def test_pairs_are_distinct_and_the_largest_topic_comes_first() -> None:
    interests = Interests.of(TABLE)
    expected = [("y", "a"), ("y", "b"), ("y", "c"), ("x", "a"), ("x", "d"), ("z", "a")]
    assert listed(interests) == expected
    assert interests.offsets.tolist() == [0, 3, 5, 6]
    assert interests.subscribers.tolist() == [3, 2, 1]
    assert interests.topics_per_node.tolist() == [3, 1, 1, 1]


def test_only_some_nodes_of_which_one_wants_nothing() -> None:
    interests = Interests.of(TABLE, pa.array(["c", "d", "e"]))
    assert listed(interests) == [("x", "d"), ("y", "c")]
    assert interests.topics_per_node.tolist() == [1, 1, 0]


def test_find() -> None:
    interests = Interests.of(TABLE)
    topic, node = np.array([0, 2, 2, -1, 0, 1]), np.array([1, 0, 1, 0, -1, 3])
    assert interests.find(topic, node).tolist() == [1, 5, -1, -1, -1, 4]


def test_nobody_wants_anything() -> None:
    interests = Interests.of(subscriptions_table([]), pa.array(["a"]))
    assert listed(interests) == []
    assert interests.offsets.tolist() == [0]
    assert interests.find(np.array([0]), np.array([0])).tolist() == [-1]
