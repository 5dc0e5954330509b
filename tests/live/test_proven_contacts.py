"""Contacts that bear their subscriber's signature: keys and real TLS, and a member that lies."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from pathlib import Path

import pytest

import topicweave
from tests.live.together import eventually, linked, run, secure, taken, until_served
from topicweave.blocks.directory_view import DirectoryView
from topicweave.blocks.interest_node import ViewNode
from topicweave.blocks.topic_directory.messages import (
    WITHDRAWS,
    Announcement,
    Carry,
    Proof,
    ProvenCarry,
    Record,
    Told,
    TopicContact,
)
from topicweave.live import LiveNode
from topicweave.live.authority import issue, new_swarm, revoke_certificates
from topicweave.live.frames import FrameSplitter, Kind
from topicweave.live.keyring import CLOCK_SLACK, PROOF, Keyring
from topicweave.live.settings import Address
from topicweave.live.swarm import run_swarm
from topicweave.live.wire import VERSIONS, Hello, hello_frame
from topicweave.model.ids import NodeId, ring_id
from topicweave.port import PROOF_LASTS, Message
from topicweave.sim import proofs as simulated

SAID = b"statement"


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    return new_swarm(tmp_path / "swarm")


def keyrings(authority: Path, *names: str) -> list[Keyring]:
    """They know each other's certificates."""
    made = [Keyring(issue(authority, name), 10) for name in names]
    for one in made:
        for other in made:
            one.learn(other.own.der)
    return made


def test_a_proof_is_its_makers_and_says_what_was_said(authority: Path) -> None:
    alice, bob = keyrings(authority, "alice", "bob")
    wall = alice.own.begins + 600.0
    proof = alice.vouch(SAID, wall)
    assert len(proof) == PROOF == simulated.LENGTH
    assert bob.vouched(alice.id, SAID, proof, wall) == "good"
    assert bob.vouched(bob.id, SAID, proof, wall) == "unknown-key"
    renamed = bob.own.key_id + proof[8:]
    assert bob.vouched(bob.id, SAID, renamed, wall) == "forged"
    assert bob.vouched(alice.id, SAID + b"!", proof, wall) == "forged"
    later = proof[:8] + (int(wall) + 1).to_bytes(4, "big") + proof[12:]
    assert bob.vouched(alice.id, SAID, later, wall) == "forged"
    for wrong in (b"", proof[:-1], proof + b"\0", bytes(PROOF)):
        assert bob.vouched(alice.id, SAID, wrong, wall) != "good"


def test_a_proof_ends_and_none_comes_from_the_future(authority: Path) -> None:
    alice, bob = keyrings(authority, "alice", "bob")
    wall = alice.own.begins + 600.0
    proof = alice.vouch(SAID, wall)
    assert bob.vouched(alice.id, SAID, proof, wall + PROOF_LASTS + CLOCK_SLACK - 2) == "good"
    assert bob.vouched(alice.id, SAID, proof, wall + PROOF_LASTS + CLOCK_SLACK + 2) == "expired"
    assert bob.vouched(alice.id, SAID, proof, wall - CLOCK_SLACK - 2) == "expired"


def test_a_proof_under_a_certificate_that_was_revoked_or_ended_is_none(authority: Path) -> None:
    alice, bob = keyrings(authority, "alice", "bob")
    wall = alice.own.expires + CLOCK_SLACK + 2
    assert bob.vouched(alice.id, SAID, alice.vouch(SAID, wall), wall) == "expired"
    wall = alice.own.begins + 600.0
    proof = alice.vouch(SAID, wall)
    _, revoked = revoke_certificates(authority, "alice")
    assert bob.learn_revoked(revoked.read_bytes())
    assert bob.vouched(alice.id, SAID, proof, wall) == "revoked"


def test_a_certificate_issued_anew_vouches_beside_the_earlier_one(authority: Path, tmp_path: Path) -> None:
    alice, bob = keyrings(authority, "alice", "bob")
    wall = alice.own.begins + 600.0
    before = alice.vouch(SAID, wall)
    renewed = issue(authority, "alice", tmp_path / "renewed")
    for file in renewed.iterdir():
        shutil.copy(file, alice._folder / file.name)
    key = alice.own.key_id
    alice.reload()
    assert alice.own.key_id != key
    after = alice.vouch(SAID, wall)
    assert bob.vouched(alice.id, SAID, after, wall) == "unknown-key"
    bob.learn(alice.own.der)
    assert bob.vouched(alice.id, SAID, after, wall) == bob.vouched(alice.id, SAID, before, wall) == "good"


# A swarm, and a member of it that lies.


