"""Nobody is shut out, nobody is fooled: seeds, admission, keys that change, addresses, permissions, budgets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import socket
import struct
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

import topicweave
from tests.live.test_hostile import Attacker, two_honest_nodes
from tests.live.test_http import ask, asked
from tests.live.together import (
    PATIENCE,
    eventually,
    kept_port,
    linked,
    local,
    processes,
    run,
    secure,
    taken,
    wall,
)
from topicweave.blocks.peer_sampling import NamesOffer
from topicweave.blocks.profiles import PeerProfile, TellProfiles, stamp
from topicweave.errors import BadInput
from topicweave.live import LiveNode, catch_up_messages, http_server
from topicweave.live.authority import issue, new_swarm, revoke_certificates
from topicweave.live.health import health, view
from topicweave.live.keyring import REVOKED_FILE, Keyring, Permissions
from topicweave.live.settings import Address
from topicweave.live.swarm import run_swarm
from topicweave.live.wire import AddressOf, addresses_frame
from topicweave.model.event import EventId
from topicweave.model.ids import ring_id

# Seeds.


def test_a_node_that_lost_everybody_goes_back_to_its_seeds() -> None:
    async def test() -> None:
        with kept_port() as address:
            async with (
                topicweave.connect(local(subscribe=("a",), listen=address)) as seed,
                topicweave.connect(local(subscribe=("a",), join=(address,))) as node,
            ):
                await eventually(lambda: linked(seed, node))
                await seed.stop()
                await eventually(lambda: not node.joined)
                async with topicweave.connect(local(subscribe=("a",), listen=address)) as again:
                    await eventually(lambda: linked(node, again), "the seed is back, and is found")
                    await again.publish("a", b"hello")
                    await eventually(lambda: ("a", b"hello") in taken(node))

    run(test)


def test_a_seed_may_be_a_name_and_every_address_of_it_is_tried_anew_each_time() -> None:
    async def test() -> None:
        asked_for: list[str] = []
        async with topicweave.connect(local(subscribe=("a",))) as seed:
            answers = [[Address("127.0.0.1", 1)], [Address("127.0.0.1", 1), seed.address]]

            async def resolver(host: str, port: int) -> Sequence[Address]:
                asked_for.append(host)
                if not answers:
                    raise OSError("no such name")
                return answers.pop(0)

            settings = local(subscribe=("a",), join=("seed.example.org:7000",))
            node = LiveNode(settings, resolver=resolver)
            await node.start()
            try:
                await eventually(lambda: linked(seed, node))
                assert set(asked_for) == {"seed.example.org"}
            finally:
                await node.stop()

    run(test)


def test_a_name_that_is_not_known_is_told() -> None:
    async def test() -> None:
        async def resolver(host: str, port: int) -> Sequence[Address]:
            raise OSError("no such name")

        node = LiveNode(local(join=("nowhere.invalid:7000",)), resolver=resolver)
        await node.start()
        try:
            assert any("nowhere.invalid:7000" in reason for reason in health(node)["reasons"])
        finally:
            await node.stop()

    run(test)


@pytest.mark.parametrize("text", ["", "host", "host:0", "host:99999", ":7000", "a b:1"])
def test_a_seed_that_can_be_none_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="say a host and a port"):
        local(join=(text,))


def test_ipv6_where_there_is_one() -> None:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("no ::1 here")

    async def test() -> None:
        async with run_swarm([["a"]] * 2, local(listen="[::1]:0")) as (one, two):
            await eventually(lambda: linked(one, two))

    run(test)


# Admission.


def test_strangers_who_sit_and_wait_keep_nobody_out() -> None:
    async def test() -> None:
        few = msgspec.structs.replace(local().limits, half_open=50)
        async with topicweave.connect(local(subscribe=("a",), limits=few)) as node:
            host, port = node.address.host, node.address.port
            strangers = [await asyncio.open_connection(host, port) for _ in range(200)]
            try:
                async with topicweave.connect(local(subscribe=("a",), join=(str(node.address),))) as member:
                    await eventually(lambda: linked(node, member))
            finally:
                for _, writer in strangers:
                    writer.close()

    run(test)


def test_idle_connections_keep_no_client_and_no_probe_from_the_http_port() -> None:
    async def test() -> None:
        async with topicweave.connect(local(http="127.0.0.1:0", token="secret")) as node:
            assert node.http is not None
            where = node.http.address
            idle = [await asyncio.open_connection(where.host, where.port) for _ in range(300)]
            try:
                for path in ("/live", "/ready"):
                    status, _ = await asked(node, path)
                    assert status == 200
                status, _ = await asked(node, "/view", Authorization="Bearer secret")
                assert status == 200
                assert len(node.http.crowd) <= 256
            finally:
                for _, writer in idle:
                    writer.close()

    run(test)


def test_requests_that_never_become_whole_keep_nobody_from_the_http_port(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with (
            topicweave.connect(local(http="127.0.0.1:0")) as node,
            contextlib.AsyncExitStack() as stack,
        ):
            assert node.http is not None
            where = node.http.address
            begun = (
                b"POST /publish HTTP/1.1\r\nHost: %b\r\nContent-Length: 100\r\n\r\n{" % str(where).encode()
            )

            async def begin() -> asyncio.StreamReader:
                reader, writer = await asyncio.open_connection(where.host, where.port)
                stack.callback(writer.close)
                writer.write(begun)
                return reader

            begin_many = [await begin() for _ in range(300)]
            await eventually(lambda: sum(one.at_eof() for one in begin_many) >= 40, "the eldest are closed")
            for path in ("/live", "/ready", "/view"):
                assert (await asked(node, path))[0] == 200
            assert len(node.http.crowd) <= 256
            monkeypatch.setattr(http_server, "BODY_SECONDS", 0.1)
            answer = await asyncio.wait_for((await begin()).read(), PATIENCE)
            assert answer.startswith(b"HTTP/1.1 408 "), "and the connection is closed"
            assert b"was not whole" in answer

    run(test)
    assert [record.getMessage() for record in caplog.records if record.name.startswith("uvicorn")] == []


def test_wrong_tokens_are_bounded() -> None:
    async def test() -> None:
        async with topicweave.connect(local(http="127.0.0.1:0", token="secret")) as node:

            def guess(number: int) -> int:
                return ask(node, "/view", "GET", None, {"Authorization": f"Bearer {number}"})[0]

            answers = [await asyncio.to_thread(guess, number) for number in range(30)]
            assert answers[:10] == [401] * 10
            assert 429 in answers[10:]
            status = 0
            while status != 200:  # The rightful token gets in a moment later, also from the same address.
                status, _ = await asked(node, "/view", Authorization="Bearer secret")
                await asyncio.sleep(0.2)

    run(test)


def test_ten_thousand_topics_are_subscribed_to_in_a_few_changes() -> None:
    async def test() -> None:
        async with run_swarm([["a"]] * 2, local()) as (one, two):
            await eventually(lambda: linked(one, two))
            before = one.node._interest_version  # type: ignore[attr-defined]  # a node of SpiderCast
            await one.subscribe(f"topic {number}" for number in range(10_000))
            assert len(one.subscriptions) == 10_001
            assert one.node._interest_version - before <= 5  # type: ignore[attr-defined]  # a node of SpiderCast

    run(test)


# Keys.


@pytest.fixture
def swarm(tmp_path: Path) -> Path:
    return new_swarm(tmp_path / "swarm")


def replace_keys(folder: Path, by: Path) -> None:
    for file in by.iterdir():
        shutil.copy(file, folder / file.name)


def test_a_certificate_issued_anew_costs_no_link_and_no_event(swarm: Path, tmp_path: Path) -> None:
    async def test() -> None:
        keys = [issue(swarm, name) for name in ("alice", "bob", "carol")]
        settings = secure(keys[0])
        async with run_swarm([["a"]] * 3, settings, keys=[str(one) for one in keys]) as nodes:
            alice, bob, carol = nodes
            await eventually(lambda: linked(*nodes))
            await alice.publish("a", b"old key", wait_for=1, timeout=PATIENCE)
            replace_keys(keys[0], issue(swarm, "alice", tmp_path / "anew"))
            alice.reload_keys()
            receipt = await alice.publish("a", b"new key", wait_for=1, timeout=30)
            assert receipt.accepted >= 1
            for node in (bob, carol):
                await eventually(lambda n=node: {("a", b"old key"), ("a", b"new key")} <= set(taken(n)))  # type: ignore[misc]  # what the loop had
                assert node.counters.forged_events == node.counters.links_lost == 0

    run(test)


def test_a_second_node_of_the_same_name_is_refused_and_both_sides_say_so(swarm: Path, tmp_path: Path) -> None:
    async def test() -> None:
        first, second = issue(swarm, "same"), issue(swarm, "same", tmp_path / "second")
        async with topicweave.connect(secure(issue(swarm, "alice"), subscribe=("a",))) as alice:
            join = (str(alice.address),)
            async with topicweave.connect(secure(first, subscribe=("a",), join=join)) as one:
                await eventually(lambda: linked(alice, one))
                async with topicweave.connect(secure(second, subscribe=("a",), join=join)) as two:
                    await eventually(
                        lambda: any("names must differ" in reason for reason in health(two)["reasons"])
                    )
                    assert health(two)["status"] == "alone"
                    assert alice.counters.duplicate_names >= 1
                    assert any("'same'" in one["with"] for one in health(alice)["troubles"])
                    await alice.publish("a", b"x")
                    await eventually(lambda: ("a", b"x") in taken(one), "the first one is not disturbed")

    run(test)


def test_a_certificate_that_ends_closes_open_links(swarm: Path) -> None:
    async def test() -> None:
        ahead = [0.0]
        async with topicweave.connect(secure(issue(swarm, "short", days=1), subscribe=("a",))) as short:
            settings = secure(issue(swarm, "long", days=9), subscribe=("a",), join=(str(short.address),))
            node = LiveNode(settings, wall=lambda: wall() + ahead[0])
            await node.start()
            try:
                await eventually(lambda: linked(short, node))
                ahead[0] = 2 * 86_400.0
                await eventually(lambda: not node.joined)
                assert any("expired" in one["what"] for one in health(node)["troubles"])
                await eventually(lambda: any("expired" in one["what"] for one in health(short)["troubles"]))
            finally:
                await node.stop()

    run(test)


def test_ones_own_certificate_that_ends_is_told(swarm: Path) -> None:
    async def test() -> None:
        node = LiveNode(secure(issue(swarm, "late", days=-1)))
        await node.start()
        try:
            state = health(node)
            assert state["status"] == "failing"
            assert any("own certificate is expired" in reason for reason in state["reasons"])
        finally:
            await node.stop()

    run(test)


def test_a_revoked_node_is_cut_off_everywhere_though_one_only_was_told(swarm: Path) -> None:
    async def test() -> None:
        names = ("alice", "bob", "mallory")
        keys = [issue(swarm, name) for name in names]
        async with run_swarm([["a"]] * 3, secure(keys[0]), keys=[str(one) for one in keys]) as nodes:
            alice, bob, mallory = nodes
            await eventually(lambda: linked(*nodes))
            count, path = revoke_certificates(swarm, "mallory")
            assert count == 1
            shutil.copy(path, keys[0] / REVOKED_FILE)
            alice.reload_keys()
            await eventually(lambda: not mallory.joined, "cut off by all")
            keyring = bob.keyring
            assert keyring is not None
            # Who had no connection to her hears of it a moment later than she.
            await eventually(lambda: len(keyring.revocations) == 1)
            await eventually(lambda: mallory.id not in {*alice.transport.connected, *bob.transport.connected})
            await alice.publish("a", b"without her")
            await eventually(lambda: ("a", b"without her") in taken(bob))

    run(test)


def test_a_running_process_reads_its_keys_again_on_sighup(swarm: Path, tmp_path: Path) -> None:
    import signal

    folder = issue(swarm, "alice")
    with processes() as start:
        node = start("--keys", str(folder), "--preset", "local", "--log-level", "info")
        node.where()
        before = Keyring(folder, 10).own.serial
        replace_keys(folder, issue(swarm, "alice", tmp_path / "anew"))
        assert Keyring(folder, 10).own.serial != before
        node.process.send_signal(signal.SIGHUP)
        assert node.process.stderr is not None
        assert "the keys were read again" in node.process.stderr.readline()
        assert node.stop() == 0


def test_certificates_say_what_their_holders_may_do(swarm: Path) -> None:
    async def test() -> None:
        sensor = issue(swarm, "sensor", permissions=Permissions(("sensors/",), ("commands/",)))
        async with topicweave.connect(
            secure(issue(swarm, "alice"), subscribe=("sensors/1", "secret", "news"))
        ) as alice:
            node = LiveNode(secure(sensor, subscribe=("commands/1",), join=(str(alice.address),)))
            await node.start()
            try:
                with pytest.raises(BadInput, match="does not allow to subscribe"):
                    await node.subscribe("secret")
                with pytest.raises(BadInput, match="does not allow to publish"):
                    await node.publish("news", b"x")
                receipt = await node.publish("sensors/1", b"21", wait_for=1, timeout=30)
                assert receipt.accepted == 1
                # A node that does not keep to its own certificate is kept to it by others.
                node._publisher._owner.keyring.own = msgspec.structs.replace(  # type: ignore[union-attr]  # it has keys
                    node.keyring.own,  # type: ignore[union-attr]  # it has keys
                    permissions=Permissions(),
                )
                receipt = await node.publish("news", b"lies", wait_for=1, timeout=10)
                assert (receipt.accepted, receipt.refused) == (0, {"not-permitted": 1})
                await node.subscribe("secret")
                await eventually(lambda: node.node.degree)
                await alice.publish("secret", b"not for sensors")
                await eventually(lambda: alice.counters.withheld_events > 0)
                assert ("secret", b"not for sensors") not in taken(node)
            finally:
                await node.stop()

    run(test)


# Addresses.


def test_nobody_makes_a_swarm_with_keys_dial_where_it_likes(swarm: Path) -> None:
    async def test() -> None:
        async with topicweave.connect(secure(issue(swarm, "alice"), subscribe=("a",))) as alice:
            victim = Address("127.0.0.1", 9)
            lies = [AddressOf(number, victim, 1, bytes(72)) for number in range(100)]
            join = (str(alice.address),)
            async with topicweave.connect(
                secure(issue(swarm, "mallory"), subscribe=("a",), join=join)
            ) as mallory:
                await eventually(lambda: linked(alice, mallory))
                link = mallory.transport.link_to(alice.id)
                assert link is not None
                link.write(addresses_frame(lies))
                await eventually(lambda: alice.counters.unproven_addresses == 100)
                assert all(alice.transport.book.get(number) is None for number in range(100))

    run(test)


def test_without_keys_an_address_is_dialled_a_few_times_however_many_are_said_to_be_there() -> None:
    async def test() -> None:
        dials = 0

        async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal dials
            dials += 1
            writer.close()

        victim = await asyncio.start_server(count, "127.0.0.1", 0)
        port = victim.sockets[0].getsockname()[1]
        async with victim, two_honest_nodes() as (node, _), Attacker(node) as attacker:
            await attacker.enter()
            topic = ring_id("a")
            for batch in range(20):
                fakes = [1000 + 20 * batch + number for number in range(20)]
                attacker.writer.write(
                    addresses_frame([AddressOf(one, Address("127.0.0.1", port)) for one in fakes])
                )
                topics = frozenset({topic})
                attacker.say(
                    NamesOffer(b"".join(struct.pack("<QHQ", one, 0, stamp(1, topics)) for one in fakes))
                )
                attacker.say(TellProfiles(tuple(PeerProfile(one, 1, topics) for one in fakes)))
                await asyncio.sleep(0.05)
            had = node.counters.messages_received
            await eventually(lambda: node.counters.messages_received > had)
            assert dials <= 20, "not once for each of 400, and again and again"

    run(test)


# Catching up.


def test_inventories_of_what_is_not_there_cost_their_inventor() -> None:
    async def test() -> None:
        async with two_honest_nodes() as (node, friend), Attacker(node) as attacker:
            await attacker.enter()
            topic = ring_id("a")
            fakes = tuple(EventId(5, topic, 9, number) for number in range(100))
            attacker.say(catch_up_messages.Inventory(fakes))
            attacker.say(
                catch_up_messages.Summary((catch_up_messages.TopicDigest(topic, 1, 1),), answer=False)
            )
            await eventually(lambda: node.counters.messages_received >= 2)
            await asyncio.sleep(0)
            assert not node.world.catch_up._asked, "it is no neighbour: nobody listens"
            # A neighbour that lies is asked once, and then not for a while; others are asked for the same at once.
            service = node.world.catch_up
            liar, honest = friend.id, 77
            service._linked = {liar, honest}
            service._neighbours = lambda: [liar, honest]
            sent: list[tuple[int, object]] = []
            service._send = lambda peer, message: sent.append((peer, message))
            service.receive(liar, catch_up_messages.Inventory(fakes))
            assert [peer for peer, message in sent if isinstance(message, catch_up_messages.Fetch)] == [liar]
            for _ in range(10):
                service.look()
            assert node.counters.inventories_unmet == 1
            sent.clear()
            service.receive(liar, catch_up_messages.Inventory(fakes))
            service.receive(honest, catch_up_messages.Inventory(fakes))
            assert [peer for peer, message in sent if isinstance(message, catch_up_messages.Fetch)] == [
                honest
            ]
            service._neighbours = node.world._neighbours
            service._send = node.world.send

    run(test)


# Budgets.


def test_interests_beyond_the_memory_for_them_count_as_empty_and_one_peer_may_not_fill_it() -> None:
    async def test() -> None:
        little = msgspec.structs.replace(local().limits, max_memory=8 * 1024 * 1024, topics_per_peer=2000)
        async with two_honest_nodes(limits=little) as (node, _):
            async with Attacker(node) as attacker:
                await attacker.enter()
                with contextlib.suppress(ConnectionError):
                    for peer in range(100):
                        topics = frozenset(range(peer * 2000, (peer + 1) * 2000))
                        attacker.say(NamesOffer(struct.pack("<QHQ", peer, 0, stamp(1, topics))))
                        attacker.say(TellProfiles((PeerProfile(peer, 1, topics),)))
                        await attacker.writer.drain()
                await attacker.closed()
            held = sum(len(one) for one in node.transport.codec.names._interned.values())
            assert held <= little.max_memory // 140
            assert node.counters.protocol_errors == 1
            assert any(one["peer"] and one["score"] > 0 for one in view(node)["peers"])

    run(test)


def test_a_peer_that_does_wrong_again_and_again_is_banned_for_a_while() -> None:
    async def test() -> None:
        async with two_honest_nodes() as (node, _):
            let_in = 0
            while let_in < 20:
                async with Attacker(node) as attacker:
                    try:
                        await attacker.enter()
                    except AssertionError:
                        break
                    let_in += 1
                    attacker.writer.write(b"\0\0\0\1\x63")
                    await attacker.closed()
            assert 5 <= let_in <= 7
            assert node.counters.bans == 1
            (shown,) = [one for one in view(node)["peers"] if one["banned_for"] > 0]
            assert shown["last_fault"] == "broke the protocol"
            assert json.dumps(view(node))

    run(test)


def test_a_failure_inside_a_node_is_forgiven_after_a_while() -> None:
    async def test() -> None:
        async with topicweave.connect(local()) as node:
            node.world.guarded({}.__getitem__, "missing")
            assert health(node)["status"] == "failing"
            node.world.last_error_at -= 61.0
            assert health(node)["status"] == "ok"
            assert node.counters.node_errors == 1

    run(test)
