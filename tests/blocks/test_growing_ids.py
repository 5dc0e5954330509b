"""Positions of any length: the mean lies between, room is always made, and order is all that matters."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicweave.blocks.growing_ids import (
    gap,
    inside,
    is_position,
    mean,
    position_of,
    respace,
    spaced,
    stretch_suffices,
)

positions = st.binary(max_size=12).map(lambda raw: raw.rstrip(b"\0"))


def value(position: bytes) -> Fraction:
    return Fraction(int.from_bytes(position, "big"), 1 << 8 * len(position))


@given(positions, positions)
def test_positions_compare_as_the_fractions_they_are(a: bytes, b: bytes) -> None:
    assert (a < b) == (value(a) < value(b))


@given(positions, positions)
def test_the_mean_is_halfway_clockwise(a: bytes, b: bytes) -> None:
    middle = mean(a, b)
    assert middle is not None
    assert is_position(middle)
    way = (value(b) - value(a)) % 1 or Fraction(1)
    assert (value(middle) - value(a)) % 1 == way / 2


def test_one_node_and_the_wrap_around() -> None:
    assert mean(b"\x40", b"\x40") == b"\xc0"
    assert mean(b"\xc0", b"\x40") == b""
    assert mean(b"\xff", b"") == b"\xff\x80"


@given(positions, positions, st.integers(1, 13))
def test_at_the_bound_the_mean_is_between_or_there_is_none(a: bytes, b: bytes, most: int) -> None:
    middle = mean(a, b, most)
    if len(a) > most or len(b) > most:
        assert middle is None
    elif middle is None:
        assert gap(a, b, most) == 1
    else:
        assert len(middle) <= most
        assert 0 < (value(middle) - value(a)) % 1 < ((value(b) - value(a)) % 1 or 1)


places = st.tuples(positions, st.integers(0, 3))


@given(places, places, places)
def test_an_arc_holds_what_is_met_before_its_end(place, start, end) -> None:  # type: ignore[no-untyped-def]  # drawn by Hypothesis
    ring = sorted({place, start, end})
    index = ring.index(start)
    met = [*ring[index:], *ring[:index]]
    assert inside(place, start, end) == (start == end or met.index(place) < met.index(end))


def test_an_identifier_keeps_its_order_as_a_position() -> None:
    numbers = [0, 1, 255, 256, 1 << 63, (1 << 64) - 1]
    assert [value(position_of(number)) for number in numbers] == [Fraction(n, 1 << 64) for n in numbers]


@pytest.mark.parametrize("most", [8, 16, 64])
@pytest.mark.parametrize("advance", [0, 1], ids=["one spot", "sorted order"])
def test_ten_thousand_joins_never_run_out(most: int, advance: int) -> None:
    """Always after the same node, or always after the last one who came."""
    ring, who = [b"\x40"], [0]
    at = moved = respacings = 0
    for newcomer in range(1, 10_001):
        place = mean(ring[at], ring[(at + 1) % len(ring)], most)
        if place is None:
            moved += respace(ring, at, most)
            respacings += 1
            place = mean(ring[at], ring[(at + 1) % len(ring)], most)
        assert place is not None
        ring.insert(at + 1, place)
        who.insert(at + 1, newcomer)
        at += advance
    # Once round, and in the order in which they asked to stand.
    assert sum(a >= b for a, b in zip(ring, ring[1:] + ring[:1], strict=True)) == 1
    assert who == ([*range(10_001)] if advance else [0, *range(10_000, 0, -1)])
    assert max(len(place) for place in ring) <= most
    assert moved < 15 * 10_000, "respacing stays cheap on average"
    assert respacings > 0


@given(st.lists(positions, min_size=3, max_size=40, unique=True), st.data())
def test_respacing_keeps_the_order_at_every_step(ring: list[bytes], data: st.DataObject) -> None:
    """Nobody passes anybody, whoever of those that move has moved already."""
    ring.sort()
    at = data.draw(st.integers(0, len(ring) - 1))
    start, count = ring[at], len(ring)
    for nodes in range(1, count):
        end = ring[(at + nodes + 1) % count]
        if stretch_suffices(start, end, nodes, 13):
            break
    else:
        return
    now = list(ring)
    for index in range(nodes, 0, -1):
        place = (at + index) % count
        new = spaced(start, end, index, nodes, now[place], 13)
        before, after = now[(place - 1) % count], now[(place + 1) % count]
        assert value(new) == value(now[place]) or gap(before, new, 13) < gap(before, after, 13)
        now[place] = new
    assert mean(now[at], now[(at + 1) % count], 13) is not None
