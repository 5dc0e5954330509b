"""Those who read events: each gets all, and is told what it was too slow for."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

import topicweave
from tests.live.together import PROCESS_PATIENCE, eventually, local, processes, run, taken
from topicweave.client.through import publish_through
from topicweave.live import Gap, LiveNode, logs
from topicweave.live.application import MOST_GAPS, GapQueue
from topicweave.live.settings import Limits


def payloads(node: LiveNode) -> list[bytes]:
    return [payload for _, payload in taken(node)]


def test_two_readers_get_all_events_each() -> None:
    async def test() -> None:
        async with topicweave.connect(local(subscribe=("a",))) as node:
            readers = [node.events(), node.events()]
            for number in range(10):
                await node.publish("a", b"%d" % number)
            for reader in readers:
                got = [await reader.get() for _ in range(10)]
                assert [event.payload for event in got if event] == [b"%d" % number for number in range(10)]

    run(test)


def subscribing(http: str, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "topicweave.cli", "subscribe", "a", "--node", http, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_what_a_reader_does_not_take_in_time_is_announced_to_it() -> None:
    async def test() -> None:
        limits = Limits(application_events=10)
        async with topicweave.connect(local(subscribe=("a", "b"), limits=limits, name="alone")) as node:
            told: dict[str, list[Gap]] = {"node": [], "own": []}
            node.on_gap(told["node"].append)
            own = node.open_feed(["a"], on_gap=told["own"].append)
            for number in range(25):
                await node.publish("a", b"%d" % number)
            await eventually(lambda: node.counters.deliveries == 25)
            for gaps in told.values():
                numbers = [n for gap in gaps for n in range(gap.first, gap.last + 1)]
                assert numbers == list(range(15))
                assert {(gap.topic, gap.publisher, gap.reason) for gap in gaps} == {("a", "alone", "unread")}
            assert [event.sequence for event in await own.get_all()] == list(range(15, 25))

    run(test)


def test_gaps_that_wait_for_a_reader_are_drawn_together_when_they_are_many() -> None:
    async def test() -> None:
        queue = GapQueue()
        numbers = range(0, 4 * MOST_GAPS, 2)
        for number in numbers:
            queue.put(Gap("a", "p", 1, number, number, "unread"))
        gaps = await queue.get_all()
        assert len(gaps) == MOST_GAPS
        announced = {n for gap in gaps for n in range(gap.first, gap.last + 1)}
        assert announced >= set(numbers)
        assert not queue.take()

    run(test)


def test_a_full_pipe_behind_show_events_holds_up_no_node_and_loses_nothing_unsaid(tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_text("[limits]\napplication_events = 50\n")
    count, size = 400, 2000

    async def test() -> None:
        async with topicweave.connect(local(subscribe=("a",), name="writer")) as writer:
            options = ("--insecure", "--preset", "local", "--config", str(tmp_path / "node.toml"))
            joining = ("--join", str(writer.address), "--subscribe", "a", "--show-events")
            with processes() as start:
                node = start(*options, *joining)
                await asyncio.to_thread(node.where)
                await eventually(lambda: writer.node.degree)
                receipts = [
                    await writer.publish("a", b"x" * size, wait_for=1, timeout=30) for _ in range(count)
                ]
                # More than any pipe holds, and nobody has read a line: the node serves on.
                assert [receipt.accepted for receipt in receipts] == [1] * count
                known: set[int] = set()
                while len(known) < count:
                    line = await asyncio.to_thread(node.line)
                    if "gap" in line:
                        known |= set(range(line["gap"]["first"], line["gap"]["last"] + 1))
                    else:
                        known.add(line["sequence"])
                assert known == set(range(count))
                assert await asyncio.to_thread(node.stop) == 0

    run(test)


def test_logs_into_a_full_pipe_hold_up_nobody_and_say_what_they_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    monkeypatch.setattr(logs, "STDERR", writing)
    monkeypatch.setattr(logs, "MOST_LINES", 100)
    handler = logs._Threaded()
    for number in range(5000):  # More than the pipe and the queue hold, and nobody has read a line.
        handler.emit(logging.makeLogRecord({"msg": f"{number} " + 200 * "x"}))
    with open(reading, "rb") as stream:
        assert next(line for line in stream if b"left out" in line)


def test_subscribe_on_the_shell_gets_the_past_it_asks_for_and_fails_when_its_node_dies() -> None:
    with processes() as start:
        node = start("--insecure", "--preset", "local", "--http", "127.0.0.1:0", "--subscribe", "a")
        http = node.where()["http"]
        for number in range(5):
            publish_through(http, "", "a", b"%d" % number)
        past = subscribing(http, "--last", "3", "--count", "3")
        output, errors = past.communicate(timeout=PROCESS_PATIENCE)
        assert (past.returncode, errors) == (0, "")
        assert [json.loads(line)["text"] for line in output.splitlines()] == ["2", "3", "4"]
        orphan = subscribing(http, "--last", "1")
        assert orphan.stdout is not None
        orphan.stdout.readline()
        node.kill()
        _, errors = orphan.communicate(timeout=PROCESS_PATIENCE)
        assert orphan.returncode == 2
        assert "went away" in errors
        assert len(errors.splitlines()) == 1
