"""The Python client of a node elsewhere, over real sockets: what it gets, what it does when the node goes
away, and how little it needs.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

import topicweave
from tests.live.together import (
    PATIENCE,
    PROCESS_PATIENCE,
    eventually,
    kept_port,
    linked,
    local,
    processes,
    run,
)
from topicweave.client import EventJson, Gap, RemoteNode, remote
from topicweave.errors import BadInput, TopicweaveError
from topicweave.live import LiveNode, http

HTTP = "127.0.0.1:0"


def door(node: LiveNode) -> str:
    assert node.http is not None
    return str(node.http.address)


class Reading:
    """What a client's reader has got so far."""

    def __init__(self, client: RemoteNode) -> None:
        self.events: list[EventJson] = []
        self._task = asyncio.create_task(self._read(client))

    async def _read(self, client: RemoteNode) -> None:
        async for event in client.events():
            self.events.append(event)

    @property
    def texts(self) -> list[str | None]:
        return [event.text for event in self.events]

    async def ended(self) -> None:
        await self._task


@asynccontextmanager
async def two_nodes(**changes: Any) -> AsyncIterator[tuple[LiveNode, LiveNode]]:
    async with (
        topicweave.connect(local(name="ann", subscribe=("news",), **changes)) as ann,
        topicweave.connect(local(name="door", http=HTTP, join=(str(ann.address),))) as bob,
    ):
        yield ann, bob


def test_publish_subscribe_and_read() -> None:
    async def test() -> None:
        async with two_nodes() as (ann, bob), RemoteNode(f"http://{door(bob)}/") as client:
            reading = Reading(client)
            await client.subscribe("news")
            assert (client.subscriptions, bob.subscriptions, client.connected) == (["news"], ["news"], True)
            await eventually(lambda: linked(ann, bob))
            receipt = await client.publish("news", b"\xff\x00", wait_for=1, timeout=PATIENCE)
            assert (receipt.neighbours, receipt.accepted, receipt.sequence) == (1, 1, 0)
            with pytest.raises(BadInput, match="give bytes"):
                await client.publish("news", cast("Any", "text"))
            await ann.publish("news", "hällo".encode())
            await eventually(lambda: len(reading.events) == 2)
            payloads = {event.publisher: event.payload for event in reading.events}
            assert payloads == {"door": b"\xff\x00", "ann": "hällo".encode()}
            assert (await client.health())["status"] == "ok"
            assert (await client.view())["name"] == "door"
            await client.unsubscribe("news")
            assert (client.subscriptions, bob.subscriptions) == ([], [])
            await client.close()
            await reading.ended()
            with pytest.raises(TopicweaveError, match="closed"):
                await client.publish("news", b"")

    run(test)


def test_the_past_comes_on_request() -> None:
    async def test() -> None:
        async with two_nodes() as (ann, bob), RemoteNode(door(bob)) as client:
            for number in range(5):
                await ann.publish("news", b"%d" % number)
            reading = Reading(client)
            await client.subscribe("news", last=2)
            await eventually(lambda: {"3", "4"} <= set(reading.texts))
            assert all(event.age > 0 for event in reading.events)

    run(test)


def test_a_node_that_comes_back_finds_its_client_again() -> None:
    """The door is stopped, events go on elsewhere, and a new node takes its place: nothing is missing,
    nothing comes twice.
    """

    async def test() -> None:
        states: list[bool] = []
        async with topicweave.connect(local(name="ann", subscribe=("news",))) as ann:
            settings: dict[str, Any] = {"name": "door", "http": address, "join": (str(ann.address),)}
            async with topicweave.connect(local(**settings)) as bob:
                client = RemoteNode(address, on_state=lambda connected, _: states.append(connected))
                await client.__aenter__()
                reading = Reading(client)
                await client.subscribe("news")
                await eventually(lambda: linked(ann, bob))
                await ann.publish("news", b"before")
                await eventually(lambda: reading.texts == ["before"])
            await eventually(lambda: not client.connected)
            for number in range(3):
                await ann.publish("news", b"meanwhile %d" % number)
            publishing = asyncio.create_task(client.publish("other", b"waits"))
            async with topicweave.connect(local(**settings)) as bob:
                await eventually(lambda: client.connected and bob.subscriptions == ["news"])
                assert (await publishing).sequence == 0
                await eventually(lambda: linked(ann, bob))
                await ann.publish("news", b"after")
                await eventually(lambda: len(reading.texts) >= 5)
                assert sorted(map(str, reading.texts)) == sorted(
                    ["before", *(f"meanwhile {number}" for number in range(3)), "after"]
                )
                await client.close()
        # A node that is stopping may let it in for a moment.
        assert (states[:2], states[-1]) == ([True, False], True)

    with kept_port() as address:
        run(test)


def test_what_comes_while_the_connection_is_away_is_not_lost() -> None:
    """The node wants the topics of a lost client on for a while, and gives it what came."""

    async def test() -> None:
        publishing: list[asyncio.Task[None]] = []

        async def publish() -> None:
            assert not client.connected
            for number in range(3):
                await node.publish("news", b"%d" % number)

        def told(connected: bool, _: str) -> None:
            if not connected and not publishing:
                publishing.append(asyncio.create_task(publish()))

        async with (
            topicweave.connect(local(http=HTTP)) as node,
            RemoteNode(door(node), on_state=told) as client,
        ):
            reading = Reading(client)
            await client.subscribe("news")
            assert client._socket is not None
            client._socket.transport.abort()
            await eventually(lambda: reading.texts == ["0", "1", "2"])
            await publishing[0]

    run(test)


