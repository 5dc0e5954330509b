"""What is missing is announced, whatever the order in which events come, and however many gaps there are."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from topicweave.blocks.seen import MOST_GAPS, SeenEvents
from topicweave.live import gaps as gaps_module
from topicweave.live.gaps import EventStream, GapWatch, Missed
from topicweave.model.event import EventId

PATIENCE = 4.0
PUBLISHER, TOPIC = 1, 2


class Reader:
    """The gate's part in it."""

    def __init__(self, streams: int = 65536) -> None:
        self.seen = SeenEvents(streams)
        self.gaps = GapWatch(self.seen)
        self.heard: set[int] = set()
        self.had: set[tuple[int, int]] = set()
        self.announced: list[Missed] = []

    def take(self, epoch: int, sequence: int, publisher: int = PUBLISHER) -> None:
        event = EventId(publisher, TOPIC, epoch, sequence)
        if self.seen.first_time(event):
            self.had.add((epoch, sequence))
            if self.seen.jumped_from is not None and sequence:
                self.gaps.came(event, self.seen.jumped_from, publisher in self.heard)
            self.seen.jumped_from = None
            self.heard.add(publisher)

    def look(self, now: float) -> None:
        self.announced += self.gaps.look(now, PATIENCE)

    def missed(self) -> set[tuple[int, int]]:
        return {
            (stream.epoch, number)
            for stream, first, last, _ in self.announced
            for number in range(first, last + 1)
        }


def test_a_stream_heard_from_its_beginning_is_watched() -> None:
    reader = Reader()
    for sequence in (0, 1, 5):
        reader.take(7, sequence)
    reader.look(0.0)
    assert reader.gaps.missing(10, 0.0) == [(EventStream(PUBLISHER, TOPIC, 7), 2, 4)]
    reader.look(PATIENCE)
    assert reader.announced == [Missed(EventStream(PUBLISHER, TOPIC, 7), 2, 4, "passed")]


def test_more_gaps_than_are_remembered_are_announced_all_the_same() -> None:
    reader = Reader()
    for sequence in range(0, 10 * MOST_GAPS, 2):
        reader.take(7, sequence)
        if sequence % 100 == 0:
            reader.look(sequence / 1000)
    reader.look(100.0)
    reader.look(100.0 + PATIENCE)
    assert reader.missed() == {(7, n) for n in range(1, 10 * MOST_GAPS - 2, 2)}
    assert len(reader.announced) == len(reader.missed()), "each once"


def test_what_comes_late_beyond_many_gaps_that_never_close_is_announced() -> None:
    """Announced gaps take no place from later ones."""
    reader = Reader()
    for round_ in range(200):
        reader.take(7, 3 * round_)
        reader.look(10.0 * round_)
    reader.look(5000.0)
    assert len(reader.missed()) == 2 * 199


def test_a_later_life_announces_what_was_known_of_the_earlier_one_at_once() -> None:
    reader = Reader()
    for sequence in (0, 4):
        reader.take(7, sequence)
    reader.gaps.told(EventStream(PUBLISHER, TOPIC, 7), 6, True)
    reader.take(8, 0)
    reader.look(0.0)
    assert reader.missed() == {(7, 1), (7, 2), (7, 3), (7, 5), (7, 6)}
    assert {one.reason for one in reader.announced} == {"older life"}


def test_streams_that_are_forgotten_are_announced_before() -> None:
    reader = Reader(streams=2)
    for publisher in (1, 2, 3):
        for sequence in (0, 2):
            reader.take(7, sequence, publisher)
    reader.look(0.0)
    assert [one.stream.publisher for one in reader.announced] == [1]
    reader.look(PATIENCE)
    assert sorted(one.stream.publisher for one in reader.announced) == [1, 2, 3]


def test_streams_that_are_not_watched_any_more_are_announced_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaps_module, "MOST_STREAMS", 2)
    reader = Reader()
    for publisher in (1, 2, 3):
        for sequence in (0, 2):
            reader.take(7, sequence, publisher)
    reader.look(0.0)
    assert [one.stream.publisher for one in reader.announced] == [1]
    reader.take(7, 5, 1)
    reader.look(1.0)
    reader.look(1.0 + PATIENCE)
    again = [(one.first, one.last, one.reason) for one in reader.announced if one.stream.publisher == 1]
    assert (3, 4, "passed") in again, "and watched again when something is missing again"


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40)), max_size=60),
    st.lists(st.integers(0, 60), max_size=10),
)
@example([(0, 0), (0, 2)], [])
def test_every_number_up_to_the_highest_came_or_was_announced(
    events: list[tuple[int, int]], looks: list[int]
) -> None:
    reader = Reader()
    highest: dict[int, int] = {}
    epoch_now = -1
    for place, (epoch, sequence) in enumerate(events):
        if epoch >= epoch_now:
            epoch_now = epoch
            highest[epoch] = max(highest.get(epoch, -1), sequence)
        reader.take(epoch, sequence)
        if place in looks:
            reader.look(float(place))
    reader.look(1000.0)
    reader.look(1000.0 + PATIENCE)
    everything = {(epoch, n) for epoch, top in highest.items() for n in range(top + 1)}
    assert everything <= reader.had | reader.missed()


def test_the_tail_of_an_ended_epoch_is_announced_when_a_neighbour_tells_of_it_later() -> None:
    reader = Reader()
    for sequence in range(6):
        reader.take(7, sequence)
    reader.take(8, 0)
    reader.look(0.0)
    assert reader.announced == []
    ended = EventStream(PUBLISHER, TOPIC, 7)
    for head in (5, 9, 9, 10):
        reader.gaps.told(ended, head, known=True)
        reader.look(0.0)
    assert reader.announced == [Missed(ended, 6, 9, "older life"), Missed(ended, 10, 10, "older life")]
    assert reader.gaps.ended(PUBLISHER, TOPIC) == {7: 10}, "what to tell others"


def test_an_epoch_between_two_that_were_seen_is_announced_whole() -> None:
    reader = Reader()
    reader.take(7, 0)
    reader.take(9, 0)
    reader.gaps.told(EventStream(PUBLISHER, TOPIC, 8), 2, known=True)
    reader.look(0.0)
    assert reader.announced == [Missed(EventStream(PUBLISHER, TOPIC, 8), 0, 2, "older life")]


def test_epochs_that_ended_before_anything_was_heard_of_them_are_not_missed_but_told_on() -> None:
    reader = Reader()
    reader.take(9, 0)
    for epoch, head in ((7, 3), (8, 2), (7, 4)):
        reader.gaps.told(EventStream(PUBLISHER, TOPIC, epoch), head, known=True)
    reader.look(0.0)
    assert reader.announced == []
    assert reader.gaps.ended(PUBLISHER, TOPIC) == {7: 4, 8: 2}
    reader.gaps.forget(TOPIC)
    assert reader.gaps.ended(PUBLISHER, TOPIC) == {}


def test_few_ended_epochs_are_remembered_the_last_ones() -> None:
    reader = Reader()
    for epoch in range(10, 20):
        reader.take(epoch, 0)
    assert list(reader.gaps.ended(PUBLISHER, TOPIC)) == [15, 16, 17, 18]
    reader.gaps.told(EventStream(PUBLISHER, TOPIC, 12), 5, known=True)
    reader.look(0.0)
    assert reader.announced == [], "what was had of it is not known any more"
