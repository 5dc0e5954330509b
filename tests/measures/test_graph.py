import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from tests.measures.builders import links_table, subscriptions_table, telemetry_table
from tests.measures.random_overlays import Case, cases
from topicweave.measures.graph import Graph, Overlay, TopicGraph, component_labels, snapshot

pytestmark = pytest.mark.filterwarnings("error")


def edges(overlay: Overlay) -> set[tuple[str, str]]:
    names = overlay.nodes.to_pylist()
    return {(names[low], names[high]) for low, high in zip(*overlay.graph.edges(), strict=True)}


@given(cases())
def test_overlay_is_a_simple_graph(case: Case) -> None:
    overlay, expected = case.overlay(), case.networkx()
    assert edges(overlay) == {(min(edge), max(edge)) for edge in expected.edges}
    assert overlay.graph.degrees.tolist() == [expected.degree[node] for node in overlay.nodes.to_pylist()]


def test_an_edge_counts_when_either_end_lists_it() -> None:
    overlay = Overlay.of(links_table([("a", "b"), ("c", "a"), ("a", "c"), ("a", "a")]))
    assert edges(overlay) == {("a", "b"), ("a", "c")}


def test_overlay_of_some_nodes_leaves_out_links_to_others() -> None:
    links = links_table([("a", "b"), ("gone", "a"), ("b", "gone")])
    overlay = Overlay.of(links, pa.array(["a", "b", "lonely"]))
    assert edges(overlay) == {("a", "b")}
    assert overlay.graph.degrees.tolist() == [1, 1, 0]


def test_overlay_of_some_kinds() -> None:
    rows = [(0.0, "a", "b", "ring"), (0.0, "a", "c", "friend"), (0.0, "c", "b", "backup")]
    overlay = Overlay.of(telemetry_table("links", rows), kinds=["ring", "friend"])
    assert edges(overlay) == {("a", "b"), ("a", "c")}


SNAPSHOTS = telemetry_table(
    "links",
    [
        (1.0, "a", "b", "x"),
        (1.0, "b", "c", "x"),
        (2.0, "a", "c", "x"),
        (2.5, "b", "a", "x"),
        (2.5, "b", "d", "x"),
        (9.0, "z", "a", "x"),
    ],
)


@pytest.mark.parametrize(
    ("time", "within", "expected"),
    [
        (None, 0.0, [("z", "a")]),
        (1.0, 0.0, [("a", "b"), ("b", "c")]),
        (2.5, 0.0, [("b", "a"), ("b", "d")]),
        (2.5, 1.0, [("a", "c"), ("b", "a"), ("b", "d")]),  # each node's own latest
        (2.5, 9.0, [("a", "c"), ("b", "a"), ("b", "d")]),
        (2.0, 9.0, [("b", "c"), ("a", "c")]),
        (3.0, 0.0, []),
    ],
)
def test_snapshot(time: float | None, within: float, expected: list[tuple[str, str]]) -> None:
    rows = snapshot(SNAPSHOTS, time, within)
    assert list(zip(rows["node"].to_pylist(), rows["peer"].to_pylist(), strict=True)) == expected


def test_nothing() -> None:
    overlay = Overlay.of(snapshot(links_table([])))
    assert overlay.graph.vertices == 0
    topics = TopicGraph.of(overlay, subscriptions_table([("a", "t")]))
    assert topics.graph.vertices == 0
    assert component_labels(topics.graph).tolist() == []


@given(cases())
def test_topic_graph_holds_every_topics_subgraph(case: Case) -> None:
    topics = case.topic_graph()
    interests = topics.interests
    nodes, names = interests.nodes.to_pylist(), interests.topics.to_pylist()
    label = [(names[t], nodes[n]) for t, n in zip(interests.topic, interests.node, strict=True)]
    found = {frozenset((label[low], label[high])) for low, high in zip(*topics.graph.edges(), strict=True)}
    assert found == {
        frozenset(((topic, one), (topic, other)))
        for topic, subgraph in case.topic_subgraphs().items()
        for one, other in subgraph.edges
    }


@given(cases(max_nodes=40))
def test_component_labels(case: Case) -> None:
    overlay = case.overlay()
    names = overlay.nodes.to_pylist()
    labels = component_labels(overlay.graph)
    for component in nx.connected_components(case.networkx()):
        members = sorted(names.index(node) for node in component)
        assert labels[members].tolist() == [members[0]] * len(members)


@pytest.mark.parametrize("seed", range(3))
def test_component_labels_of_large_sparse_graphs_and_rings(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = rng.integers(0, 20_000, (2, 12_000))
    ring = rng.permutation(np.arange(20_000, 30_000))
    graph = Graph.of_edges(30_000, np.append(one, ring), np.append(other, np.roll(ring, 1)))
    expected: nx.Graph[int] = nx.Graph()
    expected.add_nodes_from(range(30_000))
    expected.add_edges_from(zip(*(end.tolist() for end in graph.edges()), strict=True))
    labels = np.empty(30_000, np.int64)
    for component in nx.connected_components(expected):
        labels[list(component)] = min(component)
    assert np.array_equal(component_labels(graph), labels)