def test_the_topics_of_a_lost_client_are_given_up_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "LINGER", 0.2)

    async def test() -> None:
        async with topicweave.connect(local(http=HTTP)) as node, RemoteNode(door(node)) as client:
            await client.subscribe("news")
            assert node.subscriptions == ["news"]
            client._topics.clear()
            assert client._socket is not None
            client._socket.transport.abort()
            await eventually(lambda: not node.subscriptions)

    run(test)


def test_a_node_that_stands_still_is_taken_for_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        with processes() as start:
            node = start("--insecure", "--preset", "local", "--http", HTTP)
            address = (await asyncio.to_thread(node.where))["http"]
            usual = remote.PING_EVERY
            monkeypatch.setattr(remote, "PING_EVERY", 1.0)
            async with RemoteNode(address) as client:
                # For the connections to come: a busy machine may be late.
                monkeypatch.setattr(remote, "PING_EVERY", usual)
                reading = Reading(client)
                await client.subscribe("news")
                node.process.send_signal(signal.SIGSTOP)
                asking = asyncio.create_task(client.publish("news", b"who knows"))
                with pytest.raises(TopicweaveError, match="nobody knows"):
                    await asking
                assert not client.connected
                node.process.send_signal(signal.SIGCONT)
                await client.publish("news", b"again")
                await eventually(lambda: "again" in reading.texts, patience=PROCESS_PATIENCE)

    run(test)


def test_who_does_not_read_is_told_what_is_missing() -> None:
    async def test() -> None:
        gaps: list[Gap] = []
        async with (
            topicweave.connect(local(name="door", http=HTTP)) as node,
            RemoteNode(door(node), on_gap=gaps.append, most_unread=2) as client,
        ):
            await client.subscribe("news")
            for number in range(4):
                await client.publish("news", b"%d" % number)
            await eventually(lambda: len(gaps) == 2)
            assert [(gap.first, gap.reason) for gap in gaps] == [(0, "unread"), (1, "unread")]
            read = [event.text async for event, _ in _first(client, 2)]
            assert read == ["2", "3"]

    run(test)


async def _first(client: RemoteNode, count: int) -> AsyncIterator[tuple[EventJson, int]]:
    number = 0
    async for event in client.events():
        number += 1
        yield event, number
        if number == count:
            return


def test_refusals_say_why() -> None:
    async def test() -> None:
        async with topicweave.connect(local(http=HTTP, token="secret")) as node:
            with pytest.raises(TopicweaveError, match="token is missing or wrong"):
                async with RemoteNode(door(node), token="guess"):
                    pass
            async with RemoteNode(door(node), token="secret") as client:
                with pytest.raises(TopicweaveError, match="length"):
                    await client.subscribe("")
                assert client.subscriptions == []
        with pytest.raises(TopicweaveError, match="cannot be used"):
            async with RemoteNode(door(node)):
                pass

    run(test)


def test_a_token_that_changed_ends_the_client() -> None:
    async def test() -> None:
        async with topicweave.connect(local(http=address, token="old")):
            client = RemoteNode(address, token="old")
            await client.__aenter__()
            reading = Reading(client)
        async with topicweave.connect(local(http=address, token="new")):
            with pytest.raises(TopicweaveError, match="token is missing or wrong"):
                await reading.ended()
            with pytest.raises(TopicweaveError, match="token is missing or wrong"):
                await client.publish("news", b"")
        await client.close()

    with kept_port() as address:
        run(test)


CLEAN = """
import asyncio, sys

class Wall:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in ("topicweave", "msgspec", "websockets"):
            raise ImportError(f"{name} is behind the wall")

sys.meta_path.insert(0, Wall())
from topicweave.client import RemoteNode

async def main():
    async with RemoteNode(sys.argv[1]) as node:
        await node.subscribe("news")
        await node.publish("news", b"light")
        async for event in node.events():
            print(event.text)
            break

asyncio.run(main())
ours = [name for name in sys.modules if name.startswith("topicweave.")]
heavy = {"numpy", "numba", "pyspark", "pyarrow", "scipy", "pandas"} & set(sys.modules)
print(*sorted({name.split(".")[1] for name in ours}), sorted(heavy))
"""


def test_it_needs_msgspec_and_websockets_and_nothing_heavier() -> None:
    async def test() -> None:
        async with topicweave.connect(local(http=HTTP)) as node:
            done = await asyncio.to_thread(
                subprocess.run,
                [sys.executable, "-c", CLEAN, door(node)],
                capture_output=True,
                text=True,
                timeout=PROCESS_PATIENCE,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            assert done.stdout.splitlines() == ["light", "client errors []"]

    run(test)


def test_a_study_is_found_where_there_is_no_websockets() -> None:
    """A cluster's nodes have what the pipeline needs, and no more."""
    program = "import sys; sys.modules['websockets'] = None; from topicweave.papers.catalogue import find_study; find_study('omen/fig6')"
    subprocess.run([sys.executable, "-c", program], check=True)
