"""The rules against definitions written down the slow way, and the theorem that Weave rests on."""

from __future__ import annotations

import random

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from topicweave.blocks.views import Directory, FullView
from topicweave.model.ids import Interest, NodeId
from topicweave.systems.weave import WEAVE, rules
from topicweave.testing import Bench

OWN = 50
INTERESTS = st.frozensets(st.integers(0, 7), max_size=8)
PEERS = st.dictionaries(st.integers(1, 99).filter(lambda peer: peer != OWN), INTERESTS, max_size=12)


def view_of(peers: dict[NodeId, Interest]) -> FullView:
    directory = Directory()
    for peer, interest in peers.items():
        directory.put(peer, interest)
    return FullView(Bench(WEAVE).world(OWN), OWN, frozenset(), directory)


@given(PEERS, INTERESTS, st.sets(st.integers(1, 99)), st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_lower_peer_that_covers_most(
    peers: dict[NodeId, Interest], topics: Interest, excluded: set[NodeId], tie: int, rng: random.Random
) -> None:
    found = rules.cover(view_of(peers), OWN, topics, excluded, tie, rng)
    lower = {
        peer: len(topics & interest)
        for peer, interest in peers.items()
        if peer < OWN and peer not in excluded and topics & interest
    }
    if not lower:
        assert found is None
        return
    assert found is not None
    assert lower[found] == max(lower.values())
    equal = sorted(peer for peer in lower if lower[peer] == lower[found])
    # The lowest of `tie` drawn ones: so many are above it at least.
    assert found in equal[: max(1, len(equal) - tie + 1)]


@given(
    PEERS,
    st.sets(st.integers(1, 99)),
    st.lists(st.frozensets(st.integers(0, 7), max_size=3), max_size=4),
)
def test_one_that_does_for_two(
    peers: dict[NodeId, Interest], excluded: set[NodeId], alone: list[Interest]
) -> None:
    neighbours = {100 + place: topics for place, topics in enumerate(alone)}
    found = rules.replacement(view_of(peers), OWN, neighbours, excluded)
    does = {
        peer: [neighbour for neighbour, topics in neighbours.items() if topics and topics <= interest]
        for peer, interest in peers.items()
        if peer < OWN and peer not in excluded
    }
    most = max(map(len, does.values()), default=0)
    if most < 2:
        assert found is None
    else:
        assert found is not None
        assert found[1] == does[found[0]]
        assert len(found[1]) == most


@given(
    st.lists(st.frozensets(st.integers(0, 5), min_size=1), min_size=2, max_size=15),
    st.randoms(use_true_random=False),
)
def test_lower_links_alone_keep_every_topic_in_one_piece(
    interests: list[Interest], rng: random.Random
) -> None:
    """Whichever lower ones are taken: the theorem."""
    graph = nx.Graph()
    graph.add_nodes_from(range(len(interests)))
    for node, interest in enumerate(interests):
        for topic in interest:
            lower = [peer for peer in range(node) if topic in interests[peer]]
            if lower:
                graph.add_edge(node, rng.choice(lower))
    for topic in frozenset().union(*interests):
        wanting = [node for node, interest in enumerate(interests) if topic in interest]
        assert nx.is_connected(graph.subgraph(wanting))


def test_a_stand_in_is_lower_than_who_asks() -> None:
    neighbours = {3: (2, frozenset({1, 2})), 8: (2, frozenset({1, 2, 3}))}
    assert rules.stand_in(9, {1, 2, 3}, neighbours, busy=5) == 8
    assert rules.stand_in(7, {1, 2, 3}, neighbours, busy=5) == 3
    assert rules.stand_in(2, {1, 2, 3}, neighbours, busy=5) is None


def test_nobody_stands_in_for_less_than_half() -> None:
    assert rules.stand_in(9, {1, 2, 3}, {3: (2, frozenset({1}))}, busy=5) is None
    assert rules.stand_in(9, (), {3: (2, frozenset({1}))}, busy=5) is None
