import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.measures.builders import subscriptions_table
from topicweave.errors import BadInput
from topicweave.measures import tdi

pytestmark = pytest.mark.filterwarnings("error")


def reference(wants: set[tuple[str, str]], d: int) -> float:
    """SpiderCast §3.4, word for word."""
    lists: dict[str, set[str]] = {}
    for node, topic in wants:
        lists.setdefault(node, set()).add(topic)
    averages = []
    for node, mine in lists.items():
        intersections = sorted(
            (
                100 * len(mine & theirs) / min(len(mine), len(theirs))
                for other, theirs in lists.items()
                if other != node
            ),
            reverse=True,
        )[:d]
        if not intersections:
            return math.nan
        averages.append(sum(intersections) / len(intersections))
    return sum(averages) / len(averages) if averages else math.nan


def test_by_hand() -> None:
    """Intersections: ab 100 (of b's one topic), ac 50, bc 0."""
    wants = subscriptions_table([("a", "x"), ("a", "y"), ("b", "x"), ("c", "y"), ("c", "z")])
    assert tdi(wants, 1) == pytest.approx((100 + 100 + 50) / 3)
    assert tdi(wants, 2) == pytest.approx((75 + 50 + 25) / 3)
    assert tdi(wants, 20) == tdi(wants, 2)


pairs = st.tuples(st.sampled_from("abcdefghij"), st.sampled_from([f"t{number}" for number in range(7)]))


@given(st.sets(pairs), st.integers(1, 12), st.sampled_from([1, 8, 30, 1000]))
def test_small_workloads_in_blocks_of_any_size(wants: set[tuple[str, str]], d: int, block: int) -> None:
    measured = tdi(subscriptions_table(wants), d, block)
    assert measured == pytest.approx(reference(wants, d), rel=1e-6, nan_ok=True)


def test_larger_workload() -> None:
    rng = np.random.default_rng(4)
    wants = {(f"n{rng.integers(200)}", f"t{int(rng.integers(0, 40) ** 2 / 40)}") for _ in range(2000)}
    assert tdi(subscriptions_table(wants), 20) == pytest.approx(reference(wants, 20), rel=1e-6)


def test_identical_interests_are_a_hundred_percent() -> None:
    assert tdi(subscriptions_table([(node, topic) for node in "abc" for topic in "xy"]), 2) == 100


def test_a_repeated_subscription_counts_once() -> None:
    wants = [("a", "x"), ("a", "x"), ("a", "y"), ("b", "x"), ("b", "z")]
    assert tdi(subscriptions_table(wants), 1) == 50


def test_nothing_to_compare() -> None:
    assert math.isnan(tdi(subscriptions_table([]), 3))
    assert math.isnan(tdi(subscriptions_table([("a", "x")]), 3))
    with pytest.raises(BadInput, match="at least 1"):
        tdi(subscriptions_table([("a", "x")]), 0)
