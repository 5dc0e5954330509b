"""Rappel's rules on the paper's own examples, and against brute force."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicweave.systems.rappel.rules import (
    ROOT,
    Child,
    FriendCandidate,
    JoinCase,
    best_swap,
    decide_join,
    overlap,
    rank,
    rejoin_ancestor,
    rejoin_distribution,
    utility,
)


def feeds(*numbers: int) -> int:
    """A filter with one bit per feed: what a Bloom filter is without collisions."""
    return sum(1 << number for number in numbers)


# §3.2: the nodes A, B and C of the example.
A, B, C = feeds(1, 2, 3, 4, 5), feeds(1, 3, 5, 7), feeds(2, 4, 6)


def test_overlap_of_the_example() -> None:
    assert overlap(A, B) == 0.5
    assert overlap(A, C) == pytest.approx(1 / 3)
    assert overlap(A, A) == 1.0
    assert overlap(0, 0) == 0.0


def test_utilities_of_the_example_are_per_second() -> None:
    """500 on a LAN (1 ms), 5 across continents (100 ms): the base part of Fig. 3, the bonus left out."""
    for seconds, stated in ((0.001, 500.0), (0.1, 5.0)):
        alone = utility(A, [FriendCandidate(seconds, B)])
        bonus = (A & B).bit_count() / A.bit_count() / seconds
        assert alone - bonus == pytest.approx(stated)


def test_equidistant_b_is_worth_more_than_c() -> None:
    assert utility(A, [FriendCandidate(0.05, B)]) > utility(A, [FriendCandidate(0.05, C)])


def test_unique_coverage_of_the_example() -> None:
    """Of A's friends B and C, B alone covers f1, f3, f5, and C alone f2, f4: bonuses of 3/5 and 2/5."""
    both = utility(A, [FriendCandidate(1.0, B), FriendCandidate(1.0, C)])
    assert both == pytest.approx(1 / 2 + 3 / 5 + 1 / 3 + 2 / 5)
    # A third friend that wants f1 as well takes that bit from B's bonus.
    third = utility(A, [FriendCandidate(1.0, B), FriendCandidate(1.0, C), FriendCandidate(1.0, feeds(1))])
    assert third == pytest.approx(1 / 2 + 2 / 5 + 1 / 3 + 2 / 5 + 1 / 5)


def test_tiny_distances_have_a_floor() -> None:
    assert utility(A, [FriendCandidate(0.0, B)]) == utility(A, [FriendCandidate(0.001, B)])


def test_the_parts_alone() -> None:
    peers = [FriendCandidate(0.1, B), FriendCandidate(0.5, C)]
    assert utility(A, peers, "distance") == pytest.approx(12.0)
    assert utility(A, peers, "interest") == utility(A, [FriendCandidate(1.0, B), FriendCandidate(1.0, C)])


peers = st.builds(FriendCandidate, st.floats(0.001, 0.5), st.integers(1, 2**12 - 1))


@given(st.integers(1, 2**12 - 1), st.lists(peers, min_size=1, max_size=6), peers)
def test_the_best_swap_is_the_best_of_all(
    own: int, friends: list[FriendCandidate], candidate: FriendCandidate
) -> None:
    base = utility(own, friends)
    swapped = [utility(own, [*friends[:i], *friends[i + 1 :], candidate]) for i in range(len(friends))]
    chosen = best_swap(own, friends, candidate)
    if max(swapped) > 1.01 * base * (1 + 1e-9):
        assert chosen is not None
        assert swapped[chosen] == pytest.approx(max(swapped))
    elif max(swapped) < 1.01 * base * (1 - 1e-9):
        assert chosen is None


@given(st.lists(peers, min_size=1, max_size=6), peers)
def test_by_distance_alone_the_farthest_goes(
    friends: list[FriendCandidate], candidate: FriendCandidate
) -> None:
    chosen = best_swap(1, friends, candidate, part="distance")
    if chosen is not None:
        assert friends[chosen].seconds == max(friend.seconds for friend in friends)
        assert candidate.seconds < friends[chosen].seconds


def brute_force_utility(own: int, friends: list[FriendCandidate]) -> float:
    total = 0.0
    for place, (seconds, bloom) in enumerate(friends):
        others = [other for number, (_, other) in enumerate(friends) if number != place]
        bits = [bit for bit in range(12) if own >> bit & 1]
        shared = sum(1 for bit in bits if bloom >> bit & 1)
        union = sum(1 for bit in range(12) if (own | bloom) >> bit & 1)
        unique = sum(1 for bit in bits if bloom >> bit & 1 and not any(o >> bit & 1 for o in others))
        total += (shared / union + unique / len(bits)) / max(seconds, 1e-3)
    return total


@given(st.integers(1, 2**12 - 1), st.lists(peers, max_size=6))
def test_utility_is_figure_3(own: int, friends: list[FriendCandidate]) -> None:
    assert utility(own, friends) == pytest.approx(brute_force_utility(own, friends))


# Fig. 4: the publisher at the origin of a plane, three children at most.

