"""Who comes and goes: the exponential model, and traces."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from topicweave.errors import BadInput
from topicweave.model.workload import Workload
from topicweave.sim.churn import Change, Churn, always_up, exponential, from_workload


def spells(churn: Churn, nodes: int) -> list[list[tuple[float, float, bool]]]:
    """Per node its finished spells (start, end, up) of one state, after checking that they alternate."""
    changes: list[list[Change]] = [[] for _ in range(nodes)]
    for change in churn.changes:
        changes[change.node].append(change)
    result = []
    for node, own in enumerate(changes):
        states = [node in churn.up_at_start, *(change.up for change in own)]
        assert all(before != after for before, after in pairwise(states))
        times = [0.0, *(change.time for change in own)]
        result.append([(a, b, up) for (a, b), up in zip(pairwise(times), states, strict=False)])
    return result


def test_always_up() -> None:
    assert always_up(3) == Churn(frozenset({0, 1, 2}), ())


def test_exponential_is_stationary_from_the_start() -> None:
    """With 3 of 4 up on average, the same share is up at any time, and changes come at a constant rate."""
    nodes, duration = 3000, 200.0
    churn = exponential(nodes, mean_up=30.0, mean_down=10.0, duration=duration, seed=1)
    up = set(churn.up_at_start)
    changes = iter(churn.changes)
    change = next(changes, None)
    for moment in range(0, 200, 10):
        while change is not None and change.time <= moment:
            (up.add if change.up else up.discard)(change.node)
            change = next(changes, None)
        # Standard deviation sqrt(0.75 · 0.25 / 3000) = 0.008.
        assert abs(len(up) / nodes - 0.75) < 0.032, f"at {moment} s"
    for start in range(0, 200, 40):
        within = sum(start <= change.time < start + 40 for change in churn.changes)
        # Two changes per 40 s and node, in 3,000 nodes: 6,000, standard deviation under sqrt(6,000) = 77.
        assert abs(within - 6000) < 310, f"from {start} s on"


@pytest.mark.parametrize(("up", "mean"), [(True, 20.0), (False, 5.0)])
def test_spells_are_exponential_the_first_like_all_others(up: bool, mean: float) -> None:
    nodes, duration = 300, 600.0
    churn = exponential(nodes, mean_up=20.0, mean_down=5.0, duration=duration, seed=2)
    # Those that begin in the first half: practically none of them is cut off by the end.
    own = [
        [b - a for a, b, state in mine if state == up and a < duration / 2] for mine in spells(churn, nodes)
    ]
    lengths = [length for mine in own for length in mine]
    assert kstest(lengths, "expon", args=(0, mean)).pvalue > 0.01
    first = [mine[0][1] for mine in spells(churn, nodes) if mine and mine[0][2] == up]
    assert kstest(first, "expon", args=(0, mean)).pvalue > 0.01


@given(st.integers(1, 20), st.floats(0.5, 50), st.floats(0.5, 50), st.floats(0, 100), st.integers())
def test_exponential_churn_is_in_order_within_its_time_and_of_its_seed(
    nodes: int, mean_up: float, mean_down: float, duration: float, seed: int
) -> None:
    churn = exponential(nodes, mean_up, mean_down, duration, seed)
    assert churn == exponential(nodes, mean_up, mean_down, duration, seed)
    assert list(churn.changes) == sorted(churn.changes)
    assert all(0 <= change.time < duration for change in churn.changes)
    spells(churn, nodes)


def test_another_seed_is_another_churn() -> None:
    assert exponential(50, 10.0, 10.0, 100.0, seed=1) != exponential(50, 10.0, 10.0, 100.0, seed=2)


def test_more_nodes_leave_the_churn_of_the_first_ones_as_it_was() -> None:
    few, many = (exponential(nodes, 10.0, 10.0, 100.0, seed=1) for nodes in (10, 20))
    assert few.up_at_start == {node for node in many.up_at_start if node < 10}
    assert few.changes == tuple(change for change in many.changes if change.node < 10)


@pytest.mark.parametrize(
    ("mean_up", "mean_down", "duration"),
    [(0.0, 1.0, 1.0), (1.0, 0.0, 1.0), (-1.0, 1.0, 1.0), (math.inf, 1.0, 1.0), (1.0, 1.0, math.inf)],
)
def test_impossible_times_are_refused(mean_up: float, mean_down: float, duration: float) -> None:
    with pytest.raises(BadInput, match=f"churn: need positive mean times .* got {mean_up} s up"):
        exponential(3, mean_up, mean_down, duration, seed=0)


@pytest.mark.parametrize("place", range(3))
def test_not_a_number_is_refused_and_no_endless_loop(place: int) -> None:
    mean_up, mean_down, duration = (math.nan if number == place else 1.0 for number in range(3))
    with pytest.raises(BadInput, match="churn: need"):
        exponential(3, mean_up, mean_down, duration, seed=0)


def test_a_trace_from_a_workload() -> None:
    workload = Workload.from_lists(
        {"a": ["x"], "b": ["x"], "c": ["x"], "d": []},
        churn=[(3.0, "b", "leave"), (1.0, "c", "join"), (7.5, "b", "join"), (2.0, "a", "leave")],
    )
    a, b, c, d = (workload.node_names.index(name) for name in "abcd")
    assert from_workload(workload) == Churn(
        frozenset({a, b, d}),
        (Change(1.0, c, True), Change(2.0, a, False), Change(3.0, b, False), Change(7.5, b, True)),
    )


def test_a_workload_without_trace_stays_up() -> None:
    assert from_workload(Workload.from_lists({"a": ["x"], "b": []})) == always_up(2)


@given(st.integers(2, 12), st.integers(0, 1000))
def test_a_model_written_down_as_a_trace_is_the_same_churn(nodes: int, seed: int) -> None:
    churn = exponential(nodes, 5.0, 5.0, 60.0, seed)
    names = [f"n{node}" for node in range(nodes)]
    trace = [(change.time, names[change.node], "join" if change.up else "leave") for change in churn.changes]
    back = from_workload(Workload.from_lists({name: ["x"] for name in names}, churn=trace))
    assert back.changes == churn.changes
    changing = {change.node for change in churn.changes}
    assert back.up_at_start & changing == churn.up_at_start & changing
