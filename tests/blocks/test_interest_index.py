"""The interest index against plain sets."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from topicweave.blocks import interest_index
from topicweave.blocks.interest_index import InterestIndex
from topicweave.model.ids import Interest, NodeId, TopicId

peers = st.one_of(st.integers(0, 12), st.just(2**64 - 1))
interests = st.frozensets(st.integers(0, 7), max_size=6)


class IndexAgainstSets(RuleBasedStateMachine):
    """Same calls on both sides; renumbering happens after a few calls instead of after 64."""

    @initialize()
    def begin(self) -> None:
        self.index = InterestIndex()
        self.truth: dict[NodeId, Interest] = {}
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(interest_index, "_FEW", 2)

    def teardown(self) -> None:
        self.patch.undo()

    @rule(peer=peers, interest=interests)
    def put(self, peer: NodeId, interest: Interest) -> None:
        self.index.put(peer, interest)
        self.truth[peer] = interest

    @rule(peer=peers)
    def discard(self, peer: NodeId) -> None:
        self.index.discard(peer)
        self.truth.pop(peer, None)

    @rule(topics=st.sets(st.integers(0, 9)))
    def count(self, topics: set[TopicId]) -> None:
        index = self.index
        counts = index.overlap_counts(topics)
        assert counts.shape == (index.slot_count,)
        alive = index.alive_slots()
        assert {index.peer_at(slot): counts[slot] for slot in alive} == {
            peer: len(interest & topics) for peer, interest in self.truth.items()
        }
        counts[alive] = 0
        assert not counts.any()  # dead slots count nothing
        counts += 1
        assert not (index.overlap_counts([]).any())  # what we did to our array changed nothing inside

    @rule(topic=st.integers(0, 9))
    def who_wants(self, topic: TopicId) -> None:
        wanting = [peer for peer, interest in self.truth.items() if topic in interest]
        assert sorted(self.index.wanting(topic).tolist()) == sorted(wanting)
        assert self.index.wanting(topic) is self.index.wanting(topic) or not wanting
        assert self.index.count(topic) == len(wanting)
        assert self.index.lowest(topic) == min(wanting, default=None)

    @rule(asked=st.lists(peers))
    def find(self, asked: list[NodeId]) -> None:
        found = [self.index.peer_at(slot) for slot in self.index.slots(asked)]
        assert found == [peer for peer in asked if peer in self.truth]

    @invariant()
    def agree(self) -> None:
        index, truth = self.index, self.truth
        assert len(index) == len(truth) == len(index.alive_slots())
        assert set(index.peers()) == set(truth)
        for peer in [*range(13), 2**64 - 1]:
            assert (peer in index) == (peer in truth)
            assert index.interest_of(peer) == truth.get(peer, frozenset())
        assert index.slot_count <= 2 * len(truth) + 2 + 1  # the dead never outnumber the living by much


TestIndexAgainstSets = IndexAgainstSets.TestCase
TestIndexAgainstSets.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)


def test_memory_does_not_grow_with_the_number_of_changes() -> None:
    index = InterestIndex()
    for change in range(20_000):
        index.put(change % 50, frozenset({change % 7, change % 11 + 10}))
    assert len(index) == 50
    assert index.slot_count <= 2 * 50 + interest_index._FEW
    assert index.generation > 0
    assert index.overlap_counts([0]).sum() == sum(change % 7 == 0 for change in range(19_950, 20_000))


def test_the_same_interest_again_changes_nothing() -> None:
    index = InterestIndex()
    for _ in range(1000):
        index.put(1, frozenset({1, 2}))
    assert (index.slot_count, index.generation) == (1, 0)


def test_an_empty_index_answers() -> None:
    index = InterestIndex()
    assert index.overlap_counts([1, 2]).tolist() == []
    assert index.alive_slots().tolist() == []
    assert index.slots([1]).tolist() == []


def test_readings_do_not_lock_the_index() -> None:
    """NumPy reads arrays in place, and an array that is being read cannot grow: no reading may escape."""
    index = InterestIndex()
    index.put(1, frozenset({1}))
    kept = [index.overlap_counts([1]), index.alive_slots(), index.slots([1]), index.peers_from(0)]
    index.put(2, frozenset({1}))
    index.discard(1)
    assert [reading.tolist() for reading in kept] == [[1], [0], [0], [1]]


def test_a_greedy_rule_is_three_lines() -> None:
    draw = random.Random(5)
    wants = {peer: frozenset(draw.sample(range(30), 6)) for peer in range(100)}
    index = InterestIndex()
    for peer, interest in wants.items():
        index.put(peer, interest)
    uncovered, excluded = set(range(12)), [3, 14, 15]
    counts = index.overlap_counts(uncovered)
    counts[index.slots(excluded)] = 0
    best = {index.peer_at(slot) for slot in np.flatnonzero(counts == counts.max())}
    overlap = {peer: len(wants[peer] & uncovered) for peer in wants if peer not in excluded}
    assert best == {peer for peer, shared in overlap.items() if shared == max(overlap.values())}


def test_ten_thousand_peers_are_fast() -> None:
    """Aims: put all in 0.3 s, ask in 100 µs. Bounds are five times as wide: other tests run beside this one."""
    draw = random.Random(1)
    wants = [frozenset(draw.sample(range(100), 10)) for _ in range(10_000)]
    index = InterestIndex()
    start = time.perf_counter()
    for peer, interest in enumerate(wants):
        index.put(peer, interest)
    assert time.perf_counter() - start < 1.5
    topics = list(range(10))
    fastest = float("inf")
    for _ in range(50):
        start = time.perf_counter()
        index.overlap_counts(topics)
        fastest = min(fastest, time.perf_counter() - start)
    assert fastest < 500e-6
