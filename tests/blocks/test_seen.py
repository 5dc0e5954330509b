"""Which events were seen: against a set that never forgets."""

from __future__ import annotations

import doctest
from collections import OrderedDict
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicweave.blocks import seen as seen_module
from topicweave.blocks.seen import FEW_GAPS, MOST_GAPS, WINDOW, SeenEvents
from topicweave.model.event import EventId

SMALL = 8


class Unbounded:
    """The rules of `SeenEvents` for streams that are never forgotten, without any cleverness."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._seen: set[EventId] = set()

    def is_new(self, event: EventId) -> bool:
        stream = [old for old in self._seen if old[:2] == event[:2]]
        if not stream:
            return True
        epoch = max(old.epoch for old in stream)
        if event.epoch != epoch:
            return event.epoch > epoch
        highest = max(old.sequence for old in stream if old.epoch == epoch)
        return event not in self._seen and event.sequence > highest - self._window

    def add(self, event: EventId) -> None:
        if self.is_new(event):
            self._seen.add(event)


def event_ids(publishers: int, window: int) -> st.SearchStrategy[EventId]:
    # Sequence numbers at and around the window's edges as often as small ones.
    edges = [
        edge + step for edge in (0, window, 2 * window, 5 * window) for step in (-1, 0, 1) if edge + step >= 0
    ]
    return st.builds(
        EventId,
        publisher=st.integers(1, publishers),
        topic=st.integers(1, 2),
        epoch=st.integers(0, 2),
        sequence=st.one_of(st.integers(0, 3 * window), st.sampled_from(edges)),
    )


@pytest.fixture
def small_window() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seen_module, "WINDOW", SMALL)
        yield


def follow(events: list[EventId], window: int) -> None:
    seen, model = SeenEvents(), Unbounded(window)
    for event in events:
        new = model.is_new(event)
        assert (event in seen) != new, event
        assert seen.first_time(event) == new, event
        model.add(event)
        assert event in seen
        assert not seen.first_time(event)
    for event in events:
        assert event in seen
        assert not seen.first_time(event)


def test_documentation_examples() -> None:
    outcome = doctest.testmod(seen_module)
    assert outcome.attempted
    assert not outcome.failed


@given(st.lists(event_ids(2, WINDOW), max_size=30))
def test_as_the_model_says(events: list[EventId]) -> None:
    follow(events, WINDOW)


@pytest.mark.usefixtures("small_window")
@given(st.lists(event_ids(1, SMALL), max_size=60))
def test_as_the_model_says_in_a_small_window(events: list[EventId]) -> None:
    """Sequences return and skip often here, so that bits are shifted, set and lost in all ways."""
    follow(events, SMALL)


@given(st.permutations(range(200)))
def test_within_the_window_any_order_is_fine_and_all_are_new_once(order: list[int]) -> None:
    seen = SeenEvents()
    assert all(seen.first_time(EventId(1, 1, 0, sequence)) for sequence in order)
    assert not any(seen.first_time(EventId(1, 1, 0, sequence)) for sequence in order)


def test_the_edges_of_the_window() -> None:
    seen = SeenEvents()
    assert seen.first_time(EventId(1, 1, 0, WINDOW))
    assert seen.first_time(EventId(1, 1, 0, 1)), "the last one that is still within"
    assert not seen.first_time(EventId(1, 1, 0, 0)), "held up too long: dropped rather than taken twice"
    assert EventId(1, 1, 0, 0) in seen
    assert seen.first_time(EventId(1, 1, 0, WINDOW + 7))
    assert seen.first_time(EventId(1, 1, 0, 8)), "again the last one"
    assert not seen.first_time(EventId(1, 1, 0, 8))
    assert seen.first_time(EventId(1, 1, 0, 2 * WINDOW - 1))
    assert not seen.first_time(EventId(1, 1, 0, WINDOW)), "seen long ago, at what is now the edge"
    assert seen.first_time(EventId(1, 1, 0, 3 * WINDOW)), "a leap ahead"
    assert seen.first_time(EventId(1, 1, 0, 2 * WINDOW + 1))
    assert not seen.first_time(EventId(1, 1, 0, 2 * WINDOW))


def test_a_new_life_of_a_publisher_counts_from_the_start_and_ends_the_old_one() -> None:
    seen = SeenEvents()
    assert seen.first_time(EventId(1, 1, 5, 100))
    assert EventId(1, 1, 6, 0) not in seen
    assert seen.first_time(EventId(1, 1, 6, 0))
    assert not seen.first_time(EventId(1, 1, 5, 101))
    assert EventId(1, 1, 5, 101) in seen
    assert seen.first_time(EventId(1, 2, 5, 101)), "other topics have their own epochs"


def test_numbers_below_zero_are_nobodys() -> None:
    seen = SeenEvents()
    assert EventId(1, 1, 0, -1) in seen
    assert not seen.first_time(EventId(1, 1, 0, -1))
    assert seen.first_time(EventId(1, 1, 0, 0))
    assert not seen.first_time(EventId(1, 1, 0, -1))


def test_asking_marks_nothing() -> None:
    seen = SeenEvents()
    assert EventId(1, 1, 0, 0) not in seen
    assert len(seen) == 0
    assert seen.first_time(EventId(1, 1, 0, 0))


@given(st.lists(event_ids(9, 4), max_size=200), st.integers(1, 6))
def test_streams_are_bounded_and_the_longest_unused_goes(events: list[EventId], limit: int) -> None:
    """What is remembered are the `limit` streams used last, and of those no event is new twice."""
    seen, model = SeenEvents(streams=limit), Unbounded(WINDOW)
    used: OrderedDict[tuple[int, int], None] = OrderedDict()
    for event in events:
        stream = event[:2]
        if stream in used:
            assert seen.first_time(event) == model.is_new(event)
        else:
            assert seen.first_time(event)
            model._seen -= {old for old in model._seen if old[:2] == stream}  # forgotten: it begins anew
        model.add(event)
        used[stream] = None
        used.move_to_end(stream)
        while len(used) > limit:
            used.popitem(last=False)
        assert len(seen) == len(used)


def test_a_flood_of_hostile_streams_and_numbers_stays_small() -> None:
    seen = SeenEvents(streams=100)
    for publisher in range(1000):
        for sequence in (0, 2**63, -(2**63), 2**63 - WINDOW + 1):
            seen.first_time(EventId(publisher, publisher, publisher, sequence))
    assert len(seen) == 100
    assert seen._gaps == sum(len(state[2]) for state in seen._streams.values())
    for sequence in range(0, 10 * MOST_GAPS, 2):
        seen.first_time(EventId(1, 1, 10**6, sequence))
    state = seen.state(1, 1)
    assert state is not None
    assert len(state[2]) == MOST_GAPS
    assert not seen.first_time(EventId(1, 1, 10**6, 1)), "of too many gaps the oldest counts as seen"
    assert seen.first_time(EventId(1, 1, 10**6, 10 * MOST_GAPS - 3))


def test_when_all_streams_have_many_gaps_each_keeps_few() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seen_module, "ALL_GAPS", 100)
        seen = SeenEvents()
        for publisher in range(20):
            for sequence in range(0, 200, 2):
                seen.first_time(EventId(publisher, 1, 0, sequence))
        assert seen._gaps == sum(len(state[2]) for state in seen._streams.values())
        assert seen._gaps <= 100 + 20 * FEW_GAPS


@given(st.lists(event_ids(1, 20), max_size=40), st.integers(0, 60), st.integers(0, 60))
def test_what_of_a_run_is_unseen(events: list[EventId], first: int, last: int) -> None:
    seen = SeenEvents()
    for event in events:
        seen.first_time(event)
    runs = seen.unseen(1, 1, 1, first, last)
    named = [sequence for low, high in runs for sequence in range(low, high + 1)]
    assert named == [n for n in range(first, last + 1) if EventId(1, 1, 1, n) not in seen]
    assert all(low <= high for low, high in runs)


def test_a_stream_may_be_written_down_and_restored_in_a_later_life() -> None:
    before = SeenEvents()
    assert before.state(1, 2) is None
    for sequence in (5, 7, 8):
        before.first_time(EventId(1, 2, 3, sequence))
    state = before.state(1, 2)
    assert state is not None
    after = SeenEvents()
    after.restore(1, 2, state)
    assert [after.first_time(EventId(1, 2, 3, sequence)) for sequence in range(4, 10)] == [
        sequence not in (5, 7, 8) for sequence in range(4, 10)
    ]
    assert not after.first_time(EventId(1, 2, 2, 99))
    assert before.state(1, 2) == state, "the record is a copy"


def test_restoring_more_than_fits_is_bounded_too() -> None:
    seen = SeenEvents(streams=3)
    for publisher in range(10):
        seen.restore(publisher, 1, (0, 0, ()))
    assert len(seen) == 3
    assert EventId(9, 1, 0, 0) in seen
