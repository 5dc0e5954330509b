"""Under load nothing is lost: who publishes faster than others read has to wait, however many relays lie between."""

from __future__ import annotations

import asyncio

import pytest

from tests.live.together import eventually, linked, local, run, taken, total
from topicweave.blocks.broadcast_tree import Push
from topicweave.live import LiveNode
from topicweave.live import congestion as congestion_module
from topicweave.live import publisher as publisher_module
from topicweave.live.congestion import Congestion
from topicweave.live.frames import Kind
from topicweave.live.swarm import run_swarm
from topicweave.live.wire import number_frame
from topicweave.model.event import Event
from topicweave.model.ids import ring_id


def test_a_publisher_that_outruns_its_queues_waits_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(publisher_module, "TURN", 1 << 30)  # it pauses for full queues only
    events = 4000
    filler = bytes(1000)

    async def test() -> None:
        settings = local(cache=0)  # nothing to catch up from: the overlay must do it
        async with run_swarm([["a"]] * 6, settings) as nodes:
            await eventually(lambda: linked(*nodes))
            publisher = nodes[0]
            while not all(node.counters.deliveries for node in nodes):
                await publisher.publish("a", b"probe")  # until the topic is in one piece
                await asyncio.sleep(0.1)
            waited = 0
            for number in range(events):
                await publisher.publish("a", b"%d " % number + filler)
                waited += bool(publisher.transport.sender.congestion.holding_up)
            assert waited, "the queues were never full: this test tests nothing"
            got: dict[str, list[bytes]] = {node.name: [] for node in nodes}

            async def read(node: LiveNode) -> None:
                async for batch in node.batches():
                    got[node.name] += [
                        event.payload.split()[0] for event in batch if len(event.payload) > 1000
                    ]
                    if len(got[node.name]) == events:
                        return

            async with asyncio.timeout(60):
                await asyncio.gather(*map(read, nodes))
            assert all(sorted(map(int, payloads)) == list(range(events)) for payloads in got.values())
            assert total(nodes, "events_dropped") == 0

    run(test)


class Clockwork:
    """What happened to a `Congestion` in a running loop."""

    def __init__(self) -> None:
        self.changes = 0
        self.congestion = Congestion(asyncio.get_running_loop(), self._changed)

    def _changed(self) -> None:
        self.changes += 1


def test_one_congested_peer_holds_up_all_others_until_it_has_drained() -> None:
    async def test() -> None:
        made = Clockwork()
        made.congestion.filled(1)
        made.congestion.filled(1)
        assert made.changes == 1
        assert made.congestion.holds_up(2)
        assert made.congestion.holds_up(None), "somebody who has not said hello"
        assert not made.congestion.holds_up(1), "or two could wait for each other"
        waiting = asyncio.create_task(made.congestion.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        made.congestion.filled(2)
        made.congestion.drained(1)
        await asyncio.sleep(0)
        assert not waiting.done()
        made.congestion.drained(2)
        await asyncio.wait_for(waiting, 5.0)
        assert not made.congestion.holds_up(3)

    run(test)


def test_a_stuck_peer_holds_up_others_once_and_not_for_long() -> None:
    async def test() -> None:
        made = Clockwork()
        patience, congestion_module.PATIENCE = congestion_module.PATIENCE, 0.05
        try:
            made.congestion.filled(1)
            async with asyncio.timeout(5.0):
                await made.congestion.room()
            made.congestion.filled(1)
            assert not made.congestion.holds_up(2), "still as full as before"
            made.congestion.drained(1)
            made.congestion.filled(1)
            assert made.congestion.holds_up(2), "it had drained: a new case"
        finally:
            congestion_module.PATIENCE = patience
            made.congestion.close()
        assert not made.congestion.holding_up

    run(test)


def test_what_a_leaving_peer_sent_counts_though_reading_was_held_up() -> None:
    """Frames that wait when the connection ends are read, a ping among them too, which can't be answered any more."""

    async def test() -> None:
        async with run_swarm([["a"]] * 2, local(), names=["reader", "leaver"]) as (reader, leaver):
            await eventually(lambda: linked(reader, leaver))
            (link,) = reader.transport._links
            codec = reader.transport.codec
            link.hold(True)
            event = Event(leaver.id, ring_id("a"), 1 << 60, 0, b"last words")
            link._splitter.feed(number_frame(Kind.PING, 7) + codec.batch([codec.encode(Push(event, 1))]))
            link._read_frames()
            assert len(link._splitter), "held up"
            link.connection_lost(None)
            await eventually(lambda: ("a", b"last words") in taken(reader))
            assert link not in reader.transport._links

    run(test)
