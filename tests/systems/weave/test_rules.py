"""The rules against definitions written down the slow way, and the theorem that Weave rests on."""

from __future__ import annotations

import random
from collections.abc import Iterable

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicweave.blocks.interest_index import Slots
from topicweave.blocks.views import Directory, FullView
from topicweave.model.ids import RING_SIZE, Interest, NodeId, TopicId
from topicweave.systems.weave import WEAVE, rules
from topicweave.testing import Bench

OWN = 50
INTERESTS = st.frozensets(st.integers(0, 7), max_size=8)
PEERS = st.dictionaries(st.integers(1, 99).filter(lambda peer: peer != OWN), INTERESTS, max_size=12)


def view_of(peers: dict[NodeId, Interest], own: NodeId = OWN) -> FullView:
    directory = Directory()
    for peer, interest in peers.items():
        directory.put(peer, interest)
    return FullView(Bench(WEAVE).world(own), own, frozenset(), directory)


@given(PEERS, INTERESTS, st.sets(st.integers(1, 99)), st.randoms(use_true_random=False))
def test_the_lower_peer_that_covers_most(
    peers: dict[NodeId, Interest], topics: Interest, excluded: set[NodeId], rng: random.Random
) -> None:
    found = rules.cover(view_of(peers), OWN, topics, excluded, 0.0, rng)
    lower = {
        peer: len(topics & interest)
        for peer, interest in peers.items()
        if peer < OWN and peer not in excluded and topics & interest
    }
    assert (found in lower) if lower else (found is None)
    if found is not None:
        assert lower[found] == max(lower.values())


HIGH, MIDDLE, LOW = (int(share * RING_SIZE) for share in (0.9, 0.3, 0.1))


@pytest.mark.parametrize(
    ("lean", "found"),
    [(0.0, HIGH), (1.0, HIGH), (2.0, MIDDLE), (6.0, LOW)],
)
def test_a_low_id_counts_like_topics_more(lean: float, found: NodeId) -> None:
    """Fewer topics, but a lower id. Whoever has none of the topics is not taken, however low."""
    peers = {
        HIGH: frozenset({1, 2, 3}),
        MIDDLE: frozenset({1, 2}),
        LOW: frozenset({1}),
        1: frozenset({7}),
    }
    view = view_of(peers, own=RING_SIZE - 1)
    assert rules.cover(view, RING_SIZE - 1, {1, 2, 3}, (), lean, random.Random(0)) == found


def test_who_is_far_away_counts_less_and_is_taken_all_the_same_if_nobody_else_would_do() -> None:
    less = {7: 3.0, 8: 0.5, 9: 20.0}.__getitem__
    view = view_of({7: frozenset({1, 2, 3}), 8: frozenset({1, 2}), 9: frozenset({4})})
    assert rules.cover(view, OWN, {1, 2, 3}, (), 0.0, random.Random(0), less) == 8
    assert rules.cover(view, OWN, {4}, (), 0.0, random.Random(0), less) == 9
    assert rules.aim(view, OWN, {1, 2, 3, 4}, {}, (), (), 0.0, less) == [8, 7, 9]
    linked = {7: {1, 2, 3}, 9: {4}}
    assert rules.aim(view, OWN, {1, 2, 4}, linked, (), (), 0.0, less) == [8, 9]


class Sweeping(FullView):
    """Lets go of what is too old when it is asked, as views by gossip do: whoever wants less from then on has
    another slot.
    """

    def overlap_counts(self, topics: Iterable[TopicId]) -> Slots:
        self._directory.put(7, frozenset({2}))
        return super().overlap_counts(topics)


def test_an_aim_in_a_view_that_changes_when_it_is_asked() -> None:
    directory = Directory()
    for peer, interest in {7: frozenset({1, 2}), 8: frozenset({1}), 60: frozenset({1, 2})}.items():
        directory.put(peer, interest)
    view = Sweeping(Bench(WEAVE).world(OWN), OWN, frozenset(), directory)
    assert sorted(rules.aim(view, OWN, {1, 2}, {}, (), (), 0.0)) == [7, 8]


@given(PEERS, PEERS, INTERESTS, st.sets(st.integers(1, 99)))
def test_an_aim_covers_what_can_be_covered_and_nobody_in_it_is_for_nothing(
    peers: dict[NodeId, Interest], below: dict[NodeId, Interest], topics: Interest, excluded: set[NodeId]
) -> None:
    below = {peer: interest & topics for peer, interest in below.items() if peer < OWN}
    found = rules.aim(view_of(peers), OWN, topics, below, below, excluded, 1.0)
    usable = {
        peer: interest for peer, interest in peers.items() if peer < OWN and peer not in excluded
    } | below
    assert set(found) <= usable.keys()
    left = set(topics)
    for peer in found:
        assert left & usable[peer]
        left -= usable[peer]
    assert not any(left & interest for interest in usable.values())


def test_one_that_does_for_two_is_aimed_at() -> None:
    below = {20: (1, 2), 30: (3, 4)}
    view = view_of(
        {10: frozenset({1, 2, 3, 4}), **{peer: frozenset(shared) for peer, shared in below.items()}}
    )
    assert rules.aim(view, OWN, {1, 2, 3, 4}, below, below, (), 0.0) == [10]
    assert set(rules.aim(view, OWN, {1, 2, 3, 4}, below, below, [10], 0.0)) == {20, 30}


def test_little_is_not_worth_a_change() -> None:
    """A lower id does as well as the neighbour: it must be much lower."""
    near, far, own = (int(share * RING_SIZE) for share in (0.45, 0.1, 0.9))
    neighbour = RING_SIZE // 2
    view = view_of({near: frozenset({1}), neighbour: frozenset({1})}, own)
    assert rules.aim(view, own, {1}, {neighbour: (1,)}, [neighbour], (), 2.0) == [neighbour]
    view = view_of({far: frozenset({1}), neighbour: frozenset({1})}, own)
    assert rules.aim(view, own, {1}, {neighbour: (1,)}, [neighbour], (), 2.0) == [far]
    assert rules.aim(view, own, {1}, {neighbour: (1,)}, [neighbour], (), 0.0) == [neighbour]


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
    assert rules.stand_in(9, {1, 2, 3}, neighbours, busy=lambda peer: 5) == 8
    assert rules.stand_in(7, {1, 2, 3}, neighbours, busy=lambda peer: 5) == 3
    assert rules.stand_in(2, {1, 2, 3}, neighbours, busy=lambda peer: 5) is None


def test_nobody_stands_in_for_less_than_half() -> None:
    assert rules.stand_in(9, {1, 2, 3}, {3: (2, frozenset({1}))}, busy=lambda peer: 5) is None
    assert rules.stand_in(9, (), {3: (2, frozenset({1}))}, busy=lambda peer: 5) is None
