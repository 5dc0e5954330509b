"""Correlation from sums."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicweave.measures.correlation import Moments

whole = st.integers(0, 10**9)


@given(st.lists(st.tuples(whole, whole), max_size=20), st.integers(0, 20))
def test_sums_of_parts_give_what_the_whole_gives(pairs: list[tuple[int, int]], cut: int) -> None:
    one, other = (np.array([pair[place] for pair in pairs], np.int64) for place in (0, 1))
    parts = [Moments.of(one[:cut], other[:cut]), Moments.of(one[cut:], other[cut:])]
    moments = Moments(*map(sum, zip(*parts, strict=True)))
    assert moments == Moments.of(one, other)
    if len(pairs) < 2 or not np.ptp(one) or not np.ptp(other):
        assert math.isnan(moments.correlation)
    else:
        # NumPy rounds squares of up to 1e18; sums of whole numbers do not.
        assert moments.correlation == pytest.approx(np.corrcoef(one, other)[0, 1], abs=1e-6)
