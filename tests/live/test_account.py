"""What others can make a node hold is counted in one account, and bounded all together."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topicweave
from tests.live.together import eventually, linked, local, run, taken
from topicweave.live import Gap
from topicweave.live.application import Feed, Received
from topicweave.live.counters import Counters
from topicweave.live.frames import Kind
from topicweave.live.health import health, view
from topicweave.live.memory import EVENT, SHARES, Memory
from topicweave.live.outbox import PAGE, Outbox
from topicweave.live.settings import Address, Limits
from topicweave.live.wire import MAGIC, VERSIONS, Hello, hello_frame
from topicweave.model.ids import ring_id


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2 * PAGE), st.booleans()), max_size=60))
def test_queues_hold_no_more_than_their_share_together(steps: list[tuple[int, int, bool]]) -> None:
    memory, counters = Memory(16 * PAGE), Counters()
    outboxes = [Outbox(5 * PAGE, counters, memory) for _ in range(4)]
    for which, size, put in steps:
        if put:
            outboxes[which].put(bytes(size), carries_event=size % 2 == 0)
        elif size > PAGE:
            outboxes[which].take(size)
        else:
            outboxes[which].clear()
        assert sum(outbox.size for outbox in outboxes) <= memory.held["queues"] <= memory.share("queues")
    for outbox in outboxes:
        outbox.clear()
    assert memory.total == memory.held["queues"] == 0


def test_a_queue_that_gets_no_memory_refuses_events_and_counts_them() -> None:
    memory, counters = Memory(4 * PAGE), Counters()
    first, second = (Outbox(10 * PAGE, counters, memory) for _ in range(2))
    assert first.put(bytes(2 * PAGE), carries_event=True)
    assert not second.put(b"x", carries_event=True)
    assert (counters.events_dropped, memory.refused["queues"]) == (1, 2)
    first.take(4 * PAGE)
    assert second.put(b"x", carries_event=True)


def test_readers_share_the_memory_and_are_told_what_they_did_not_get() -> None:
    memory, told = Memory(2 * 10 * (EVENT + 10)), list[Gap]()
    feeds = [Feed(Counters(), 1000, 1 << 20, None, told.append, None, memory) for _ in range(2)]
    for number in range(20):
        for feed in feeds:
            feed.put([Received("a", bytes(10), "p", 1, number)])
        assert memory.held["unread"] <= memory.share("unread")
    assert sum(map(len, feeds)) == 10
    assert sum(gap.last - gap.first + 1 for gap in told) == 30
    feeds[0].close()
    del feed, feeds[1]
    gc.collect()
    assert memory.total == 0


def test_no_kind_can_take_all() -> None:
    memory = Memory(1 << 20)
    for kind in SHARES:
        while memory.take(kind, 1 << 10):
            pass
        assert memory.held[kind] <= memory.share(kind) < memory.most
    assert memory.total <= memory.most


def test_frames_that_never_become_whole_cost_their_senders_the_connection() -> None:
    async def test() -> None:
        limits = Limits(max_memory=4 << 20)
        async with (
            topicweave.connect(local(subscribe=("a",), limits=limits)) as node,
            topicweave.connect(local(subscribe=("a",), join=(str(node.address),))) as friend,
        ):
            await eventually(lambda: linked(node, friend))
            rng = random.Random(0)
            writers = []
            for number in range(8):
                reader, writer = await asyncio.open_connection(node.address.host, node.address.port)
                name = f"stranger-{number}"
                address = Address("127.0.0.1", 9)
                writer.write(
                    hello_frame(
                        Hello(
                            *(MAGIC, VERSIONS, "topicweave", "spidercast", ring_id(name), name, address),
                            *(rng.getrandbits(60), 0.0, 0, b""),
                        )
                    )
                )
                await reader.readexactly(5)
                writer.write((3 << 20).to_bytes(4, "big") + bytes((Kind.MESSAGES,)) + bytes(400_000))
                writers.append(writer)
            memory = node.world.memory
            await eventually(lambda: memory.refused["frames"] >= 5)
            assert memory.held["frames"] <= memory.share("frames")
            receipt = await friend.publish("a", b"served", wait_for=1, timeout=30)
            assert receipt.accepted == 1
            for writer in writers:
                writer.close()
            await eventually(lambda: memory.held["frames"] == 0)
            assert view(node)["memory"]["refused"]["frames"] >= 5

    run(test)


def test_what_is_never_acknowledged_is_bounded_and_more_is_refused_by_name() -> None:
    async def test() -> None:
        limits = Limits(max_memory=1 << 20)
        async with (
            topicweave.connect(local(subscribe=("a",), name="writer")) as writer,
            topicweave.connect(
                local(subscribe=("a",), limits=limits, delivery="at-least-once"), join=(str(writer.address),)
            ) as reader,
        ):
            await eventually(lambda: linked(writer, reader))
            receipt = await writer.publish("a", bytes(10_000), wait_for=1, timeout=30)
            while not receipt.refused:
                receipt = await writer.publish("a", bytes(10_000), wait_for=1, timeout=0.5)
            assert (receipt.accepted, receipt.refused) == (0, {"full": 1})
            memory = reader.world.memory
            state = health(reader)
            assert state["status"] == "failing"
            assert "events are refused as full" in state["reasons"][0]
            assert "not acknowledged (a)" in state["reasons"][0]
            assert memory.held["unacknowledged"] <= memory.share("unacknowledged") + 2 * (10_000 + EVENT)
            # Once it acknowledges, what was refused comes after all.
            for event in await reader.events().get_all():
                await reader.acknowledge(event)
            assert (await writer.publish("a", b"on", wait_for=1, timeout=30)).accepted == 1

    run(test)


def test_what_waits_for_the_disk_is_bounded_and_health_names_its_topics(tmp_path: Path) -> None:
    async def test() -> None:
        limits = Limits(max_memory=1 << 20)
        settings = local(
            subscribe=("slow", "unread"), data=str(tmp_path), limits=limits, delivery="at-least-once"
        )
        async with topicweave.connect(settings) as node:
            await node.publish("unread", b"x")
            await eventually(lambda: len(node.world.gate.unacknowledged) == 1)
            assert node.disk is not None
            free = threading.Event()
            slow = asyncio.create_task(node.disk.read(free.wait, 30.0))
            waiting = [asyncio.create_task(node.publish("slow", bytes(10_000))) for _ in range(50)]
            await eventually(lambda: health(node)["reasons"])
            (reason,) = health(node)["reasons"]
            assert "events wait for the disk (slow)" in reason
            free.set()
            await asyncio.gather(slow, *waiting)

    run(test)


def test_what_is_not_acknowledged_is_dropped_with_its_topic(tmp_path: Path) -> None:
    async def test() -> None:
        limits = Limits(max_memory=1 << 20)
        async with topicweave.connect(local(subscribe=("b",), name="writer")) as writer:
            settings = local(
                name="reader",
                subscribe=("b",),
                join=(str(writer.address),),
                limits=limits,
                delivery="at-least-once",
                redeliver_after=0.1,
                data=str(tmp_path),
            )
            async with topicweave.connect(settings) as reader:
                await eventually(lambda: linked(writer, reader))
                await reader.subscribe("a")
                while not health(reader)["reasons"]:
                    await reader.publish("a", bytes(10_000))
                await reader.publish("a", b"waits for the disk")
                await reader.unsubscribe("a")
                assert health(reader)["reasons"] == []
                assert reader.world.memory.held["unacknowledged"] == 0
                assert (await writer.publish("b", b"x", wait_for=1, timeout=30)).accepted == 1
                came = await reader.events().get_all()
                await eventually(lambda: ("b", b"x") in taken(reader))  # Again.
                await asyncio.sleep(0.5)
                assert {topic for topic, _ in taken(reader)} == {"b"}
                assert {event.topic for event in came} == {"a", "b"}, "those that came before the end"
            async with topicweave.connect(settings) as reader:
                await eventually(lambda: taken(reader))
                assert set(taken(reader)) == {("b", b"x")}

    run(test)


@pytest.mark.parametrize("retained", [False, True])
def test_caches_give_way(retained: bool) -> None:
    async def test() -> None:
        limits = Limits(max_memory=1 << 20)
        async with topicweave.connect(
            local(subscribe=("a",), limits=limits, cache=1000, retained=("a",) if retained else ())
        ) as node:
            for _ in range(100):
                await node.publish("a", bytes(10_000))
            await eventually(lambda: node.counters.deliveries == 100)
            node.world.gate.account()
            node.world.gate.account()
            memory = node.world.memory
            assert 0 < memory.held["cache"] <= memory.share("cache")

    run(test)
