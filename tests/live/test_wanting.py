"""What the application, clients and patterns want of one node is counted together."""

from __future__ import annotations

import asyncio

import topicweave
from tests.live.together import local, run
from topicweave.live import wanting


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
