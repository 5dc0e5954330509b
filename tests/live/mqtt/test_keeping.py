"""What a door promises to keep, and for how long: messages it acknowledged, sessions, retained values."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Awaitable
from pathlib import Path

import pytest

import topicweave
from tests.live.mqtt.test_door import MQTT, Raw, at, doors, next_of, said
from tests.live.together import eventually, linked, local, processes, run, taken, wall
from topicweave.live import LiveNode
from topicweave.live.mqtt import door, keeping, retaining
from topicweave.live.mqtt.envelope import wrap
from topicweave.live.mqtt.keeping import RETAINED_HERE, SESSION
from topicweave.live.mqtt.packets import (
    V5,
    V311,
    Connack,
    Connect,
    Disconnect,
    Pingreq,
    Pingresp,
    Puback,
    Publish,
    Reason,
    Suback,
    Subscribe,
    Will,
    Wish,
)
from topicweave.live.names import RETAINED
from topicweave.live.settings import Limits, Settings
from topicweave.testing.full_disk import limit_pages

STAYS = {"session_expiry": 1000}


def kept_until_acknowledged(folder: Path, redeliver_after: float, *topics: str) -> Settings:
    """Of a node whose application gets events of these topics at least once."""
    return local(
        mqtt=MQTT,
        data=str(folder),
        delivery="at-least-once",
        redeliver_after=redeliver_after,
        subscribe=topics,
    )


async def present(node: LiveNode, name: str) -> bool:
    async with Raw(node) as client:
        answer = await client.ask(Connect(name, clean_start=False, properties=STAYS))
        assert isinstance(answer, Connack)
        return answer.session_present


def test_a_session_outlives_the_node_with_what_waits_in_it(tmp_path: Path) -> None:
    async def test() -> None:
        settings = local(name="one", mqtt=MQTT, data=str(tmp_path))
        async with topicweave.connect(settings) as node, Raw(node) as bob, at(node) as alice:
            await bob.ask(Connect("bob", properties=STAYS))
            answer = await bob.ask(Subscribe(1, (Wish("t", 1), Wish("u", 0))))
            assert isinstance(answer, Suback)
            await bob.say(Disconnect())
            assert await bob.hear() is None
            for text in ("1", "2", "3"):
                await alice.publish("t", text.encode(), qos=1)
            await eventually(lambda: node.mqtt is not None and len(node.mqtt.door.sessions["bob"]) == 3)
        async with topicweave.connect(settings) as node, Raw(node) as bob, at(node) as alice:
            assert {"t", "u"} <= set(node.subscriptions)
            answer = await bob.ask(Connect("bob", clean_start=False, properties=STAYS))
            assert isinstance(answer, Connack)
            assert answer.session_present
            await alice.publish("t", b"4", qos=1)
            got = [await bob.hear() for _ in range(4)]
            assert [one.payload for one in got if isinstance(one, Publish)] == [b"1", b"2", b"3", b"4"]
            await bob.say(Disconnect(0, {"session_expiry": 0}))
            assert await bob.hear() is None
            await eventually(lambda: "t" not in node.subscriptions)
        async with topicweave.connect(settings) as node:
            assert not await present(node, "bob"), "it was ended in order"
            assert "t" not in node.subscriptions

    run(test)


@pytest.mark.parametrize("delivery", ["at-most-once", "at-least-once"])
def test_a_session_gets_once_what_waited_for_the_disk_when_the_node_stopped(
    delivery: str, tmp_path: Path
) -> None:
    async def test() -> None:
        settings = local(name="one", mqtt=MQTT, data=str(tmp_path), delivery=delivery)
        async with topicweave.connect(settings) as node, Raw(node) as bob:
            await bob.ask(Connect("bob", properties=STAYS))
            await bob.ask(Subscribe(1, (Wish("t", 1),)))
            await bob.say(Disconnect())
            assert await bob.hear() is None
            await node.publish("t", b"before")
            await eventually(lambda: node.counters.deliveries == 1)
            assert node.disk is not None
            slow = asyncio.create_task(node.disk.read(threading.Event().wait, 0.5))
            late = asyncio.create_task(node.publish("t", b"late"))
            await eventually(lambda: node.counters.publishes == 2)
        await asyncio.gather(slow, late)
        async with topicweave.connect(settings) as node, Raw(node) as bob:
            await bob.ask(Connect("bob", clean_start=False, properties=STAYS))
            await node.publish("t", b"after")
            got: list[bytes] = []
            while b"after" not in got:
                packet = await bob.hear()
                assert isinstance(packet, Publish)
                got.append(packet.payload)
            await eventually(lambda: not node.world.gate.unacknowledged)
            await bob.say(Pingreq())
            while not isinstance(packet := await bob.hear(), Pingresp):
                assert isinstance(packet, Publish)
                got.append(packet.payload)
            assert sorted(got) == [b"after", b"before", b"late"]

    run(test)


def test_a_session_gets_at_once_and_once_what_came_when_its_door_was_closed(tmp_path: Path) -> None:
    async def test() -> None:
        settings = kept_until_acknowledged(tmp_path, 600.0, "t")
        async with topicweave.connect(settings) as node, Raw(node) as bob:
            await bob.ask(Connect("bob", properties=STAYS))
            await bob.ask(Subscribe(1, (Wish("t", 1),)))
            port, node.mqtt = node.mqtt, None
            assert port is not None
            await port.stop()
            await node.publish("t", b"late")
            await eventually(lambda: len(node.world.gate.unacknowledged) == 1)
        async with topicweave.connect(settings) as node, Raw(node) as bob:
            await bob.ask(Connect("bob", clean_start=False, properties=STAYS))
            packet = await bob.hear()
            assert isinstance(packet, Publish)
            assert packet.payload == b"late"
            assert not node.world.gate.unacknowledged

    run(test)


def test_a_session_that_a_clean_start_ended_is_not_kept(tmp_path: Path) -> None:
    async def test() -> None:
        settings = local(name="one", mqtt=MQTT, data=str(tmp_path))
        async with topicweave.connect(settings) as node, Raw(node) as first, Raw(node) as second:
            assert node.disk is not None
            await first.ask(Connect("bob", properties=STAYS))
            await first.ask(Subscribe(1, (Wish("t", 1),)))
            await first.say(Disconnect())
            assert await first.hear() is None
            await second.ask(Connect("bob", clean_start=True))
            assert await second.ask(Pingreq()) == Pingresp()
            await node.disk.committed()
            assert await node.disk.read(node.disk.store.facts_below, SESSION) == {}
            assert "t" not in node.subscriptions

    run(test)


def test_a_session_that_is_to_end_with_its_connection_is_not_kept(tmp_path: Path) -> None:
    """Though it was to stay before."""

    async def test() -> None:
        settings = local(name="one", mqtt=MQTT, data=str(tmp_path))
        async with topicweave.connect(settings) as node, Raw(node) as first, Raw(node) as second:
            assert node.disk is not None
            await first.ask(Connect("bob", properties=STAYS))
            await first.ask(Subscribe(1, (Wish("t", 1),)))
            await first.say(Disconnect())
            assert await first.hear() is None
            answer = await second.ask(Connect("bob", clean_start=False))
            assert isinstance(answer, Connack)
            assert answer.session_present
            await node.disk.committed()
            assert await node.disk.read(node.disk.store.facts_below, SESSION) == {}

    run(test)


def test_without_a_data_folder_a_session_ends_with_the_node_and_the_client_is_told() -> None:
    async def test() -> None:
        settings = local(name="one", mqtt=MQTT)
        async with topicweave.connect(settings) as node:
            assert not await present(node, "bob")
            assert await present(node, "bob")
        async with topicweave.connect(settings) as node:
            assert not await present(node, "bob")

    run(test)


@pytest.mark.parametrize("wish", ["t", "t/#", "+"])
def test_a_killed_door_hands_over_what_it_acknowledged(wish: str, tmp_path: Path) -> None:
    """`kill -9` after the last acknowledgement: a session that was away gets its messages from the node's cache."""

    async def talk(port: int, publish: bool) -> list[bytes]:
        import aiomqtt

        if publish:
            async with aiomqtt.Client(
                "127.0.0.1", port, identifier="bob", clean_session=False, timeout=30
            ) as bob:
                await bob.subscribe(wish, qos=1)
            async with aiomqtt.Client("127.0.0.1", port, timeout=30) as alice:
                for number in range(5):
                    await alice.publish("t", str(number).encode(), qos=1)
            return []
        async with aiomqtt.Client(
            "127.0.0.1", port, identifier="bob", clean_session=False, timeout=30
        ) as bob:
            return [bytes(message.payload) for message in await next_of(bob, 5)]

    arguments = ["--insecure", "--listen", "127.0.0.1:0", "--mqtt", MQTT, "--data", str(tmp_path)]
    with processes() as start:
        first = start(*arguments)
        port = int(first.where()["mqtt"].rpartition(":")[2])
        run(lambda: _none(talk(port, True)))
        first.kill()
        second = start(*arguments)
        port = int(second.where()["mqtt"].rpartition(":")[2])
        got: list[bytes] = []

        async def read() -> None:
            got.extend(await talk(port, False))

        run(read)
        assert got == [b"0", b"1", b"2", b"3", b"4"]
        assert second.stop() == 0


