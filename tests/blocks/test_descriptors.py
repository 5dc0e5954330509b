"""Descriptors: what is believed of what peers say, and for how long."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicweave.blocks.descriptors import (
    MAX_VERSION,
    AgingView,
    Descriptor,
    Obituaries,
    believable,
    merge,
    newest,
)
from topicweave.blocks.peer_sampling import Answer, Offer
from topicweave.blocks.tman import Buffer, BufferBack
from topicweave.model.ids import RING_SIZE

descriptors = st.builds(
    Descriptor,
    id=st.one_of(st.integers(-2, 6), st.integers(RING_SIZE - 2, RING_SIZE + 2)),
    age=st.floats(),
    version=st.one_of(st.integers(-2, 3), st.integers(MAX_VERSION - 1, MAX_VERSION + 1)),
    profile=st.frozensets(st.integers(0, 9)),
)


@given(st.lists(descriptors, max_size=30), st.integers(0, 10))
def test_only_possible_things_are_believed(received: list[Descriptor], limit: int) -> None:
    clean = believable(received, limit, max_age=50.0, max_topics=5)
    assert len(clean) <= limit
    for peer, descriptor in clean.items():
        assert descriptor.id == peer
        assert 0 <= peer < RING_SIZE
        assert 0.0 <= descriptor.age <= 50.0
        assert 0 <= descriptor.version <= MAX_VERSION
        assert len(descriptor.profile) <= 5


def test_what_is_possible_is_kept() -> None:
    good = [Descriptor(peer, 3.0, 1, frozenset({peer})) for peer in (0, 5, RING_SIZE - 1)]
    assert list(believable(good, 3, 50.0, 5).values()) == good


def test_impossible_ages_gain_nothing() -> None:
    def told(age: float) -> dict[int, Descriptor]:
        return believable([Descriptor(1, age, 0, frozenset())], 10, 50.0, 5)

    assert told(-1e9)[1].age == told(-math.inf)[1].age == 0.0
    assert told(math.nan) == told(math.inf) == told(50.1) == {}


def test_newest_takes_each_part_from_where_it_is_newer() -> None:
    seen_lately = Descriptor(1, 2.0, 3, frozenset({1}))
    better_informed = Descriptor(1, 9.0, 4, frozenset({2}))
    expected = Descriptor(1, 2.0, 4, frozenset({2}))
    assert newest(seen_lately, better_informed) == newest(better_informed, seen_lately) == expected
    known = {1: seen_lately}
    merge(known, [better_informed, Descriptor(2, 0.0, 0, frozenset())])
    assert known == {1: expected, 2: Descriptor(2, 0.0, 0, frozenset())}


def test_a_view_ages_by_the_time_it_was_held_and_the_old_leave() -> None:
    view = AgingView(now=100.0, max_age=10.0)
    view.entries = {1: Descriptor(1, 1.0, 0, frozenset()), 2: Descriptor(2, 6.0, 0, frozenset())}
    view.age(104.0)
    assert {peer: entry.age for peer, entry in view.entries.items()} == {1: 5.0, 2: 10.0}
    view.age(105.0)
    assert {peer: entry.age for peer, entry in view.entries.items()} == {1: 6.0}


def test_news_of_one_peer_leaves_the_others_as_old_as_they_are() -> None:
    view = AgingView(10.0, max_age=30.0)
    view.entries = {1: Descriptor(1, 2.0, 0, frozenset()), 2: Descriptor(2, 2.0, 0, frozenset())}
    view.refresh(Descriptor(1, 0.0, 1, frozenset({7})), 15.0)
    view.refresh(Descriptor(2, 20.0, 0, frozenset()), 15.0)  # older than what is known
    view.refresh(Descriptor(3, 0.0, 0, frozenset()), 15.0)  # not in here
    view.age(16.0)
    assert {peer: known.age for peer, known in view.entries.items()} == {1: 1.0, 2: 8.0}
    assert view.entries[1].profile == {7}


def test_obituaries_refute_older_news_only_and_are_forgotten() -> None:
    obituaries = Obituaries(keep=10.0, limit=3)
    obituaries.report(1, now=100.0)
    assert obituaries.refute(Descriptor(1, 5.0, 0, frozenset()), now=103.0)  # made at 98
    assert not obituaries.refute(Descriptor(1, 2.0, 0, frozenset()), now=103.0)  # made at 101
    assert not obituaries.refute(Descriptor(2, 5.0, 0, frozenset()), now=103.0)
    obituaries.expire(110.0)
    assert len(obituaries) == 1
    obituaries.expire(110.5)
    assert len(obituaries) == 0
    for peer in range(10):
        obituaries.report(peer, now=200.0)
    assert len(obituaries) == 3


def test_a_second_report_counts_from_the_second() -> None:
    obituaries = Obituaries(keep=10.0)
    obituaries.report(1, now=0.0)
    obituaries.report(2, now=5.0)
    obituaries.report(1, now=9.0)
    obituaries.expire(16.0)
    assert len(obituaries) == 1
    assert obituaries.refute(Descriptor(1, 8.0, 0, frozenset()), now=16.0)


@pytest.mark.parametrize("kind", [Offer, Answer, Buffer, BufferBack])
def test_messages_survive_the_wire_and_introduce_whom_they_name(
    kind: type[Offer] | type[Answer] | type[Buffer] | type[BufferBack],
) -> None:
    ids = [RING_SIZE - 1, 0, 7]
    message = kind(tuple(Descriptor(peer, 1.5, 2, frozenset({RING_SIZE - 1, 3})) for peer in ids))
    every_kind = msgspec.msgpack.Decoder(Offer | Answer | Buffer | BufferBack)
    assert every_kind.decode(msgspec.msgpack.encode(message)) == message
    assert list(message.introduces()) == ids
