"""The paper's routines against definitions written down the slow way."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.systems.spidercast.lab import Lab, calc_k_uncovered
from topicweave.blocks.views import FullView
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.systems.spidercast import rules
from topicweave.systems.spidercast.selection import first_overlapping

TOPICS = st.integers(0, 7)
INTERESTS = st.frozensets(TOPICS, max_size=8)
VIEWS = st.dictionaries(st.integers(1, 2**64 - 1), INTERESTS, max_size=10)


# Coverage.


@given(INTERESTS, st.integers(0, 4), st.lists(INTERESTS, max_size=8), st.data())
def test_coverage_counts_as_figure_3_does(
    interest: Interest, k: int, arrivals: list[Interest], data: st.DataObject
) -> None:
    coverage = rules.Coverage(interest, k)
    neighbours: list[Interest] = []
    for arrival in arrivals:
        coverage.add(arrival)
        neighbours.append(arrival)
        if data.draw(st.booleans(), label="one leaves"):
            coverage.remove(neighbours.pop(data.draw(st.integers(0, len(neighbours) - 1), label="which")))
        assert coverage.lacking == calc_k_uncovered(interest, neighbours, k)
        assert set(coverage.uncovered()) == {
            topic for topic in interest if sum(topic in other for other in neighbours) < k
        }
        for place, neighbour in enumerate(neighbours):
            others = neighbours[:place] + neighbours[place + 1 :]
            assert coverage.lacking_without(neighbour) == calc_k_uncovered(interest, others, k)
            worse = [
                topic
                for topic in interest & neighbour
                if k > sum(topic in other for other in others)  # one less than now, and below K
            ]
            assert coverage.needs(neighbour) == bool(worse)


def test_coverage_asks_for_nothing_when_k_is_0() -> None:
    coverage = rules.Coverage(frozenset({1, 2}), 0)
    coverage.add({1})
    assert (coverage.lacking, coverage.uncovered(), coverage.needs({1})) == (0, [], False)


def test_a_link_to_an_uncovered_topic_is_needed_although_its_loss_changes_no_count() -> None:
    """One subscriber besides us, K = 3: the topic is lacking with the link and without it, and yet the link
    is all there is.
    """
    coverage = rules.Coverage(frozenset({1}), 3)
    coverage.add({1})
    assert coverage.lacking_without({1}) == coverage.lacking
    assert coverage.needs({1})


# Selection (Figure 5 and §3.9.1).


def view_of(peers: Mapping[NodeId, Interest]) -> FullView:
    """The view of node 0."""
    lab = Lab()
    view = FullView(lab.world(0), 0, frozenset(), lab.directory)
    view.start([])
    for peer, interest in peers.items():
        lab.directory.put(peer, interest)
    return view


def best_by_brute_force(
    peers: Mapping[NodeId, Interest], topics: Collection[TopicId], excluded: Collection[NodeId]
) -> set[NodeId]:
    overlap = {peer: len(interest & set(topics)) for peer, interest in peers.items() if peer not in excluded}
    most = max(overlap.values(), default=0)
    return {peer for peer, shared in overlap.items() if shared == most} if most else set()


@given(VIEWS, INTERESTS, st.data(), st.integers(0, 2**32))
def test_greedy_takes_one_of_the_best_and_random_one_that_helps(
    peers: dict[NodeId, Interest], topics: Interest, data: st.DataObject, seed: int
) -> None:
    left_out = st.sets(st.sampled_from(sorted(peers)) if peers else st.nothing())
    excluded = data.draw(left_out, label="excluded") | {0, 99}
    view, rng = view_of(peers), random.Random(seed)

    greedy = rules.most_overlapping(view, topics, excluded, rng)
    best = best_by_brute_force(peers, topics, excluded)
    assert greedy in best if best else greedy is None

    helping = {p for p, interest in peers.items() if interest & topics and p not in excluded}
    chosen = rules.any_overlapping(view, topics, excluded, rng)
    assert chosen in helping if helping else chosen is None

    anybody = set(peers) - excluded
    chosen = rules.any_peer(view, excluded, rng)
    assert chosen in anybody if anybody else chosen is None


def drawn(choose: object, times: int = 3000) -> Counter[NodeId | None]:
    assert callable(choose)
    rng = random.Random("draws")
    return Counter(choose(rng) for _ in range(times))


def assert_even(counts: Counter[NodeId | None], among: set[NodeId]) -> None:
    """Equally often, give or take five standard deviations (the draws are always the same: it can't flake)."""
    assert set(counts) == among
    expected = counts.total() / len(among)
    for count in counts.values():
        assert abs(count - expected) < 5 * expected**0.5


PEERS = {
    1: frozenset({1, 2, 3}),
    2: frozenset({2, 3, 4}),
    3: frozenset({1, 3, 9}),
    4: frozenset({3}),
    5: frozenset({8, 9}),
    6: frozenset({1, 2, 3, 4}),
}


def test_ties_are_broken_evenly() -> None:
    view = view_of(PEERS)
    assert_even(drawn(lambda rng: rules.most_overlapping(view, [1, 2, 3], [], rng)), {1, 6})
    assert_even(drawn(lambda rng: rules.most_overlapping(view, [1, 2, 3], [1, 6], rng)), {2, 3})
    assert_even(drawn(lambda rng: rules.any_overlapping(view, [3], [], rng)), {1, 2, 3, 4, 6})
    assert_even(drawn(lambda rng: rules.any_peer(view, [2, 4], rng)), {1, 3, 5, 6})


def test_the_first_of_the_best() -> None:
    view = view_of(PEERS)
    rng = random.Random(0)
    assert first_overlapping(view, [1, 2, 3], [], rng) == 1
    assert first_overlapping(view, [1, 2, 3], [1, 6], rng) == 2
    assert first_overlapping(view, [7], [], rng) is None
    assert first_overlapping(view_of({}), [1], [], rng) is None


def test_the_whole_interest_gives_the_most_similar_node() -> None:
    """NEXTSIMILARITYNODE, §3.9.1."""
    assert rules.most_overlapping(view_of(PEERS), [1, 2, 3, 4, 9], [], random.Random(0)) == 6


def test_the_rare_node_that_covers_more_beats_the_many() -> None:
    """§2.1: greedy covers as many topics as it can with each link; random asks for one."""
    view = view_of({n: frozenset({n % 5}) for n in range(1, 40)} | {50: frozenset(range(5))})
    assert drawn(lambda rng: rules.most_overlapping(view, range(5), [], rng), 50) == {50: 50}
    assert len(drawn(lambda rng: rules.any_overlapping(view, range(5), [], rng))) == 40


# Parting (Figure 3) and redirecting (Figure 4).


@pytest.mark.parametrize(
    ("degree", "target", "can"), [(4, 5, False), (5, 5, True), (6, 5, True), (0, 0, True)]
)
def test_a_neighbour_that_reached_its_target_can_spare_a_link(degree: int, target: int, can: bool) -> None:
    assert rules.can_spare_a_link(degree, target) is can


@given(st.dictionaries(st.integers(), st.integers(0, 5), max_size=8))
def test_disconnect_candidates_are_those_whose_loss_hurts_least(loss: dict[NodeId, int]) -> None:
    candidates, least = rules.disconnect_candidates(loss)
    assert candidates == [peer for peer in loss if loss[peer] == min(loss.values())]
    assert not loss or least == min(loss.values())


@given(
    INTERESTS,
    st.dictionaries(st.integers(), st.tuples(st.integers(0, 9), st.integers(0, 9), INTERESTS), max_size=8),
    st.integers(0, 5),
)
def test_redirects_name_a_neighbour_with_room_that_shares_most(
    asker: Interest, neighbours: dict[NodeId, tuple[int, int, Interest]], margin: int
) -> None:
    shared = {
        peer: len(interest & asker)
        for peer, (degree, target, interest) in neighbours.items()
        if degree < target + margin
    }
    assert rules.redirect_candidates(asker, neighbours, margin) == [
        peer for peer in shared if shared[peer] == max(shared.values())
    ]


# Adaptive K_r (§3.3.1).


def adapted(k_random: int, degree: int, interests: int = 10, greedy: bool = True, random: bool = True) -> int:
    return rules.adapted_k_random(3, k_random, degree, interests, greedy, random)


def test_random_coverage_begins_only_when_the_degree_equals_k_greedy() -> None:
    assert [adapted(0, degree) for degree in (0, 2, 3, 4, 30)] == [0, 0, 1, 0, 0]


def test_random_coverage_grows_while_the_degree_is_below_the_number_of_topics() -> None:
    assert [adapted(1, degree) for degree in (4, 9, 10, 11)] == [2, 2, 1, 1]


def test_random_coverage_grows_no_further_beyond_3() -> None:
    assert [adapted(k, degree=5) for k in (1, 2, 3, 4)] == [2, 3, 4, 4]


@pytest.mark.parametrize("k_random", [0, 1, 2])
def test_nothing_changes_before_the_coverage_asked_for_is_reached(k_random: int) -> None:
    assert adapted(k_random, 3, greedy=False) == k_random
    assert adapted(k_random, 3, random=False) == k_random
