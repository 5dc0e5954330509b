"""Patterns at live nodes, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import topicweave
from tests.live.test_http import asked
from tests.live.together import PROCESS_PATIENCE, eventually, local, run, secure, taken
from topicweave.client import Incomplete, RemoteNode
from topicweave.errors import BadInput
from topicweave.live import LiveNode, patterns
from topicweave.live.authority import issue, new_swarm
from topicweave.live.health import health, view
from topicweave.live.keyring import Permissions
from topicweave.live.pattern_groups import ALONE
from topicweave.live.patterns import LivePatterns
from topicweave.live.settings import Limits
from topicweave.model.ids import ring_id
from topicweave.model.patterns import matches
from topicweave.systems.registry import SYSTEMS


@contextlib.asynccontextmanager
async def nodes(count: int = 3, **changes: Any) -> AsyncIterator[list[LiveNode]]:
    """Nodes that know each other."""
    async with contextlib.AsyncExitStack() as stack:
        made: list[LiveNode] = []
        for number in range(count):
            join = (str(made[0].address),) if made else ()
            settings = local(name=f"node-{number}", join=join, **changes)
            made.append(await stack.enter_async_context(topicweave.connect(settings)))
        await eventually(lambda: count == 1 or all(node.joined for node in made))
        yield made


def texts(node: LiveNode) -> Counter[tuple[str, bytes]]:
    return Counter(taken(node))


def test_an_event_that_is_refused_announces_no_name() -> None:
    async def test() -> None:
        async with topicweave.connect(local(http="127.0.0.1:0")) as node:
            most = node.settings.limits.payload_bytes
            for retain in (False, True):
                body = json.dumps({"topic": "never/there", "text": "x" * (most + 1), "retain": retain})
                status, _ = await asked(node, "/publish", "POST", body.encode())
                assert status == 400
                with pytest.raises(BadInput, match="type str"):
                    await node.publish("never/there", "text", retain=retain)  # type: ignore[arg-type]  # the mistake
            assert node.patterns.announced == 0
            await node.publish("there", b"x")
            assert node.patterns.announced == 1

    run(test)


def test_all_events_of_a_name_that_is_new_come_once() -> None:
    async def test() -> None:
        async with nodes() as (one, two, three):
            await two.subscribe("sensors/+/temperature")
            await three.subscribe("sensors/#")
            for number in range(3):
                await one.publish("sensors/7/temperature", b"%d" % number)
            wanted = Counter({("sensors/7/temperature", b"%d" % number): 1 for number in range(3)})
            await eventually(lambda: texts(two) == wanted == texts(three))
            assert one.subscriptions == []
            await one.publish("sensors/7/temperature", b"3")
            await one.publish("sensors/7/humidity", b"4")
            await eventually(lambda: len(taken(three)) == 5 and len(taken(two)) == 4)
            assert max(texts(two).values()) == max(texts(three).values()) == 1
            assert two.subscriptions == ["sensors/7/temperature"]

    run(test)


def test_many_new_names_at_once_and_several_events_of_each() -> None:
    async def test() -> None:
        async with nodes() as (one, two, three):
            await three.subscribe("zone/#")
            wanted: Counter[tuple[str, bytes]] = Counter()
            for number in range(5):
                for place in range(40):
                    for node in (one, two):
                        event = f"zone/{node.name}/{place}", b"%d" % number
                        wanted[event] += 1
                        await node.publish(*event)
            await eventually(lambda: texts(three) == wanted, "each event of each name came once")

    run(test)


def test_what_this_node_publishes_itself_comes_without_anybody_else() -> None:
    async def test() -> None:
        async with nodes(1) as (one,):
            await one.subscribe("a/+")
            await one.publish("a/b", b"1")
            await eventually(lambda: taken(one) == [("a/b", b"1")])
            await one.unsubscribe("a/+")
            assert one.subscriptions == []
            await one.publish("a/b", b"2")
            await one.subscribe(["a/#", "a/+"])
            await one.publish("a/b", b"3")
            await eventually(lambda: taken(one) == [("a/b", b"1"), ("a/b", b"3")])

    run(test)


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_has_patterns(system: str) -> None:
    async def test() -> None:
        async with nodes(4, system=system, patterns="on") as swarm:
            publisher, *others = swarm
            for node in others[:2]:
                await node.subscribe("zone/+/door")
            for number in range(3):
                await publisher.publish("zone/7/door", b"%d" % number)
            wanted = Counter({("zone/7/door", b"%d" % number): 1 for number in range(3)})
            await eventually(lambda: all(texts(node) == wanted for node in others[:2]))
            assert not taken(others[2])

    run(test)


# Where patterns begin and end.


def test_names_that_are_not_published_on_any_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with nodes(2) as (one, two):
            await two.subscribe(["a/#", "a/+"])
            await one.publish("a/b", b"1")
            await one.publish("a/kept", b"2", retain=True)
            await eventually(lambda: sorted(taken(two)) == [("a/b", b"1"), ("a/kept", b"2")])
            # Not before: however long it took to be found.
            monkeypatch.setattr(patterns, "KEPT", 1.0)
            one.patterns._turn()
            await eventually(lambda: two.subscriptions == ["a/kept"], "its retained value is kept")
            await eventually(lambda: two.topics.known(ring_id("a/b")) is None)
            await one.publish("a/b", b"3")
            await eventually(lambda: ("a/b", b"3") in taken(two), "it is found again")
            assert max(texts(two).values()) == 1

    run(test)


def test_what_somebody_else_wants_stays() -> None:
    async def test() -> None:
        async with nodes(2) as (one, two):
            await two.subscribe(["a/+", "a/#", "a/b"])
            await one.publish("a/b", b"1")
            await one.publish("a/c", b"1")
            await eventually(lambda: two.subscriptions == ["a/b", "a/c"])
            await two.unsubscribe("a/+")
            assert two.subscriptions == ["a/b", "a/c"]
            await two.unsubscribe("a/#")
            assert two.subscriptions == ["a/b"]
            await two.unsubscribe("a/b")
            assert (two.subscriptions, two.patterns.wanted) == ([], [])

    run(test)


def test_the_past_of_what_a_pattern_finds() -> None:
    async def test() -> None:
        async with nodes(2) as (one, two):
            await one.subscribe("a/b")
            for number in range(5):
                await one.publish("a/b", b"%d" % number)
            await two.subscribe("a/+", last=2)
            await eventually(lambda: {("a/b", b"3"), ("a/b", b"4")} <= set(taken(two)))

    run(test)


def test_a_pattern_outlives_the_process_that_has_a_data_folder(tmp_path: Path) -> None:
    async def test() -> None:
        async with topicweave.connect(local(name="one")) as one:
            settings = local(name="two", join=(str(one.address),), data=str(tmp_path))
            async with topicweave.connect(settings) as two:
                await two.subscribe("a/+")
                await one.publish("a/b", b"1")
                await eventually(lambda: taken(two) == [("a/b", b"1")])
            await one.publish("a/b", b"2")
            await one.publish("a/c", b"3")
            async with topicweave.connect(settings) as two:
                assert two.patterns.wanted == ["a/+"]
                await eventually(lambda: sorted(taken(two)) == [("a/b", b"2"), ("a/c", b"3")], patience=120.0)
                await two.unsubscribe("a/+")
            async with topicweave.connect(settings) as two:
                assert two.patterns.wanted == []

    run(test)


def test_what_an_earlier_life_found_is_doubted_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "KEPT", 4.0)

    async def test() -> None:
        settings = local(name="one", subscribe=("a/+",), data=str(tmp_path))
        async with topicweave.connect(settings) as one:
            await one.publish("a/b", b"1")
            await eventually(lambda: taken(one) == [("a/b", b"1")])
        async with topicweave.connect(settings) as one:
            assert one.subscriptions == ["a/b"]
            await eventually(lambda: not one.subscriptions, "nobody publishes on it")
        async with topicweave.connect(settings) as one:
            assert one.subscriptions == []

    run(test)


# What cannot be had.


def test_what_is_no_pattern_is_explained() -> None:
    async def test() -> None:
        async with nodes(1, subscribe=("c#", "languages/c++")) as (one,):
            assert one.subscriptions == ["c#", "languages/c++"], "these are names"
            for pattern in ("a/#/b", "#/a", "a/+/#/+"):
                with pytest.raises(BadInput, match="last level"):
                    await one.subscribe(pattern)
            with pytest.raises(BadInput, match="publish on a single topic"):
                await one.publish("a/+", b"")

    run(test)


def test_a_system_without_names_says_how_to_get_them() -> None:
    async def test() -> None:
        async with nodes(1, system="vitis") as (one,):
            with pytest.raises(BadInput, match="--patterns on"):
                await one.subscribe("a/+")
            await one.publish("a/b", b"")
        async with nodes(1, patterns="off") as (one,):
            with pytest.raises(BadInput, match="turned off"):
                await one.subscribe("a/+")

    run(test)


def test_nodes_that_keep_no_names_are_refused_by_those_that_need_them() -> None:
    async def test() -> None:
        settings = {"system": "vitis", "name": "with", "patterns": "on"}
        async with topicweave.connect(local(**settings)) as one:
            other = local(system="vitis", name="without", join=(str(one.address),))
            async with topicweave.connect(other) as two:
                await eventually(lambda: health(two)["troubles"])
                (trouble, *_) = health(two)["troubles"]
                assert "vitis with patterns" in trouble["what"]
                assert not two.joined

    run(test)


def test_off_at_one_node_is_no_harm_to_others() -> None:
    async def test() -> None:
        async with topicweave.connect(local(name="quiet", patterns="off")) as quiet:
            join = (str(quiet.address),)
            async with (
                topicweave.connect(local(name="one", join=join)) as one,
                topicweave.connect(local(name="two", join=join)) as two,
            ):
                await two.subscribe("a/+")
                await quiet.publish("a/unsaid", b"")
                await one.publish("a/b", b"1")
                await eventually(lambda: taken(two) == [("a/b", b"1")])
                assert view(quiet)["patterns"]["announced"] == 0

    run(test)


@pytest.mark.parametrize("system", ["spidercast", "scribe"])
def test_private_names(system: str) -> None:
    async def test() -> None:
        async with nodes(system=system, patterns="on", private_names=True) as (one, two, three):
            await two.subscribe("zone/+/door")
            await three.subscribe(["zone/#", "zone/+/door"])
            for number in range(3):
                await one.publish("zone/seven/door", b"%d" % number)
            payloads = [b"0", b"1", b"2"]
            await eventually(lambda: sorted(payload for _, payload in taken(two)) == payloads)
            await eventually(lambda: sorted(payload for _, payload in taken(three)) == payloads)
            for node in (two, three):
                (name,) = node.subscriptions
                assert matches("zone/+/door", name)
                assert "seven" not in name
            assert {topic for topic, _ in taken(two)} == set(two.subscriptions)

    run(test)


def test_a_certificate_holds_for_patterns_and_for_what_they_find(tmp_path: Path) -> None:
    swarm = new_swarm(tmp_path / "swarm")
    free = issue(swarm, "free")
    bound = issue(swarm, "bound", permissions=Permissions(subscribe=("sensors/7/", "public")))

    async def test() -> None:
        async with (
            topicweave.connect(secure(free)) as one,
            topicweave.connect(secure(bound, join=(str(one.address),))) as two,
        ):
            for pattern in ("#", "sensors/#", "sensors/+/t", "+/7/t", "sensors/70/+"):
                with pytest.raises(BadInput, match="certificate"):
                    await two.subscribe(pattern)
            await two.subscribe(["sensors/7/#", "public/+"])
            for name in ("sensors/7", "sensors/8/t", "sensors/7/t", "public/x"):
                await one.publish(name, name.encode())
            wanted = [("public/x", b"public/x"), ("sensors/7/t", b"sensors/7/t")]
            await eventually(lambda: sorted(taken(two)) == wanted)
            assert two.subscriptions == ["public/x", "sensors/7/t"]

    run(test)


def test_many_patterns_that_are_alike_are_watched_as_one() -> None:
    async def test() -> None:
        async with nodes(2) as (one, two):
            await one.publish("devices/150/late", b"earlier")
            await two.subscribe(f"devices/{number}/#" for number in range(160))
            assert two.node.gauges()["name_patterns"] == ALONE + 1
            await one.publish("devices/170/x", b"nobody's")
            for number in (7, 149):
                for payload in (b"1", b"2"):
                    await one.publish(f"devices/{number}/x", payload)
            wanted = Counter(
                {(f"devices/{number}/x", payload): 1 for number in (7, 149) for payload in (b"1", b"2")}
            )
            await eventually(lambda: not wanted - texts(two))
            await eventually(lambda: "devices/150/late" in two.subscriptions)
            # One that comes when the others are known.
            await two.subscribe("devices/170/#", last=1)
            await eventually(lambda: ("devices/170/x", b"nobody's") in taken(two))
            assert max(texts(two).values()) == 1
            await two.unsubscribe([f"devices/{number}/#" for number in (*range(160), 170)])
            assert two.subscriptions == []
            assert two.node.gauges()["name_patterns"] == 0

    run(test)


def test_there_is_a_bound_on_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MOST_WATCHED", 100)

    async def test() -> None:
        async with nodes(1) as (one,):
            await one.subscribe(f"{number}/#" for number in range(100))
            with pytest.raises(BadInput, match="100 patterns"):
                await one.subscribe("one/more/#")
            await one.subscribe("1/#")

    run(test)


# What is left out is said.


def test_a_pattern_that_finds_too_much_is_announced_everywhere() -> None:
    async def test() -> None:
        limits = Limits(pattern_topics=5)
        async with topicweave.connect(local(name="one")) as one:
            settings = local(name="two", join=(str(one.address),), http="127.0.0.1:0", limits=limits)
            async with topicweave.connect(settings) as two:
                assert two.http is not None
                told: list[Incomplete] = []
                two.on_incomplete(told.append)
                remote: list[Incomplete] = []
                async with RemoteNode(str(two.http.address), on_incomplete=remote.append) as client:
                    await client.subscribe("a/#")
                    for number in range(8):
                        await one.publish(f"a/{number}", b"x")
                    await eventually(lambda: told and remote)
                    assert told == remote
                    assert told[0].pattern == "a/#"
                    assert "pattern_topics" in told[0].reason
                    assert len(two.subscriptions) == 5
                    assert any("a/#" in reason for reason in health(two)["reasons"])
                    (shown,) = view(two)["patterns"]["patterns"]
                    assert (shown["topics"], list(shown["incomplete"])) == (5, [""])
                    assert two.counters.incomplete_patterns == 1
                    late: list[Incomplete] = []
                    async with RemoteNode(str(two.http.address), on_incomplete=late.append) as other:
                        await other.subscribe("a/#")
                        await eventually(lambda: late == told, "who comes later is told at once")
                    _, exposed = await asked(two, "/metrics")
                    assert b"topicweave_patterns_lacking 1.0" in exposed
                await eventually(lambda: not two.subscriptions)

    run(test)


def test_topics_that_were_left_out_are_taken_when_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "RETAKEN", 0.05)
    named: set[tuple[str, str]] = set()
    found = LivePatterns.found

    def noted(self: LivePatterns, pattern: str, name: str, *rest: Any) -> None:
        named.add((self._node.name, name))
        found(self, pattern, name, *rest)

    monkeypatch.setattr(LivePatterns, "found", noted)

    async def test() -> None:
        async with nodes(2, limits=Limits(pattern_topics=4)) as (one, two):
            told: list[Incomplete] = []
            two.on_incomplete(told.append)
            await two.subscribe("b/#")
            for number in range(2):
                await one.publish(f"b/{number}", b"x")
            await eventually(lambda: two.subscriptions == ["b/0", "b/1"])
            await two.subscribe("a/#")
            for number in range(6):
                await one.publish(f"a/{number}", b"%d" % number)
            all_six = {(two.name, f"a/{number}") for number in range(6)}
            await eventually(lambda: told and all_six <= named and len(two.subscriptions) >= 4)
            assert [(one.pattern, one.prefix) for one in told] == [("a/#", "")]
            assert len(two.subscriptions) == 4

            await two.unsubscribe("b/#")
            await eventually(lambda: len(two.subscriptions) == 4 and "b/0" not in two.subscriptions)
            assert len(told) == 1, "two of six are still left out"
            assert two.patterns.lacking() == told

            for name in ("a/0", "a/1"):
                one.patterns._end(name)
            await eventually(lambda: len(told) == 2, "all that there are were taken")
            await eventually(lambda: two.subscriptions == [f"a/{number}" for number in range(2, 6)])
            assert told[1] == Incomplete("a/#", "", "")
            assert two.patterns.lacking() == []
            assert not any("a/#" in reason for reason in health(two)["reasons"])
            wanted = {(f"a/{number}", b"%d" % number) for number in range(2, 6)}
            await eventually(lambda: wanted <= set(taken(two)), "what was published meanwhile is fetched")
            assert max(texts(two).values()) == 1

    run(test)


def test_a_pattern_is_complete_when_what_was_left_out_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "RETAKEN", 0.05)

    async def test() -> None:
        async with nodes(1, limits=Limits(pattern_topics=2)) as (one,):
            told: list[Incomplete] = []
            one.on_incomplete(told.append)
            await one.subscribe("a/#")
            for number in range(3):
                await one.publish(f"a/{number}", b"x")
            await eventually(lambda: told)
            assert one.subscriptions == ["a/0", "a/1"]
            one.patterns._end("a/2")
            await eventually(lambda: told[1:] == [Incomplete("a/#", "", "")])
            assert one.subscriptions == ["a/0", "a/1"]

    run(test)


# Over HTTP and WebSocket.


def test_patterns_over_http_and_websocket() -> None:
    async def test() -> None:
        async with topicweave.connect(local(name="one")) as one:
            settings = local(name="two", join=(str(one.address),), http="127.0.0.1:0")
            async with topicweave.connect(settings) as two:
                assert two.http is not None
                status, body = await asked(two, "/subscriptions/own/%23", method="PUT")
                assert (status, json.loads(body)["subscriptions"]) == (200, ["own/#"])
                status, body = await asked(two, "/subscriptions/own/%23/x", method="PUT")
                assert status == 400
                async with RemoteNode(str(two.http.address)) as client:
                    await client.subscribe("zone/+/door", "zone/7/#", "zone/7/door")
                    assert client.subscriptions == ["zone/+/door", "zone/7/#", "zone/7/door"]
                    for name in ("own/x", "zone/7/lamp", "zone/8/door", "zone/8/lamp", "zone/7/door"):
                        await one.publish(name, name.encode())
                    got: Counter[str] = Counter()
                    async with asyncio.timeout(30):
                        async for event in client.events():
                            got[event.topic] += 1
                            if len(got) == 3:
                                break
                    assert got == {"zone/7/lamp": 1, "zone/8/door": 1, "zone/7/door": 1}
                await eventually(lambda: two.subscriptions == ["own/x"])
                status, _ = await asked(two, "/subscriptions/own/%23", method="DELETE")
                assert (status, two.subscriptions) == (200, [])

    run(test)


def test_the_shell_subscribes_to_patterns() -> None:
    async def test() -> None:
        async with topicweave.connect(local(name="one", http="127.0.0.1:0")) as one:
            assert one.http is not None
            process = await asyncio.create_subprocess_exec(
                *[sys.executable, "-m", "topicweave.cli", "subscribe", "zone/7/#", "--count", "2"],
                *["--node", str(one.http.address)],
                stdout=asyncio.subprocess.PIPE,
            )
            await eventually(lambda: one.patterns.wanted == ["zone/7/#"], patience=PROCESS_PATIENCE)
            for name in ("zone/7", "zone/8/door", "zone/7/door"):
                await one.publish(name, b"x")
            printed, _ = await process.communicate()
            assert [json.loads(line)["topic"] for line in printed.splitlines()] == ["zone/7", "zone/7/door"]

    run(test)
