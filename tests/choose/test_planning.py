"""Budgets: the most that fits, with care, and never more than was asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicweave.choose.planning import (
    CAREFUL,
    GROWTH,
    MOST_NODES,
    PILOT_NODES,
    Cost,
    RunPlan,
    parse_budget,
    plan,
    seconds_for,
)
from topicweave.errors import BadInput

LARGE = PILOT_NODES[-1]


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90.0), ("5m", 300.0), ("1.5h", 5400.0)])
def test_budgets_are_times(text: str, seconds: float) -> None:
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "m", "-5m", "0s", "5 minutes"])
def test_other_budgets_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="--budget"):
        parse_budget(text)


def test_what_fits_is_run_whole() -> None:
    assert plan([Cost(1.0, 1.2), Cost(2.0, 1.2)], nodes=800, seeds=5, budget=1e6, workers=2) == RunPlan(
        800, 5
    )


def test_seeds_go_before_nodes() -> None:
    cost = Cost(10.0, 1.2)
    all_nodes_once = cost.with_nodes(1000) / CAREFUL
    assert plan([cost], 1000, 3, budget=1.5 * all_nodes_once, workers=1) == RunPlan(1000, 1)
    assert plan([cost], 1000, 3, budget=0.5 * all_nodes_once, workers=1).nodes < 1000


def test_a_system_whose_cost_grows_fast_is_reckoned_with() -> None:
    calm, steep = Cost.of(1.0, 2.2), Cost.of(1.0, 3.8)
    assert calm.growth < steep.growth < GROWTH[1]
    assert plan([steep], 5000, 1, 600, 1).nodes < plan([calm], 5000, 1, 600, 1).nodes


def test_the_longest_run_is_the_least_that_it_takes() -> None:
    assert seconds_for([Cost(60.0, 1.2)], LARGE, workers=16) == 60.0


def test_times_that_say_nothing_are_not_believed() -> None:
    assert Cost.of(0.0, 0.0).growth == Cost.of(3.0, 1.0).growth == GROWTH[0]
    assert Cost.of(0.001, 1.0).growth == GROWTH[1]


@given(
    st.lists(st.tuples(st.floats(0.01, 100), st.floats(0.01, 100)), min_size=1, max_size=20),
    st.integers(1, 10**6),
    st.integers(1, 9),
    st.floats(1, 1e5),
    st.integers(1, 16),
)
def test_never_more_than_asked_for_and_never_nothing(
    seconds: list[tuple[float, float]], nodes: int, seeds: int, budget: float, workers: int
) -> None:
    costs = [Cost.of(*pair) for pair in seconds]
    chosen = plan(costs, nodes, seeds, budget, workers)
    assert min(nodes, LARGE) <= chosen.nodes <= min(nodes, max(MOST_NODES, LARGE))
    assert 1 <= chosen.seeds <= seeds
    reckoned = seconds_for(costs, chosen.nodes, workers, chosen.seeds)
    assert reckoned <= CAREFUL * budget or chosen == RunPlan(min(nodes, LARGE), 1)
    if chosen.nodes < min(nodes, MOST_NODES):
        assert seconds_for(costs, chosen.nodes + 1, workers) > CAREFUL * budget, "no more would have fitted"
