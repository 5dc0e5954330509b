"""The ring: arithmetic against definitions that do not share its tricks."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicweave.model import ids
from topicweave.model.ids import RING_SIZE, clockwise, distance, in_interval, ring_id, ring_ids, successor

# Half of the points crowd around 0, where the ring closes and arithmetic goes wrong.
points = st.integers(0, RING_SIZE - 1) | st.integers(-50, 50).map(lambda offset: offset % RING_SIZE)


def test_the_examples_in_the_docstrings() -> None:
    outcome = doctest.testmod(ids)
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_identifiers_are_the_first_64_bits_of_sha1() -> None:
    # SHA-1("abc") = a9993e364706816a ba3e25717850c26c 9cd0d89d (FIPS 180-2, appendix A.1)
    assert ring_id("abc") == 0xA9993E364706816A
    assert ring_ids(["abc", "news"]) == [ring_id("abc"), ring_id("news")]


@given(st.text(max_size=20))
def test_identifiers_lie_on_the_ring(name: str) -> None:
    assert 0 <= ring_id(name) < RING_SIZE


@given(points, st.integers(0, RING_SIZE - 1))
def test_clockwise_undoes_a_walk(start: int, steps: int) -> None:
    assert clockwise(start, (start + steps) % RING_SIZE) == steps


@given(points, points)
def test_the_two_ways_between_two_points_make_the_ring(a: int, b: int) -> None:
    assert clockwise(a, b) + clockwise(b, a) == (0 if a == b else RING_SIZE)


@given(points, points)
def test_distance_is_the_shorter_way_from_either_side(a: int, b: int) -> None:
    assert distance(a, b) == distance(b, a) == min(clockwise(a, b), clockwise(b, a))


@given(points, points, points)
def test_a_detour_is_never_shorter(a: int, b: int, c: int) -> None:
    assert distance(a, c) <= distance(a, b) + distance(b, c)


@given(points, st.integers(1, 40), st.integers(-60, 60))
def test_a_short_interval_holds_the_points_one_walks_over(start: int, length: int, offset: int) -> None:
    walked = {(start + step) % RING_SIZE for step in range(1, length + 1)}
    point = (start + offset) % RING_SIZE
    assert in_interval(point, start, (start + length) % RING_SIZE) == (point in walked)


@given(points, points, points)
def test_an_interval_that_wraps_is_two_that_do_not(point: int, start: int, end: int) -> None:
    if start < end:
        inside = start < point <= end
    elif start > end:
        inside = point > start or point <= end
    else:
        inside = True
    assert in_interval(point, start, end) == inside


@given(points, st.lists(points, min_size=1, max_size=8, unique=True))
def test_the_successor_owns_the_point(point: int, ring: list[int]) -> None:
    ordered = sorted(ring)
    expected = next((candidate for candidate in ordered if candidate >= point), ordered[0])
    assert successor(point, ring) == expected


@pytest.mark.parametrize("point", [0, 1, RING_SIZE - 1])
def test_a_node_alone_owns_everything(point: int) -> None:
    assert successor(point, [42]) == 42
    assert in_interval(point, 42, 42)