async def _none(work: Awaitable[object]) -> None:
    await work


def test_with_delivery_at_least_once_a_client_gets_each_message_once() -> None:
    async def test() -> None:
        settings = {"delivery": "at-least-once", "redeliver_after": 0.05}
        async with doors(1, **settings) as (node,), at(node) as bob:
            await bob.subscribe("t", qos=2)
            for number, text in enumerate((b"once", b"then"), start=1):
                await node.publish("t", text)
                await eventually(lambda: node.counters.deliveries == number)  # noqa: B023
                await eventually(lambda: not node.world.gate.unacknowledged, "the door acknowledges it")
            assert [one.payload for one in await next_of(bob, 2)] == [b"once", b"then"]

    run(test)


def test_with_delivery_at_least_once_a_door_gets_again_what_it_could_not_read() -> None:
    async def test() -> None:
        settings = {"delivery": "at-least-once", "redeliver_after": 0.05}
        async with doors(1, limits=Limits(application_events=8), **settings) as (node,), at(node) as bob:
            await node.subscribe("t")
            early = [node.publish("t", b"early") for _ in range(20)]
            await asyncio.gather(*early)
            await eventually(lambda: len(node.world.gate.unacknowledged) == 20)
            await bob.subscribe("t", qos=2)
            await asyncio.gather(*(node.publish("t", b"%d" % number) for number in range(50)))
            got = [one.payload for one in await next_of(bob, 50)]
            assert sorted(got) == sorted(b"%d" % number for number in range(50))
            held = node.world.gate.unacknowledged
            await eventually(lambda: len(held) <= 20)
            await asyncio.sleep(0.2)
            assert [event.payload for event, _, _ in held.values()] == [b"early"] * 20, "the application's"

    run(test)


