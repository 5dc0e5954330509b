"""Under load nothing is lost: who publishes faster than others read has to wait, however many relays lie between."""

from __future__ import annotations

import asyncio
import math
import time

import msgspec
import pytest

from tests.live.together import PATIENCE as GIVE_UP
from tests.live.together import eventually, linked, local, run, taken, total
from topicweave.blocks.broadcast_tree import EventRun, Graft, IHave, Prune, Push
from topicweave.live import LiveNode
from topicweave.live import publisher as publisher_module
from topicweave.live.congestion import AGAIN, PATIENCE, REFILL, STILL, Congestion
from topicweave.live.frames import HEADER, Kind
from topicweave.live.settings import Limits
from topicweave.live.swarm import run_swarm
from topicweave.live.wire import number_frame
from topicweave.model.event import Event
from topicweave.model.ids import ring_id
from topicweave.port import Message


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

            async with asyncio.timeout(10 * GIVE_UP):
                await asyncio.gather(*map(read, nodes))
            assert all(sorted(map(int, payloads)) == list(range(events)) for payloads in got.values())
            assert total(nodes, "events_dropped") == 0

    run(test)


def test_one_congested_peer_holds_up_all_others_until_it_has_drained() -> None:
    congestion = Congestion()
    assert congestion.filled(1, 0.0)
    assert not congestion.filled(1, 0.0)
    assert congestion.holds_up(2)
    assert congestion.holds_up(None), "somebody who has not said hello"
    assert not congestion.holds_up(1), "or two could wait for each other"
    congestion.filled(2, 0.1)
    congestion.drained(1, 0.1)
    assert congestion.holds_up(3)
    congestion.drained(2, 0.2)
    assert not congestion.holds_up(3)
    assert congestion.deadline(0.2) is None


def test_a_peer_that_reads_slowly_may_hold_up_others_for_long_one_that_stands_still_may_not() -> None:
    congestion = Congestion()
    congestion.filled(1, 0.0)
    for tick in range(1, 1000):
        congestion.progressed(1, tick * 0.01)
        congestion.tick(tick * 0.01)
    assert congestion.holds_up(2), "ten seconds, and it reads all the time"
    deadline = congestion.deadline(10.0)
    assert deadline is not None
    assert congestion.tick(deadline + 0.001)
    assert not congestion.holds_up(2)


def test_a_peer_that_stalls_again_and_again_costs_a_twentieth_of_the_time() -> None:
    congestion = Congestion()
    now, held = 0.0, 0.0
    while now < 200.0:
        congestion.filled(1, now)
        stalled_until = now + 0.95
        while now < stalled_until:
            deadline = congestion.deadline(now)
            following = min(stalled_until, deadline if deadline is not None else stalled_until)
            held += (following - now) if congestion.holds_up(2) else 0.0
            now = max(following, now + 1e-6)
            congestion.tick(now)
        congestion.drained(1, now)
        now += 0.05
    assert held < 0.1 * now


def test_who_ran_out_of_credit_holds_up_others_again_only_with_some() -> None:
    congestion = Congestion()
    congestion.filled(1, 0.0)
    assert congestion.tick(PATIENCE + STILL + 0.001), "it stood still"
    congestion.drained(1, 2.0)
    assert not congestion.filled(1, 2.0), "the little that came back is not enough"
    congestion.drained(1, 2.0)
    assert congestion.filled(1, 2.0 + AGAIN / REFILL)


def test_only_those_are_held_up_whose_events_are_passed_on() -> None:
    """Or nodes in a circle that send each other what all of them have could wait for each other; and who is
    told to push no more must hear it.
    """

    async def test() -> None:
        names = ["reader", "sender", "third"]
        async with run_swarm([["a"]] * 3, local(), names=names) as (reader, sender, third):
            await eventually(lambda: set(reader.node.targets(ring_id("a"))) == {sender.id, third.id})
            transport, elsewhere = reader.transport, 1
            link = transport.link_to(sender.id)
            assert link is not None
            codec = transport.codec

            def arrives(message: Message) -> bool:
                """Whether nothing more is read after it."""
                transport.receiver.arrived(link, Kind.MESSAGES, codec.batch([codec.encode(message)])[HEADER:])
                transport.hold_up()
                return link.connection.held

            push = Push(Event(sender.id, ring_id("a"), 1 << 60, 0, b""), 1)
            transport.sender.congestion.filled(elsewhere, transport.loop.time())
            assert not arrives(IHave(())), "no event, so nobody is sent one"
            assert arrives(push), "the third one is sent it"
            link.hold(False)
            assert not arrives(push), "it was here before"
            assert not arrives(Prune(ring_id("a")))
            transport.sender.gone(elsewhere)
            assert not link.connection.held

    run(test)


