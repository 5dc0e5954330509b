"""Budgets: the most that fits, and never more than was asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicweave.choose.planning import GROWTH, MOST_NODES, PILOT_NODES, Plan, parse_budget, plan
from topicweave.errors import BadInput


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90.0), ("5m", 300.0), ("1.5h", 5400.0)])
def test_budgets_are_times(text: str, seconds: float) -> None:
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "m", "-5m", "0s", "5 minutes"])
def test_other_budgets_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="--budget"):
        parse_budget(text)


def test_what_fits_is_run_whole() -> None:
    assert plan([1.0, 2.0], nodes=800, seeds=5, budget=1e6, workers=2) == Plan(800, 5)


def test_seeds_go_before_nodes() -> None:
    all_nodes_once = 10.0 * (1000 / PILOT_NODES) ** GROWTH
    assert plan([10.0], 1000, 3, budget=1.5 * all_nodes_once, workers=1) == Plan(1000, 1)
    assert plan([10.0], 1000, 3, budget=0.5 * all_nodes_once, workers=1).nodes < 1000


@given(
    st.lists(st.floats(0.01, 100), min_size=1, max_size=20),
    st.integers(1, 10**6),
    st.integers(1, 9),
    st.floats(1, 1e5),
    st.integers(1, 16),
)
def test_never_more_than_asked_for_and_never_nothing(
    seconds: list[float], nodes: int, seeds: int, budget: float, workers: int
) -> None:
    chosen = plan(seconds, nodes, seeds, budget, workers)
    assert min(nodes, PILOT_NODES) <= chosen.nodes <= min(nodes, max(MOST_NODES, PILOT_NODES))
    assert 1 <= chosen.seeds <= seeds
    reckoned = (
        sum(seconds) / min(workers, len(seconds)) * (chosen.nodes / PILOT_NODES) ** GROWTH * chosen.seeds
    )
    assert (
        reckoned <= budget * 1.001
        or chosen == Plan(min(nodes, PILOT_NODES), 1)
        or chosen.nodes == PILOT_NODES
    )