@pytest.mark.parametrize("wish", ["t", "t/#"])
def test_with_delivery_at_least_once_a_message_that_no_session_holds_is_the_applications(wish: str) -> None:
    """A client that is away gets none of QoS 0."""

    async def test() -> None:
        settings = {"delivery": "at-least-once", "subscribe": (wish,)}
        async with doors(1, **settings) as (node,), Raw(node) as bob, at(node) as alice:
            await bob.ask(Connect("bob", properties=STAYS))
            await bob.ask(Subscribe(1, (Wish("t", 0), Wish("u", 0))))
            await bob.say(Disconnect())
            assert await bob.hear() is None
            await alice.subscribe("end")
            await node.publish("t", b"the application's")
            await node.publish("u", b"nobody's")
            await node.publish("end", b"")
            await next_of(alice)
            held = node.world.gate.unacknowledged
            assert [event.payload for event, _, _ in held.values()] == [b"the application's"]

    run(test)


def test_what_the_application_had_before_a_subscription_is_not_for_it_after_a_restart(tmp_path: Path) -> None:
    async def test() -> None:
        settings = kept_until_acknowledged(tmp_path, 0.05, "t")
        async with topicweave.connect(settings) as node, Raw(node) as bob:
            await node.publish("t", b"before")
            await eventually(lambda: node.counters.deliveries == 1)
            await bob.ask(Connect("bob", properties=STAYS))
            await bob.ask(Subscribe(1, (Wish("t", 1),)))
        node = LiveNode(settings, wall=lambda: wall() + 60.0)  # It was away for a minute.
        await node.start()
        async with Raw(node) as bob:
            for _ in range(2):
                await eventually(lambda: node.feed and node.feed.take(), "it comes again")
            await bob.ask(Connect("bob", clean_start=False, properties=STAYS))
            await node.publish("t", b"after")
            packet = await bob.hear()
            assert isinstance(packet, Publish)
            assert packet.payload == b"after"
            held = node.world.gate.unacknowledged
            assert [event.payload for event, _, _ in held.values()] == [b"before"], "the application's"
        await node.stop()

    run(test)


