"""The door, with aiomqtt over real sockets, and with hand-made packets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiomqtt
import pytest
from paho.mqtt import properties as paho_properties
from paho.mqtt.packettypes import PacketTypes

import topicweave
from tests.live.mqtt.test_accounts import hashed
from tests.live.together import eventually, linked, local, run, secure, taken
from topicweave.client import RemoteNode
from topicweave.errors import TopicweaveError
from topicweave.live import LiveNode, wanting
from topicweave.live.authority import issue, new_swarm
from topicweave.live.keyring import Permissions
from topicweave.live.mqtt import door
from topicweave.live.mqtt.codec import Reader, encode
from topicweave.live.mqtt.packets import (
    V5,
    V311,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
    Puback,
    Publish,
    Pubrec,
    Reason,
    Suback,
    Subscribe,
    Will,
    Wish,
)
from topicweave.live.names import RETAINED

PahoProperties: Any = paho_properties.Properties  # It has no types.
MQTT = "127.0.0.1:0"
VERSIONS = [aiomqtt.ProtocolVersion.V311, aiomqtt.ProtocolVersion.V5]


@contextlib.asynccontextmanager
async def doors(count: int = 2, **changes: Any) -> AsyncIterator[list[LiveNode]]:
    async with contextlib.AsyncExitStack() as stack:
        nodes: list[LiveNode] = []
        for number in range(count):
            join = (str(nodes[0].address),) if nodes else ()
            settings = local(mqtt=MQTT, name=f"door-{number}", join=join, **changes)
            nodes.append(await stack.enter_async_context(topicweave.connect(settings)))
        yield nodes


def at(node: LiveNode, name: str = "", **options: Any) -> aiomqtt.Client:
    assert node.mqtt is not None
    address = node.mqtt.address
    return aiomqtt.Client(address.host, address.port, identifier=name or None, timeout=30, **options)


async def next_of(client: aiomqtt.Client, count: int = 1) -> list[aiomqtt.Message]:
    got = []
    async with asyncio.timeout(30):
        async for message in client.messages:
            got.append(message)
            if len(got) == count:
                break
    return got


def said(message: aiomqtt.Message) -> tuple[str, bytes, bool]:
    assert isinstance(message.payload, bytes)
    return message.topic.value, message.payload, bool(message.retain)


async def retained(client: aiomqtt.Client, count: int) -> list[tuple[str, bytes, bool]]:
    """Retained values. What was published a moment before the subscription may come beside them, as if it were new."""
    got: list[tuple[str, bytes, bool]] = []
    while len(got) < count:
        (message,) = await next_of(client)
        got += [said(message)] if message.retain else []
    return sorted(got)


class Raw:
    """A client that sends what it is told to, and shows what comes."""

    def __init__(self, node: LiveNode, version: int = V5) -> None:
        assert node.mqtt is not None
        self._address = node.mqtt.address
        self.version = version
        self._packets: list[Packet] = []

    async def __aenter__(self) -> Raw:
        self._reading, self.writing = await asyncio.open_connection(self._address.host, self._address.port)
        self._reader = Reader(1 << 20, self.version)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writing.close()

    async def say(self, *packets: Packet) -> None:
        self.writing.write(b"".join(encode(packet, self.version) for packet in packets))
        await self.writing.drain()

    async def hear(self) -> Packet | None:
        """The next packet; None at the end of the connection."""
        while not self._packets:
            async with asyncio.timeout(30):
                data = await self._reading.read(65536)
            if not data:
                return None
            self._packets += self._reader.feed(data)
        return self._packets.pop(0)

    async def ask(self, packet: Packet) -> Packet | None:
        await self.say(packet)
        return await self.hear()


@pytest.mark.parametrize("version", VERSIONS, ids=["3.1.1", "5"])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_message_crosses_the_mesh(version: aiomqtt.ProtocolVersion, qos: int) -> None:
    async def test() -> None:
        async with (
            doors() as (one, other),
            at(one, protocol=version) as alice,
            at(other, protocol=version) as bob,
        ):
            await bob.subscribe("news/7", qos=qos)
            await alice.subscribe("news/7", qos=qos)
            await eventually(lambda: linked(one, other))
            await alice.publish("news/7", b"hello", qos=qos)
            for client in (alice, bob):
                (message,) = await next_of(client)
                assert said(message) == ("news/7", b"hello", False)
                assert message.qos == qos

    run(test)


def test_mesh_applications_and_clients_hear_each_other() -> None:
    async def test() -> None:
        async with doors() as (one, other), at(one) as client:
            await client.subscribe("t")
            await other.subscribe("t")
            await eventually(lambda: linked(one, other))
            await other.publish("t", b"from the mesh")
            assert said((await next_of(client))[0]) == ("t", b"from the mesh", False)
            await client.publish("t", b"from a client", qos=1)
            feed = other.events()
            got = [await feed.get(), await feed.get()]
            assert [event.payload for event in got if event] == [b"from the mesh", b"from a client"]

    run(test)


def test_who_publishes_is_told_whether_anybody_wants_it() -> None:
    async def test() -> None:
        async with doors(1, subscribe=("own", "wide/#")) as (one,), Raw(one) as client, at(one) as other:
            await client.ask(Connect("c"))
            await other.subscribe("t")
            for number, topic in enumerate(("own", "wide/1", "t"), start=1):
                assert await client.ask(Publish(topic, b"x", 1, packet_id=number)) == Puback(number)
            nobody = await client.ask(Publish("nobody", b"x", 1, packet_id=9))
            assert nobody == Puback(9, Reason.NO_SUBSCRIBERS)

    run(test)


def test_what_mqtt_5_adds_comes_along() -> None:
    async def test() -> None:
        version = aiomqtt.ProtocolVersion.V5
        async with (
            doors() as (one, other),
            at(one, protocol=version) as alice,
            at(other, protocol=version) as bob,
        ):
            wish = PahoProperties(PacketTypes.SUBSCRIBE)
            wish.SubscriptionIdentifier = 77
            await bob.subscribe("t", properties=wish)
            await alice.subscribe("t")
            await eventually(lambda: linked(one, other))
            more = PahoProperties(PacketTypes.PUBLISH)
            more.ContentType, more.ResponseTopic, more.CorrelationData = "text/plain", "answers", b"\1\2"
            more.UserProperty = [("unit", "K"), ("unit", "C")]
            more.MessageExpiryInterval = 100
            await alice.publish("t", b"x", qos=1, properties=more)
            (message,) = await next_of(bob)
            got: Any = message.properties
            assert got is not None
            assert (got.ContentType, got.ResponseTopic, got.CorrelationData) == (
                "text/plain",
                "answers",
                b"\1\2",
            )
            assert got.UserProperty == [("unit", "K"), ("unit", "C")]
            assert got.SubscriptionIdentifier == [77]
            assert 0 < got.MessageExpiryInterval <= 100

    run(test)


def test_a_retained_value_reaches_those_who_come_later_at_any_door() -> None:
    async def test() -> None:
        async with doors(3) as (one, other, third), at(one) as alice:
            await alice.publish("state", b"old", qos=1, retain=True)
            await alice.publish("state", b"on", qos=1, retain=True)
            await alice.publish("state", b"passing", qos=1)
            for node in (one, other, third):
                async with at(node) as late:
                    await late.subscribe("state", qos=1)
                    assert await retained(late, 1) == [("state", b"on", True)]

    run(test)


def test_an_empty_payload_ends_a_retained_value() -> None:
    async def test() -> None:
        async with doors() as (one, other), at(one) as alice:
            await alice.publish("state", b"on", qos=1, retain=True)
            async with at(other, "keeper") as keeper:
                await keeper.subscribe("state", qos=1)
                assert await retained(keeper, 1) == [("state", b"on", True)]
                await alice.publish("state", b"", qos=1, retain=True)
                while (told := said(*await next_of(keeper))) == ("state", b"on", False):
                    pass  # It may come as if it were new, too.
                assert told == ("state", b"", False)
                door = other.mqtt.door if other.mqtt else None
                assert door is not None
                await eventually(lambda: not door._values._values["state"].payload)
                async with at(other) as late:
                    await late.subscribe("state", qos=1)
                    await alice.publish("state", b"next", qos=1)
                    assert said((await next_of(late))[0]) == ("state", b"next", False)

    run(test)


def test_a_retained_value_comes_again_to_who_subscribes_again() -> None:
    async def test() -> None:
        async with doors() as (one, other), at(one) as alice, at(other) as bob:
            await alice.publish("t", b"kept", qos=1, retain=True)
            for _ in range(2):
                await bob.subscribe("t", qos=1)
                assert await retained(bob, 1) == [("t", b"kept", True)]
                await bob.unsubscribe("t")
                assert other.subscriptions == []

    run(test)


def test_the_topics_of_retained_values_are_not_the_applications() -> None:
    refused = "carry the retained values of MQTT clients"
    topic = RETAINED + "t"

    async def test() -> None:
        async with doors(1, http=MQTT) as (one,), at(one) as alice:
            assert one.http is not None
            await alice.subscribe("t", qos=1)
            await alice.publish("t", b"kept", qos=1, retain=True)
            async with RemoteNode(str(one.http.address)) as remote:
                for node in (one, remote):
                    with pytest.raises(TopicweaveError, match=refused):
                        await node.publish(topic, b"not so")
                    for named in (topic, RETAINED + "#"):
                        with pytest.raises(TopicweaveError, match=refused):
                            await node.subscribe(named)
                with pytest.raises(TopicweaveError, match=refused):
                    await one.unsubscribe(topic)
            assert await put(one, "/subscriptions/u") == {"subscriptions": ["t", "u"]}
            assert refused in (await put(one, f"/subscriptions/{topic}"))["error"]
            await one.publish("t", b"then")
            await eventually(lambda: len(taken(one)) == 2)
            assert taken(one) == [("t", b"kept"), ("t", b"then")]
            assert RETAINED + "t" in map(one.topics.of, one.node.subscriptions)

    with pytest.raises(TopicweaveError, match=refused):
        local(subscribe=(topic,))
    run(test)


async def put(node: LiveNode, path: str) -> Any:
    def ask() -> Any:
        assert node.http is not None
        request = urllib.request.Request(f"http://{node.http.address}{path}", method="PUT")
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)

    return await asyncio.to_thread(ask)


def test_what_a_certificate_allows_holds_for_retained_values(tmp_path: Path) -> None:
    swarm = new_swarm(tmp_path / "swarm")
    allowed = Permissions(publish=("sensors/",), subscribe=("sensors/",))
    keys = issue(swarm, "door", permissions=allowed)

    async def test() -> None:
        settings = secure(keys, mqtt=MQTT)
        async with topicweave.connect(settings) as one, at(one) as alice, at(one) as bob:
            await alice.publish("sensors/7", b"kept", qos=1, retain=True)
            await bob.subscribe("sensors/7", qos=1)
            assert said(*await next_of(bob)) == ("sensors/7", b"kept", True)
            (granted,) = await bob.subscribe("commands/7", qos=1)
            assert granted == 0x80

    run(test)


def test_many_subscriptions_that_are_refused_are_few_lines(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = issue(new_swarm(tmp_path / "swarm"), "door", permissions=Permissions(subscribe=("a/",)))

    async def test() -> None:
        async with topicweave.connect(secure(keys, mqtt=MQTT)) as node, Raw(node) as client:
            await client.ask(Connect("c"))
            answer = await client.ask(Subscribe(1, tuple(Wish(f"b/{number}") for number in range(100))))
            assert answer == Suback(1, (Reason.NOT_AUTHORIZED,) * 100)
            assert await client.ask(Subscribe(2, (Wish("$SYS/none"),))) == Suback(2, (0,))
            assert node.mqtt is not None
            assert node.mqtt.door.counts["refused: NOT_AUTHORIZED"] == 100

    run(test)
    assert len([one for one in caplog.records if "may not subscribe" in one.getMessage()]) == 1


def test_a_retained_value_that_the_door_may_not_keep_any_more_is_let_go(tmp_path: Path) -> None:
    swarm = new_swarm(tmp_path / "swarm")

    async def test() -> None:
        for number, topics in enumerate((("a/", "b/"), ("b/",))):
            keys = issue(swarm, "door", tmp_path / f"keys-{number}", permissions=Permissions(topics, topics))
            settings = secure(keys, mqtt=MQTT, data=str(tmp_path / "data"))
            async with topicweave.connect(settings) as node, at(node) as alice, at(node) as bob:
                if not number:
                    await alice.publish("a/1", b"x", qos=1, retain=True)
                    await alice.publish("b/1", b"y", qos=1, retain=True)
                await bob.subscribe("b/1")
                assert said(*await next_of(bob)) == ("b/1", b"y", True)

    run(test)


def test_a_retained_message_that_the_door_may_not_keep_is_refused_whole(tmp_path: Path) -> None:
    swarm = new_swarm(tmp_path / "swarm")
    keys = issue(swarm, "door", permissions=Permissions(subscribe=("other/",)))

    async def test() -> None:
        async with topicweave.connect(secure(keys, mqtt=MQTT)) as node, Raw(node) as client:
            await client.ask(Connect("c"))
            for number in (1, 2):
                answer = await client.ask(Publish("t", b"x", 1, retain=True, packet_id=number))
                assert answer == Puback(number, Reason.NOT_AUTHORIZED)
            assert node.counters.publishes == 0
            answer = await client.ask(Publish("t", b"x", 1, packet_id=3))
            assert answer == Puback(3, Reason.NO_SUBSCRIBERS)

    run(test)


def test_a_will_is_published_when_a_client_vanishes_and_not_when_it_leaves() -> None:
    async def test() -> None:
        async with doors() as (one, other), at(other) as watcher:
            await watcher.subscribe("wills", qos=1)
            for name, orderly in (("leaves", True), ("vanishes", False)):
                async with Raw(one) as client:
                    will = Will("wills", name.encode(), 1)
                    await client.ask(Connect(name, will=will))
                    if orderly:
                        await client.say(Disconnect())
                        assert await client.hear() is None
            assert said((await next_of(watcher))[0]) == ("wills", b"vanishes", False)

    run(test)


def test_a_session_stays_and_is_given_what_came_meanwhile() -> None:
    async def test() -> None:
        async with doors(1) as (one,), at(one) as alice:
            async with at(one, "bob", clean_session=False, protocol=VERSIONS[0]) as bob:
                await bob.subscribe("t", qos=1)
            for number in range(5):
                await alice.publish("t", str(number).encode(), qos=1)
            async with at(one, "bob", clean_session=False, protocol=VERSIONS[0]) as bob:
                got = await next_of(bob, 5)
                assert [message.payload for message in got] == [b"0", b"1", b"2", b"3", b"4"]
            async with Raw(one) as again:
                assert await again.ask(Connect("bob", clean_start=True)) is not None
            async with Raw(one) as once_more:
                answer = await once_more.ask(Connect("bob", clean_start=False))
                assert isinstance(answer, Connack)
                assert not answer.session_present, (
                    "a clean start ended the session, and its own ended with it"
                )

    run(test)


def test_a_session_of_mqtt_5_ends_after_its_time() -> None:
    async def test() -> None:
        async with doors(1) as (one,):
            assert one.mqtt is not None
            door = one.mqtt.door
            async with Raw(one) as client, Raw(one) as other:
                await client.ask(Connect("short", properties={"session_expiry": 1}))
                await client.ask(Subscribe(1, (Wish("t", 1),)))
                await other.ask(Connect("long", properties={"session_expiry": 1000}))
                left = door.loop.time()
            await eventually(lambda: not door.clients)
            await eventually(lambda: "short" not in door.sessions)
            assert round(door.loop.time() - left, 3) >= 1.0
            assert "long" in door.sessions
            await eventually(lambda: "t" not in one.subscriptions)

    run(test)


def test_another_connection_takes_a_session_over() -> None:
    async def test() -> None:
        async with doors(1) as (one,), Raw(one) as first, Raw(one) as second:
            keep = {"session_expiry": 100}
            await first.ask(Connect("me", properties=keep))
            await first.ask(Subscribe(1, (Wish("t", 1),)))
            answer = await second.ask(Connect("me", clean_start=False, properties=keep))
            assert isinstance(answer, Connack)
            assert answer.session_present
            told = await first.hear()
            assert isinstance(told, Disconnect)
            assert told.reason == Reason.TAKEN_OVER
            assert await first.hear() is None
            await one.publish("t", b"x")
            got = await second.hear()
            assert isinstance(got, Publish)
            assert got.payload == b"x"

    run(test)


@pytest.mark.parametrize("connected", [False, True], ids=["left", "taken over"])
def test_a_clean_start_may_subscribe_in_the_same_breath(connected: bool) -> None:
    async def test() -> None:
        async with doors(1) as (one,), Raw(one) as first, Raw(one) as second:
            await first.ask(Connect("me", properties={"session_expiry": 100}))
            await first.ask(Subscribe(1, (Wish("t", 1), Wish("u/#", 1))))
            if not connected:
                await first.say(Disconnect())
                assert await first.hear() is None
            await second.say(Connect("me", clean_start=True), Subscribe(1, (Wish("t", 1), Wish("u/#", 1))))
            assert isinstance(await second.hear(), Connack)
            assert await second.hear() == Suback(1, (1, 1))
            assert await second.ask(Pingreq()) == Pingresp(), "whatever ends with the old session has ended"
            for topic in ("t", "u/1"):
                await one.publish(topic, b"x")
                got = await second.hear()
                assert isinstance(got, Publish)
                assert (got.topic, got.payload) == (topic, b"x")

    run(test)


@pytest.mark.parametrize("version", [V311, V5])
def test_silence_ends_a_connection_and_pings_keep_it(version: int) -> None:
    async def test() -> None:
        async with doors(1) as (one,), Raw(one, version) as silent, Raw(one, version) as pinging:
            await silent.ask(Connect("silent", version, keep_alive=1))
            await pinging.ask(Connect("pinging", version, keep_alive=1))
            hearing = asyncio.create_task(silent.hear())
            while not hearing.done():
                assert await pinging.ask(Pingreq()) == Pingresp()
                await asyncio.sleep(0.1)
            ended = await hearing
            if version == V5:
                assert isinstance(ended, Disconnect)
                assert ended.reason == Reason.KEEP_ALIVE
            else:
                assert ended is None
            assert await pinging.ask(Pingreq()) == Pingresp()

    run(test)


@pytest.mark.parametrize(
    ("packets", "reason"),
    [
        ([Publish("a/+", b"")], Reason.BAD_TOPIC),
        ([Publish("", b"")], Reason.BAD_TOPIC),
        ([Publish("$SYS/x", b"")], Reason.NOT_AUTHORIZED),
        ([Publish("", b"", properties={"alias": 3})], Reason.PROTOCOL_ERROR),
        ([Publish("a", b"", properties={"alias": 1000})], Reason.BAD_ALIAS),
        ([Connect("again")], Reason.PROTOCOL_ERROR),
        ([Suback(1, (0,))], Reason.PROTOCOL_ERROR),
        ([Disconnect(0, {"session_expiry": 5})], Reason.PROTOCOL_ERROR),
    ],
)
def test_who_breaks_the_rules_is_told_which_and_sent_away(packets: list[Packet], reason: Reason) -> None:
    async def test() -> None:
        async with doors(1) as (one,), Raw(one) as client:
            await client.ask(Connect("c"))
            await client.say(*packets)
            told = await client.hear()
            assert isinstance(told, Disconnect)
            assert told.reason == reason
            assert await client.hear() is None

    run(test)


@pytest.mark.parametrize("patterns", ["auto", "off"])
def test_subscriptions_that_cannot_be_had_are_refused_by_name(patterns: str) -> None:
    async def test() -> None:
        async with doors(1, patterns=patterns) as (one,), Raw(one) as new, Raw(one, V311) as old:
            filters = (
                "ok",
                "a/#",
                "$SYS/#",
                "a#",
                "a/#/b",
                "$share/g/t",
                "$share/g",
                "$retained/x",
                "$x/#",
                "",
            )
            hello = await new.ask(Connect("new"))
            assert isinstance(hello, Connack)
            there = (hello.properties["wildcards_available"], hello.properties["shared_available"])
            assert there == (int(patterns == "auto"), 1)
            answer = await new.ask(Subscribe(1, tuple(Wish(one, 1) for one in filters)))
            assert isinstance(answer, Suback)
            assert answer.reasons == (
                1,
                1 if patterns == "auto" else Reason.NO_WILDCARDS,
                1,
                Reason.BAD_FILTER,
                Reason.BAD_FILTER,
                1,
                Reason.BAD_FILTER,
                Reason.NOT_AUTHORIZED,
                Reason.NOT_AUTHORIZED,
                Reason.BAD_FILTER,
            )
            expected = [min(reason, 0x80) for reason in answer.reasons]
            await old.ask(Connect("old", V311))
            answer = await old.ask(Subscribe(1, tuple(Wish(one, 1) for one in filters)))
            assert isinstance(answer, Suback)
            assert list(answer.reasons) == expected

    run(test)


def test_a_topic_goes_with_the_last_client_that_wanted_it() -> None:
    async def test() -> None:
        async with doors(1, subscribe=("own",)) as (one,), at(one) as alice, at(one) as bob:
            for client in (alice, bob):
                await client.subscribe("t")
                await client.subscribe("own")
            assert {"t", "own"} <= set(one.subscriptions)
            await alice.unsubscribe("t")
            assert "t" in one.subscriptions
            await bob.unsubscribe("t")
            await bob.unsubscribe("own")
            await alice.unsubscribe("own")
            assert one.subscriptions == ["own"]

    run(test)


@pytest.mark.parametrize("wildcards", [False, True])
@pytest.mark.parametrize("stays", [False, True])
def test_who_goes_while_it_subscribes_leaves_nothing_uncounted(
    monkeypatch: pytest.MonkeyPatch, stays: bool, wildcards: bool
) -> None:
    monkeypatch.setattr(wanting, "CHUNK", 1)
    topics = [f"t/{number}" for number in range(30)]
    filters = [f"t/+/{number}" for number in range(5)] if wildcards else topics

    async def test() -> None:
        async with doors(1) as (node,), Raw(node) as client:
            assert node.mqtt is not None
            for topic in topics if wildcards else ():
                for last in range(5):
                    await node.publish(f"{topic}/{last}", b"")
            await client.ask(Connect("c", properties={"session_expiry": 1000 * stays}))
            await client.say(Subscribe(1, tuple(Wish(one) for one in filters)))
            while not node.subscriptions:
                await asyncio.sleep(0)
            assert len(node.subscriptions) < len(topics), "it goes on"
            node.mqtt.door.clients["c"].end(Reason.QUOTA, "it goes")
            if stays:
                await eventually(lambda: len(node.subscriptions) == (150 if wildcards else 30))
                async with Raw(node) as again:
                    await again.ask(Connect("c", clean_start=True))
            await eventually(lambda: not node.patterns.wanted and not node.subscriptions)
            for _ in range(200):
                await asyncio.sleep(0)  # For what may be begun still.
            assert (node.wanting._counts, set(node.node.subscriptions)) == ({}, set())

    run(test)


def test_a_message_that_comes_again_is_published_once() -> None:
    async def test() -> None:
        async with doors(1) as (one,), at(one) as watcher, Raw(one) as client:
            await watcher.subscribe("t", qos=1)
            await client.ask(Connect("c"))
            for duplicate in (False, True):
                answer = await client.ask(Publish("t", b"once", 2, duplicate=duplicate, packet_id=9))
                assert answer == Pubrec(9)
            answer = await client.ask(Publish("t", b"then", 1, packet_id=10))
            assert answer == Puback(10)
            assert [message.payload for message in await next_of(watcher, 2)] == [b"once", b"then"]

    run(test)


def test_passwords_and_permissions(tmp_path: Path) -> None:
    (tmp_path / "passwords").write_text(f"alice:{hashed(b'secret')}\n")
    (tmp_path / "acl").write_text("user alice\ntopic read in/#\ntopic write out/#\n")

    async def test() -> None:
        files = {"mqtt_passwords": str(tmp_path / "passwords"), "mqtt_permissions": str(tmp_path / "acl")}
        async with (
            doors(1, **files) as (one,),
            Raw(one) as stranger,
            Raw(one, V311) as old,
            Raw(one) as alice,
        ):
            answer = await stranger.ask(Connect("s", username="alice", password=b"wrong"))
            assert isinstance(answer, Connack)
            assert answer.reason == Reason.BAD_PASSWORD
            answer = await old.ask(Connect("o", V311))
            assert isinstance(answer, Connack)
            assert answer.reason == 4
            await alice.ask(Connect("a", username="alice", password=b"secret"))
            answer = await alice.ask(Subscribe(1, (Wish("in/1"), Wish("out/1"))))
            assert isinstance(answer, Suback)
            assert answer.reasons == (0, Reason.NOT_AUTHORIZED)
            assert await alice.ask(Publish("in/1", b"", 1, packet_id=1)) == Puback(1, Reason.NOT_AUTHORIZED)
            assert await alice.ask(Publish("out/1", b"", 1, packet_id=2)) == Puback(2, Reason.NO_SUBSCRIBERS)

    run(test)


def certificate(folder: Path) -> dict[str, str]:
    """Settings of a door that serves TLS, with a fresh certificate."""
    subprocess.run(
        [
            "sh",
            "-c",
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
            " -addext subjectAltName=IP:127.0.0.1 -keyout key -out certificate",
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return {"mqtt_certificate": str(folder / "certificate"), "mqtt_key": str(folder / "key")}


def test_tls(tmp_path: Path) -> None:
    files = certificate(tmp_path)

    async def test() -> None:
        trust = ssl.create_default_context(cafile=files["mqtt_certificate"])
        async with doors(1, **files) as (one,), at(one, tls_context=trust) as client:
            await client.subscribe("t")
            await client.publish("t", b"hidden", qos=1)
            assert said((await next_of(client))[0]) == ("t", b"hidden", False)

    run(test)


def test_what_was_dropped_stays_counted_when_its_session_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "MOST_WAITING", 2)

    async def test() -> None:
        async with doors(1) as (node,), Raw(node) as bob, at(node) as alice:
            assert node.mqtt is not None
            await bob.ask(Connect("bob", properties={"session_expiry": 1000}))
            await bob.ask(Subscribe(1, (Wish("t", 1),)))
            await bob.say(Disconnect())
            assert await bob.hear() is None
            for _ in range(5):
                await alice.publish("t", b"x", qos=1)
            await eventually(lambda: node.mqtt and node.mqtt.door.sessions["bob"].dropped == 3)
            async with Raw(node) as again:
                await again.ask(Connect("bob"))
                await alice.subscribe("$SYS/broker/publish/messages/dropped")
                assert [one.payload for one in await next_of(alice)] == [b"3"]

    run(test)


def test_the_door_tells_of_itself() -> None:
    async def test() -> None:
        async with doors(1) as (one,), at(one) as client:
            await client.subscribe("$SYS/broker/clients/connected")
            assert said((await next_of(client))[0]) == ("$SYS/broker/clients/connected", b"1", True)
            assert one.subscriptions == [], "it never leaves the door"

    run(test)
