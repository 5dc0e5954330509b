"""Distributions against the measures they refine."""

import pytest

from tests.measures.builders import telemetry_table
from topicweave.measures.delivery import Receptions, latency_measures
from topicweave.measures.distributions import hops_counts, latency_quantiles

# Event 7 on x from a at 10 s. Wanted and first: b (1 hop, 0.5 s), d (3 hops, 2 s), e (3 hops, 4 s).
RECEIVED = [
    (7, "b", 10.5, 1, "a", True),
    (7, "b", 11.0, 9, "c", True),  # again
    (7, "c", 10.7, 2, "b", False),  # not wanted
    (7, "d", 12.0, 3, "c", True),
    (7, "e", 14.0, 3, "c", True),
]


def receptions(received: list[tuple[int, str, float, int, str, bool]]) -> Receptions:
    publishes = telemetry_table("publishes", [(7, "x", "a", 10.0)])
    return Receptions.of(publishes, telemetry_table("deliveries", received))


def test_hops_are_counted_for_wanted_first_receptions_only() -> None:
    assert hops_counts(receptions(RECEIVED)) == [0, 1, 0, 2]


def test_quantiles_run_from_the_fastest_to_the_slowest() -> None:
    quantiles = latency_quantiles(receptions(RECEIVED))
    assert len(quantiles) == 101
    assert quantiles == sorted(quantiles)
    assert [quantiles[0], quantiles[50], quantiles[100]] == [0.5, 2.0, 4.0]


def test_they_agree_with_the_measures() -> None:
    seen = receptions(RECEIVED)
    counts, quantiles = hops_counts(seen), latency_quantiles(seen)
    hops, latency = seen.traffic.sums.hops_measures, latency_measures(seen)
    assert sum(hops * count for hops, count in enumerate(counts)) / sum(counts) == hops["hops_mean"]
    assert len(counts) - 1 == hops["hops_max"]
    assert quantiles[50] == latency["latency_p50"]
    assert quantiles[95] == pytest.approx(latency["latency_p95"])
    assert quantiles[100] == latency["latency_max"]


def test_nothing_received_gives_empty_lists() -> None:
    assert hops_counts(receptions([])) == []
    assert latency_quantiles(receptions([])) == []
