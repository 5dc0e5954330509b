"""Keys, certificates and signatures, with real TLS."""

from __future__ import annotations

import asyncio
import os
import ssl
import stat
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.serialization import Encoding

import topicweave
from tests.live.together import eventually, linked, run, taken, total
from topicweave.blocks.broadcast_tree import Push
from topicweave.errors import BadInput
from topicweave.live import LiveNode, Settings
from topicweave.live.authority import issue, new_swarm
from topicweave.live.frames import FrameSplitter, Kind, ProtocolError
from topicweave.live.keyring import Keyring
from topicweave.live.settings import Address
from topicweave.live.swarm import run_swarm
from topicweave.live.wire import VERSIONS, Codec, Hello, hello_frame
from topicweave.model.event import Event
from topicweave.model.ids import ring_id


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    return new_swarm(tmp_path / "swarm")


def safe(keys: Path, **changes: object) -> Settings:
    return Settings(**{"keys": str(keys), "preset": "local", **changes})  # type: ignore[arg-type]  # options by name


async def stranger(address: Address, context: ssl.SSLContext | None) -> bytes:
    """Connect, say nothing, and return all that comes until the socket is closed."""
    reader, writer = await asyncio.open_connection(
        address.host, address.port, ssl=context, server_hostname="x" if context else None
    )
    try:
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        return await reader.read()
    except (ConnectionError, ssl.SSLError):
        return b""
    finally:
        writer.close()


def test_signed_events_reach_everybody(authority: Path) -> None:
    async def test() -> None:
        keys = [str(issue(authority, f"node-{number}")) for number in range(8)]
        async with run_swarm([["a", "b"]] * 8, safe(Path(keys[0])), keys=keys) as nodes:
            await eventually(lambda: linked(*nodes))
            for number, node in enumerate(nodes):
                await node.publish("a", b"%d" % number)
            expected = {("a", b"%d" % number) for number in range(8)}
            await eventually(lambda: all(set(taken(node)) == expected for node in nodes))
            assert nodes[0].feed is not None
            event = await nodes[0].feed.get()
            assert event is not None
            assert event.publisher.startswith("node-")
            for counter in ("forged_events", "protocol_errors", "node_errors"):
                assert total(nodes, counter) == 0

    run(test)


def test_private_keys_are_private_and_never_overwritten(authority: Path) -> None:
    folder = issue(authority, "alice")
    for file in (authority / "swarm.key", folder / "node.key"):
        assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    with pytest.raises(BadInput, match="already"):
        issue(authority, "alice")
    with pytest.raises(BadInput, match="already"):
        new_swarm(authority)


@pytest.mark.parametrize("name", ["", "x" * 65, "../alice", ".hidden"])
def test_names_that_make_no_folder_are_refused(authority: Path, name: str) -> None:
    with pytest.raises(BadInput, match="node name"):
        issue(authority, name)


def test_a_certificate_of_another_swarm_gets_a_closed_socket(authority: Path, tmp_path: Path) -> None:
    async def test() -> None:
        other = issue(new_swarm(tmp_path / "other"), "mallory")
        async with (
            topicweave.connect(safe(issue(authority, "alice"))) as alice,
            topicweave.connect(safe(other)) as mallory,
        ):
            with pytest.raises((OSError, ssl.SSLError)):
                await mallory.transport.meet(alice.address)
            await eventually(lambda: alice.counters.connections_refused >= 1)
            assert not alice.joined

    run(test)


def test_an_expired_certificate_gets_a_closed_socket(authority: Path) -> None:
    async def test() -> None:
        late = issue(authority, "late", days=-1)
        async with topicweave.connect(safe(issue(authority, "alice"))) as alice:
            context = Keyring(late, 10).context(server=False)
            assert await stranger(alice.address, context) == b""
            await eventually(lambda: alice.counters.connections_refused >= 1)
            assert not alice.joined

    run(test)


def test_unauthenticated_peers_get_nothing_but_a_closed_socket(authority: Path) -> None:
    async def test() -> None:
        async with topicweave.connect(safe(issue(authority, "alice"))) as alice:
            answer = await stranger(alice.address, None)
            # A TLS alert (record type 21) is how TLS itself closes; no byte of ours is in it.
            assert answer == b"" or answer[0] == 21
            no_certificate = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            no_certificate.check_hostname = False
            no_certificate.verify_mode = ssl.CERT_NONE
            assert await stranger(alice.address, no_certificate) == b""
            await eventually(lambda: alice.counters.connections_refused >= 2)

    run(test)


