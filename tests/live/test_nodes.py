"""A few nodes over real sockets."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import msgspec
import pytest

import topicweave
from tests.live.together import PATIENCE, eventually, kept_port, linked, local, run, taken
from topicweave.blocks.broadcast_tree import NOBODY, Prune
from topicweave.blocks.interest_node import ViewNode
from topicweave.blocks.topic_directory.messages import Beat, Got
from topicweave.errors import BadInput
from topicweave.live import LiveNode
from topicweave.live.link import PeerLink
from topicweave.live.settings import Address
from topicweave.live.swarm import run_swarm
from topicweave.model.ids import ring_id


def test_the_api_as_the_readme_shows_it() -> None:
    async def test() -> None:
        async with (
            topicweave.connect(insecure=True, preset="local") as one,
            topicweave.connect(insecure=True, preset="local", join=[str(one.address)]) as two,
        ):
            await one.subscribe("news")
            await two.subscribe("news")
            receipt = await two.publish("news", b"hello", wait_for=1, timeout=PATIENCE)
            assert (receipt.neighbours, receipt.accepted, receipt.reason) == (1, 1, "")
            async for event in one.events():
                assert (event.topic, event.payload, event.publisher) == ("news", b"hello", two.name)
                break

    run(test)


def test_a_node_imports_nothing_heavy() -> None:
    code = (
        "import sys, topicweave.live, topicweave.live.running, topicweave.live.keyring, topicweave.live.http\n"
        "heavy = {'pyspark', 'numba', 'plotly', 'pyarrow', 'pandas', 'scipy', 'matplotlib'}\n"
        "print(sorted(heavy & {name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_receipt_says_why_nobody_took_the_event() -> None:
    async def test() -> None:
        async with topicweave.connect(local()) as alone:
            receipt = await alone.publish("news", b"anybody?")
            assert (receipt.neighbours, receipt.reason[:10]) == (0, "not joined")
            async with topicweave.connect(local(join=(str(alone.address),), subscribe=("sport",))):
                await eventually(lambda: alone.joined)
                receipt = await alone.publish("news", b"anybody?", wait_for=1, timeout=0.2)
                assert (receipt.accepted, receipt.reason[:24]) == (0, "nobody interested known ")

    run(test)


def test_a_receipt_tells_a_topic_that_nobody_wants_from_one_that_is_not_known_yet() -> None:
    """Only the topic's home can say the first; it is asked when somebody publishes."""

    async def test() -> None:
        async with run_swarm([["news"], ["news"], ["news", "sport"], ["news"]], local()) as swarm:
            writer, reader = swarm[0], swarm[2]
            await eventually(lambda: linked(*swarm))
            receipt = await writer.publish("weather", b"first")
            assert (receipt.neighbours, receipt.reason[:24]) == (0, "nobody interested known ")
            assert NOBODY not in receipt.reason, "not known yet"
            node, number = writer.node, writer.topics.id_of("weather")
            assert isinstance(node, ViewNode)
            await eventually(lambda: node.view.audience(number) is not None)
            assert NOBODY in (await writer.publish("weather", b"second")).reason
            await writer.publish("sport", b"goal")
            await eventually(lambda: ("sport", b"goal") in taken(reader))
            assert (await writer.publish("sport", b"another")).reason == ""

    run(test)


@pytest.mark.parametrize(("system", "runs_it"), [("vitis", False), ("scribe", False), ("spidercast", True)])
def test_only_a_system_that_uses_the_topic_directory_runs_it(system: str, runs_it: bool) -> None:
    sent: list[dict[str, list[int]]] = []

    async def counted(_number: int, node: LiveNode) -> None:
        node.world.control = {}
        sent.append(node.world.control)

    async def test() -> None:
        settings = local(system=system)
        async with run_swarm([["news", "sport"]] * 4, settings, before_start=counted) as swarm:
            await eventually(lambda: linked(*swarm))
            await swarm[0].publish("news", b"today")
            await eventually(lambda: all(sum(count for count, _ in kinds.values()) > 30 for kinds in sent))
            for kinds in sent:
                assert any(kind.startswith("dir-") for kind in kinds) == runs_it, sorted(kinds)

    run(test)


def test_a_full_queue_is_told_to_the_publisher() -> None:
    async def test() -> None:
        small = msgspec.structs.replace(local().limits, queue_bytes=1000)
        async with (
            topicweave.connect(local(subscribe=("news",), limits=small)) as one,
            topicweave.connect(local(subscribe=("news",), join=(str(one.address),))) as two,
        ):
            await eventually(lambda: linked(one, two))
            receipt = await one.publish("news", bytes(2000))
            assert (receipt.neighbours, receipt.reason[:10]) == (0, "queue full")
            assert one.counters.events_dropped == 1

    run(test)


def test_an_event_published_before_anybody_came_reaches_who_comes() -> None:
    async def test() -> None:
        async with topicweave.connect(local()) as one:
            await one.publish("news", b"early")
            async with topicweave.connect(local(join=(str(one.address),), subscribe=("news",))) as two:
                await eventually(lambda: taken(two) == [("news", b"early")])

    run(test)


def test_when_both_dial_at_once_one_connection_stays_and_nothing_is_lost() -> None:
    async def test() -> None:
        async with run_swarm([["a"]] * 2, local(), names=["one", "two"]) as (one, two):
            for _ in range(20):
                await asyncio.gather(one.transport.meet(two.address), two.transport.meet(one.address))
                await eventually(lambda: one.transport.connections == two.transport.connections == 1)
                # Both ends must have kept the same one: what is sent arrives.
                sent = len(taken(two))
                receipt = await one.publish("a", b"x", wait_for=1, timeout=PATIENCE)
                assert receipt.accepted == 1
                await eventually(lambda sent=sent: len(taken(two)) > sent)  # type: ignore[misc]  # what the loop had
            assert one.counters.protocol_errors == two.counters.protocol_errors == 0

    run(test)


