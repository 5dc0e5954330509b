"""What outlives a process, and what those who were away get."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path

import pytest

import topicweave
from tests.live.together import (
    PATIENCE,
    Process,
    eventually,
    linked,
    local,
    processes,
    run,
    taken,
    until_served,
)
from topicweave.client.through import publish_through
from topicweave.errors import BadInput
from topicweave.live import LiveNode
from topicweave.live.swarm import run_swarm
from topicweave.live.world import LiveWorld
from topicweave.model.event import Event
from topicweave.model.ids import ring_id
from topicweave.systems.registry import SYSTEMS

PULLS_THE_PAST = {"rappel", "gossipsub"}
"""They pull by themselves, from caches of their own: more may come, and whatever comes that way first is not
caught up.
"""
CONNECTING = [name for name in SYSTEMS if SYSTEMS[name].connects_topics]


def _no_probes(events: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    return [event for event in events if not event[1].startswith(b"probe")]


@pytest.mark.parametrize(
    "system",
    [pytest.param(name, marks=[] if name == "spidercast" else [pytest.mark.live]) for name in CONNECTING],
)
def test_a_late_joiner_catches_up_from_neighbours(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    caught_up: defaultdict[LiveWorld, set[tuple[str, bytes]]] = defaultdict(set)
    names = {ring_id(topic): topic for topic in ("news", "short", "none")}
    take = LiveWorld._take_caught_up

    def noted(world: LiveWorld, event: Event, hops: int) -> bool:
        if new := take(world, event, hops):
            caught_up[world].add((names[event.topic], event.payload))
        return new

    monkeypatch.setattr(LiveWorld, "_take_caught_up", noted)

    async def test() -> None:
        settings = local(system=system, caches={"short": 2, "none": 0})
        async with run_swarm([["news", "short", "none"]] * 3, settings) as nodes:
            await until_served(nodes, "news", "short", "none")
            for number in range(5):
                await nodes[number % 3].publish("news", b"%d" % number)
                await nodes[2].publish("short", b"%d" % number)
                await nodes[2].publish("none", b"%d" % number)
            await eventually(
                lambda: {("news", b"%d" % number) for number in range(5)} <= set(taken(nodes[2]))
            )
            # Two publishers are gone when it comes: it gets what the third kept of all of them.
            await nodes[0].stop()
            await nodes[1].stop()
            # A probe that came late took the place of another event.
            short = [
                ("short", one.event.payload) for one in nodes[2].world.log.history(ring_id("short"), 10, 0.0)
            ]
            assert len(short) == 2
            join = (str(nodes[2].address),)
            async with topicweave.connect(local(system=system, join=join)) as late:
                for topic in ("news", "short", "none"):
                    await late.subscribe(topic)
                kept = [("news", b"%d" % number) for number in range(5)] + short
                await eventually(lambda: set(taken(late)) >= set(kept))
                if system not in PULLS_THE_PAST:
                    # A probe that found nobody may come from its publisher, which kept it for the first that wants it.
                    later = _no_probes(taken(late))
                    assert sorted(later) == _no_probes(kept)
                    assert [event for event in later if event[0] == "short"] == _no_probes(short)
                    assert set(_no_probes(kept)) <= caught_up[late.world]

    run(test)


def test_healed_partitions_catch_up_and_each_event_comes_once() -> None:
    async def test() -> None:
        names = [f"node-{number}" for number in range(8)]
        async with run_swarm([["a", "b"]] * 8, local(), names=names, seed=1) as nodes:
            await eventually(lambda: linked(*nodes))
            left = {node.id for node in nodes[:4]}

            def firewall(node: LiveNode) -> None:
                here = node.id in left
                node.transport.blocked = lambda peer: (peer in left) != here

            for node in nodes:
                firewall(node)

            def apart() -> bool:
                return not any(
                    (link.peer in left) != (node.id in left) for node in nodes for link in node.node.links()
                )

            await eventually(apart, "the halves forget each other")
            for number in range(5):
                await nodes[0].publish("a", b"left %d" % number)
                await nodes[7].publish("b", b"right %d" % number)
            await eventually(lambda: all(len(taken(node)) == 5 for node in nodes))
            for node in nodes:
                node.transport.blocked = None
            everything = {("a", b"left %d" % n) for n in range(5)} | {
                ("b", b"right %d" % n) for n in range(5)
            }
            await eventually(lambda: all(set(taken(node)) == everything for node in nodes), "all caught up")
            await nodes[3].publish("a", b"together")
            await eventually(lambda: all(("a", b"together") in taken(node) for node in nodes))
            assert all(len(taken(node)) == 11 for node in nodes), "each once"
            assert all(node.counters.node_errors == 0 for node in nodes)

    run(test)


@pytest.mark.parametrize(
    "system",
    [pytest.param(name, marks=[] if name == "spidercast" else [pytest.mark.live]) for name in CONNECTING],
)
def test_a_node_restarted_with_its_data_folder_goes_on_where_it_was(system: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with topicweave.connect(local(system=system, subscribe=("a", "b"))) as other:
            kept = local(system=system, data=str(tmp_path / "data"))
            async with topicweave.connect(kept, join=(str(other.address),), subscribe=("a",)) as node:
                await eventually(lambda: linked(node, other))
                first = await node.publish("a", b"one")
                await other.publish("a", b"two")
                await eventually(lambda: len(taken(node)) == 2 and len(taken(other)) == 2)
                name, before = node.name, node.clock.now
            await other.publish("a", b"while away")
            # No address to join is given: the peers were kept, too.
            async with topicweave.connect(kept) as node:
                assert node.name == name
                assert node.subscriptions == ["a"]
                assert node.clock.now > before
                assert len(node.world.log) == 2
                await eventually(
                    lambda: taken(node) == [("a", b"while away")], "old events are not handed over again"
                )
                second = await node.publish("a", b"three")
                assert second.event.epoch == first.event.epoch
                assert second.event.sequence == first.event.sequence + 1
                await eventually(lambda: ("a", b"three") in taken(other))

    run(test)


def test_a_data_folder_belongs_to_one_name(tmp_path: Path) -> None:
    async def test() -> None:
        data = str(tmp_path)
        async with topicweave.connect(local(data=data, name="alice")):
            pass
        with pytest.raises(BadInput, match="of name 'alice', not 'bob'"):
            await LiveNode(local(data=data, name="bob")).start()

    run(test)


def test_a_killed_process_comes_back_with_its_numbers_and_hands_nothing_over_twice(tmp_path: Path) -> None:
    data = str(tmp_path / "data")

    async def test() -> None:
        with processes() as start:
            async with topicweave.connect(local(subscribe=("a",))) as other:

                def launch() -> Process:
                    return start(
                        *("--insecure", "--preset", "local", "--data", data, "--http", "127.0.0.1:0"),
                        *("--join", str(other.address), "--subscribe", "a", "--show-events"),
                    )

                def publish(text: bytes) -> dict[str, int]:
                    return publish_through(http, "", "a", text, wait_for=1, timeout=30)

                victim = launch()
                http = (await asyncio.to_thread(victim.where))["http"]
                first = await asyncio.to_thread(publish, b"one")
                assert first["accepted"] == 1
                await other.publish("a", b"two", wait_for=1, timeout=PATIENCE)
                shown = [(await asyncio.to_thread(victim.line))["text"] for _ in range(2)]
                assert shown == ["one", "two"]
                victim.kill()
                await other.publish("a", b"while dead")
                again = launch()
                http = (await asyncio.to_thread(again.where))["http"]
                assert (await asyncio.to_thread(again.line))["text"] == "while dead"
                second = await asyncio.to_thread(publish, b"three")
                assert (second["epoch"], second["sequence"]) == (first["epoch"], first["sequence"] + 1)
                assert (await asyncio.to_thread(again.line))["text"] == "three", "and nothing in between"
                await eventually(lambda: len(taken(other)) == 4)
                assert await asyncio.to_thread(again.stop) == 0

    run(test)
