"""Wildcards and shared subscriptions at the door, with other people's clients over real sockets, and with
hand-made packets.
"""

from __future__ import annotations

import asyncio
import queue
import shutil
import subprocess
import threading
from pathlib import Path

import aiomqtt
import pytest
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

import topicweave
from tests.live.mqtt.test_accounts import hashed
from tests.live.mqtt.test_door import MQTT, VERSIONS, Raw, at, doors, next_of, retained, said
from tests.live.together import eventually, run, secure
from topicweave.live.authority import issue, new_swarm
from topicweave.live.keyring import Permissions
from topicweave.live.mqtt.packets import (
    Connect,
    Disconnect,
    Publish,
    Reason,
    Suback,
    Subscribe,
    Wish,
)


async def heard(client: aiomqtt.Client, count: int) -> list[tuple[str, bytes, bool]]:
    return sorted(said(message) for message in await next_of(client, count))


async def nothing_more(client: aiomqtt.Client, through: aiomqtt.Client, topic: str) -> None:
    """What comes next is what is published next: nothing else was on its way."""
    await through.publish(topic, b"the end", qos=1)
    (message,) = await next_of(client)
    assert said(message) == (topic, b"the end", False)


@pytest.mark.parametrize("version", VERSIONS, ids=["3.1.1", "5"])
@pytest.mark.parametrize("count", [1, 2])
def test_wildcards_find_names_at_this_door_and_at_others(
    version: aiomqtt.ProtocolVersion, count: int
) -> None:
    async def test() -> None:
        async with doors(count) as made:
            one, other = made[0], made[-1]
            async with at(one, protocol=version) as alice, at(other, protocol=version) as bob:
                await bob.subscribe("sensors/+/temperature", qos=1)
                await bob.subscribe("zone/7/#", qos=2)
                for number in range(3):
                    await alice.publish("sensors/7/temperature", b"%d" % number, qos=1)
                for topic in (
                    "zone/7",
                    "zone/7/door/lock",
                    "zone/8",
                    "sensors/7/humidity",
                    "sensors/temperature",
                ):
                    await alice.publish(topic, b"x", qos=1)
                assert await heard(bob, 5) == [
                    ("sensors/7/temperature", b"0", False),
                    ("sensors/7/temperature", b"1", False),
                    ("sensors/7/temperature", b"2", False),
                    ("zone/7", b"x", False),
                    ("zone/7/door/lock", b"x", False),
                ]
                await nothing_more(bob, alice, "zone/7")

    run(test)


@pytest.mark.parametrize("count", [1, 2])
def test_retained_values_of_all_topics_that_match(count: int) -> None:
    async def test() -> None:
        async with doors(count) as made:
            one, other = made[0], made[-1]
            async with at(one) as alice, at(other) as bob, at(other) as carol:
                for place in range(3):
                    await alice.publish(f"state/{place}", b"%d" % place, qos=1, retain=True)
                await alice.publish("state/0", b"", qos=1, retain=True)
                await alice.publish("state/1", b"later", qos=1, retain=True)
                for client, filter_ in ((bob, "state/#"), (carol, "+/+")):
                    await client.subscribe(filter_, qos=1)
                    values = [("state/1", b"later", True), ("state/2", b"2", True)]
                    assert await retained(client, 2) == values
                await bob.subscribe("state/+", qos=1)
                assert await retained(bob, 2) == values
                for payload in (b"news", b"the end"):
                    await alice.publish("state/2", payload, qos=1, retain=True)
                for client in (bob, carol):
                    came: list[object] = []
                    while not came or came[-1] != b"the end":
                        came += [message.payload for message in await next_of(client)]
                    assert came.count(b"news") == 1, "once, however many match"

    run(test)


