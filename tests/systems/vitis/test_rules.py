"""Vitis' rules on the paper's examples and on clusters made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicweave.model.ids import RING_SIZE, NodeId, distance
from topicweave.systems.vitis.rules import (
    Offers,
    elect_gateways,
    ring_distances,
    select_neighbours,
    utility,
)

A, B, C, D, E, F, G, H = range(8)
P, Q, R = frozenset({A, B, C}), frozenset({C, D}), frozenset({C, D, E, F, G, H})


def test_utility_of_the_papers_example() -> None:
    """§III-A2: utility(p, q) = 0.25, utility(p, r) = 0.125, utility(q, r) = 0.33."""
    assert utility(P, Q) == 0.25
    assert utility(P, R) == 0.125
    assert utility(Q, R) == pytest.approx(1 / 3)


def test_utility_ignores_topics_of_rate_zero() -> None:
    rates = {A: 1.0, B: 1.0, C: 1.0, D: 0.0}
    assert utility(P, Q, rates) == pytest.approx(1 / 3)  # as if q wanted C only
    assert utility(frozenset({D}), frozenset({D}), rates) == 0.0


def test_a_hot_common_topic_makes_friends() -> None:
    hot = dict.fromkeys(range(8), 1.0) | {C: 100.0}
    assert utility(P, R, hot) > utility(P, frozenset({A, B}), hot)


interests = st.frozensets(st.integers(0, 20), max_size=10)


@given(interests, interests)
def test_utility_is_symmetric_and_equal_rates_are_no_rates(
    mine: frozenset[int], theirs: frozenset[int]
) -> None:
    value = utility(mine, theirs)
    assert value == utility(theirs, mine)
    assert 0.0 <= value <= 1.0
    assert value == pytest.approx(utility(mine, theirs, dict.fromkeys(range(21), 2.5)))


def test_select_neighbours_takes_the_ring_then_the_small_world_then_friends() -> None:
    """Alg. 4 on a ring of tens."""
    likes = {20: 0.1, 30: 0.9, 40: 0.5, 50: 0.0, 60: 0.7}
    candidates = [60, 20, 30, 40, 50]
    chosen = select_neighbours(
        35, candidates, sorted(candidates), [58], 5, lambda peers: [likes[peer] for peer in peers]
    )
    assert chosen == [
        (40, "successor"),
        (30, "predecessor"),
        (60, "small-world"),
        (20, "friend"),
        (50, "friend"),
    ]


def test_select_neighbours_keeps_equals_in_the_order_given() -> None:
    candidates = [70, 60, 80, 50]
    chosen = select_neighbours(0, candidates, sorted(candidates), [], 3, lambda peers: [0.5] * len(peers))
    assert [peer for peer, kind in chosen if kind == "friend"] == [70]


@given(st.lists(st.integers(1, RING_SIZE - 1), unique=True, max_size=12), st.integers(3, 8))
def test_select_neighbours_fills_the_table_as_far_as_it_can(candidates: list[int], size: int) -> None:
    chosen = select_neighbours(
        0, candidates, sorted(candidates), [1 << 30, 1 << 50], size, lambda peers: [0.0] * len(peers)
    )
    assert len(chosen) == len({peer for peer, _ in chosen}) == min(size, len(candidates))


# Gateways.

TOPIC = 1000


def election(
    own: NodeId,
    links: dict[NodeId, tuple[NodeId, NodeId, int]],
    most_hops: int = 5,
    others: tuple[NodeId, ...] = (),
) -> tuple[NodeId, NodeId, int]:
    """One election for one topic; `links` are the interested neighbours with (gateway, parent, hops)."""
    peers = sorted(links)
    offers = Offers(
        np.zeros(len(peers), np.int64),
        np.array(peers, dtype=np.uint64),
        np.array([links[peer] for peer in peers], dtype=np.uint64).reshape(-1, 3).T,
    )
    every = np.array(sorted({*links, *others}), dtype=np.uint64)
    result = elect_gateways(own, np.array([TOPIC], dtype=np.uint64), offers, every, most_hops)
    gateway, parent, hops = result[:, 0].tolist()
    return gateway, parent, hops


def test_a_node_alone_is_its_own_gateway() -> None:
    assert election(900, {}) == (900, 900, 0)


def test_the_nearer_neighbour_becomes_the_gateway() -> None:
    assert election(900, {950: (950, 950, 0), 700: (700, 700, 0)}) == (950, 950, 1)


def test_distance_goes_the_shorter_way_round() -> None:
    assert election(1100, {950: (950, 950, 0)}) == (950, 950, 1)
    assert election(5000, {RING_SIZE - 10: (RING_SIZE - 10, RING_SIZE - 10, 0)}) == (
        RING_SIZE - 10,
        RING_SIZE - 10,
        1,
    )


def test_of_two_ways_to_a_gateway_the_shorter_is_taken() -> None:
    assert election(500, {700: (999, 400, 3), 800: (999, 300, 1)}) == (999, 800, 2)


def test_a_proposal_is_not_taken_second_hand() -> None:
    """Alg. 5 line 7: 800 got it from 700, which would have told us itself, and did not."""
    assert election(500, {700: (700, 700, 0), 800: (999, 700, 2)}) == (700, 700, 1)


def test_ones_own_word_is_no_news() -> None:
    """A proposal whose parent is the node itself is refused: line 7 as printed would take it."""
    assert election(500, {800: (999, 500, 2)}) == (500, 500, 0)


@pytest.mark.parametrize(("hops", "taken"), [(0, True), (4, True), (5, False)])
def test_gateways_are_at_most_d_hops_away(hops: int, taken: bool) -> None:
    parent = 800 if hops == 0 else 300
    result = election(500, {800: (999 if hops else 800, parent, hops)}, most_hops=5)
    assert (result[1] == 800) is taken
    # The bound as printed in line 10 is the one below it.
    assert election(500, {800: (999, 300, 4)}, most_hops=4) == (500, 500, 0)


def test_every_line_of_a_long_cluster_has_a_gateway_within_d_hops() -> None:
    """A line of 12 nodes that grow nearer to the topic: with d = 3 the far end needs gateways of its own."""
    line = [100 * number for number in range(1, 10)] + [920, 940, 960]
    proposals = {node: (node, node, 0) for node in line}
    for _ in range(30):
        proposals = {
            node: election(
                node,
                {
                    line[near]: proposals[line[near]]
                    for near in (place - 1, place + 1)
                    if 0 <= near < len(line)
                },
                most_hops=3,
            )
            for place, node in enumerate(line)
        }
    gateways = {gateway for gateway, _, _ in proposals.values()}
    assert gateways == {960, 800, 400}
    for place, node in enumerate(line):
        gateway, _, hops = proposals[node]
        assert hops == line.index(gateway) - place <= 3


ring_ids = st.integers(0, 3000)


@given(st.dictionaries(ring_ids, st.tuples(ring_ids, ring_ids, st.integers(0, 6)), max_size=8), ring_ids)
def test_election_is_algorithm_5_by_the_book(links: dict[int, tuple[int, int, int]], own: int) -> None:
    """Against the pseudo-code, line by line, with the two deviations; neighbours asked in growing order."""
    links.pop(own, None)
    best = (own, own, 0)
    for neighbour in sorted(links):
        gateway, parent, hops = links[neighbour]
        if parent == own or not (neighbour == parent or parent not in links) or hops + 1 > 5:
            continue
        far, least = distance(gateway, TOPIC), distance(best[0], TOPIC)
        if far < least or (far == least and best[0] != own and hops + 1 < best[2]):
            best = (gateway, neighbour, hops + 1)
    assert election(own, links) == best


@given(st.lists(st.tuples(st.integers(0, RING_SIZE - 1), st.integers(0, RING_SIZE - 1)), min_size=1))
def test_ring_distances_are_distances(pairs: list[tuple[int, int]]) -> None:
    left, right = np.array(pairs, dtype=np.uint64).T
    assert ring_distances(left, right).tolist() == [distance(a, b) for a, b in pairs]
