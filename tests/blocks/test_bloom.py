"""Bloom filters: never a miss, and the false positives that Rappel §2.2 states."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicweave.blocks.bloom import BITS, HASHES, bloom_of, from_bytes, may_contain, to_bytes, topic_bits

topics = st.integers(min_value=0, max_value=2**64 - 1)


@given(st.sets(topics, max_size=50))
def test_what_is_in_is_found(feeds: set[int]) -> None:
    bloom = bloom_of(feeds)
    assert all(may_contain(bloom, feed) for feed in feeds)
    assert from_bytes(to_bytes(bloom)) == bloom


@given(topics)
def test_a_topic_sets_at_most_three_bits(topic: int) -> None:
    bits = topic_bits(topic)
    assert 1 <= bits.bit_count() <= HASHES
    assert bits < 1 << BITS


def test_a_filter_of_the_wrong_length_is_empty() -> None:
    assert from_bytes(b"\xff" * 127) == 0


@pytest.mark.parametrize(("feeds", "stated"), [(50, 0.0025), (100, 0.016), (200, 0.087)])
def test_false_positives_are_as_the_paper_states(feeds: int, stated: float) -> None:
    rng = random.Random(feeds)
    wrong = tries = 0
    for _ in range(20):
        bloom = bloom_of(rng.getrandbits(64) for _ in range(feeds))
        wrong += sum(may_contain(bloom, rng.getrandbits(64)) for _ in range(5000))
        tries += 5000
    assert wrong / tries == pytest.approx(stated, rel=0.25)