def test_overlapping_subscriptions_give_one_message_with_the_highest_qos_and_all_numbers() -> None:
    async def test() -> None:
        async with doors(1) as (one,), Raw(one) as client, at(one) as alice:
            await client.ask(Connect("c"))
            for number, (filter_, qos) in enumerate(
                (("a/#", 0), ("a/+", 2), ("a/b", 1), ("x/#", 2)), start=1
            ):
                packet = Subscribe(number, (Wish(filter_, qos),), {"subscription_id": [number]})
                answer = await client.ask(packet)
                assert isinstance(answer, Suback)
                assert answer.reasons == (qos,)
            await alice.publish("a/b", b"1", qos=1)
            message = await client.hear()
            assert isinstance(message, Publish)
            assert (message.topic, message.qos, message.payload) == ("a/b", 2, b"1")
            assert sorted(message.properties["subscription_id"]) == [1, 2, 3]
            await alice.publish("a/b/c", b"2", qos=1)
            message = await client.hear()
            assert isinstance(message, Publish)
            assert (message.topic, message.qos, message.payload) == ("a/b/c", 0, b"2")
            assert message.properties["subscription_id"] == [1]

    run(test)


def test_topics_go_with_the_last_client_that_wanted_them() -> None:
    async def test() -> None:
        async with doors(1, subscribe=("a/own",)) as (one,), at(one) as alice, at(one) as bob:
            await alice.subscribe("a/+")
            await bob.subscribe("a/#")
            await bob.subscribe("a/1")
            for name in ("own", "1", "2"):
                await alice.publish(f"a/{name}", b"x", qos=1)
            names = {"a/own", "a/1", "a/2"}
            assert names <= set(one.subscriptions)
            await alice.unsubscribe("a/+")
            assert names <= set(one.subscriptions)
            await bob.unsubscribe("a/#")
            assert [name for name in one.subscriptions if name in names] == ["a/1", "a/own"]
            await bob.unsubscribe("a/1")
            assert one.subscriptions == ["a/own"]
            assert one.patterns.wanted == []

    run(test)


def test_permissions_are_looked_at_for_the_filter_and_for_each_message(tmp_path: Path) -> None:
    passwords, acl = tmp_path / "passwords", tmp_path / "acl"
    passwords.write_text(f"alice:{hashed(b'a')}\nbob:{hashed(b'b')}\n")
    acl.write_text(
        "user alice\ntopic readwrite #\n\nuser bob\ntopic read sensors/+/temperature\ntopic deny sensors/secret/#\n"
    )
    files = {"mqtt_passwords": str(passwords), "mqtt_permissions": str(acl)}

    async def test() -> None:
        async with (
            doors(1, **files) as (one,),
            at(one, username="alice", password="a") as alice,
            at(one, username="bob", password="b") as bob,
        ):
            await alice.publish("sensors/8/temperature", b"kept", qos=1, retain=True)
            await alice.publish("sensors/8/humidity", b"kept", qos=1, retain=True)
            await bob.subscribe("sensors/#", qos=1)
            (refused,) = await bob.subscribe("commands/#", qos=1)
            assert refused == 0x80
            assert await heard(bob, 1) == [("sensors/8/temperature", b"kept", True)]
            for name in ("7/humidity", "secret/temperature", "7/temperature"):
                await alice.publish(f"sensors/{name}", b"x", qos=1)
            assert await heard(bob, 1) == [("sensors/7/temperature", b"x", False)]
            await nothing_more(bob, alice, "sensors/7/temperature")

    run(test)


def test_a_certificate_limits_patterns(tmp_path: Path) -> None:
    swarm = new_swarm(tmp_path / "swarm")
    keys = issue(swarm, "door", permissions=Permissions(publish=("sensors/",), subscribe=("sensors/",)))

    async def test() -> None:
        async with topicweave.connect(secure(keys, mqtt=MQTT)) as one, Raw(one) as client:
            await client.ask(Connect("c"))
            wishes = tuple(
                Wish(filter_, 1) for filter_ in ("sensors/+", "#", "sens/+", "$share/g/#", "$SYS/#")
            )
            answer = await client.ask(Subscribe(1, wishes))
            assert isinstance(answer, Suback)
            no = Reason.NOT_AUTHORIZED
            assert answer.reasons == (1, no, no, no, 1)

    run(test)


