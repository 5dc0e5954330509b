"""Random, low and high correlation (Vitis §IV-A)."""

from __future__ import annotations

import numpy as np
import pytest

from topicweave.errors import BadInput, UnknownName
from topicweave.workloads.vitis import PATTERNS, draw_correlated, generate_correlated


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_node_wants_fifty_different_topics_and_all_topics_are_alike(pattern: str) -> None:
    workload = generate_correlated(2000, pattern=pattern, seed=3)
    assert all(len(set(workload.interests(node).tolist())) == 50 for node in range(workload.nodes))
    popularity = np.bincount(workload.topic_index, minlength=5000)
    assert popularity.mean() == 20
    assert popularity.max() < 60


@pytest.mark.parametrize(("pattern", "buckets", "each"), [("low", 5, 10), ("high", 2, 25)])
def test_topics_come_in_equal_shares_from_few_buckets(pattern: str, buckets: int, each: int) -> None:
    workload = generate_correlated(100, pattern=pattern)
    for node in range(100):
        counts = np.bincount(workload.interests(node) // 50, minlength=100)
        assert sorted(counts[counts > 0].tolist()) == [each] * buckets


def test_a_nodes_list_does_not_depend_on_the_range_it_is_drawn_in() -> None:
    _, whole = draw_correlated(0, 40, 500, 10, 2, 10, seed=5)
    _, part = draw_correlated(25, 40, 500, 10, 2, 10, seed=5)
    assert np.array_equal(whole[250:], part)
    _, other = draw_correlated(0, 40, 500, 10, 2, 10, seed=6)
    assert not np.array_equal(whole, other)


def test_rates_follow_a_power_law() -> None:
    rates = generate_correlated(10, alpha=3.0).rates
    assert rates.max() / rates.sum() > 0.8  # "almost all the events are published on a single topic"


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(BadInput):
        draw_correlated(0, 1, 500, 7, 2, 10, seed=0)
    with pytest.raises(BadInput):
        draw_correlated(0, 1, 500, 10, 3, 10, seed=0)
    with pytest.raises(UnknownName):
        generate_correlated(10, pattern="strong")
