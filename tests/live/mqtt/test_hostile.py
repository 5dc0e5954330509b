"""Clients that break the rules, flood, or do not read: bounded memory, one clear reason, and the others are served."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import socket
import ssl
import threading
from pathlib import Path

import msgspec
import pytest

import topicweave
from tests.live.mqtt.test_accounts import hashed
from tests.live.mqtt.test_door import Raw, at, certificate, doors, next_of, said
from tests.live.together import eventually, local, run, taken
from topicweave.live import LiveNode
from topicweave.live.http_crowd import FREE_GUESSES
from topicweave.live.memory import EVENT
from topicweave.live.mqtt import server
from topicweave.live.mqtt.accounts import Accounts
from topicweave.live.mqtt.codec import encode
from topicweave.live.mqtt.envelope import MAGIC, unwrap
from topicweave.live.mqtt.packets import (
    V5,
    V311,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Puback,
    Publish,
    Pubrec,
    Pubrel,
    Reason,
    Subscribe,
    Unsubscribe,
    Will,
    Wish,
)
from topicweave.live.settings import Limits

HONEST: list[Packet] = [
    Connect("c", keep_alive=60, will=Will("w", b"gone", 1, True)),
    Publish("t", b"payload", 1, packet_id=7, properties={"content_type": "text/plain"}),
    Publish("t", b"payload", 2, packet_id=8),
    Pubrel(8),
    Puback(9),
    Pubrec(10),
    Subscribe(3, (Wish("t", 2), Wish("u/v", 1))),
    Unsubscribe(4, ("t",)),
    Pingreq(),
    Disconnect(),
]


async def still_serves(node: LiveNode) -> None:
    async with at(node) as client:
        await client.subscribe("alive", qos=1)
        await client.publish("alive", b"yes", qos=1)
        assert said((await next_of(client))[0]) == ("alive", b"yes", False)


def test_mangled_packets_end_one_connection_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    """Honest packets with bytes changed, cut or doubled, in any order, over real sockets."""
    rng = random.Random(1)

    def mangled(version: int) -> bytes:
        parts = [encode(Connect("c", version), version)] if rng.random() < 0.8 else []
        for packet in rng.choices(HONEST, k=5):
            data = bytearray(encode(packet, version))
            for _ in range(rng.randrange(3)):
                if data:
                    at_ = rng.randrange(len(data))
                    if rng.random() < 0.7:
                        data[at_] = rng.randrange(256)
                    else:
                        del data[at_ : at_ + rng.randrange(1, 4)]
            parts.append(bytes(data))
        return b"".join(parts)

    async def attack(node: LiveNode, version: int) -> None:
        async with Raw(node, version) as client:
            client.writing.write(mangled(version))
            with contextlib.suppress(ConnectionError):
                await client.writing.drain()
                client.writing.write_eof()
                while await client._reading.read(65536):
                    pass

    async def test() -> None:
        async with doors(1) as (node,):
            for number in range(300):
                async with asyncio.timeout(30):
                    await attack(node, (V311, V5)[number % 2])
            assert node.mqtt is not None
            port = node.mqtt
            await eventually(lambda: not port.connections)
            await still_serves(node)

    with caplog.at_level(logging.WARNING):
        run(test)
    assert not [record for record in caplog.records if record.exc_info], "an error of the door's own"


@pytest.mark.parametrize("known", [False, True], ids=["first packet", "later packet"])
def test_a_packet_that_is_too_large_is_refused_by_its_length(known: bool) -> None:
    async def test() -> None:
        async with doors(1) as (node,), Raw(node) as client:
            if known:
                await client.ask(Connect("c"))
            # Only the head comes: nobody waits for the rest.
            client.writing.write(bytes([0x32 if known else 0x10, 0xFF, 0xFF, 0xFF, 0x7F]))
            told = await client.hear()
            if known:
                assert isinstance(told, Disconnect)
                assert told.reason == Reason.TOO_LARGE
                told = await client.hear()
            assert told is None
            await still_serves(node)

    run(test)


def test_a_client_that_does_not_read_costs_bounded_memory_and_holds_up_nobody() -> None:
    most = 256 * 1024

    async def test() -> None:
        limits = Limits(application_bytes=most)
        async with doors(1, limits=limits) as (node,), Raw(node) as slow, at(node) as quick:
            assert node.mqtt is not None
            await slow.ask(Connect("slow", properties={"receive_maximum": 4}))
            await slow.ask(Subscribe(1, (Wish("t", 1),)))
            await quick.subscribe("t", qos=1)
            sent = 200
            for number in range(sent):
                await quick.publish("t", number.to_bytes(2, "big") + bytes(8000), qos=1)
                (message,) = await next_of(quick)
                assert isinstance(message.payload, bytes)
                assert message.payload[:2] == number.to_bytes(2, "big"), "the other one is served in order"
            session = node.mqtt.door.sessions["slow"]
            assert session.bytes <= most + 8002 + EVENT
            assert session.dropped == sent - len(session), "what is not kept is counted"
            assert node.world.memory.held["unread"] >= session.bytes
        assert not node.world.memory.held["unread"], "and given back"

    run(test)


def test_strangers_that_say_nothing_make_room_for_those_who_do(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "MOST_STRANGERS", 20)

    async def test() -> None:
        async with doors(1) as (node,), contextlib.AsyncExitStack() as stack:
            assert node.mqtt is not None
            for _ in range(100):
                await stack.enter_async_context(Raw(node))
            port = node.mqtt
            await eventually(lambda: len(port.connections) <= 20)
            await still_serves(node)

    with caplog.at_level(logging.WARNING):
        run(test)
    lines = [record for record in caplog.records if "have not said who they are" in record.getMessage()]
    assert 1 <= len(lines) < 20, "a flood of connections is not one of lines"


def test_places_are_bounded_and_a_free_one_is_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_CLIENTS", 3)

    async def test() -> None:
        async with doors(1) as (node,), contextlib.AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(Raw(node)) for _ in range(3)]
            for number, client in enumerate(clients):
                assert isinstance(await client.ask(Connect(str(number))), Connack)
            async with Raw(node) as one_more:
                assert await one_more.hear() is None
            await clients[0].say(Disconnect())
            assert await clients[0].hear() is None
            await still_serves(node)

    run(test)


def test_who_guesses_passwords_has_to_wait(tmp_path: Path) -> None:
    (tmp_path / "passwords").write_text(f"alice:{hashed(b'secret')}\n")

    async def test() -> None:
        async with doors(1, mqtt_passwords=str(tmp_path / "passwords")) as (node,):
            reasons = []
            for number in range(3 * FREE_GUESSES):
                async with Raw(node) as client:
                    guess = str(number).encode()
                    answer = await client.ask(Connect("c", username="alice", password=guess))
                    assert isinstance(answer, Connack)
                    reasons.append(answer.reason)
            assert reasons[:FREE_GUESSES] == [Reason.BAD_PASSWORD] * FREE_GUESSES
            assert Reason.RATE in reasons[FREE_GUESSES:]

    run(test)


def test_who_comes_while_the_node_stops_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its password was looked at meanwhile; nobody would publish its will."""
    passwords = tmp_path / "passwords"
    passwords.write_text(f"alice:{hashed(b'right')}\n")
    looks, stops = threading.Event(), threading.Event()

    def known(*_: object) -> bool:
        looks.set()
        return stops.wait(30.0)

    monkeypatch.setattr(Accounts, "known", known)

    async def test() -> None:
        settings = local(mqtt="127.0.0.1:0", mqtt_passwords=str(passwords))
        async with topicweave.connect(settings) as node:
            client = await Raw(node).__aenter__()
            assert node.mqtt is not None
            door = node.mqtt.door
            stop = door.stop

            async def stop_slowly() -> None:
                await stop()
                stops.set()
                assert await client.hear() == Connack(
                    Reason.UNAVAILABLE, False, {"reason_text": "the node stops"}
                )

            monkeypatch.setattr(door, "stop", stop_slowly)
            await client.say(Connect("c", username="alice", password=b"right", will=Will("t", b"x")))
            await eventually(looks.is_set)
        client.writing.close()
        assert not door.sessions

    run(test)


