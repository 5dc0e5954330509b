"""Similarity and Algorithm 1, on plain data."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicweave.blocks.likeness import likeness
from topicweave.systems.magnet.rules import most_similar_peer

interests = st.frozensets(st.integers(0, 9), max_size=8)


@given(interests, interests)
def test_similarity_is_shared_over_all(mine: frozenset[int], theirs: frozenset[int]) -> None:
    either = mine | theirs
    expected = len(mine & theirs) / len(either) if either else 0.0
    assert likeness(mine, theirs) == expected == likeness(theirs, mine)
    assert likeness(mine, theirs, dict.fromkeys(either, 2.5)) == pytest.approx(expected)


def test_rates_weigh_topics() -> None:
    rates = {1: 6.0, 2: 1.0, 3: 1.0}
    assert likeness(frozenset({1, 2}), frozenset({1, 3}), rates) == 6.0 / 8.0
    assert likeness(frozenset({1, 2}), frozenset({2, 3}), rates) == 1.0 / 8.0
    assert likeness(frozenset({7}), frozenset({7}), rates) == 0.0


def test_the_most_similar_is_found_and_ties_are_broken_at_random() -> None:
    mine = frozenset({1, 2, 3})
    view = {"a": frozenset({1}), "b": frozenset({1, 2}), "c": frozenset({2, 3}), "d": frozenset({9})}
    draw = random.Random(1)
    tally = Counter(most_similar_peer(view, lambda theirs: likeness(mine, theirs), draw) for _ in range(400))
    assert set(tally) == {("b", 2 / 3), ("c", 2 / 3)}
    assert min(tally.values()) > 150
    assert most_similar_peer({}, lambda theirs: 1.0, draw) is None