def test_a_broken_connection_is_made_anew_and_the_overlay_does_not_notice() -> None:
    async def test() -> None:
        async with run_swarm([["a"]] * 2, local()) as (one, two):
            await eventually(lambda: linked(one, two))
            opened = one.counters.connections_opened
            for link in list(one.transport._links):
                link.abort()
            await eventually(lambda: one.counters.connections_opened > opened and one.joined)
            assert linked(one, two)
            receipt = await one.publish("a", b"again", wait_for=1, timeout=PATIENCE)
            assert receipt.accepted == 1

    run(test)


def test_a_node_that_leaves_is_forgotten_at_once() -> None:
    async def test() -> None:
        async with run_swarm([["a"]] * 3, local()) as nodes:
            await eventually(lambda: linked(*nodes))
            gone = nodes[2]
            await gone.stop()
            await eventually(lambda: all(gone.id not in {x.peer for x in n.node.links()} for n in nodes[:2]))
            assert all(node.counters.node_errors == 0 for node in nodes)

    run(test)


@pytest.mark.parametrize("changes", [{"system": "random"}, {"swarm": "another"}])
def test_nodes_of_another_system_or_swarm_are_told_and_refused(changes: dict[str, str]) -> None:
    async def test() -> None:
        async with topicweave.connect(local()) as one, topicweave.connect(local(**changes)) as other:
            with pytest.raises(ConnectionError, match=f"this is node '{one.name}'"):
                await other.transport.meet(one.address)
            assert one.counters.connections_refused == 1
            assert not one.joined

    run(test)


def test_a_node_that_starts_before_its_contact_joins_when_that_is_up() -> None:
    async def test() -> None:
        with kept_port() as address:
            async with topicweave.connect(local(subscribe=("a",), join=(address,))) as early:
                assert not early.joined
                async with topicweave.connect(local(subscribe=("a",), listen=address)) as late:
                    await eventually(lambda: linked(early, late))

    run(test)


def test_an_address_in_use_is_a_clear_error() -> None:
    async def test() -> None:
        async with topicweave.connect(local()) as one:
            with pytest.raises(BadInput, match="cannot listen"):
                await LiveNode(local(listen=str(one.address))).start()

    run(test)


def test_a_slow_application_loses_the_oldest_and_is_told() -> None:
    async def test() -> None:
        few = msgspec.structs.replace(local().limits, application_events=3)
        async with topicweave.connect(local(subscribe=("a",), limits=few)) as node:
            for number in range(5):
                await node.publish("a", b"%d" % number)
            await eventually(lambda: [payload for _, payload in taken(node)] == [b"2", b"3", b"4"])
            assert node.counters.application_drops == 2

    run(test)


def test_idle_connections_that_are_no_links_are_closed_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with run_swarm([["a"], ["b"]], local()) as (one, two):
            one.transport.pace = two.transport.pace = msgspec.structs.replace(
                one.transport.pace, idle_close=0.2
            )
            # Of so few, all are each other's contacts on the directory's ring, which stay connected: let
            # these two be none.
            for node in (one, two):
                node.node.world.cancel_timer(("sampling",))
                monkeypatch.setattr(node.world, "contacts", lambda: ())
            await eventually(lambda: not one.joined and not two.joined)
            assert one.counters.links_lost == two.counters.links_lost == 0

    run(test)


def test_addresses() -> None:
    assert str(Address.parse("[::1]:7000")) == "[::1]:7000"
    with pytest.raises(BadInput, match="IP address and a port"):
        Address.parse("127.0.0.1")


def test_a_dial_given_up_while_it_opens_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop closes such a connection without a word to whom it belongs; a link left over would fail
    each sweep, and nobody would be missed any more.
    """
    dials: list[asyncio.Task[object]] = []
    made = PeerLink.connection_made

    def connection_made(link: PeerLink, transport: object) -> None:
        made(link, transport)
        if link.dialled and dials:
            dials.pop().cancel()  # As its time limit does, a moment before it is open.

    monkeypatch.setattr(PeerLink, "connection_made", connection_made)

    async def test() -> None:
        async with topicweave.connect(local()) as one, topicweave.connect(local()) as other:
            dial = asyncio.create_task(one.transport.meet(other.address))
            dials.append(dial)
            with pytest.raises(asyncio.CancelledError):
                await dial
            await eventually(lambda: one.transport.connections == 0, "the link is gone")
            one.transport._sweep()
            assert await one.transport.meet(other.address) == other.id

    run(test)


def test_what_all_parts_of_a_node_say_to_a_peer_in_one_turn_leaves_in_one_frame() -> None:
    async def test() -> None:
        async with (
            topicweave.connect(local(subscribe=("news",))) as one,
            topicweave.connect(local(join=(str(one.address),), subscribe=("news",))) as two,
        ):
            await eventually(lambda: linked(one, two))
            transport = one.transport
            transport.sender.flush_all()
            counters = transport.counters
            frames, messages = counters.frames_sent, counters.messages_sent
            for message in (Beat(None), Got(1), Prune(ring_id("another topic"))):
                one.world.send(two.id, message)
            transport.sender.flush_all()
            assert counters.messages_sent - messages == 3
            assert counters.frames_sent - frames == 1

    run(test)
