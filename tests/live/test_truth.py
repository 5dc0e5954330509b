"""What a node says is what happened: full disks, receipts, clocks, joining."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import topicweave
from tests.live.test_http import asked
from tests.live.together import PATIENCE, eventually, linked, local, processes, run, secure, taken, wall
from topicweave.errors import BadInput, NotKept
from topicweave.live import LiveNode
from topicweave.live.application import Receipt
from topicweave.live.disk import Disk
from topicweave.live.health import health
from topicweave.live.swarm import run_swarm
from topicweave.testing.full_disk import limit_pages


def payloads(node: LiveNode) -> list[bytes]:
    return [payload for _, payload in taken(node)]


async def set_pages(node: LiveNode, most: int) -> None:
    """As if the disk held no more than so many pages; 0 for as much as there is."""
    assert node.disk is not None
    await node.disk.read(limit_pages, node.disk.store, most)


def patient(writer: LiveNode, payload: bytes) -> asyncio.Task[Receipt]:
    """An event whose acceptance is waited for as long as it takes."""
    return asyncio.create_task(writer.publish("a", payload, wait_for=1, timeout=10 * PATIENCE))


def confirmed(waiting: list[asyncio.Task[Receipt]]) -> int:
    return sum(one.result().accepted for one in waiting if one.done())


async def until_refused(writer: LiveNode, payload: bytes) -> tuple[Receipt, int]:
    """The first receipt that tells of a refusal, and of how many. A verdict may take a while on a busy machine."""
    for number in itertools.count(1):
        receipt = await writer.publish("a", payload, wait_for=1, timeout=1.0)
        assert not receipt.accepted
        if receipt.refused:
            return receipt, number
    raise AssertionError


# A full disk.


@pytest.mark.parametrize("policy", ["hold", "hand-over"])
def test_what_a_full_disk_does_not_keep_is_not_confirmed_and_health_says_so(
    policy: str, tmp_path: Path
) -> None:
    async def test() -> None:
        reader_settings = local(
            data=str(tmp_path / "reader"), subscribe=("a",), name="reader", when_disk_fails=policy, cache=1000
        )
        async with (
            topicweave.connect(local(subscribe=("a",), name="writer", cache=1000)) as writer,
            topicweave.connect(reader_settings, join=(str(writer.address),)) as reader,
        ):
            await eventually(lambda: linked(writer, reader))
            first = await writer.publish("a", b"before", wait_for=1, timeout=30)
            assert first.accepted == 1
            await set_pages(reader, 1)
            filler = bytes(4000)
            waiting = [patient(writer, b"%d" % n + filler) for n in range(20)]
            await eventually(lambda: reader.disk is not None and reader.disk.error, "the disk is full")
            last, more = await until_refused(writer, b"last" + filler)
            assert (last.accepted, last.refused) == (0, {"disk-full": 1})
            assert "disk-full" in last.reason
            sent = 1 + len(waiting) + more
            state = health(reader)
            assert state["status"] == "failing"
            assert any("data folder" in reason for reason in state["reasons"])
            if policy == "hold":
                await eventually(lambda: reader.counters.deliveries == 1 + confirmed(waiting))
                assert len(taken(reader)) == reader.counters.deliveries < sent
            else:
                await eventually(lambda: len(taken(reader)) == sent)
                assert reader.counters.undurable_events >= sent - 1 - confirmed(waiting)
            assert not all(one.done() for one in waiting), "what was not kept is not confirmed"
            await set_pages(reader, 0)
            await eventually(lambda: len(taken(reader)) == sent, "tried again, until it worked")
            await eventually(lambda: health(reader)["status"] == "ok")
            assert [receipt.accepted for receipt in await asyncio.gather(*waiting)] == [1] * 20
            after = await writer.publish("a", b"after", wait_for=1, timeout=30)
            assert after.accepted == 1

    run(test)


def test_a_publisher_whose_disk_is_full_says_so_and_uses_no_number_twice(tmp_path: Path) -> None:
    async def test() -> None:
        settings = local(data=str(tmp_path / "data"), subscribe=("a",))
        async with (
            topicweave.connect(local(subscribe=("a",))) as reader,
            topicweave.connect(settings, join=(str(reader.address),)) as writer,
        ):
            await eventually(lambda: linked(writer, reader))
            await set_pages(writer, 1)
            receipt = await writer.publish("a", bytes(8000), timeout=0.5)
            while not receipt.reason:  # A few pages may be free.
                receipt = await writer.publish("a", bytes(8000), timeout=0.5)
            assert "data folder" in receipt.reason
            had = len(taken(reader))
            await set_pages(writer, 0)
            await eventually(lambda: len(taken(reader)) > had, "it leaves when it is permanent")
            sequences = [event.sequence for event in reader.feed._queue] if reader.feed else []
            assert sequences == list(range(len(sequences)))

    run(test)


def test_a_receipt_says_that_the_node_stopped_before_the_event_left(tmp_path: Path) -> None:
    async def test() -> None:
        free = threading.Event()
        async with topicweave.connect(local(data=str(tmp_path))) as node:
            assert node.disk is not None
            slow = asyncio.create_task(node.disk.read(free.wait, PATIENCE))
            waiting = asyncio.create_task(node.publish("a", b"x"))
            waiting.add_done_callback(lambda _: free.set())
            await eventually(lambda: node.counters.publishes)
        await slow
        assert (await waiting).reason == "not sent yet: the node stops"

    run(test)


def test_a_subscription_that_is_not_on_disk_is_not_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Disk.keeps, "__defaults__", (0.1,))

    async def test() -> None:
        async with topicweave.connect(local(data=str(tmp_path), http="127.0.0.1:0")) as node:
            await node.subscribe("kept")
            assert node.disk is not None
            await set_pages(node, 1)
            while not node.disk.error:  # A few pages may be free.
                await node.publish("filler", bytes(8000), timeout=0.1)
            for change, topics in ((node.subscribe, ["late", "zone/#"]), (node.unsubscribe, ["kept"])):
                for topic in topics:
                    with pytest.raises(NotKept, match="the data folder takes nothing"):
                        await change(topic)
            assert (node.subscriptions, node.patterns.wanted) == (["late"], ["zone/#"]), (
                "it is done all the same"
            )
            for method in ("PUT", "DELETE"):
                status, body = await asked(node, "/subscriptions/zone%2F%23", method)
                assert status == 503
                assert "a restart may forget it" in json.loads(body)["error"]
            await node.subscribe("passing", lasting=False)
            await set_pages(node, 0)
            await eventually(lambda: node.disk is not None and not node.disk.error)
            assert (await asked(node, "/subscriptions/more", "PUT"))[0] == 200
        async with topicweave.connect(local(data=str(tmp_path))) as node:
            assert (node.subscriptions, node.patterns.wanted) == (["late", "more"], [])

    run(test)


def test_a_killed_node_knows_what_it_confirmed(tmp_path: Path) -> None:
    def change(http: str, method: str, topic: str) -> None:
        path = f"http://{http}/subscriptions/{topic}"
        with urllib.request.urlopen(urllib.request.Request(path, method=method), timeout=30) as answer:
            assert answer.status == 200

    wanted: set[str] = set()
    with processes() as start:
        for number in range(4):
            node = start("--insecure", "--data", str(tmp_path), "--http", "127.0.0.1:0")
            http = node.where()["http"]
            assert {one["topic"] for one in read_json(http, "/view")["topics"]} == wanted
            if number == 3:
                break
            if wanted:
                change(http, "DELETE", wanted.pop())
            change(http, "PUT", f"topic-{number}")
            node.kill()
            wanted.add(f"topic-{number}")


def read_json(http: str, path: str) -> Any:
    try:
        with urllib.request.urlopen(f"http://{http}{path}", timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)


TMPFS = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size="$0" tmpfs "$1" && shift && exec "$@"']


def namespaces_work(folder: Path) -> bool:
    done = subprocess.run([*TMPFS, "1m", str(folder), "true"], capture_output=True, check=False)
    return done.returncode == 0


def test_a_small_real_disk_that_is_full(tmp_path: Path) -> None:
    """A process whose data folder is on a tmpfs of its own, as small as the store can just be."""
    if not namespaces_work(tmp_path):
        pytest.skip("no namespaces here: the same is tested with SQLite's own limit")

    async def test() -> None:
        async with topicweave.connect(local(subscribe=("a",), cache=1000)) as writer:
            options = ("--insecure", "--preset", "local", "--data", str(tmp_path / "data"))
            joining = ("--join", str(writer.address), "--subscribe", "a", "--http", "127.0.0.1:0")
            with processes() as start:
                node = start(*options, *joining, prefix=[*TMPFS, "300k", str(tmp_path)])
                http = (await asyncio.to_thread(node.where))["http"]
                await eventually(lambda: writer.node.degree)
                full, waiting = False, list[asyncio.Task[Receipt]]()
                while not full:
                    assert len(waiting) < 200, "300 kB are full after 40 such events"
                    waiting.append(patient(writer, b"%d " % len(waiting) + bytes(8000)))
                    while not full and not waiting[-1].done():
                        await asyncio.wait(waiting[-1:], timeout=0.2)
                        if not waiting[-1].done():
                            full = "data folder" in str(await asyncio.to_thread(read_json, http, "/health"))
                last, _ = await until_refused(writer, b"last" + bytes(8000))
                assert last.refused == {"disk-full": 1}
                view = await asyncio.to_thread(read_json, http, "/view")
                await eventually(lambda: confirmed(waiting) == view["counters"]["deliveries"])
                assert confirmed(waiting) > 0
                assert not waiting[-1].done(), "what was not kept is not confirmed"
                waiting[-1].cancel()

    run(test)


# Verdicts.


def test_a_publisher_restarted_with_its_clock_behind_is_heard() -> None:
    """Without a data folder: its neighbours tell it how far its earlier life was."""

    async def test() -> None:
        async with topicweave.connect(local(subscribe=("a",))) as reader:
            join = (str(reader.address),)
            async with topicweave.connect(local(name="writer", subscribe=("a",), join=join)) as writer:
                await eventually(lambda: linked(writer, reader))
                await writer.publish("a", b"today", wait_for=1, timeout=PATIENCE)
            behind = LiveNode(local(name="writer", subscribe=("a",), join=join), wall=lambda: wall() - 86_400)
            await behind.start()
            try:
                await eventually(lambda: linked(behind, reader))
                receipt = await behind.publish("a", b"yesterday", wait_for=1, timeout=30)
                assert receipt.accepted == 1
                await eventually(lambda: payloads(reader) == [b"today", b"yesterday"])
            finally:
                await behind.stop()

    run(test)


def test_an_event_of_an_older_life_is_refused_by_name() -> None:
    async def test() -> None:
        async with topicweave.connect(local(subscribe=("a",))) as reader:
            join = (str(reader.address),)
            async with topicweave.connect(local(name="writer", subscribe=("a",), join=join)) as writer:
                await eventually(lambda: linked(writer, reader))
                await writer.publish("a", b"new", wait_for=1, timeout=PATIENCE)
                writer.node.resume(5, {})  # As if nobody had told it of its later life.
                receipt = await writer.publish("a", b"old", wait_for=1, timeout=5)
                assert (receipt.accepted, receipt.refused) == (0, {"old-epoch": 1})
                assert writer.refusals["old-epoch"] >= 1
                again = await writer.publish("a", b"newer", wait_for=1, timeout=PATIENCE)
                assert again.accepted == 1, "and it goes on above what it was told"

    run(test)


@pytest.mark.parametrize("payload", ["text", 7, None, ["list"]])
def test_what_is_no_bytes_is_refused_before_it_leaves_and_costs_no_neighbour(payload: Any) -> None:
    """A neighbour would take such an event for a broken one, and its publisher for one that breaks the protocol."""

    async def test() -> None:
        async with run_swarm([["a"]] * 2, local()) as (writer, reader):
            await eventually(lambda: linked(writer, reader))
            with pytest.raises(BadInput, match=r"give bytes, as text\.encode\(\) does"):
                await writer.publish("a", payload)
            receipt = await writer.publish("a", bytearray(b"good"), wait_for=1, timeout=PATIENCE)
            assert (receipt.accepted, receipt.event.sequence) == (1, 0)

    run(test)


def test_nobody_left_to_accept_an_event_shows_in_its_receipt() -> None:
    async def test() -> None:
        async with run_swarm([["a"]] * 2, local()) as (writer, reader):
            await eventually(lambda: linked(writer, reader))
            reader.transport.blocked = lambda peer: True
            receipt = await writer.publish("a", b"lost", wait_for=1, timeout=0.5)
            assert (receipt.neighbours, receipt.accepted) == (1, 0)
            assert receipt.reason == "only 0 of 1 neighbours accepted it in time"

    run(test)


# Clocks.


def test_a_stored_time_far_ahead_spoils_no_event(tmp_path: Path) -> None:
    from topicweave.live.authority import issue, new_swarm
    from topicweave.live.store import Store

    async def test() -> None:
        swarm = new_swarm(tmp_path / "swarm")
        keys = [str(issue(swarm, name)) for name in ("alice", "bob")]
        store = Store(tmp_path / "data")
        store.set_fact("now", wall() + 2 * 365 * 86_400)
        store.commit()
        store.close()
        async with (
            topicweave.connect(secure(keys[0], subscribe=("a",), data=str(tmp_path / "data"))) as alice,
            topicweave.connect(secure(keys[1], subscribe=("a",), join=(str(alice.address),))) as bob,
        ):
            await eventually(lambda: linked(alice, bob))
            for writer, reader in ((alice, bob), (bob, alice)):
                receipt = await writer.publish("a", writer.name.encode(), wait_for=1, timeout=30)
                assert receipt.accepted == 1
                await eventually(lambda w=writer, r=reader: w.name.encode() in payloads(r))  # type: ignore[misc]  # what the loop had
            assert any("earlier life" in reason for reason in health(alice)["reasons"])

    run(test)


def test_skew_between_neighbours_is_measured_and_reported() -> None:
    async def test() -> None:
        async with topicweave.connect(local(subscribe=("a",))) as one:
            settings = local(subscribe=("a",), join=(str(one.address),))
            behind = LiveNode(settings, wall=lambda: wall() - 7200)
            async with topicweave.connect(settings), topicweave.connect(settings):
                await behind.start()
                try:
                    await eventually(lambda: len(behind.clock.skews) >= 3)
                    state = health(behind)
                    assert 7190 < state["clock_skew"] < 7210
                    assert any("behind most neighbours" in reason for reason in state["reasons"])
                    assert behind.clock.skews.correction() == 3600.0, "bounded"
                    assert abs(health(one)["clock_skew"]) < 30, "one of three does not move the others"
                finally:
                    await behind.stop()

    run(test)


def test_a_wall_clock_that_jumps_is_reported_and_harms_nothing() -> None:
    async def test() -> None:
        jump = [0.0]
        node = LiveNode(local(subscribe=("a",)), wall=lambda: wall() + jump[0])
        await node.start()
        try:
            await node.publish("a", b"before")
            jump[0] = -86_400.0
            await node.publish("a", b"after")
            await eventually(lambda: payloads(node) == [b"before", b"after"])
            assert any("set back by 86400 s" in reason for reason in health(node)["reasons"])
        finally:
            await node.stop()

    run(test)


# Joining.


def test_why_joining_fails_is_told_on_both_sides(tmp_path: Path) -> None:
    from topicweave.live.authority import issue, new_swarm

    async def test() -> None:
        swarm, other = new_swarm(tmp_path / "swarm"), new_swarm(tmp_path / "other")
        async with topicweave.connect(secure(issue(swarm, "alice"))) as alice:
            join = (str(alice.address),)
            misfits = {
                "wrong system": secure(issue(swarm, "bob"), system="random", join=join),
                "wrong swarm": secure(issue(other, "eve"), join=join),
                "no keys": local(join=join),
                "expired": secure(issue(swarm, "late", days=-1), join=join),
            }
            words = {
                "wrong system": "random",
                "wrong swarm": "certificate",
                "no keys": "",
                "expired": "expired",
            }
            for case, settings in misfits.items():
                before = len(alice.transport.troubles.as_list(0.0))
                async with topicweave.connect(settings) as node:
                    await eventually(lambda n=node: health(n)["troubles"], case)  # type: ignore[misc]  # what the loop had
                    state = health(node)
                    assert state["status"] in ("alone", "failing")
                    told = " ".join(state["reasons"])
                    assert join[0] in told, (case, told)
                    assert words[case] in told, (case, told)
                troubles = alice.transport.troubles.as_list(0.0)
                assert troubles, (case, before)
            assert any("'bob' at 127.0.0.1" in one["with"] for one in alice.transport.troubles.as_list(0.0))

    run(test)


def test_what_keeps_a_process_from_joining_stands_on_stderr_in_words_and_in_json() -> None:
    with processes() as start:
        options = ("--insecure", "--preset", "local", "--join", "127.0.0.1:1")
        plain, as_json = start(*options), start(*options, "--log-json", "--log-level", "info")
        for node in (plain, as_json):
            node.where()
        plain.stop()
        as_json.stop()
        assert plain.process.stderr is not None
        assert as_json.process.stderr is not None
        assert "dialling 127.0.0.1:1: nobody listens there" in plain.process.stderr.read()
        lines = [json.loads(line) for line in as_json.process.stderr.read().splitlines()]
        assert any("127.0.0.1:1" in line["message"] for line in lines)