class Impostor:
    """A member of the swarm with keys of its own, who says what it likes."""

    def __init__(self, keys: Path, name: str) -> None:
        self.context = Keyring(keys, 10).context(server=False)
        self.name = name
        self.codec = Codec([Push], 100, 10_000)

    async def say_hello(self, to: LiveNode, system: str = "spidercast") -> None:
        host, port = to.address.host, to.address.port
        self.reader, self.writer = await asyncio.open_connection(
            host, port, ssl=self.context, server_hostname="x"
        )
        hello = Hello(
            "topicweave",
            VERSIONS,
            "topicweave",
            system,
            ring_id(self.name),
            self.name,
            Address("127.0.0.1", 9),
            1,
        )
        self.writer.write(hello_frame(hello))

    def push(self, event: Event) -> None:
        self.writer.write(self.codec.batch([self.codec.encode(Push(event, 1))]))

    async def closed(self) -> list[int]:
        """The kinds of all frames that came before the other side closed."""
        splitter, kinds = FrameSplitter(1 << 20), []
        try:
            while data := await self.reader.read(1 << 16):
                splitter.feed(data)
                while (found := splitter.next()) is not None:
                    kinds.append(found[0])
        except (ConnectionError, ssl.SSLError):
            pass
        self.writer.close()
        return kinds


def test_a_name_that_is_not_the_certificates_gets_a_closed_socket(authority: Path) -> None:
    async def test() -> None:
        async with topicweave.connect(safe(issue(authority, "alice"))) as alice:
            mallory = Impostor(issue(authority, "mallory"), "bob")
            await mallory.say_hello(alice)
            assert await mallory.closed() == []
            assert alice.counters.protocol_errors == 1

    run(test)


def test_forged_events_are_neither_delivered_nor_passed_on(authority: Path) -> None:
    async def test() -> None:
        keys = [str(issue(authority, name)) for name in ("alice", "bob")]
        async with run_swarm([["a"]] * 2, safe(Path(keys[0])), keys=keys) as (alice, bob):
            await eventually(lambda: linked(alice, bob))
            await bob.publish("a", b"true")
            await eventually(lambda: len(taken(alice)) == 1)
            logged = next(iter(alice.world.log.events(ring_id("a"))))
            genuine = alice.world.log.get(logged)
            assert genuine is not None
            event = genuine.event
            forgeries = [
                msgspec.structs.replace(event, sequence=event.sequence + 1),
                msgspec.structs.replace(event, epoch=event.epoch + 1),
                msgspec.structs.replace(event, payload=event.payload + b"!"),
                msgspec.structs.replace(event, payload=b""),
            ]
            for number, forgery in enumerate(forgeries, start=1):
                mallory = Impostor(issue(authority, f"mallory-{number}"), f"mallory-{number}")
                await mallory.say_hello(alice)
                mallory.push(forgery)
                assert Kind.HELLO in await mallory.closed(), "the link over which it came is cut"
                assert alice.counters.forged_events == number
            replay = Impostor(issue(authority, "mallory"), "mallory")
            await replay.say_hello(alice)
            replay.push(event)
            replay.push(
                msgspec.structs.replace(event, publisher=ring_id("alice"), sequence=event.sequence + 1)
            )
            # A forgery behind it shows when the replay has been dealt with.
            replay.push(forgeries[0])
            await replay.closed()
            assert taken(alice) == [("a", b"true")]
            assert taken(bob) == [("a", b"true")]
            assert bob.counters.forged_events == 0
            assert alice.counters.unverifiable_events == 1, "alice has no certificate of that name"

    run(test)


def test_a_credential_not_of_the_swarm_is_not_learnt(authority: Path, tmp_path: Path) -> None:
    ring = Keyring(issue(authority, "alice"), 10)
    foreign = Keyring(issue(new_swarm(tmp_path / "other"), "mallory"), 10)
    own = foreign.credential(ring_id("mallory"))
    assert own is not None
    with pytest.raises(ProtocolError, match="not of this swarm"):
        ring.learn(own.der)
    with pytest.raises(ProtocolError):
        ring.learn(b"garbage")
    authority_itself = ring._ca.public_bytes(Encoding.DER)
    with pytest.raises(ProtocolError, match="no node's"):
        ring.learn(authority_itself)


def test_keys_that_are_not_there_are_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="keys issue"):
        Keyring(tmp_path, 10)