ORIGIN = (0.0, 0.0)


def child(node: int, x: float, y: float) -> Child:
    return Child(rank((x, y), ORIGIN, node), (x, y))


def test_a_requesting_node_that_is_nearer_is_sent_up() -> None:
    own = rank((3.0, 0.0), ORIGIN, 1)
    assert decide_join(own, 9, child(9, 1.0, 0.0), {}, beta=3).case is JoinCase.UP


def test_b_room_for_a_child() -> None:
    own = rank((1.0, 0.0), ORIGIN, 1)
    children = {2: child(2, 2.0, 0.0), 3: child(3, 2.0, 1.0)}
    assert decide_join(own, 9, child(9, 3.0, 0.0), children, beta=3).case is JoinCase.ACCEPT


def test_c_all_children_are_nearer_so_the_one_nearest_to_the_requester_is_asked() -> None:
    own = rank((1.0, 0.0), ORIGIN, 1)
    children = {2: child(2, 2.0, 0.0), 3: child(3, 2.0, 2.0), 4: child(4, 0.0, -3.0)}
    decision = decide_join(own, 9, child(9, 4.0, 4.0), children, beta=3)
    assert decision.case is JoinCase.DOWN
    assert decision.forward == 3


def test_d_the_farthest_child_makes_room_and_is_sent_to_the_child_nearest_to_it() -> None:
    own = rank((1.0, 0.0), ORIGIN, 1)
    children = {2: child(2, 2.0, 0.0), 3: child(3, 2.0, 2.0), 4: child(4, 5.0, 5.0)}
    decision = decide_join(own, 9, child(9, 4.0, 4.0), children, beta=3)
    assert decision.case is JoinCase.EVICT
    assert decision.evicted == 4
    assert decision.forward == 9  # the newcomer itself is nearest to the evicted


def test_a_child_that_asks_again_changes_nothing() -> None:
    """A rejoin that is led back to one's own full parent must not evict anybody."""
    own = rank((1.0, 0.0), ORIGIN, 1)
    children = {2: child(2, 2.0, 0.0), 3: child(3, 2.0, 2.0), 4: child(4, 5.0, 5.0)}
    assert decide_join(own, 3, children[3], children, beta=3).case is JoinCase.KEEP


def test_equally_near_nodes_are_told_apart_by_their_identifiers() -> None:
    low, high = rank((1.0, 0.0), ORIGIN, 1), rank((0.0, 1.0), ORIGIN, 2)
    assert low < high
    assert decide_join(high, 1, Child(low, (1.0, 0.0)), {}, beta=3).case is JoinCase.UP
    assert decide_join(low, 2, Child(high, (0.0, 1.0)), {}, beta=3).case is JoinCase.ACCEPT
    assert rank(ORIGIN, ORIGIN, 0) > ROOT


@given(st.integers(0, 10**6))
def test_whatever_is_decided_parents_stay_nearer_than_children(seed: int) -> None:
    rng = random.Random(seed)

    def spot() -> tuple[float, float]:
        return (rng.uniform(-1, 1), rng.uniform(-1, 1))

    where = spot()
    own = rank(where, ORIGIN, 1)
    children = {}
    for node in range(2, 7):
        at = spot()
        if rank(at, ORIGIN, node) > own:
            children[node] = child(node, *at)
    at = spot()
    joining = child(9, *at)
    decision = decide_join(own, 9, joining, children, beta=max(1, len(children)))
    if decision.case is JoinCase.ACCEPT:
        assert joining.rank > own
    elif decision.case is JoinCase.EVICT:
        assert decision.evicted is not None
        assert decision.forward is not None
        evicted = children[decision.evicted]
        after = {**children, 9: joining}
        assert own < joining.rank < evicted.rank
        assert after[decision.forward].rank < evicted.rank
        assert evicted.rank == max(known.rank for known in children.values())
    elif decision.case is JoinCase.DOWN:
        assert decision.forward is not None
        assert children[decision.forward].rank < joining.rank
    else:
        assert joining.rank < own


# §4.3.


def test_rejoin_chances_fall_by_beta_per_level() -> None:
    chances = rejoin_distribution(6, 5)
    assert len(chances) == 5
    assert sum(chances) == pytest.approx(1.0)
    for nearer, farther in pairwise(chances):
        assert nearer / farther == pytest.approx(5.0)
    assert rejoin_distribution(1, 5) == []


def test_rejoins_go_to_ancestors_as_often_as_stated() -> None:
    rng = random.Random(1)
    ancestors = (10, 20, 30, 40)  # parent, grandparent, …, publisher
    drawn = [rejoin_ancestor(ancestors, 5, rng.random()) for _ in range(20_000)]
    for ancestor, chance in zip((20, 30, 40), rejoin_distribution(4, 5), strict=True):
        assert drawn.count(ancestor) / len(drawn) == pytest.approx(chance, abs=0.01)
    assert 10 not in drawn
    assert rejoin_ancestor((10,), 5, 0.5) is None
    assert rejoin_ancestor((), 5, 0.5) is None
