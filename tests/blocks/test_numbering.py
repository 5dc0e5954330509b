"""Numbers of events across the lives of a publisher."""

from __future__ import annotations

from topicweave.blocks.numbering import EventNumbers


def test_a_topic_counts_for_itself() -> None:
    numbers = EventNumbers(7)
    numbers.begin(now=2.0)
    events = [numbers.next_event(topic, b"x") for topic in (1, 1, 5)]
    assert [(event.publisher, event.topic, event.sequence) for event in events] == [
        (7, 1, 0),
        (7, 1, 1),
        (7, 5, 0),
    ]


def test_a_life_that_kept_its_memory_goes_on() -> None:
    numbers = EventNumbers(7)
    numbers.begin(now=2.0)
    first = numbers.next_event(1, b"")
    numbers.begin(now=9.0)
    second = numbers.next_event(1, b"")
    assert (second.epoch, second.sequence) == (first.epoch, first.sequence + 1)


def test_a_life_without_memory_begins_a_later_epoch_even_at_time_zero() -> None:
    lives = [EventNumbers(7), EventNumbers(7)]
    for numbers, now in zip(lives, (0.0, 1e-6), strict=True):
        numbers.begin(now)
    first, second = (numbers.next_event(1, b"") for numbers in lives)
    assert 0 < first.epoch < second.epoch


def test_a_life_told_of_an_earlier_one_goes_on_from_there() -> None:
    numbers = EventNumbers(7)
    numbers.resume(44, {1: 10})
    numbers.begin(now=3.0)
    assert [(e.epoch, e.sequence) for e in (numbers.next_event(1, b""), numbers.next_event(2, b""))] == [
        (44, 10),
        (44, 0),
    ]