def test_a_session_that_was_away_gets_what_its_patterns_found_meanwhile() -> None:
    async def test() -> None:
        async with doors() as (one, other), at(one) as alice:
            options = {"clean_session": False}
            async with at(other, "bob", **options) as bob:
                await bob.subscribe("jobs/+", qos=1)
            for number in range(3):
                await alice.publish(f"jobs/{number}", b"x", qos=1)
            await eventually(
                lambda: len([name for name in other.subscriptions if name.startswith("jobs/")]) == 3
            )
            async with at(other, "bob", **options) as bob:
                assert await heard(bob, 3) == [(f"jobs/{number}", b"x", False) for number in range(3)]

    run(test)


# Shared subscriptions.


def test_one_of_a_group_gets_each_message_and_others_get_all() -> None:
    async def test() -> None:
        async with (
            doors() as (one, other),
            at(one) as alice,
            at(other) as bob,
            at(other) as carol,
            at(other) as dave,
            at(one) as elsewhere,
        ):
            await bob.subscribe("$share/workers/jobs/#", qos=1)
            await carol.subscribe("$share/workers/jobs/#", qos=1)
            await dave.subscribe("jobs/#", qos=1)
            await elsewhere.subscribe("$share/workers/jobs/#", qos=1)
            names = [f"jobs/{number}" for number in range(10)]
            for name in names:
                await alice.publish(name, b"do", qos=1)
            await next_of(dave, 10)
            shared = [*await heard(bob, 5), *await heard(carol, 5)]
            assert sorted(topic for topic, _, _ in shared) == names, "each once, and none of the two gets all"
            assert len(await heard(elsewhere, 10)) == 10, "the group of another door is another one"

    run(test)


def test_a_shared_subscription_brings_no_retained_values_and_has_its_rules() -> None:
    async def test() -> None:
        async with doors(1) as (one,), at(one) as alice, Raw(one) as client:
            await alice.publish("t", b"kept", qos=1, retain=True)
            await client.ask(Connect("c"))
            answer = await client.ask(Subscribe(1, (Wish("$share/g/t", 1), Wish("$share/a+/t", 1))))
            assert isinstance(answer, Suback)
            assert answer.reasons == (1, Reason.BAD_FILTER)
            await alice.publish("t", b"live", qos=1)
            message = await client.hear()
            assert isinstance(message, Publish)
            assert (message.payload, message.retain) == (b"live", False)
            told = await client.ask(Subscribe(2, (Wish("$share/g/t", 1, no_local=True),)))
            assert isinstance(told, Disconnect)
            assert told.reason == Reason.PROTOCOL_ERROR

    run(test)


def test_what_one_of_a_group_never_took_goes_to_another() -> None:
    async def test() -> None:
        async with doors(1) as (one,), at(one) as alice, Raw(one) as client, at(one) as bob:
            await client.ask(Connect("c"))
            await client.ask(Subscribe(1, (Wish("$share/g/t", 1),)))
            await alice.publish("t", b"1", qos=1)
            assert isinstance(await client.hear(), Publish)  # and no answer
            await bob.subscribe("$share/g/t", qos=1)
            client.writing.close()
            assert await heard(bob, 1) == [("t", b"1", False)]

    run(test)


def test_a_group_goes_on_without_those_who_are_not_there() -> None:
    async def test() -> None:
        async with doors(1) as (one,), at(one) as alice, at(one, "bob") as bob:
            async with at(one, "away", clean_session=False) as away:
                await away.subscribe("$share/g/t", qos=1)
            await bob.subscribe("$share/g/t", qos=1)
            for number in range(4):
                await alice.publish("t", b"%d" % number, qos=1)
            assert [payload for _, payload, _ in await heard(bob, 4)] == [b"0", b"1", b"2", b"3"]

    run(test)


