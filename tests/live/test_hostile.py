"""Peers that mean harm, or are broken: the node goes on serving, its memory stays bounded, its counters tell."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from collections.abc import AsyncIterator

import msgspec
import pytest

import topicweave
from tests.live.together import eventually, linked, local, run, taken
from topicweave.blocks.broadcast_tree import EventRun, Graft, IHave, Push
from topicweave.blocks.descriptors import Descriptor
from topicweave.blocks.peer_sampling import Offer
from topicweave.blocks.profiles import PeerProfile, TellProfiles
from topicweave.blocks.topic_directory.messages import Carry, Told, TopicContact
from topicweave.live import LiveNode, catch_up_messages
from topicweave.live.acceptance import MOST_HOPS
from topicweave.live.frames import FrameSplitter, Kind, frame
from topicweave.live.settings import Address
from topicweave.live.swarm import run_swarm
from topicweave.live.wire import VERSIONS, Hello, hello_frame
from topicweave.model.event import Event, EventId
from topicweave.model.ids import ring_id
from topicweave.port import Message
from topicweave.systems.spidercast.messages import Connect


@contextlib.asynccontextmanager
async def two_honest_nodes(**changes: object) -> AsyncIterator[tuple[LiveNode, LiveNode]]:
    """A pair that must go on serving each other whatever is done to the first."""
    async with run_swarm([["a"]] * 2, local(**changes), names=["victim", "friend"]) as (victim, friend):
        await eventually(lambda: linked(victim, friend))
        yield victim, friend
        await still_serving(victim, friend)


async def still_serving(victim: LiveNode, friend: LiveNode) -> None:
    for publisher, reader in ((victim, friend), (friend, victim)):
        had = len(taken(reader))
        await publisher.publish("a", b"still here")
        await eventually(lambda reader=reader, had=had: len(taken(reader)) > had)  # type: ignore[misc]  # what the loop had
    assert victim.counters.node_errors == 0, victim.world.last_error


class Attacker:
    """Speaks the protocol well enough to be let in."""

    def __init__(self, victim: LiveNode, name: str = "attacker") -> None:
        self.victim, self.name = victim, name

    async def __aenter__(self) -> Attacker:
        address = self.victim.address
        self.reader, self.writer = await asyncio.open_connection(address.host, address.port)
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.writer.close()

    async def enter(self) -> None:
        hello = Hello(
            "topicweave",
            VERSIONS,
            "topicweave",
            "spidercast",
            ring_id(self.name),
            self.name,
            Address("127.0.0.1", 9),
            random.Random(self.name).getrandbits(60),
        )
        self.writer.write(hello_frame(hello))
        splitter = FrameSplitter(1 << 20)
        while (found := splitter.next()) is None:
            splitter.feed(await self.reader.read(4096))
        assert found[0] == Kind.HELLO

    def say(self, *messages: Message) -> None:
        codec = self.victim.transport.codec
        self.writer.write(codec.batch([codec.encode(message) for message in messages]))

    async def closed(self) -> None:
        """Return when the victim has closed the connection."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(1 << 16):
                pass


