"""What the application, clients and patterns want of one node is counted together."""

from __future__ import annotations

import asyncio

import pytest

import topicweave
from tests.live.together import eventually, linked, local, run
from topicweave.live import wanting
from topicweave.live.health import health


def test_a_topic_stays_while_the_application_or_a_client_wants_it() -> None:
    async def test() -> None:
        async with topicweave.connect(local(subscribe=("first",))) as node:
            await node.wanting.more(["first", "shared"])
            await node.wanting.more(["shared"])
            await node.subscribe("shared")
            await node.wanting.less(["first", "shared"])
            await node.wanting.less(["shared"])
            assert node.subscriptions == ["first", "shared"], "the application wants both"
            await node.wanting.more(["shared"])
            await node.unsubscribe(["first", "shared"])
            assert node.subscriptions == ["shared"], "a client wants it"
            await node.wanting.less(["shared"])
            await node.wanting.less(["shared"])
            assert node.subscriptions == []

    run(test)


@pytest.mark.parametrize("step", [40, 400])
def test_who_wants_more_topics_than_a_neighbour_takes_is_kept_out_for_a_while(step: int) -> None:
    """However the topics come: the neighbour says why, and nobody dials without a pause."""

    async def test() -> None:
        async with (
            topicweave.connect(local(name="greedy", subscribe=("a",))) as greedy,
            topicweave.connect(
                local(name="sparing", subscribe=("a",)),
                join=str(greedy.address),
                limits={"topics_per_peer": 300},
            ) as sparing,
        ):
            await eventually(lambda: linked(greedy, sparing))
            for first in range(0, 400, step):
                await greedy.subscribe([f"x/{number}" for number in range(first, first + step)])
                await asyncio.sleep(0.02)
            await eventually(lambda: sparing.counters.bans == 1, "it is banned")
            await eventually(lambda: not sparing.transport.connected)
            assert sparing.counters.protocol_errors == 1
            troubles = health(sparing)["troubles"]
            assert any(
                "greedy" in one["with"] and "limits.topics_per_peer" in one["what"] for one in troubles
            )

    run(test)


def test_many_topics_that_end_give_way_to_other_work() -> None:
    topics = [f"t/{number}" for number in range(3 * wanting.ENDED)]

    async def test() -> None:
        async with topicweave.connect(local()) as node:
            await node.wanting.more(topics)
            ending = asyncio.create_task(node.wanting.less(topics))
            await asyncio.sleep(0)
            assert len(node.subscriptions) == 2 * wanting.ENDED
            await ending
            assert node.subscriptions == []

    run(test)


def test_what_is_wanted_again_while_many_topics_end_stays() -> None:
    topics = [f"t/{number}" for number in range(wanting.CHUNK + 2)]

    async def test() -> None:
        async with topicweave.connect(local()) as node:
            await node.wanting.more(topics)
            ending = asyncio.create_task(node.wanting.less(topics))
            await asyncio.sleep(0)
            await node.wanting.more(topics[-1:])
            await ending
            assert node.subscriptions == topics[-1:]

    run(test)


def test_what_ends_before_it_began_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wanting, "CHUNK", 1)

    async def test() -> None:
        async with topicweave.connect(local()) as node:
            for number in range(9):
                await node.publish(f"t/{number}", b"")
            for wants in (node.wanting, node.patterns):
                wanted = ["t/+", "+/#"] if wants is node.patterns else [f"t/{number}" for number in range(9)]
                beginning = asyncio.create_task(wants.more(wanted))
                while not node.subscriptions:
                    await asyncio.sleep(0)
                await wants.less(wanted)
                await beginning
                assert (node.wanting._counts, node.subscriptions, node.patterns.topics) == ({}, [], 0)

    run(test)