def test_what_is_wanted_twice_goes_with_the_second() -> None:
    """By itself and in a group: the same topic, two reasons to want it."""

    async def test() -> None:
        async with doors(1) as (one,), at(one) as alice, at(one) as bob:
            for named in ("t", "a/+"):
                await bob.subscribe([(named, 1), (f"$share/g/{named}", 1)])
            await bob.unsubscribe(["t", "a/+"])
            for topic in ("t", "a/b"):
                await alice.publish(topic, b"x", qos=1)
            assert await heard(bob, 2) == [("a/b", b"x", False), ("t", b"x", False)]
            await bob.unsubscribe(["$share/g/t", "$share/g/a/+"])
            assert (one.subscriptions, one.patterns.wanted) == ([], [])

    run(test)


# Other people's clients.


@pytest.mark.parametrize("version", [MQTTProtocolVersion.MQTTv311, MQTTProtocolVersion.MQTTv5])
def test_pahos_own_loop_and_wildcards(version: MQTTProtocolVersion) -> None:
    def talk(here: int, there: int) -> list[str]:
        came: queue.Queue[str] = queue.Queue()
        subscribed = threading.Event()
        reader = paho.Client(CallbackAPIVersion.VERSION2, protocol=version)
        reader.message_callback_add("house/+/lamp", lambda *said: came.put(f"lamp {said[2].topic}"))
        reader.message_callback_add("house/cellar/#", lambda *said: came.put(f"cellar {said[2].topic}"))
        reader.on_subscribe = lambda *_: subscribed.set()
        reader.connect("127.0.0.1", there)
        reader.loop_start()
        reader.subscribe([("house/+/lamp", 1), ("house/cellar/#", 2)])
        assert subscribed.wait(30)
        writer = paho.Client(CallbackAPIVersion.VERSION2, protocol=version)
        writer.connect("127.0.0.1", here)
        writer.loop_start()
        for topic in ("house/attic/lamp", "house/attic/door", "house/cellar/lamp"):
            writer.publish(topic, b"x", qos=1).wait_for_publish(30)
        got = sorted(came.get(timeout=30) for _ in range(3))
        for client in (reader, writer):
            client.disconnect()
            client.loop_stop()
        return got

    async def test() -> None:
        async with doors() as (one, other):
            assert one.mqtt is not None
            assert other.mqtt is not None
            ports = one.mqtt.address.port, other.mqtt.address.port
            got = await asyncio.to_thread(talk, *ports)
            # Paho calls both for the one message that both filters match.
            assert got == ["cellar house/cellar/lamp", "lamp house/attic/lamp", "lamp house/cellar/lamp"]

    run(test)


@pytest.mark.skipif(shutil.which("mosquitto_sub") is None, reason="Mosquitto's clients are not installed")
@pytest.mark.parametrize("version", ["311", "5"])
def test_mosquittos_clients_and_wildcards(version: str) -> None:
    async def test() -> None:
        async with doors() as (one, other):
            assert one.mqtt is not None
            assert other.mqtt is not None

            async def publish(topic: str, *more: str) -> None:
                address = ["-V", version, "-p", str(one.mqtt.address.port if one.mqtt else 0)]
                pub = await asyncio.create_subprocess_exec(
                    "mosquitto_pub", *address, "-t", topic, "-q", "1", *more
                )
                assert await pub.wait() == 0

            await publish("house/kitchen/lamp", "-m", "on", "-r")
            sub = await asyncio.create_subprocess_exec(
                *["mosquitto_sub", "-V", version, "-p", str(other.mqtt.address.port), "-q", "2"],
                *["-t", "house/+/lamp", "-t", "house/cellar/#", "-F", "%t %p %r"],
                stdout=subprocess.PIPE,
            )
            stdout = sub.stdout
            assert stdout is not None

            async def printed() -> bytes:
                """The next line. What was published a moment before the subscription may come as if it were
                new, too.
                """
                async with asyncio.timeout(30):
                    while (line := await stdout.readline()) == b"house/kitchen/lamp on 0\n":
                        pass
                return line

            assert await printed() == b"house/kitchen/lamp on 1\n"
            await publish("house/cellar/door", "-m", "open")
            await publish("house/cellar/lamp", "-m", "off")
            lines = sorted([await printed(), await printed()])
            assert lines == [b"house/cellar/door open 0\n", b"house/cellar/lamp off 0\n"]
            sub.terminate()
            await sub.wait()

    run(test)