def test_a_retained_value_outlives_the_node(tmp_path: Path) -> None:
    async def test() -> None:
        settings = local(name="one", mqtt=MQTT, data=str(tmp_path))
        async with topicweave.connect(settings) as node, at(node) as alice:
            await alice.publish("state", b"on", qos=1, retain=True)
        async with (
            topicweave.connect(settings) as node,
            topicweave.connect(local(name="two", mqtt=MQTT, join=(str(node.address),))) as other,
        ):
            for door in (node, other):
                async with at(door) as late:
                    await late.subscribe("state", qos=1)
                    assert said((await next_of(late))[0]) == ("state", b"on", True)

    run(test)


def test_a_cleared_value_is_let_go_after_a_while(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(door, "TELL_EVERY", 0.05)
    monkeypatch.setattr(door, "MOST_RETAINED", 20)
    monkeypatch.setattr(retaining, "CLEARED_FOR", 0.5)
    topics = [f"state/{number}" for number in range(40)]

    def idle(node: LiveNode) -> bool:
        values = node.mqtt.door._values if node.mqtt else None
        return not (node.node.subscriptions or node.world.retained or (values and values._values))

    async def test() -> None:
        async with doors(1, data=str(tmp_path / "one")) as (one,), at(one) as alice:
            async with (
                topicweave.connect(local(mqtt=MQTT, join=(str(one.address),))) as other,
                at(other) as bob,
            ):
                for client in (alice, bob):
                    await client.publish("state/0", b"on", qos=1, retain=True)
                await eventually(lambda: linked(one, other))
                for topic in topics:
                    await alice.publish(topic, b"on", qos=1, retain=True)
                    await alice.publish(topic, b"", qos=1, retain=True)
                await eventually(lambda: idle(one) and idle(other))
            await alice.publish("state/0", b"again", qos=1, retain=True)
            async with at(one) as late:
                await late.subscribe("state/0", qos=1)
                assert said((await next_of(late))[0]) == ("state/0", b"again", True)
            assert one.disk is not None
            await one.disk.committed()
            assert list(await one.disk.read(one.disk.store.facts_below, RETAINED_HERE)) == ["state/0"]

    run(test)


def test_a_value_is_cleared_at_a_door_that_was_away(tmp_path: Path) -> None:
    async def test() -> None:
        one, two = (local(name=name, mqtt=MQTT, data=str(tmp_path / name)) for name in ("one", "two"))
        async with topicweave.connect(two) as node, at(node) as alice:
            await alice.publish("state", b"on", qos=1, retain=True)
        async with topicweave.connect(one) as node, at(node) as alice:
            await alice.publish("state", b"", qos=1, retain=True)
        async with topicweave.connect(one) as node:
            joining = local(name="two", mqtt=MQTT, data=str(tmp_path / "two"), join=(str(node.address),))
            async with topicweave.connect(joining) as other:
                assert other.mqtt is not None
                values = other.mqtt.door._values
                assert len(values) == 1
                await eventually(lambda: not len(values))

    run(test)


@pytest.mark.parametrize("ahead", [math.inf, math.nan, 10_000_000.0])
def test_a_value_whose_time_is_far_ahead_can_be_replaced_and_cleared(ahead: float) -> None:
    async def test() -> None:
        async with doors(1) as (node,), at(node) as alice:
            assert node.mqtt is not None
            values = node.mqtt.door._values
            await alice.subscribe("state")
            for later in (b"off", b""):
                wrong = wrap(b"wrong", retained_at=wall() + ahead)
                await node.publish_any(RETAINED + "state", wrong)
                await eventually(lambda: (value := values.get("state")) and value.payload == b"wrong")
                await alice.publish("state", later, qos=1, retain=True)
                await eventually(lambda: (value := values.get("state")) and value.payload == later)  # noqa: B023

    run(test)


@pytest.mark.parametrize("in_order", [True, False])
def test_what_a_client_said_before_it_left_counts(in_order: bool, tmp_path: Path) -> None:
    """However long the disk takes for it."""

    async def test() -> None:
        settings = {"data": str(tmp_path), "subscribe": ("t", "wills")}
        async with doors(1, **settings) as (node,), Raw(node) as client:
            said = [Publish("t", b"%d" % number) for number in range(100)]
            end = [Disconnect()] if in_order else []
            await client.say(Connect("c", will=Will("wills", b"dead")), *said, *end)
            client.writing.close()
            await eventually(lambda: node.mqtt and not node.mqtt.connections)
            count = len(said) + (not in_order)
            await eventually(lambda: len(taken(node)) == count)
            assert [payload for _, payload in taken(node)][:100] == [one.payload for one in said]
            assert node.mqtt is not None
            assert not node.mqtt.door.clients

    run(test)


def test_who_left_in_order_and_comes_back_at_once_takes_nothing_from_itself(tmp_path: Path) -> None:
    async def test() -> None:
        settings = {"data": str(tmp_path), "subscribe": ("t", "wills")}
        async with doors(1, **settings) as (node,), Raw(node) as client, Raw(node) as again:
            said = [Publish("t", b"%d" % number) for number in range(100)]
            await client.say(Connect("c", will=Will("wills", b"dead")), *said, Disconnect())
            client.writing.close()
            await eventually(lambda: node.counters.publishes)
            assert isinstance(await again.ask(Connect("c")), Connack)
            await eventually(lambda: len(taken(node)) >= 100)
            assert [payload for _, payload in taken(node)] == [one.payload for one in said]

    run(test)


@pytest.mark.parametrize("version", [V311, V5])
def test_what_the_disk_does_not_take_is_not_acknowledged(version: int, tmp_path: Path) -> None:
    async def test() -> None:
        async with doors(1, data=str(tmp_path)) as (node,), Raw(node, version) as client:
            await client.ask(Connect("c", version))
            assert node.disk is not None
            await node.disk.read(limit_pages, node.disk.store, 1)
            for number in range(1, 100):
                answer = await client.ask(Publish("t", bytes(8000), 1, packet_id=number))
                if not isinstance(answer, Puback) or answer.reason not in (0, Reason.NO_SUBSCRIBERS):
                    break
            if version == V5:
                assert answer == Puback(number, Reason.QUOTA)
            else:
                assert answer is None, "3.1.1 cannot say no: the connection ends"
            await node.disk.read(limit_pages, node.disk.store, 0)

    run(test)


def test_a_retained_value_that_the_disk_does_not_take_is_not_acknowledged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The message is on disk, its value on the other topic is not."""

    async def test() -> None:
        async with doors(1, data=str(tmp_path)) as (node,), Raw(node) as client:
            await client.ask(Connect("c"))
            kept = iter([True, False])

            async def keeps(*_: object) -> bool:
                return next(kept)

            with monkeypatch.context() as patch:
                patch.setattr(node.disk, "keeps", keeps)
                answer = await client.ask(Publish("t", b"x", 1, retain=True, packet_id=1))
            assert answer == Puback(1, Reason.QUOTA)

    run(test)


@pytest.mark.parametrize("version", [V311, V5])
def test_a_lasting_subscription_that_the_disk_does_not_take_is_refused(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "PATIENCE", 0.1)

    async def test() -> None:
        async with doors(1, data=str(tmp_path)) as (node,), Raw(node, version) as client:
            properties = STAYS if version == V5 else {}
            await client.ask(Connect("c", version, clean_start=False, properties=properties))
            await client.ask(Subscribe(1, (Wish("t", 0), Wish("same", 1))))
            assert node.disk is not None
            await node.disk.read(limit_pages, node.disk.store, 1)
            while not node.disk.error:  # A few pages may be free.
                await node.publish("filler", bytes(8000), timeout=0.1)
            answer = await client.ask(Subscribe(2, (Wish("late", 1), Wish("t", 1), Wish("same", 1))))
            assert isinstance(answer, Suback)
            assert [reason >= Reason.UNSPECIFIED for reason in answer.reasons] == [True, True, False]
            assert node.subscriptions == ["same", "t"]
            assert node.mqtt is not None
            kept = node.mqtt.door.sessions["c"].subscriptions
            assert {name: one.wish.qos for name, one in kept.items()} == {"t": 0, "same": 1}
            await node.disk.read(limit_pages, node.disk.store, 0)
            await eventually(lambda: node.disk is not None and not node.disk.error)
            answer = await client.ask(Subscribe(3, (Wish("late", 1), Wish("t", 1))))
            assert isinstance(answer, Suback)
            assert answer.reasons == (1, 1)

    run(test)


def test_a_will_is_published_when_its_session_is_taken_over_or_ends_and_not_when_the_client_comes_back() -> (
    None
):
    async def test() -> None:
        async with doors(1) as (node,), at(node) as watcher:
            await watcher.subscribe("wills", qos=1)

            def connect(text: str, delay: int, clean: bool = False) -> Connect:
                will = Will("wills", text.encode(), 1, properties={"will_delay": delay})
                return Connect("me", clean_start=clean, will=will, properties=STAYS)

            async with Raw(node) as first:
                await first.ask(connect("taken over", 0))
                async with Raw(node) as second:
                    await second.ask(connect("came back", 500))
                    assert said((await next_of(watcher))[0])[1] == b"taken over"
            async with Raw(node) as third:
                await third.ask(connect("ended", 500))
            async with Raw(node) as fourth:
                await fourth.ask(connect("unused", 500, clean=True))
                assert said((await next_of(watcher))[0])[1] == b"ended"
                await fourth.say(Disconnect())

    run(test)


def test_wills_are_published_when_the_node_stops(tmp_path: Path) -> None:
    """At other doors at once, whatever their delay; at the same one when it is there again."""

    async def test() -> None:
        async with doors(1) as (other,), at(other) as watcher:
            await watcher.subscribe("wills", qos=1)
            settings = local(mqtt=MQTT, data=str(tmp_path), join=(str(other.address),))
            async with topicweave.connect(settings) as node, Raw(node) as bob:
                await bob.ask(Connect("bob", properties=STAYS))
                await bob.ask(Subscribe(1, (Wish("wills", 1),)))
                await eventually(lambda: linked(node, other))
                for name, delay in (("now", 0), ("later", 1000), ("gone", 1000)):
                    client = await Raw(node).__aenter__()
                    will = Will("wills", name.encode(), 1, properties={"will_delay": delay})
                    await client.ask(Connect(name, will=will, properties=STAYS))
                    if name == "gone":
                        client.writing.close()
                        await eventually(lambda: node.mqtt and "gone" not in node.mqtt.door.clients)
            told = await next_of(watcher, 3)
            assert {one.payload for one in told} == {b"now", b"later", b"gone"}
        async with topicweave.connect(settings) as node, Raw(node) as bob:
            await bob.ask(Connect("bob", clean_start=False, properties=STAYS))
            heard = [await bob.hear() for _ in range(3)]
            assert {one.payload for one in heard if isinstance(one, Publish)} == {b"now", b"later", b"gone"}

    run(test)


def test_the_will_of_a_node_that_stops_reaches_a_door_to_which_it_had_no_link() -> None:
    async def test() -> None:
        async with doors(1) as (other,), at(other) as watcher:
            await watcher.subscribe("wills", qos=1)
            settings = local(mqtt=MQTT, join=(str(other.address),))
            async with topicweave.connect(settings) as node, Raw(node) as client:
                await eventually(lambda: node.joined)
                await client.ask(Connect("c", will=Will("wills", b"dead", 1, retain=True)))
            assert said((await next_of(watcher))[0]) == ("wills", b"dead", False)
            async with at(other) as late:
                await late.subscribe("wills", qos=1)
                assert said((await next_of(late))[0]) == ("wills", b"dead", True)

    run(test)


def test_who_does_not_want_to_hear_itself_does_not() -> None:
    async def test() -> None:
        async with doors() as (one, other), Raw(one) as alice, at(other) as bob:
            await bob.subscribe("t", qos=1)
            await alice.ask(Connect("alice"))
            await alice.ask(Subscribe(1, (Wish("t", 1, no_local=True),)))
            await eventually(lambda: linked(one, other))
            assert await alice.ask(Publish("t", b"mine", 1, packet_id=1)) == Puback(1)
            assert said((await next_of(bob))[0]) == ("t", b"mine", False)
            await bob.publish("t", b"yours", qos=1)
            got = await alice.hear()
            assert isinstance(got, Publish)
            assert got.payload == b"yours"

    run(test)


def test_windows_and_aliases_hold_both_ways() -> None:
    async def test() -> None:
        async with doors(1) as (node,), Raw(node) as client:
            limits = {"receive_maximum": 1, "alias_maximum": 1}
            await client.ask(Connect("c", properties=limits))
            await client.ask(Subscribe(1, (Wish("t", 1),)))
            for number in (1, 2):
                topic = "t" if number == 1 else ""
                await client.say(
                    Publish(topic, str(number).encode(), 1, packet_id=number, properties={"alias": 5})
                )
            said_: list[object] = [await client.hear() for _ in range(3)]
            got = [one for one in said_ if isinstance(one, Publish)]
            assert len(got) == 1, "the second waits until the first is answered"
            assert (got[0].topic, got[0].payload, got[0].properties) == ("t", b"1", {"alias": 1})
            again = await client.ask(Puback(got[0].packet_id))
            assert isinstance(again, Publish)
            assert (again.topic, again.payload, again.properties) == ("", b"2", {"alias": 1})

    run(test)
