"""Labels of topics: entry by entry and in arrays they are the same, and no table from outside does harm."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topicweave.blocks.label_table import (
    FEW,
    MOST_SHARED,
    PACKED_FROM,
    FewLabels,
    Labels,
    LabelTable,
    ManyLabels,
    labels_of,
)
from topicweave.model.ids import Interest

MAX_AGE, PER_LINK = 30.0, 0.25
TOPICS = list(range(10, 40))

interests = st.frozensets(st.sampled_from(TOPICS), min_size=1)


class Pair:
    """The same node's labels, kept in both ways."""

    def __init__(self, own: int, wanted: Interest) -> None:
        self.few, self.many = FewLabels(own, MAX_AGE, wanted), ManyLabels(own, MAX_AGE, wanted)

    def both(self) -> tuple[Labels, Labels]:
        return self.few, self.many


def meaning(table: LabelTable, count: int) -> list[tuple[int, int]]:
    """What a table says of each topic: who leads, and the steps of age."""
    labels = table.labels if 3 * count < PACKED_FROM else zlib.decompress(table.labels)
    assert len(labels) == 3 * count
    which = [int.from_bytes(labels[2 * place : 2 * place + 2], "little") for place in range(count)]
    return [(table.leaders[leader], labels[2 * count + place]) for place, leader in enumerate(which)]


@given(st.lists(interests, min_size=2, max_size=5), st.integers(0, 10_000))
@settings(max_examples=60)
def test_arrays_do_what_going_through_the_entries_does(wants: list[Interest], seed: int) -> None:
    """Nodes tell each other at random moments, over a time in which labels grow too old now and then."""
    draw = random.Random(seed)
    pairs = [Pair(draw.randrange(5), wanted) for wanted in wants]
    now = 0.0
    for _ in range(60):
        now += draw.choice((0.1, 1.0, 1.0, 5.0, 20.0))
        teller, hearer = draw.sample(range(len(pairs)), 2)
        shared = wants[teller] & wants[hearer]
        few, many = (labels.tell(wants[hearer], now) for labels in pairs[teller].both())
        assert few.shared == many.shared
        assert meaning(few, len(shared)) == meaning(many, len(shared))
        # Each hears what the other way of keeping told.
        pairs[hearer].few.hear(wants[teller], many, PER_LINK, now)
        pairs[hearer].many.hear(wants[teller], few, PER_LINK, now)
        if draw.random() < 0.1:
            for labels in pairs[hearer].both():
                labels.expire(now)
        assert sorted(pairs[hearer].few.leaders()) == sorted(pairs[hearer].many.leaders())
        for topic in TOPICS:
            one, other = (labels.label(topic, now) for labels in pairs[hearer].both())
            assert one == pytest.approx(other)


@pytest.mark.parametrize("count", [1, FEW, FEW + 1, PACKED_FROM // 3 + 1, 5000, MOST_SHARED + 10])
def test_labels_of_any_number_of_topics_cross_the_wire(count: int) -> None:
    draw = random.Random(count)
    topics = frozenset(draw.getrandbits(64) for _ in range(count))
    low, high = labels_of(topics, 2**63, MAX_AGE), labels_of(topics, 2**64 - 1, MAX_AGE)
    sent = msgspec.msgpack.encode(low.tell(topics, 3.0))
    high.hear(topics, msgspec.msgpack.decode(sent, type=LabelTable), PER_LINK, 3.0)
    for place, topic in enumerate(sorted(topics)):
        leader = 2**63 if place < MOST_SHARED else 2**64 - 1
        assert high.label(topic, 3.0)[0] == leader
    assert len(sent) < 1000, "many topics with the same label take few bytes"


@pytest.mark.parametrize("count", [5, 500])
def test_an_age_is_rounded_up_and_never_down(count: int) -> None:
    topics = frozenset(range(count))
    ages = []
    for now in (0.0, 0.01, 0.124, 0.125, 7.31, 29.7):
        one, other, third = (labels_of(topics, own, MAX_AGE) for own in (1, 2, 3))
        other.hear(topics, one.tell(topics, 0.0), 0.0, 0.0)
        third.hear(topics, other.tell(topics, now), 0.0, now)
        leader, age = third.label(0, now)
        assert leader == 1
        assert now <= age + 1e-9 <= now + MAX_AGE / 240 + 1e-6
        ages.append(age)
    assert ages == sorted(ages)


@pytest.mark.parametrize("size", [20, 500])
def test_a_table_of_other_topics_is_passed_over(size: int) -> None:
    ours, theirs = frozenset(range(size)), frozenset(range(1, size))
    labels = labels_of(ours, 9, MAX_AGE)
    labels.hear(theirs, labels_of(theirs, 1, MAX_AGE).tell(ours, 0.0), PER_LINK, 0.0)
    assert labels.leaders() == {1}
    changed = labels_of(ours, 9, MAX_AGE)
    # The neighbour wants one topic less than it told before.
    changed.hear(ours, labels_of(theirs, 1, MAX_AGE).tell(ours, 0.0), PER_LINK, 0.0)
    assert changed.leaders() == set()


@pytest.mark.parametrize("size", [3, 500])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda table: msgspec.structs.replace(table, leaders=()),
        lambda table: msgspec.structs.replace(table, leaders=(1,) * 501),
        lambda table: msgspec.structs.replace(table, labels=b""),
        lambda table: msgspec.structs.replace(table, labels=table.labels[:-1]),
        lambda table: msgspec.structs.replace(table, labels=b"\xff" * len(table.labels)),
        lambda table: msgspec.structs.replace(table, labels=b"\xff" * 9),
        lambda table: msgspec.structs.replace(table, labels=zlib.compress(b"\xff" * 1500)),
        lambda table: msgspec.structs.replace(table, labels=zlib.compress(bytes(1501))),
        lambda table: msgspec.structs.replace(table, labels=zlib.compress(bytes(10_000_000))),
        lambda table: msgspec.structs.replace(table, shared=table.shared ^ 1),
    ],
)
def test_what_makes_no_sense_changes_nothing(size: int, spoil: Callable[[LabelTable], LabelTable]) -> None:
    topics = frozenset(range(size))
    labels = labels_of(topics, 9, MAX_AGE)
    table = labels_of(topics, 1, MAX_AGE).tell(topics, 0.0)
    labels.hear(topics, spoil(table), PER_LINK, 0.0)
    assert labels.leaders() == set()
    labels.hear(topics, table, PER_LINK, 0.0)
    assert labels.leaders() == {1}


@pytest.mark.parametrize("other", [FEW // 2, 4 * FEW])
@pytest.mark.parametrize("size", [FEW, FEW + 1])
def test_labels_stay_when_other_topics_come_and_go(size: int, other: int) -> None:
    before, after = frozenset(range(size)), frozenset(range(size // 2, size // 2 + other))
    labels = labels_of(before, 9, MAX_AGE)
    labels.hear(before, labels_of(before, 1, MAX_AGE).tell(before, 0.0), PER_LINK, 0.0)
    changed = labels_of(after, 9, MAX_AGE, labels)
    for topic in after | before:
        expected = (1, 1.0 + PER_LINK) if topic in before & after else (9, 0.0)
        assert changed.label(topic, 1.0) == pytest.approx(expected)
    assert {label.topic for label in changed.others()} == before & after
