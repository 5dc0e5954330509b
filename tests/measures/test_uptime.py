import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.measures.builders import churn_table
from topicweave.errors import BadInput
from topicweave.measures.uptime import Uptime

NODES = ["a", "b", "c", "d"]
Changes = list[tuple[float, str, str]]


@st.composite
def churns(draw: st.DrawFn) -> Changes:
    """Whole seconds, so that changes and questions often meet at an instant; in any row order."""
    changes: Changes = []
    for node in draw(st.sets(st.sampled_from([*NODES, "unknown"]))):
        times = sorted(draw(st.sets(st.integers(0, 9), max_size=5)))
        words = draw(st.permutations(["join", "leave"]))
        changes += [(float(time), node, words[place % 2]) for place, time in enumerate(times)]
    return draw(st.permutations(changes))


def is_up(changes: Changes, node: str, time: float) -> bool:
    mine = sorted((when, word) for when, whose, word in changes if whose == node)
    past = [word for when, word in mine if when <= time]
    if past:
        return past[-1] == "join"
    return not mine or mine[0][1] == "leave"


half_seconds = st.integers(-2, 22).map(lambda number: number / 2)


@given(churns(), half_seconds, half_seconds)
def test_throughout_is_up_at_every_instant_between(changes: Changes, one: float, other: float) -> None:
    start, end = min(one, other), max(one, other)
    instants = [start, *(time for time, _, _ in changes if start <= time <= end), end]
    uptime = Uptime(pa.array(NODES), churn_table(changes))
    found = uptime.throughout(np.arange(4), np.full(4, start), np.full(4, end))
    assert found.tolist() == [all(is_up(changes, node, time) for time in instants) for node in NODES]


@given(churns(), half_seconds, half_seconds)
def test_seconds_are_summed_over_nodes(changes: Changes, one: float, other: float) -> None:
    start, end = min(one, other), max(one, other)
    # Changes happen at whole seconds: a quarter of a second after each half, the state stands for that half.
    halves = np.arange(start, end, 0.5) + 0.25
    expected = sum(is_up(changes, node, time) for node in NODES for time in halves) / 2
    assert Uptime(pa.array(NODES), churn_table(changes)).seconds(start, end) == expected


def test_until_the_end_of_time() -> None:
    uptime = Uptime(pa.array(["a", "b"]), churn_table([(5.0, "b", "leave")]))
    forever = uptime.throughout(np.arange(2), np.zeros(2), np.full(2, math.inf))
    assert forever.tolist() == [True, False]


def test_a_join_while_up_is_a_restart() -> None:
    uptime = Uptime(pa.array(["a"]), churn_table([(1.0, "a", "join"), (3.0, "a", "join")]))
    ask = [(1.0, 2.0), (2.0, 4.0), (3.0, 4.0)]
    answers = uptime.throughout(
        np.zeros(3, np.int64), np.array([start for start, _ in ask]), np.array([end for _, end in ask])
    )
    assert answers.tolist() == [True, False, True]


def test_without_churn_everybody_is_up() -> None:
    uptime = Uptime(pa.array(NODES))
    assert uptime.throughout(np.array([2]), np.array([-5.0]), np.array([math.inf])).tolist() == [True]
    assert uptime.seconds(1.0, 3.0) == 8.0
    assert Uptime(pa.array([], pa.string())).seconds(0.0, 1.0) == 0.0


def test_an_unknown_change_is_named() -> None:
    with pytest.raises(BadInput, match="churn: row 2, column 'change': 'crash'; write 'join' or 'leave'"):
        Uptime(pa.array(NODES), churn_table([(1.0, "a", "join"), (2.0, "a", "crash")]))
