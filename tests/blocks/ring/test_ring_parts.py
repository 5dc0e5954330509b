"""The parts of a ring, each by itself: table, near ones, signs of life."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from topicweave.blocks.growing_ids import RingPlace, inside
from topicweave.blocks.ring.messages import Contact
from topicweave.blocks.ring.near import Nearest
from topicweave.blocks.ring.signs import SignsOfLife
from topicweave.blocks.ring.table import RingTable

positions = st.integers(1, 255).map(lambda byte: bytes([byte]))
places = st.tuples(positions, st.integers(0, 40))


def clockwise_from(start: RingPlace, among: list[RingPlace]) -> list[RingPlace]:
    return sorted(among, key=lambda place: (place < start, place))


@given(places, st.sets(places, max_size=8), st.sets(places, max_size=4), places, places)
def test_the_table_by_brute_force(
    own: RingPlace, links: set[RingPlace], fans: set[RingPlace], point: RingPlace, other: RingPlace
) -> None:
    table = RingTable()
    assert table.replace(own, links, fans)
    assert not table.replace(own, links, fans)
    every = [own, *links]
    # The hop is the one from which the point comes first, clockwise, of all places.
    before = clockwise_from(point, every)
    hop = point if point in every else before[-1]
    assert table.next_hop(point) == hop[1]
    end = clockwise_from(hop, [place for place in every if place != hop] or [hop])[0]
    assert table.hop_and_end(point) == (hop, end)
    assert table.end_of(hop) == end
    assert table.end_of((b"\x01\x01", 99)) is None
    first, count = table.neighbours_between(point, other)
    ring = table.neighbours[first:] + table.neighbours[:first]
    assert set(ring[:count]) == {place for place in links | fans if inside(place, point, other)}


@given(st.lists(st.tuples(st.integers(1, 30), positions, st.integers(1, 9)), max_size=30), st.integers(1, 3))
def test_the_near_ones_are_the_nearest_of_those_whose_last_place_is_known(
    news: list[tuple[int, bytes, int]], sides: int
) -> None:
    here = (b"\x80", 0)
    near = Nearest(sides, memory=60.0)
    for peer, position, stamp in news:
        if near.take(Contact(peer, position, stamp), linked=False, now=0.0):
            near.trim(here)
    # Whoever never moved and is among the nearest of all that were ever told of is known.
    told: dict[int, set[bytes]] = {}
    for peer, position, _stamp in news:
        told.setdefault(peer, set()).add(position)
    everywhere = [(position, peer) for peer, positions in told.items() for position in positions]
    around = clockwise_from(here, everywhere)
    nearest = {peer for _, peer in (*around[:sides], *around[-sides:]) if len(told[peer]) == 1}
    assert nearest <= set(near.contacts)
    assert len(near) <= 2 * sides
    ordered = clockwise_from(here, [contact.place for contact in near])
    assert [near.successor, near.predecessor] == (
        [near.contacts[ordered[0][1]], near.contacts[ordered[-1][1]]] if ordered else [None, None]
    )


def test_old_news_of_a_move_does_not_undo_it() -> None:
    near = Nearest(2, memory=60.0)
    assert near.take(Contact(1, b"\x10", 1), linked=False, now=0.0)
    assert near.take(Contact(1, b"\x20", 5), linked=False, now=0.0)
    del near.contacts[1]
    assert not near.take(Contact(1, b"\x10", 4), linked=False, now=30.0)
    near.forget_old_moves(61.0)
    assert near.take(Contact(1, b"\x10", 4), linked=False, now=61.0)


def test_silence_is_suspect_but_not_after_a_sleep() -> None:
    signs = SignsOfLife(suspect_after=4.0, doubt=60.0, now=0.0)
    signs.watch(1, 0.0)
    signs.watch(2, 0.0)
    signs.hear(2, 3.0)
    signs.hear(3, 3.0)  # whom nobody watches
    assert signs.silent(2.0) == []
    assert signs.silent(5.0) == [1]
    assert signs.silent(30.0) == []
    assert [signs.silent(now) for now in (33.0, 35.0)] == [[], [1, 2]]


def test_hearsay_about_the_doubted_counts_only_if_it_is_news_or_the_doubt_is_over() -> None:
    signs = SignsOfLife(suspect_after=4.0, doubt=60.0, now=0.0)
    signs.doubt(1, stamp=5, ask=True, now=0.0)
    assert [signs.credible(1, stamp) for stamp in (4, 5, 6)] == [False, False, True]
    signs.forget_old_doubts(59.0)
    assert not signs.credible(1, 5)
    signs.hear(1, 59.0)
    assert signs.credible(1, 5)