GARBAGE = {
    "noise": random.Random(1).randbytes(5000),
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 10,
    "zero length": bytes(100),
    "oversized": (1 << 31).to_bytes(4, "big") + bytes(1000),
    "not a hello": frame(Kind.PING, bytes(8)),
    "half a hello": frame(Kind.HELLO, b"\x98\xaatopicweave"),
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_instead_of_a_hello(kind: str) -> None:
    async def test() -> None:
        async with two_honest_nodes() as (victim, _):
            async with Attacker(victim) as attacker:
                attacker.writer.write(GARBAGE[kind])
                assert await attacker.reader.read() == b"", "nothing but a closed socket"
            assert victim.counters.protocol_errors == 1

    run(test)


BROKEN = {
    "unknown kind": frame(Kind(1), b"").replace(b"\x01", b"\x63", 1)[:3] + b"\x01\x63",
    "oversized": (8 << 20).to_bytes(4, "big"),
    "garbage messages": frame(Kind.MESSAGES, random.Random(2).randbytes(3000)),
    "unknown message": frame(Kind.MESSAGES, msgspec.msgpack.encode([["no-such-message", 1]])),
    "a second hello": frame(Kind.HELLO, b""),
    "short ping": frame(Kind.PING, b"123"),
    "credential": frame(Kind.CREDENTIAL, b"x"),
    "too many addresses": frame(Kind.ADDRESSES, msgspec.msgpack.encode([[1, ["127.0.0.1", 1]]] * 5000)),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_member_that_breaks_the_protocol_is_cut_off(kind: str) -> None:
    async def test() -> None:
        async with two_honest_nodes() as (victim, _):
            async with Attacker(victim) as attacker:
                await attacker.enter()
                attacker.writer.write(BROKEN[kind])
                await attacker.closed()
            assert victim.counters.protocol_errors == 1

    run(test)


def test_a_truncated_frame_and_silence() -> None:
    async def test() -> None:
        async with two_honest_nodes() as (victim, _):
            victim.transport.pace = msgspec.structs.replace(
                victim.transport.pace, dead_after=1.5, heartbeat=0.5
            )
            async with Attacker(victim) as attacker:
                await attacker.enter()
                attacker.writer.write(frame(Kind.MESSAGES, bytes(100))[:50])
                await attacker.closed()

    run(test)


def test_one_that_connects_and_says_nothing_is_closed() -> None:
    async def test() -> None:
        async with two_honest_nodes() as (victim, _):
            victim.transport.pace = msgspec.structs.replace(victim.transport.pace, hello_timeout=0.2)
            async with Attacker(victim) as attacker:
                assert await attacker.reader.read() == b""
            assert victim.counters.connections_refused >= 1

    run(test)


@pytest.mark.parametrize(
    "message",
    [
        Connect("greedy", 1, 1, 1, frozenset(range(20_000))),
        TellProfiles((PeerProfile(5, 1, frozenset(range(20_000))),)),
    ],
    ids=["connect", "profiles"],
)
def test_a_topic_flood(message: Message) -> None:
    async def test() -> None:
        async with two_honest_nodes() as (victim, _):
            async with Attacker(victim) as attacker:
                await attacker.enter()
                attacker.say(message)
                await attacker.closed()
            assert victim.counters.protocol_errors == 1
            assert victim.counters.bans == 1

    run(test)


def test_floods_of_events_and_announcements_are_held_in_bounds() -> None:
    async def test() -> None:
        few = msgspec.structs.replace(local().limits, cache_bytes=100_000)
        async with two_honest_nodes(limits=few, cache=50) as (victim, _):
            topic = ring_id("a")
            async with Attacker(victim) as attacker:
                await attacker.enter()
                for number in range(3000):
                    attacker.say(Push(Event(number, topic, 1, 0, bytes(500)), 1))
                attacker.say(
                    *(IHave(tuple(EventRun(n, topic, 1, n, n + 9) for n in range(1000))) for _ in range(20))
                )
                attacker.say(
                    catch_up_messages.Inventory(tuple(EventId(n, topic, 9, n) for n in range(5000))),
                    catch_up_messages.Summary(
                        tuple(catch_up_messages.TopicDigest(n, 1, 1) for n in range(10_000)), answer=False
                    ),
                    catch_up_messages.CatchUp(Event(77, topic, 1, 1, b"never asked for"), 1),
                )
                attacker.writer.write(frame(Kind.PING, bytes(8)))
                await eventually(lambda: victim.counters.messages_received > 3000)
            assert len(victim.world.log) <= 50
            assert victim.world.log.bytes <= 100_000
            assert len(victim.transport.book) <= few.addresses
            assert ("a", b"never asked for") not in taken(victim)
            assert len(victim.world.pending_timers) < 2000

    run(test)


def test_numbers_at_their_ends_do_not_upset_a_node() -> None:
    """Well-typed messages with absurd values: whatever a node makes of them, it goes on serving."""

    async def test() -> None:
        ends = (0, 1, -1, 2**31, 2**53, -(2**63), 2**63, 2**64 - 1)
        async with two_honest_nodes() as (victim, friend):
            for end in ends:
                for message in (
                    Connect("greedy", end, end, end, frozenset({abs(end) % 2**64})),
                    Connect("no such task", end, end, end, frozenset()),
                    Offer((Descriptor(end, float(end), end, frozenset({ring_id("a")})),)),
                    IHave((EventRun(1, ring_id("a"), end, end, end), EventRun(1, ring_id("a"), 1, 0, end))),
                    Graft((EventRun(1, ring_id("a"), end, end, end), EventRun(1, ring_id("a"), 1, 0, end))),
                ):
                    async with Attacker(victim, f"attacker {end}") as attacker:
                        await attacker.enter()
                        attacker.say(message)
                        attacker.writer.write(frame(Kind.PING, bytes(8)))
                        await attacker.reader.read(1)
            await still_serving(victim, friend)

    run(test)


def test_an_event_that_claims_to_have_crossed_absurdly_many_links_goes_no_further() -> None:
    """Its next hop would not decode: the neighbours would cut off a node that passed it on."""

    async def test() -> None:
        async with two_honest_nodes() as (victim, friend), Attacker(victim) as attacker:
            await attacker.enter()
            for number, hops in enumerate((2**31 - 1, MOST_HOPS + 1, MOST_HOPS)):
                attacker.say(Push(Event(ring_id("attacker"), ring_id("a"), 1, number, b"%d" % number), hops))
            await eventually(lambda: ("a", b"2") in taken(victim))
            assert victim.counters.far_travelled == 2
            assert [payload for _, payload in taken(victim)] == [b"2"]
            assert victim.counters.protocol_errors == friend.counters.protocol_errors == 0

    run(test)


def test_a_slow_reader_is_bounded_and_closed() -> None:
    async def test() -> None:
        small = msgspec.structs.replace(local().limits, queue_bytes=300_000)
        async with two_honest_nodes(limits=small) as (victim, _):
            victim.transport.pace = msgspec.structs.replace(victim.transport.pace, dead_after=2.0)
            address = victim.address
            slow = socket.create_connection((address.host, address.port))
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            hello = Hello(
                "topicweave",
                VERSIONS,
                "topicweave",
                "spidercast",
                ring_id("slow"),
                "slow",
                Address("127.0.0.1", 9),
                1,
            )
            slow.sendall(hello_frame(hello))
            await eventually(lambda: ring_id("slow") in victim.transport.connected)
            waiting = 0
            for _ in range(200):
                victim.transport.sender.send_event(ring_id("slow"), Push(Event(1, 2, 3, 4, bytes(50_000)), 1))
                await asyncio.sleep(0)
                waiting = max(waiting, victim.transport.waiting_bytes)
                slow.send(frame(Kind.PING, bytes(8)))
            assert waiting <= small.queue_bytes
            assert victim.counters.events_dropped > 0
            slow.setblocking(False)
            await eventually(lambda: ring_id("slow") not in victim.transport.connected)
            slow.close()

    run(test)


def test_a_peer_beyond_its_rate_is_read_more_slowly_and_loses_nothing() -> None:
    async def test() -> None:
        slowly = msgspec.structs.replace(local().limits, messages_per_second=400)
        async with run_swarm([["a"]] * 2, local(limits=slowly)) as (one, two):
            await eventually(lambda: linked(one, two))
            for number in range(1000):
                await one.publish("a", b"%d" % number)
                if number % 100 == 0:
                    await asyncio.sleep(0)
            await eventually(lambda: len(taken(two)) == 1000)
            assert two.counters.rate_limited > 0

    run(test)


def hammer(connections: int) -> None:
    async def test() -> None:
        few = msgspec.structs.replace(local().limits, half_open=20, connections=50)
        async with two_honest_nodes(limits=few) as (victim, _):
            address = victim.address
            loop = asyncio.get_running_loop()
            most = 0
            open_sockets: list[socket.socket] = []
            for _ in range(connections):
                one = socket.socket()
                one.setblocking(False)
                with contextlib.suppress(ConnectionError):
                    await loop.sock_connect(one, (address.host, address.port))
                open_sockets.append(one)
                if len(open_sockets) > 300:
                    open_sockets.pop(0).close()
                most = max(most, victim.transport.connections)
            await eventually(lambda: victim.counters.connections_refused >= connections - 300 - 50)
            assert most <= few.connections
            for one in open_sockets:
                one.close()

    run(test)


def test_a_thousand_connections() -> None:
    hammer(1000)


@pytest.mark.live
def test_ten_thousand_connections() -> None:
    hammer(10_000)


def test_connections_beyond_the_limit_do_not_push_out_the_overlays_links() -> None:
    async def test() -> None:
        few = msgspec.structs.replace(local().limits, connections=4)
        async with two_honest_nodes(limits=few) as (victim, friend), contextlib.AsyncExitStack() as stack:
            for number in range(12):
                attacker = await stack.enter_async_context(Attacker(victim, f"attacker {number}"))
                with contextlib.suppress(ConnectionError, AssertionError, TimeoutError):
                    async with asyncio.timeout(1.0):
                        await attacker.enter()
            assert victim.transport.connections <= few.connections + 1
            assert linked(victim, friend)

    run(test)


def test_two_nodes_can_say_the_same_name_only_one_at_a_time() -> None:
    """Without keys a name is only a claim; a second claimant takes the place of the first, and nothing breaks."""

    async def test() -> None:
        async with (
            topicweave.connect(local(name="same", subscribe=("a",))) as one,
            topicweave.connect(local(name="same", subscribe=("a",))) as two,
        ):
            with pytest.raises(ConnectionError):
                await two.transport.meet(one.address)
            assert one.counters.node_errors == 0

    run(test)


def test_invented_subscribers_are_not_dialled() -> None:
    async def test() -> None:
        async with two_honest_nodes() as (victim, _), Attacker(victim) as attacker:
            await attacker.enter()
            dialled = victim.counters.connections_opened, victim.counters.dials_failed
            for number in range(200):
                invented = tuple(
                    TopicContact(ring_id(f"nobody {number} {one}"), None, 3600) for one in range(8)
                )
                attacker.say(Carry(number, told=(Told(victim.id, ring_id("a"), invented, 9, 60.0),)))
            await eventually(lambda: victim.counters.unroutable > 0, "it does not know where they live")
            assert (victim.counters.connections_opened, victim.counters.dials_failed) == dialled

    run(test)


def test_who_says_that_it_lives_at_a_victims_address_gets_no_more_dials_there() -> None:
    """The address in a hello is a claim; only one that was dialled and answered is known to be a member's."""

    async def test() -> None:
        nobody = Address("127.0.0.1", 9)
        async with topicweave.connect(local(name="reader", subscribe=("a",))) as reader:
            targets = reader.transport.dialler.targets
            for _ in range(9):
                targets.failed(nobody, reader.transport.loop.time())
            liar = local(name="liar", advertise=str(nobody), join=(str(reader.address),))
            async with topicweave.connect(liar) as other:
                await eventually(lambda: reader.joined and other.joined)
                assert not targets.may(nobody, reader.transport.loop.time())
                assert not reader.transport.dialler.targets.member(nobody)
                assert other.transport.dialler.targets.member(reader.address), "dialled, and it answered"

    run(test)
