"""A node that is sent more than it can handle at once still has turns for everybody else."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.live.together import eventually, linked, local, run, secure, taken, until_served
from topicweave.blocks.broadcast_tree import Push
from topicweave.live import LiveNode
from topicweave.live import publisher as publisher_module
from topicweave.live import turns as turns_module
from topicweave.live.authority import issue, new_swarm
from topicweave.live.keyring import Keyring
from topicweave.live.swarm import run_swarm
from topicweave.live.turns import Deferred, LinkTurns
from topicweave.model.event import Event

EVENTS = 2000


class Beats:
    """How many signatures a node verifies between two turns of the event loop, at most."""

    def __init__(self, keyring: Keyring, patch: pytest.MonkeyPatch) -> None:
        self.most = self._now = self.all = 0
        self._loop = asyncio.get_running_loop()
        verify = keyring.verify

        def counted(event: Event, wall: float) -> object:
            self._now += 1
            self.all += 1
            return verify(event, wall)

        patch.setattr(keyring, "verify", counted)
        self._beat()

    def _beat(self) -> None:
        self.most, self._now = max(self.most, self._now), 0
        self._loop.call_soon(self._beat)


@contextlib.asynccontextmanager
async def signed_pair(directory: Path) -> AsyncIterator[tuple[LiveNode, LiveNode]]:
    """Two nodes with keys, linked, that serve each other the topic "a"."""
    authority = new_swarm(directory / "swarm")
    keys = [str(issue(authority, f"node-{number}")) for number in range(2)]
    async with run_swarm([["a"]] * 2, secure(keys[0], cache=0), keys=keys) as (here, there):
        await eventually(lambda: linked(here, there))
        await until_served([here, there], "a")
        yield here, there


def test_a_flood_of_signed_events_leaves_turns_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher_module, "TURN", 1 << 30)  # it does not pause

    async def test() -> None:
        async with signed_pair(tmp_path) as (here, there):
            assert there.world.keyring is not None
            beats, before = Beats(there.world.keyring, monkeypatch), len(taken(there))
            for number in range(EVENTS):
                await here.publish("a", b"%d" % number)
            await eventually(lambda: len(taken(there, before)) == EVENTS)
            assert [payload for _, payload in taken(there, before)] == [b"%d" % n for n in range(EVENTS)]
            assert beats.all >= EVENTS
            assert beats.most <= 2 * turns_module.SIGNED

    run(test)


@pytest.mark.parametrize("ends", [False, True])
def test_one_frame_of_many_events_is_taken_in_portions_and_whole_when_the_connection_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    async def test() -> None:
        async with signed_pair(tmp_path) as (here, there):
            assert there.world.keyring is not None
            beats, before = Beats(there.world.keyring, monkeypatch), len(taken(there))
            link = there.transport.peers[here.id].link
            assert link is not None
            link.data_received(_long_frame(here))
            assert len(link.rest) == EVENTS - turns_module.SIGNED
            assert link.connection.held, "what comes after it waits"
            if ends:
                link.connection_lost(None)
            else:
                await eventually(lambda: not link.rest)
                assert beats.most <= 2 * turns_module.SIGNED
            await eventually(lambda: len(taken(there, before)) == EVENTS)
            assert [payload for _, payload in taken(there, before)] == [b"%d" % n for n in range(EVENTS)]
            if not ends:
                await here.publish("a", b"last")
                await eventually(lambda: ("a", b"last") in taken(there, before))

    run(test)


def test_an_error_in_a_turn_costs_the_link_and_holds_up_no_timer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with signed_pair(tmp_path) as (here, there):
            link = there.transport.peers[here.id].link
            assert link is not None
            link.data_received(_long_frame(here))
            assert there.transport.turns.behind
            with monkeypatch.context() as patch:
                patch.setattr(there.transport.receiver, "received", lambda *_: 1 / 0)
                await eventually(lambda: link.closing)
            assert not there.transport.turns.behind
            await eventually(lambda: linked(here, there))

    run(test)


def test_who_is_long_at_what_a_peer_sent_shows_it_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with run_swarm([["a"]] * 2, local()) as (here, there):
            await eventually(lambda: linked(here, there))
            link, back = here.transport.link_to(there.id), there.transport.link_to(here.id)
            assert link is not None
            assert back is not None
            with monkeypatch.context() as patch:
                patch.setattr(back, "_take_turn", lambda: None)  # its turn does not come to an end
                back.give_way()
                assert there.transport.turns.behind, "its timers wait"
                began = here.transport.loop.time()
                await eventually(
                    lambda: (
                        link.closing or link.connection.last_heard > began + here.transport.pace.dead_after
                    )
                )
                assert here.transport.link_to(there.id) is link
            back._take_turn()
            assert not back.connection.held
            assert here.counters.links_lost == there.counters.links_lost == 0

    run(test)


def _long_frame(publisher: LiveNode) -> bytes:
    """Of events that the publisher signed, as no node of ours would send it."""
    assert publisher.world.keyring is not None
    topic, epoch = publisher.topics.id_of("a"), publisher.world.own.epoch
    events = [
        Event(publisher.id, topic, epoch, 1000 + number, bytes(72) + b"%d" % number)
        for number in range(EVENTS)
    ]
    sign = publisher.world.keyring.sign
    codec = publisher.transport.codec
    return codec.batch([codec.encode(Push(event=sign(event), hops=1)) for event in events])


def test_who_fell_behind_first_catches_up_first_a_portion_in_each_turn() -> None:
    async def test() -> None:
        turns, seen = LinkTurns(asyncio.get_running_loop(), 10), list[str]()

        def work(name: str, left: int) -> None:
            seen.append(name)
            if left:
                turns.fall_behind(name, lambda: work(name, left - 1))
            else:
                turns.catch_up(name)

        turns.fall_behind("a", lambda: work("a", 2))
        turns.fall_behind("b", lambda: work("b", 1))
        turned = 0
        while len(seen) < 5:
            await asyncio.sleep(0)
            turned += 1
            assert len(seen) <= turned, "one portion in a turn"
        assert seen == ["a", "a", "a", "b", "b"]
        assert not turns.behind

    asyncio.run(test())


def test_a_timer_finds_what_came_before_it_and_does_not_wait_for_what_came_after() -> None:
    async def test() -> None:
        loop = asyncio.get_running_loop()
        turns, fired = LinkTurns(loop, 10), list[str]()

        def timer(name: str, late: float = 0.0) -> Deferred:
            deferred = turns.after_all(loop.time() - late, lambda: fired.append(name))
            assert deferred is not None
            return deferred

        async def settle() -> list[str]:
            for _ in range(3):
                await asyncio.sleep(0)
            return fired

        assert turns.after_all(loop.time(), lambda: None) is None
        turns.fall_behind("a", lambda: None)
        timer("early")
        timer("cancelled").cancel()
        turns.fall_behind("b", lambda: None)
        turns.fall_behind("a", lambda: None)
        timer("later")
        assert await settle() == []
        turns.catch_up("a")
        assert await settle() == ["early"], "b fell behind after it"
        turns.fall_behind("a", lambda: None)
        turns.catch_up("b")
        assert await settle() == ["early", "later"], "a fell behind again after it"
        turns.catch_up("a")
        timer("held up", late=1.0)
        assert "held up" not in fired, "what came meanwhile is read first"
        await eventually(lambda: "held up" in fired)

    asyncio.run(test())
