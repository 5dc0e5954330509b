import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.measures.builders import links_table, subscriptions_table
from tests.measures.random_overlays import Case, cases
from topicweave.measures.diameter import TABLE_WORDS, topic_diameters
from topicweave.measures.graph import Overlay, TopicGraph

pytestmark = pytest.mark.filterwarnings("error")


def by_topic(topics: TopicGraph, table_words: int = TABLE_WORDS) -> dict[str, int]:
    diameters = topic_diameters(topics, table_words)
    return dict(zip(topics.interests.topics.to_pylist(), diameters.tolist(), strict=True))


def reference(case: Case) -> dict[str, int]:
    return {
        topic: max(nx.diameter(graph.subgraph(part)) for part in nx.connected_components(graph))
        for topic, graph in case.topic_subgraphs().items()
    }


@given(cases(), st.sampled_from([1, 20, TABLE_WORDS]))
def test_small_overlays(case: Case, table_words: int) -> None:
    assert by_topic(case.topic_graph(), table_words) == reference(case)


@pytest.mark.parametrize("table_words", [1, 1000, 4000, TABLE_WORDS])
@pytest.mark.parametrize("seed", range(3))
def test_more_subscribers_than_bits_in_a_word(seed: int, table_words: int) -> None:
    """Several words per row, several topics per batch, several rounds of sources per topic."""
    rng = np.random.default_rng(seed)
    nodes = [f"n{number}" for number in range(300)]
    edges = [(nodes[one], nodes[other]) for one, other in rng.integers(0, 300, (700, 2))]
    shares = {"t0": 1.0, "t1": 0.9, "t2": 0.5, "t3": 0.5, "t4": 0.1, "t5": 0.01}
    wants = [(node, topic) for topic, share in shares.items() for node in nodes if rng.random() < share]
    case = Case(nodes, edges, wants)
    assert by_topic(case.topic_graph(), table_words) == reference(case)


def test_paths_stars_and_the_lonely() -> None:
    path = [(f"p{place:03}", f"p{place + 1:03}") for place in range(130)]
    star = [("hub", f"s{place}") for place in range(100)]
    wants = [(f"p{place:03}", "path") for place in range(131)]
    # Half a path: the middle of it wants nothing, so the topic falls into pieces of 50 and 61 nodes.
    wants += [(f"p{place:03}", "cut") for place in range(131) if not 50 <= place < 70]
    wants += [(name, "star") for _, name in star] + [("hub", "star")]
    # Without the hub nobody has a neighbour.
    wants += [(name, "dust") for _, name in star] + [("hub", "lonely")]
    topics = TopicGraph.of(Overlay.of(links_table(path + star)), subscriptions_table(wants))
    assert by_topic(topics) == {"path": 130, "cut": 60, "star": 2, "dust": 0, "lonely": 0}


def test_no_topics() -> None:
    topics = TopicGraph.of(Overlay.of(links_table([("a", "b")])), subscriptions_table([]))
    assert topic_diameters(topics).tolist() == []
