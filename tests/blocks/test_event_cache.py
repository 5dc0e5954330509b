"""The last events, found by their ids."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from topicweave.blocks.broadcast_tree import Push
from topicweave.blocks.event_cache import EventCache
from topicweave.model.event import Event


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 40), st.integers(0, 30)), max_size=200),
    st.integers(1, 10),
    st.integers(0, 100),
)
def test_it_holds_the_last_that_fit_and_finds_them_whenever_it_is_asked(
    steps: list[tuple[bool, int, int]], most_events: int, most_bytes: int
) -> None:
    """Adding and asking in any order, against a plain list."""
    cache, kept = EventCache(most_events, most_bytes), list[Push]()
    for number, (asks, wanted, size) in enumerate(steps):
        if asks:
            expected = [push for push in kept if push.event.sequence == wanted]
            assert cache.get((1, 2, 3, wanted)) == (expected[0] if expected else None)
            continue
        push = Push(Event(1, 2, 3, number, bytes(size)), 1)
        cache.add(push)
        kept.append(push)
        while len(kept) > most_events or (
            sum(len(push.event.payload) for push in kept) > most_bytes and len(kept) > 1
        ):
            del kept[0]
        assert list(cache) == [push.event.id for push in kept]
        assert len(cache) == len(kept)
        assert cache.bytes == sum(len(push.event.payload) for push in kept)
