"""Backup sets: the properties of §4.2, whatever the nodes want."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicweave.model.ids import Interest, NodeId
from topicweave.systems.omen.backups import (
    BUILDERS,
    Covers,
    build_backups_by_primal_dual,
    build_backups_greedily,
)

INTERESTS = st.frozensets(st.integers(0, 8), max_size=6)
CANDIDATES = st.dictionaries(st.integers(0, 40), INTERESTS, max_size=15)
EACH = pytest.mark.parametrize("builder", list(BUILDERS))
BOTH = pytest.mark.parametrize("covers", ["repeated", "multi"])


@EACH
@BOTH
@given(INTERESTS, CANDIDATES, st.integers(0, 4), st.integers(0, 9))
def test_backups_cover_as_often_as_can_be_and_share_a_topic(
    builder: str,
    covers: Covers,
    topics: Interest,
    candidates: dict[NodeId, Interest],
    coverage: int,
    seed: int,
) -> None:
    chosen = BUILDERS[builder](topics, candidates, coverage, random.Random(seed), covers)
    assert len(set(chosen)) == len(chosen)
    for topic in topics:
        subscribers = sum(topic in interest for interest in candidates.values())
        covered = sum(topic in candidates[peer] for peer in chosen)
        assert covered >= min(coverage, subscribers)
    assert all(candidates[peer] & topics for peer in chosen)


@EACH
@given(INTERESTS.filter(bool), CANDIDATES, st.integers(0, 9))
def test_one_cover_has_no_useless_member(
    builder: str, topics: Interest, candidates: dict[NodeId, Interest], seed: int
) -> None:
    """Each member covered something new when it was taken, so there are no more of them than topics."""
    chosen = BUILDERS[builder](topics, candidates, 1, random.Random(seed), "repeated")
    assert len(chosen) <= len(topics)
    covered: set[int] = set()
    for peer in chosen:
        assert candidates[peer] & topics - covered
        covered |= candidates[peer]


@BOTH
def test_no_coverage_asks_for_nobody(covers: Covers) -> None:
    assert (
        build_backups_by_primal_dual(frozenset({1}), {5: frozenset({1})}, 0, random.Random(0), covers) == []
    )


def test_greedy_takes_bulk_subscribers_and_primal_dual_looks_around() -> None:
    """§4.2: greediness puts the load on a few; randomness spreads it. Over a pool of alike and one bulk node."""
    topics = frozenset(range(6))
    pool = {0: topics, **{peer: frozenset({peer % 6}) for peer in range(1, 31)}}
    assert build_backups_greedily(topics, pool, 1, random.Random(0)) == [0]
    picked: set[NodeId] = set()
    for seed in range(20):
        picked.update(build_backups_by_primal_dual(topics, pool, 2, random.Random(seed)))
    assert len(picked) > 20


def test_primal_dual_over_a_wide_pool_is_as_greedy_as_greedy() -> None:
    """A bulk subscriber wants whatever topic is drawn, and is always its best subscriber: balance comes from
    a partial pool.
    """
    topics = frozenset(range(6))
    pool = {0: topics, **{peer: frozenset({peer % 6, (peer + 1) % 6}) for peer in range(1, 31)}}
    for seed in range(20):
        assert build_backups_by_primal_dual(topics, pool, 1, random.Random(seed)) == [0]