@pytest.mark.parametrize("version", [V311, V5])
def test_many_messages_at_once_are_answered_in_order_or_refused_as_the_version_says(version: int) -> None:
    async def test() -> None:
        async with doors(1) as (node,), Raw(node, version) as client:
            await client.ask(Connect("c", version))
            numbers = range(1, 2 * server.RECEIVE_MAXIMUM + 1)
            await client.say(*(Publish("t", bytes(10), 1, packet_id=number) for number in numbers))
            if version == V311:
                told = [await client.hear() for _ in numbers]
                assert [one.packet_id for one in told if isinstance(one, Puback)] == list(numbers)
                return
            while isinstance(last := await client.hear(), Puback):
                pass
            assert isinstance(last, Disconnect)
            assert last.reason == Reason.RECEIVE_MAXIMUM

    run(test)


def test_a_door_off_loopback_asks_for_passwords() -> None:
    from topicweave.errors import BadInput

    with pytest.raises(BadInput, match="mqtt_passwords"):
        local(mqtt="0.0.0.0:1883")


@pytest.mark.parametrize("version", [V311, V5])
@pytest.mark.parametrize("qos", [1, 2])
def test_what_is_never_taken_is_refused_for_good(
    version: int, qos: int, caplog: pytest.LogCaptureFixture
) -> None:
    """MQTT 5 has a reason for it. A client of 3.1.1 would send it again for ever, so it is lost, and that is told."""
    limits = Limits(payload_bytes=4096)
    answer = Puback if qos == 1 else Pubrec

    async def test() -> None:
        async with doors(1, limits=limits, subscribe=("t",)) as (node,), Raw(node, version) as client:
            assert node.mqtt is not None
            hello = await client.ask(Connect("c" * 900, version))
            assert isinstance(hello, Connack)
            refused = [
                (Publish("l" * 991, b"x", qos), Reason.BAD_TOPIC),
                (Publish("/" * 127, b"x", qos), Reason.BAD_TOPIC),
            ]
            if version == V5:
                most = hello.properties["maximum_packet"]
                # Its long name travels with its messages, so that it does not hear itself.
                await client.ask(Subscribe(1, (Wish("other", no_local=True),)))
                refused.append((Publish("t", bytes(most - 20), qos), Reason.NOT_ACCEPTED))
                most -= 900
            else:
                most = node.mqtt.most_bytes
                refused += [(Publish("t", bytes(size), qos), Reason.NOT_ACCEPTED) for size in (most, 300_000)]
            for number, (message, reason) in enumerate(refused, start=1):
                told = await client.ask(msgspec.structs.replace(message, packet_id=number))
                assert told == answer(number, reason if version == V5 else 0)
            fits = Publish("t", bytes(most - 20), qos, packet_id=100)
            assert await client.ask(fits) == answer(100)
            await eventually(lambda: taken(node))
            assert [(topic, unwrap(payload)[0]) for topic, payload in taken(node)] == [("t", fits.payload)]
            lost = 0 if version == V5 else len(refused)
            assert node.mqtt.door.counts["dropped"] == lost
            assert bool([one for one in caplog.records if "is lost" in one.getMessage()]) == bool(lost)

    with caplog.at_level(logging.WARNING):
        run(test)


