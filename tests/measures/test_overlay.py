import math

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.measures.builders import links_table, subscriptions_table, telemetry_table
from tests.measures.random_overlays import Case, cases
from topicweave.measures.graph import Overlay, TopicGraph
from topicweave.measures.overlay import (
    DegreeCounts,
    clusters_per_topic,
    connectivity_measures,
    coverage,
    degree_measures,
    links_by_kind,
    topic_components,
)

pytestmark = pytest.mark.filterwarnings("error")


@given(cases())
def test_degrees(case: Case) -> None:
    degrees = [degree for _, degree in case.networkx().degree]
    measures = degree_measures(case.overlay())
    half_width = measures.pop("degree_mean_ci95")
    assert measures == {
        "degree_mean": pytest.approx(sum(degrees) / len(degrees)),
        "degree_p95": pytest.approx(stats.scoreatpercentile(degrees, 95)),
        "degree_max": max(degrees),
    }
    if len(degrees) == 1:
        assert math.isnan(half_width)
    elif np.ptp(degrees):
        low, high = stats.norm.interval(0.95, np.mean(degrees), stats.sem(degrees))
        assert half_width == pytest.approx((high - low) / 2)
    else:
        assert half_width == 0


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60))
def test_degrees_counted_by_value_give_the_percentile_of_all_to_the_last_bit(degrees: list[int]) -> None:
    measures = DegreeCounts.of(np.array(degrees)).measures()
    assert measures["degree_p95"] == np.percentile(degrees, 95)
    assert measures["degree_mean"] == np.mean(degrees)
    assert measures["degree_max"] == max(degrees)


def test_degrees_of_nobody() -> None:
    assert all(math.isnan(value) for value in degree_measures(Overlay.of(links_table([]))).values())


def test_links_by_kind_counts_what_a_node_lists_itself() -> None:
    links = telemetry_table(
        "links",
        [
            (0.0, "a", "b", "friend"),
            (0.0, "a", "gone", "friend"),
            (0.0, "b", "a", "fan"),
            (0.0, "z", "a", "fan"),
        ],
    )
    assert links_by_kind(links, pa.array(["a", "b"])) == {"friend": 1.0, "fan": 0.5}
    assert links_by_kind(telemetry_table("links"), pa.array([], pa.string())) == {}


@given(cases(), st.integers(1, 4))
def test_connectivity(case: Case, k: int) -> None:
    topics, subgraphs = case.topic_graph(), case.topic_subgraphs()
    components = {topic: nx.number_connected_components(graph) for topic, graph in subgraphs.items()}
    names = topics.interests.topics.to_pylist()
    assert dict(zip(names, topic_components(topics).tolist(), strict=True)) == components
    expected = np.mean([*components.values()]) if components else math.nan
    assert clusters_per_topic(topics) == pytest.approx(expected, nan_ok=True)
    covered = [degree >= min(k, len(graph) - 1) for graph in subgraphs.values() for _, degree in graph.degree]
    assert connectivity_measures(topics, k) == {
        "components": sum(components.values()),
        "partitioned_topics": sum(count > 1 for count in components.values()),
        "coverage": pytest.approx(np.mean(covered) if covered else math.nan, nan_ok=True),
    }


def test_by_hand() -> None:
    """a-b-c and d, all want t; a and c want u, which they only reach through b; d alone wants v."""
    overlay = Overlay.of(links_table([("a", "b"), ("c", "b")]), pa.array(["a", "b", "c", "d"]))
    wants = [(node, "t") for node in "abcd"] + [("a", "u"), ("c", "u"), ("d", "v")]
    topics = TopicGraph.of(overlay, subscriptions_table(wants))
    assert dict(zip(topics.interests.topics.to_pylist(), topic_components(topics).tolist(), strict=True)) == {
        "t": 2,
        "u": 2,
        "v": 1,
    }
    assert connectivity_measures(topics) == {"components": 5, "partitioned_topics": 2, "coverage": 4 / 7}
    # Twice: b alone on t; on u one neighbour would be enough; d on v has nobody to find.
    assert coverage(topics, 2) == 2 / 7


def test_no_subscriptions() -> None:
    topics = TopicGraph.of(Overlay.of(links_table([("a", "b")])), subscriptions_table([]))
    measures = connectivity_measures(topics)
    assert (measures["components"], measures["partitioned_topics"]) == (0, 0)
    assert math.isnan(measures["coverage"])
