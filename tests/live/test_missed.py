"""What was missed is announced, and what is kept can be had."""

from __future__ import annotations

from pathlib import Path

import topicweave
from tests.live.together import PATIENCE, eventually, linked, local, run, taken
from topicweave.live import Gap, LiveNode, LogLimits
from topicweave.live.settings import Limits
from topicweave.live.swarm import run_swarm


def payloads(node: LiveNode) -> list[bytes]:
    return [payload for _, payload in taken(node)]


# Gaps.


def cut_off(one: LiveNode, other: LiveNode) -> None:
    one.transport.blocked = other.transport.blocked = lambda peer: True


def reunite(one: LiveNode, other: LiveNode) -> None:
    one.transport.blocked = other.transport.blocked = None


async def partition(log: LogLimits, tmp_path: Path) -> tuple[list[bytes], list[Gap], int]:
    """A reader misses 300 events, of which caches hold 100: what it gets, what it is told it missed, and what
    was counted.
    """
    gaps: list[Gap] = []
    # The overlay's own cache is small: it may bring the last events, too.
    settings = local(
        name="writer",
        subscribe=("a",),
        data=str(tmp_path / "writer"),
        log=log,
        parameters={"tree": {"cache_events": 50}},
    )
    async with (
        topicweave.connect(settings) as writer,
        topicweave.connect(local(subscribe=("a",), join=(str(writer.address),))) as reader,
    ):
        reader.on_gap(gaps.append)
        await eventually(lambda: linked(writer, reader))
        await writer.publish("a", b"0", wait_for=1, timeout=PATIENCE)
        cut_off(writer, reader)
        for number in range(1, 301):
            await writer.publish("a", b"%d" % number)
        reunite(writer, reader)
        await eventually(lambda: b"300" in payloads(reader))
        await eventually(
            lambda: len(payloads(reader)) + sum(gap.last - gap.first + 1 for gap in gaps) >= 301,
            "every event came or was announced as missed",
        )
        return payloads(reader), gaps, reader.counters.events_missed


def test_events_that_left_all_caches_are_announced_as_missed(tmp_path: Path) -> None:
    async def test() -> None:
        got, gaps, counted = await partition(LogLimits(), tmp_path)
        numbers = set(map(int, got))
        missed = {number for gap in gaps for number in range(gap.first, gap.last + 1)}
        assert numbers | missed == set(range(301))
        assert not numbers & missed
        assert counted == len(missed) == 200
        assert {(gap.topic, gap.publisher, gap.reason) for gap in gaps} == {("a", "writer", "passed")}

    run(test)


def test_a_deeper_log_gives_what_left_the_caches(tmp_path: Path) -> None:
    async def test() -> None:
        got, gaps, counted = await partition(LogLimits(events=1000), tmp_path)
        assert sorted(map(int, got)) == list(range(301))
        assert (gaps, counted) == ([], 0)

    run(test)


def test_a_lost_tail_is_noticed_by_the_heads_that_neighbours_tell() -> None:
    async def test() -> None:
        gaps: list[Gap] = []
        async with run_swarm([["a"]] * 3, local(cache=0), names=["writer", "witness", "reader"], seed=3) as (
            writer,
            witness,
            reader,
        ):
            reader.on_gap(gaps.append)
            await eventually(lambda: linked(writer, witness, reader))
            await writer.publish("a", b"0", wait_for=2, timeout=PATIENCE)
            await eventually(lambda: payloads(reader) == [b"0"])
            reader.transport.blocked = lambda peer: True
            await writer.publish("a", b"tail", wait_for=1, timeout=PATIENCE)
            await eventually(lambda: b"tail" in payloads(witness))
            await writer.stop()  # Nobody has the event any more, but one knows that there was one.
            await eventually(lambda: not reader.node.degree)
            reader.transport.blocked = None
            await eventually(lambda: gaps or b"tail" in payloads(reader))
            if b"tail" not in payloads(reader):
                assert [(gap.publisher, gap.first, gap.last, gap.reason) for gap in gaps] == [
                    (gaps[0].publisher, 1, 1, "told")
                ]

    run(test)