def test_a_head_that_makes_no_sense_ends_nothing() -> None:
    """Any application of the mesh may send one."""

    async def test() -> None:
        async with doors(1) as (node,), at(node) as client:
            await client.subscribe("t")
            for head in (b"\x93\x80\x00\xa1\xff", b"\x93\x80\x00\xa0"):
                await node.publish("t", MAGIC + len(head).to_bytes(4, "big") + head + b"x")
            got = [one.payload for one in await next_of(client, 2)]
            assert got == [MAGIC + b"\0\0\0\5\x93\x80\x00\xa1\xffx", b"x"]

    run(test)


@pytest.mark.parametrize("version", [V311, V5])
def test_a_large_message_may_follow_a_connect_at_once(version: int) -> None:
    async def test() -> None:
        async with doors(1, subscribe=("t",)) as (node,), Raw(node, version) as client:
            messages = [Publish("t", bytes(300_000), 1, packet_id=number) for number in (1, 2)]
            await client.say(Connect("c", version), *messages)
            assert isinstance(await client.hear(), Connack)
            assert [await client.hear() for _ in messages] == [Puback(1), Puback(2)]
            assert [len(payload) for _, payload in taken(node)] == [300_000] * 2

    run(test)


def test_a_packet_that_is_larger_than_was_told_ends_the_connection() -> None:
    async def test() -> None:
        async with doors(1) as (node,), Raw(node) as client:
            hello = await client.ask(Connect("c"))
            assert isinstance(hello, Connack)
            told = await client.ask(Publish("t", bytes(hello.properties["maximum_packet"]), 1, packet_id=1))
            assert isinstance(told, Disconnect)
            assert told.reason == Reason.TOO_LARGE

    run(test)


