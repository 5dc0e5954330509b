"""Events that come late say how old they are."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import topicweave
from tests.live.together import local, run
from topicweave.live.ages import MOST, Ages
from topicweave.live.event_log import EventLog
from topicweave.model.event import Event, EventId


def test_ages_add_up_from_node_to_node() -> None:
    now = [100.0]
    log = EventLog(lambda topic: 10, 1000, lambda: now[0])
    ages = Ages(log, lambda: now[0], lambda: now[0])
    event = Event(1, 2, 3, 4, b"")
    assert ages.kept(event.id) is None, "it has just come"
    ages.told(event.id, 5.0)
    now[0] = 101.0
    log.add(event, 1, ages.at_arrival(event.id))
    assert ages.take(event.id) == 6.0
    assert ages.take(event.id) == 0.0, "it is handed over once"
    now[0] = 111.0
    assert ages.kept(event.id) == 16.0


def test_what_is_told_and_does_not_come_is_forgotten() -> None:
    ages = Ages(EventLog(lambda topic: 0, 0, lambda: 0.0), lambda: 0.0, lambda: 0.0)
    for number in range(2 * MOST):
        ages.told(EventId(1, 2, 3, number), 1.0)
        ages.waits(EventId(1, 2, 4, number))
    assert len(ages) == MOST
    assert ages.kept(EventId(1, 2, 4, 0)) is None
    assert ages.kept(EventId(1, 2, 4, 2 * MOST - 1)) == 0.0


@pytest.mark.parametrize("kept", ["cache", "disk", "nowhere"])
def test_an_event_that_was_published_before_the_subscription_says_so(kept: str, tmp_path: Path) -> None:
    async def test() -> None:
        data = str(tmp_path) if kept == "disk" else ""
        cache = 1 if kept != "nowhere" else 0
        async with (
            topicweave.connect(local(name="one", subscribe=("t",), cache=cache, data=data)) as one,
            topicweave.connect(local(name="two", join=(str(one.address),))) as two,
        ):
            for number in range(3):
                await one.publish("t", str(number).encode())
            published = two.clock.now
            await asyncio.sleep(0.3)
            asked = two.clock.now
            feed = two.events()
            await two.subscribe("t", last=3)
            late = [await feed.get() for _ in range(3)]
            assert {event and event.payload for event in late} == {b"0", b"1", b"2"}, "nothing is held back"
            for event in late:
                assert event is not None
                assert event.age >= asked - published, event
            new = two.clock.now
            await one.publish("t", b"new")
            event = await feed.get()
            assert event is not None
            assert event.payload == b"new"
            # An event may come by an answer that was still on its way. Then it says how long it lay.
            assert event.age <= two.clock.now - new, event

    run(test)