def test_the_lost_tail_of_an_earlier_life_is_announced_though_the_new_one_was_heard_first() -> None:
    async def test() -> None:
        gaps: list[Gap] = []
        names = ["writer", "witness", "reader"]
        async with run_swarm([["a"]] * 3, local(cache=0), names=names, seed=3) as (writer, witness, reader):
            reader.on_gap(gaps.append)
            await eventually(lambda: linked(writer, witness, reader))
            receipt = await writer.publish("a", b"0", wait_for=2, timeout=PATIENCE)
            await eventually(lambda: payloads(reader) == [b"0"])
            reader.transport.blocked = lambda peer: True
            await writer.publish("a", b"tail", wait_for=1, timeout=PATIENCE)
            await eventually(lambda: b"tail" in payloads(witness))
            await writer.stop()
            await eventually(lambda: not reader.node.degree)
            reader.transport.blocked = lambda peer: peer == witness.id
            join = (str(witness.address), str(reader.address))
            async with topicweave.connect(
                local(name="writer", subscribe=("a",), cache=0, join=join)
            ) as again:
                await eventually(lambda: linked(again, witness) and linked(again, reader))
                await again.publish("a", b"anew", wait_for=2, timeout=PATIENCE)
                await eventually(lambda: payloads(reader) == [b"0", b"anew"])
                reader.transport.blocked = None
                await eventually(lambda: gaps)
            assert [(gap.epoch, gap.first, gap.last, gap.reason) for gap in gaps] == [
                (receipt.event.epoch, 1, 1, "older life")
            ]

    run(test)


# The past.


def test_a_subscriber_can_ask_for_the_last_events_that_are_kept(tmp_path: Path) -> None:
    async def test() -> None:
        keeping = local(subscribe=("a",), cache=5, log=LogLimits(events=100), data=str(tmp_path / "data"))
        async with topicweave.connect(keeping) as keeper:
            for number in range(200):
                await keeper.publish("a", b"%d" % number)
            async with topicweave.connect(local(join=(str(keeper.address),))) as late:
                # Its caches hold 5, and the system sends the last 64 that found nobody: the rest comes from the disk.
                await late.subscribe("a", last=100)
                await eventually(lambda: {b"%d" % n for n in range(100, 200)} <= set(payloads(late)))
                assert len(payloads(late)) == 100

    run(test)


def test_a_retained_topic_keeps_its_last_event_whatever_the_limits_say() -> None:
    async def test() -> None:
        async with topicweave.connect(local(cache=0)) as keeper:
            for number in range(3):
                await keeper.publish("state", b"%d" % number, retain=True)
            async with topicweave.connect(local(join=(str(keeper.address),), subscribe=("state",))) as late:
                await eventually(lambda: b"2" in payloads(late))

    run(test)


def test_at_least_once_hands_over_again_what_was_not_acknowledged(tmp_path: Path) -> None:
    async def test() -> None:
        settings = local(delivery="at-least-once", data=str(tmp_path / "data"), subscribe=("a",))
        async with topicweave.connect(settings) as node:
            for number in range(3):
                await node.publish("a", b"%d" % number)
            reader = node.events()
            first = await reader.get()
            assert first is not None
            assert (first.payload, first.again) == (b"0", False)
            await node.acknowledge(first)
        async with topicweave.connect(settings) as node:
            reader = node.events()
            for expected in (b"1", b"2"):
                event = await reader.get()
                assert event is not None
                assert (event.payload, event.again) == (expected, True)
                await node.acknowledge(event)
        async with topicweave.connect(settings) as node:
            await node.publish("a", b"3")
            event = await node.events().get()
            assert event is not None
            assert event.payload == b"3", "what was acknowledged does not come again"

    run(test)


def test_what_waits_for_a_reader_is_not_handed_over_again() -> None:
    async def test() -> None:
        settings = local(
            delivery="at-least-once",
            redeliver_after=0.01,
            subscribe=("a",),
            limits=Limits(application_events=8),
        )
        async with topicweave.connect(settings) as node:
            gaps: list[Gap] = []
            node.on_gap(gaps.append)
            for number in range(5):
                await node.publish("a", b"%d" % number)
            await eventually(lambda: len(taken(node)) >= 5)
            slow, fast = node.events(), node.events()
            for _ in range(3):
                await eventually(lambda: len(fast) == 5, "it comes again to who has nothing to read")
                await fast.get_all()
            events = await slow.get_all()
            assert [event.payload for event in events] == [b"%d" % number for number in range(5)]
            assert gaps == []
            for event in events:
                await node.acknowledge(event)

    run(test)


def test_at_least_once_hands_over_again_after_a_while() -> None:
    async def test() -> None:
        settings = local(delivery="at-least-once", redeliver_after=0.1, subscribe=("a",))
        async with topicweave.connect(settings) as node:
            await node.publish("a", b"x")
            reader = node.events()
            seen = [await reader.get() for _ in range(2)]
            assert [event.again for event in seen if event is not None] == [False, True]

    run(test)