class Liar:
    """A member with keys of its own, who says what it likes."""

    def __init__(self, keys: Path, name: str) -> None:
        self.keyring = Keyring(keys, 10)
        self.name, self._number = name, 0

    async def join(self, victim: LiveNode) -> None:
        self.codec = victim.transport.codec
        address = victim.address
        self.reader, self.writer = await asyncio.open_connection(
            address.host, address.port, ssl=self.keyring.context(server=False), server_hostname="x"
        )
        nowhere = Address("127.0.0.1", 9)
        who = ("topicweave", VERSIONS, "topicweave", "spidercast", ring_id(self.name), self.name)
        self.writer.write(hello_frame(Hello(*who, nowhere, 1)))
        splitter = FrameSplitter(1 << 20)
        while (found := splitter.next()) is None:
            splitter.feed(await self.reader.read(4096))
        assert found[0] == Kind.HELLO
        self._drain = asyncio.create_task(self._read())

    async def _read(self) -> None:
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(1 << 16):
                pass

    def say(self, *messages: Message) -> None:
        self.writer.write(self.codec.batch([self.codec.encode(message) for message in messages]))

    def proof(self, peer: NodeId, topic: str) -> Proof:
        """As good as it can make one in the name of another."""
        wall = self.keyring.own.begins + 600.0
        return Proof(peer, 1, (ring_id(topic),), self.keyring.vouch(SAID, wall))

    async def leave(self) -> None:
        self.writer.close()
        await self._drain


def view_of(node: LiveNode) -> DirectoryView:
    assert isinstance(node.node, ViewNode)
    assert isinstance(node.node.view, DirectoryView)
    return node.node.view


def test_what_a_member_says_of_others_is_not_believed(authority: Path) -> None:
    async def test() -> None:
        names = ["alice", "bob", "carol", "dave"]
        keys = [str(issue(authority, name)) for name in names]
        wanted = [["rare", "a"], ["rare", "b"], ["c"], ["d"]]
        async with run_swarm(wanted, secure(keys[0]), keys=keys) as nodes:
            alice, bob, carol, dave = nodes
            await until_served([alice, bob], "rare")
            topic = ring_id("rare")

            def kept() -> list[set[NodeId]]:
                return [set(view_of(node).directory.home.subscribers(topic)) for node in nodes]

            await eventually(lambda: kept() == [{alice.id, bob.id}] * 4, "home and keepers know both")
            liar = Liar(issue(authority, "mallory"), "mallory")
            await liar.join(alice)
            had = alice.counters.unproven_contacts
            strangers = [carol.id, dave.id]
            for number in range(60):
                invented = tuple(TopicContact(peer, None, 3600) for peer in strangers)
                claimed = [Announcement(peer, 1, 6000.0, (topic,), b"\0") for peer in strangers]
                struck = Announcement(bob.id, 1 << 50, 60.0, (topic,), bytes([WITHDRAWS]))
                records = tuple(Record(topic, peer, 1, 6000.0, None, -1.0) for peer in strangers)
                said = ((*claimed, struck), (Told(alice.id, topic, invented, 9, 60.0),))
                forged = tuple(liar.proof(peer, "rare") for peer in (*strangers, bob.id))
                liar.say(
                    Carry(2 * number, *said, records=records),
                    ProvenCarry(2 * number + 1, *said, records=records, proofs=forged),
                )
            await eventually(lambda: alice.counters.unproven_contacts > had, "they were looked at")
            await alice.publish("rare", b"after all that")
            await eventually(lambda: ("rare", b"after all that") in taken(bob))
            await liar.leave()
            assert set(view_of(alice).subscribers(topic).tolist()) == {bob.id}
            assert kept() == [{alice.id, bob.id}] * 4
            assert all(node.counters.node_errors == 0 for node in nodes)
            assert alice.counters.protocol_errors == 0

    run(test)


def test_who_comes_later_finds_a_rare_topic_by_proofs(authority: Path) -> None:
    async def test() -> None:
        keys = [str(issue(authority, f"n{number}")) for number in range(8)]
        async with run_swarm([[f"own {n}"] for n in range(8)], secure(keys[0]), keys=keys) as nodes:
            first, second = nodes[2], nodes[5]
            await first.subscribe("rare")
            topic = ring_id("rare")
            await eventually(lambda: any(view_of(node).directory.home.subscribers(topic) for node in nodes))
            await second.subscribe("rare")
            await eventually(lambda: first.id in view_of(second).subscribers(topic).tolist())
            await eventually(lambda: linked(first, second))
            await second.publish("rare", b"hello")
            await eventually(lambda: ("rare", b"hello") in taken(first))
            assert sum(node.counters.unproven_contacts for node in nodes) == 0
            for node in nodes:
                home = view_of(node).directory.home
                for topic_kept in home.topics():
                    assert all(kept.proof is not None for kept in home._topics[topic_kept].kept.values())

    run(test)


def test_a_node_may_be_told_to_do_without_proofs(authority: Path) -> None:
    """As long as others are of an earlier version."""

    async def test() -> None:
        keys = issue(authority, "alice")
        async with topicweave.connect(secure(keys, unproven_contacts=True)) as lenient:
            assert lenient.world.vouched(5, b"", b"")
            assert not lenient.world.vouched(5, SAID, bytes(PROOF)), "a wrong one is none"
        async with topicweave.connect(secure(keys)) as strict:
            assert not strict.world.vouched(5, b"", b"")

    run(test)
