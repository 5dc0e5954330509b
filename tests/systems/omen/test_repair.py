"""Algorithm 1: the paper's running example, and that repair always joins what came apart."""

from __future__ import annotations

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from topicweave.systems.omen.circle import successors
from topicweave.systems.omen.repair import Member, repair, shadow_of_join, shadow_of_leave

# §4.4, Table 2 and Fig. 2: 12 nodes, 6 topics, v10 leaves and v11 coordinates. The figure's labels are not
# part of the paper's text; these interests and links are ours, chosen to agree with all the text says: S,
# E_new, B(v10) with λ = 1 that covers c and f once, B(v9) with λ = 2.
WANTS = {
    0: "ae",
    1: "abc",
    2: "ae",
    3: "ab",
    4: "e",
    5: "df",
    6: "ef",
    7: "ae",
    8: "a",
    9: "ae",
    10: "bcdf",
    11: "bcd",
}
EDGES = [
    (0, 2), (2, 7), (7, 9), (0, 3), (1, 3), (4, 9), (6, 9), (8, 9), (3, 11), (1, 10), (5, 10), (6, 10), (10, 11),
]  # fmt: skip
TOPIC = {letter: number for number, letter in enumerate("abcdef")}
INTEREST = {node: frozenset(TOPIC[letter] for letter in wanted) for node, wanted in WANTS.items()}


def parted(graph: nx.Graph, interest: dict[int, frozenset[int]]) -> set[int]:
    """Topics in more than one part."""
    topics = {topic for node in graph for topic in interest[node]}
    members = {topic: [node for node in graph if topic in interest[node]] for topic in topics}
    return {topic for topic in topics if not nx.is_connected(graph.subgraph(members[topic]))}


def members_of(
    graph: nx.Graph, shadow: set[int], interest: dict[int, frozenset[int]], whole: bool
) -> dict[int, Member]:
    labels: dict[int, dict[int, int]] = {node: {} for node in shadow}
    for topic in {topic for node in shadow for topic in interest[node]}:
        for part in nx.connected_components(graph.subgraph([n for n in graph if topic in interest[n]])):
            for node in part & shadow:
                labels[node][topic] = min(part)
    return {
        node: Member(
            interest[node], graph.degree[node], frozenset(graph[node]), labels[node] if whole else None
        )
        for node in shadow
    }


def covered(node: int, backups: set[int]) -> dict[str, int]:
    """How often each of a node's topics is covered; the least is λ (Eq. 3)."""
    return {letter: sum(letter in WANTS[backup] for backup in backups) for letter in WANTS[node]}


def test_the_running_example() -> None:
    """v10 departs; v11 repairs over S = N(v10) ∪ B(v10) = {1, 3, 5, 6, 11} with three new edges."""
    graph = nx.Graph(EDGES)
    assert parted(graph, INTEREST) == set()
    neighbours, backups = set(graph[10]), {3, 5, 11}
    assert all(INTEREST[node] & INTEREST[10] for node in backups)  # individual commitment, Eq. 2
    assert covered(10, backups) == {"b": 2, "c": 1, "d": 2, "f": 1}
    shadow = shadow_of_leave(backups, neighbours)
    assert shadow == {1, 3, 5, 6, 11}

    graph.remove_node(10)
    assert successors(10, graph, 1) == [11]
    assert parted(graph, INTEREST) == {TOPIC[letter] for letter in "cdf"}
    new = repair(members_of(graph, shadow, INTEREST, whole=True), INTEREST[10], rho=2.0)
    assert {frozenset(edge) for edge in new} == {frozenset({11, 1}), frozenset({11, 5}), frozenset({5, 6})}
    graph.add_edges_from(new)
    assert parted(graph, INTEREST) == set()

    # Next, v11 prepares for v9: a backup set with λ = 2.
    assert min(covered(9, {0, 2, 7}).values()) >= 2


def test_to_the_letter_edges_are_added_that_the_overlay_does_not_need() -> None:
    """Joined through nodes outside of the shadow set counts for nothing then."""
    interest = {node: frozenset({0}) for node in range(5)}
    graph = nx.path_graph(5)
    shadow = {0, 4}
    assert repair(members_of(graph, shadow, interest, whole=True), frozenset({0}), rho=2.0) == []
    assert repair(members_of(graph, shadow, interest, whole=False), frozenset({0}), rho=2.0) == [(0, 4)]


@st.composite
def overlays(draw: st.DrawFn) -> tuple[nx.Graph, dict[int, frozenset[int]]]:
    """A topic-connected overlay: random links, then whatever is missing, topic by topic."""
    nodes = draw(st.integers(3, 12))
    interest = {node: draw(st.frozensets(st.integers(0, 5), min_size=1, max_size=4)) for node in range(nodes)}
    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    pair = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    graph.add_edges_from((u, v) for u, v in draw(st.lists(pair, max_size=nodes)) if u != v)
    for topic in range(6):
        members = [node for node in range(nodes) if topic in interest[node]]
        parts = sorted(min(part) for part in nx.connected_components(graph.subgraph(members)))
        graph.add_edges_from((parts[0], other) for other in parts[1:])
    return graph, interest


@given(overlays(), st.data(), st.booleans(), st.sampled_from([0.0, 2.0, float("inf")]))
@settings(max_examples=100)
def test_any_departure_is_mended(
    overlay: tuple[nx.Graph, dict[int, frozenset[int]]], data: st.DataObject, whole: bool, rho: float
) -> None:
    """With N(v') in it, a shadow set always suffices (§4.1); backups only spread the load."""
    graph, interest = overlay
    gone = data.draw(st.sampled_from(sorted(graph)))
    others = st.sampled_from(sorted(set(graph) - {gone}))
    shadow = shadow_of_leave(data.draw(st.frozensets(others, max_size=5)), graph[gone])
    graph.remove_node(gone)
    new = repair(members_of(graph, shadow, interest, whole), interest[gone], rho)
    assert all(one in shadow and other in shadow for one, other in new)
    assert not set(new) & set(graph.edges)
    graph.add_edges_from(new)
    assert parted(graph, interest) == set()


@given(overlays(), st.data())
@settings(max_examples=60)
def test_any_join_is_mended(overlay: tuple[nx.Graph, dict[int, frozenset[int]]], data: st.DataObject) -> None:
    graph, interest = overlay
    newcomer = 99
    interest = {**interest, newcomer: data.draw(st.frozensets(st.integers(0, 5), min_size=1, max_size=4))}
    covering = {
        min(node for node in graph if topic in interest[node])
        for topic in interest[newcomer]
        if any(topic in interest[node] for node in graph)
    }
    graph.add_node(newcomer)
    shadow = shadow_of_join(covering, newcomer)
    graph.add_edges_from(repair(members_of(graph, shadow, interest, True), interest[newcomer], 2.0))
    assert parted(graph, interest) == set()