def test_what_a_leaving_peer_sent_counts_though_reading_was_held_up() -> None:
    """Frames that wait when the connection ends are read, a ping among them too, which can't be answered any more."""

    async def test() -> None:
        async with run_swarm([["a"]] * 2, local(), names=["reader", "leaver"]) as (reader, leaver):
            await eventually(lambda: linked(reader, leaver))
            link = reader.transport.link_to(leaver.id)
            assert link is not None
            codec = reader.transport.codec
            link.hold(True)
            event = Event(leaver.id, ring_id("a"), 1 << 60, 0, b"last words")
            link.data_received(number_frame(Kind.PING, 7) + codec.batch([codec.encode(Push(event, 1))]))
            assert link.connection.unread, "held up"
            link.connection_lost(None)
            await eventually(lambda: ("a", b"last words") in taken(reader))
            assert link not in reader.transport._links

    run(test)


def test_what_was_published_quickly_is_known_before_anything_else_is_told() -> None:
    """A neighbour asks, in the same turn of the event loop, for events that were just sent; and what comes
    back is not new.
    """

    async def test() -> None:
        async with run_swarm([["a"], ["a"]], local(), names=["one", "other"]) as (one, other):
            await eventually(lambda: linked(one, other))
            first = await one.publish("a", b"0")
            await eventually(lambda: ("a", b"0") in taken(other))
            receipts = [await one.publish("a", b"%d" % number) for number in range(1, 6)]
            assert [receipt.event.sequence for receipt in receipts] == [1, 2, 3, 4, 5]
            assert [(receipt.neighbours, receipt.reason) for receipt in receipts] == [(1, "")] * 5
            assert one.world.own._quick, "the node was not told yet: this test tests nothing otherwise"
            sent = one.counters.messages_sent
            publisher, topic, epoch, _ = first.event
            one.world.received(other.id, [Graft((EventRun(publisher, topic, epoch, 1, 5),))])
            assert one.counters.messages_sent == sent + 5
            await eventually(lambda: len(taken(other)) == 6 and len(taken(one)) == 6)
            assert one.world.gate.seen.state(publisher, topic) == (epoch, 5, ())

    run(test)


def test_a_full_queue_is_told_in_the_receipt_of_what_was_published_quickly() -> None:
    async def test() -> None:
        limits = Limits(queue_bytes=65_536)
        async with run_swarm([["a"], ["a"]], local(limits=limits), names=["one", "other"]) as (one, other):
            await eventually(lambda: linked(one, other))
            # No sample: it would wait beside the event, and go to make room.
            one.world.gate.latency._next = math.inf
            await one.publish("a", b"")
            (peer,) = one.transport.peers.values()
            assert peer.outbox.put_events([], 65_536 - peer.outbox.size)
            receipt = await one.publish("a", b"more")
            assert (receipt.neighbours, receipt.reason.split(":")[0]) == (0, "queue full")
            assert one.counters.events_dropped == 1

    run(test)


def test_a_process_that_was_held_up_reads_what_came_before_it_takes_anybody_for_dead() -> None:
    async def test() -> None:
        async with run_swarm([["a"], ["a"]], local(), names=["one", "other"]) as (one, other):
            await eventually(lambda: linked(one, other))
            link, back = one.transport.link_to(other.id), other.transport.link_to(one.id)
            assert link is not None
            assert back is not None
            pace, due = one.transport.pace, time.monotonic()
            back.ping()
            await eventually(lambda: time.monotonic() > due + 0.05)  # it was read, and now there is silence
            one.transport.pace = msgspec.structs.replace(pace, dead_after=0.3)
            back.ping()
            while time.monotonic() < due + 0.5:
                pass
            one.transport.turns.after_all(one.transport.loop.time() - 0.4, one.transport._sweep)
            one.transport.pace = pace
            await eventually(lambda: link.connection.last_heard > due + 0.4)
            assert one.transport.link_to(other.id) is link
            assert one.counters.links_lost == 0

    run(test)
