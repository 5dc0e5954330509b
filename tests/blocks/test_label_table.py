"""Labels of topics: entry by entry and in arrays they are the same, and no table from outside does harm."""

from __future__ import annotations

import math
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
    Lifetime,
    ManyLabels,
    labels_of,
)
from topicweave.model.ids import Interest

MAX_AGE, PER_LINK = 30.0, 0.25
TOPICS = list(range(10, 40))

interests = st.frozensets(st.sampled_from(TOPICS), min_size=1)


class Pair:
    """The same node's labels, kept in both ways."""

    def __init__(self, own: int, wanted: Interest, stall: float) -> None:
        lifetime = Lifetime(MAX_AGE, stall, 0.5)
        self.few, self.many = FewLabels(own, lifetime, wanted), ManyLabels(own, lifetime, wanted)

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
    stall = draw.choice((4.0, 8.0, math.inf))
    pairs = [Pair(draw.randrange(5), wanted, stall) for wanted in wants]
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
    low, high = labels_of(topics, 2**63, Lifetime(MAX_AGE)), labels_of(topics, 2**64 - 1, Lifetime(MAX_AGE))
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
        one, other, third = (labels_of(topics, own, Lifetime(MAX_AGE)) for own in (1, 2, 3))
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
    labels = labels_of(ours, 9, Lifetime(MAX_AGE))
    labels.hear(theirs, labels_of(theirs, 1, Lifetime(MAX_AGE)).tell(ours, 0.0), PER_LINK, 0.0)
    assert labels.leaders() == {1}
    changed = labels_of(ours, 9, Lifetime(MAX_AGE))
    # The neighbour wants one topic less than it told before.
    changed.hear(ours, labels_of(theirs, 1, Lifetime(MAX_AGE)).tell(ours, 0.0), PER_LINK, 0.0)
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
    labels = labels_of(topics, 9, Lifetime(MAX_AGE))
    table = labels_of(topics, 1, Lifetime(MAX_AGE)).tell(topics, 0.0)
    labels.hear(topics, spoil(table), PER_LINK, 0.0)
    assert labels.leaders() == set()
    labels.hear(topics, table, PER_LINK, 0.0)
    assert labels.leaders() == {1}


@pytest.mark.parametrize("other", [FEW // 2, 4 * FEW])
@pytest.mark.parametrize("size", [FEW, FEW + 1])
def test_labels_stay_when_other_topics_come_and_go(size: int, other: int) -> None:
    before, after = frozenset(range(size)), frozenset(range(size // 2, size // 2 + other))
    labels = labels_of(before, 9, Lifetime(MAX_AGE))
    labels.hear(before, labels_of(before, 1, Lifetime(MAX_AGE)).tell(before, 0.0), PER_LINK, 0.0)
    changed = labels_of(after, 9, Lifetime(MAX_AGE), labels)
    for topic in after | before:
        expected = (1, 1.0 + PER_LINK) if topic in before & after else (9, 0.0)
        assert changed.label(topic, 1.0) == pytest.approx(expected)
    assert {label.topic for label in changed.others()} == before & after


def told_along(line: list[Labels], cut: int | None, start: float, end: float) -> float:
    """Neighbours on a line tell each other every two seconds, but not over the link behind place `cut`; the
    time afterwards.
    """
    topics, now = frozenset(TOPICS), start
    while now < end:
        for place, labels in reversed(list(enumerate(line))):  # so that a label waits on each of its links
            moment = now + 2.0 * (1 - place / len(line))
            for other in (place - 1, place + 1):
                if 0 <= other < len(line) and cut not in ({place} if other > place else {other}):
                    line[other].hear(topics, labels.tell(topics, moment), PER_LINK, moment + 0.05)
        now += 2.0
    return now


@pytest.mark.parametrize("kind", [FewLabels, ManyLabels])
def test_who_is_cut_off_from_its_leader_knows_it_after_a_few_tellings_and_long_ways_end_nothing(
    kind: type[FewLabels] | type[ManyLabels],
) -> None:
    topics = frozenset(TOPICS)
    lifetime = Lifetime(MAX_AGE, stall=8.0, gain=1.0)
    line = [kind(own, lifetime, topics) for own in range(1, 13)]
    now = told_along(list(line), None, 0.0, 60.0)
    assert [labels.label(TOPICS[0], now)[0] for labels in line] == [1] * 12
    _, age = line[-1].label(TOPICS[0], now)
    assert age > lifetime.stall  # its news is old, and yet it comes all the time
    now = told_along(list(line), 0, now, now + 16.0)
    # Further away the last news is still on its way.
    assert [labels.label(TOPICS[0], now)[0] for labels in line[:5]] == [1, 2, 2, 2, 2]


def test_what_has_stalled_is_taken_again_for_newer_news_only() -> None:
    topics, lifetime = frozenset(TOPICS), Lifetime(MAX_AGE, stall=8.0, gain=1.0)
    leader, node, neighbour = (labels_of(topics, own, lifetime) for own in (1, 5, 6))
    old = leader.tell(topics, 0.0)
    for labels in (node, neighbour):
        labels.hear(topics, old, PER_LINK, 0.0)
    late = neighbour.tell(topics, 7.9)
    assert node.label(TOPICS[0], 8.5)[0] == 5
    node.hear(topics, late, PER_LINK, 8.5)
    assert node.label(TOPICS[0], 8.5)[0] == 5
    node.hear(topics, leader.tell(topics, 9.0), PER_LINK, 9.0)
    assert node.label(TOPICS[0], 9.0)[0] == 1