class Stalled:
    """A client that says what it has to and then reads nothing, behind a small buffer of its own machine."""

    def __init__(self, node: LiveNode, *packets: Packet, tls: ssl.SSLContext | None = None) -> None:
        assert node.mqtt is not None
        self._address = node.mqtt.address
        self._packets = packets
        self._tls = tls

    async def __aenter__(self) -> Stalled:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await asyncio.to_thread(self._speak)
        return self

    def _speak(self) -> None:
        self._socket.connect((self._address.host, self._address.port))
        if self._tls is not None:
            self._socket = self._tls.wrap_socket(self._socket)
        self.say(*self._packets)

    def say(self, *packets: Packet) -> None:
        self._socket.sendall(b"".join(encode(packet, V311) for packet in packets))

    async def __aexit__(self, *_: object) -> None:
        self._socket.close()


async def flood(node: LiveNode, topic: str) -> None:
    """More than any buffer between a door and a client holds."""
    for _ in range(120):
        await node.publish(topic, bytes(100_000))


def test_a_client_that_stops_reading_is_cut_off_and_its_will_is_published() -> None:
    async def test() -> None:
        async with doors(1) as (node,), at(node) as watcher:
            assert node.mqtt is not None
            door = node.mqtt.door
            await watcher.subscribe("wills", qos=1)
            will = Will("wills", b"stalled", 1)
            hello = Connect("stalled", V311, keep_alive=1, will=will)
            async with Stalled(node, hello, Subscribe(1, (Wish("big"),))):
                await eventually(lambda: "big" in node.subscriptions)
                await flood(node, "big")
                assert said((await next_of(watcher))[0]) == ("wills", b"stalled", False)
                assert "stalled" not in door.clients
                await eventually(lambda: len(node.mqtt.connections if node.mqtt else ()) == 1)

    run(test)


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
def test_a_client_that_stops_reading_does_not_hold_up_the_end(tls: bool, tmp_path: Path) -> None:
    async def test() -> None:
        files = certificate(tmp_path) if tls else {}
        trust = ssl.create_default_context(cafile=files["mqtt_certificate"]) if tls else None
        if trust is not None:
            trust.check_hostname = False
        async with contextlib.AsyncExitStack() as stack:
            async with doors(1, **files) as (node,):
                hello = (Connect("stalled", V311), Subscribe(1, (Wish("big"),)))
                await stack.enter_async_context(Stalled(node, *hello, tls=trust))
                await eventually(lambda: "big" in node.subscriptions)
                await flood(node, "big")
            assert node.mqtt is not None
            assert not node.mqtt.connections

    run(test)


def test_a_client_that_sends_and_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_PACKETS", 8)

    async def test() -> None:
        async with doors(1) as (node,):
            assert node.mqtt is not None
            door = node.mqtt.door
            hello = Connect("stalled", V311, keep_alive=1)
            pings = [Pingreq()] * 100
            async with Stalled(node, hello, Subscribe(1, (Wish("big"),))) as stalled:
                await eventually(lambda: "big" in node.subscriptions)
                await flood(node, "big")
                await asyncio.to_thread(stalled.say, *pings)
                await eventually(lambda: "stalled" not in door.clients)

    run(test)
