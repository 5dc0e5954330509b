"""Broadcast trees keep to what is wanted, and to bounded memory, whatever peers send."""

from __future__ import annotations

from collections.abc import Sized

import msgspec
import networkx as nx
import pytest

from tests.blocks.broadcast_swarm import GRAPHS, NEWS, SPORT, Swarm, announced_one, graft_one, warmed_up
from topicweave.blocks.broadcast_tree import (
    BroadcastTree,
    BroadcastTreeParameters,
    EventRun,
    Graft,
    IHave,
    Prune,
    Push,
)
from topicweave.blocks.broadcast_tree.parameters import MOST_RUNS
from topicweave.model.event import Event, EventId
from topicweave.port import Message

# Those who do not want it.


def test_a_node_that_does_not_want_the_topic_gets_nothing_and_answers_nothing() -> None:
    swarm = Swarm(nx.path_graph(3), {0: {NEWS}, 1: {SPORT}, 2: {NEWS}})
    event, sent_to = swarm.publish(0)
    assert (sent_to, swarm.receivers(event), swarm.net.log) == (0, {}, [])
    swarm.tell(0, 1, Push(event, 1))
    swarm.tell(0, 1, announced_one(event.id))
    swarm.net.run(swarm.net.now + 5.0)
    assert (swarm.receivers(event), swarm.net.log, swarm.timers()) == ({}, [], [])


def test_a_topic_left_is_forgotten_and_late_words_about_it_leave_nothing() -> None:
    swarm = warmed_up(nx.complete_graph(4))
    tree = swarm.trees[0]
    swarm.tell(1, 0, announced_one(EventId(9, NEWS, 0, 0)))
    swarm.wants[0].discard(NEWS)
    tree.topic_down(NEWS)
    swarm.tell(1, 0, Prune(NEWS))
    swarm.tell(1, 0, announced_one(EventId(9, NEWS, 0, 1)))
    assert tree.known_peers() == set()
    assert swarm.net.worlds[0].pending == {}


def test_who_wants_a_topic_no_more_and_then_again_is_pushed_to_at_once() -> None:
    """Its own memory of the links went with the topic: ours must, too, or it waits for a graft each time."""
    swarm = Swarm(nx.star_graph(2))
    tree = swarm.trees[0]
    swarm.tell(1, 0, Prune(NEWS))
    assert tree.known_peers() == {1}
    tree.link_up(1, frozenset({NEWS}))
    assert tree.known_peers() == {1}, "another topic changed: not this one"
    tree.link_up(1, frozenset({SPORT}))
    assert tree.known_peers() == set()
    tree.link_up(1, frozenset({NEWS}))
    swarm.publish(0)
    assert sorted(swarm.sent_of(Push)) == [(0, 1), (0, 2)]


# Nobody there yet.


def test_unsent_events_go_to_the_first_link_of_their_topic() -> None:
    swarm = Swarm(nx.empty_graph(4), {0: {NEWS, SPORT}, 1: {SPORT}, 2: {NEWS, SPORT}, 3: {NEWS}})
    news, sent_to = swarm.publish(0, NEWS)
    assert sent_to == 0
    sport, _ = swarm.publish(0, SPORT)
    for peer in (1, 2, 3):
        swarm.graph.add_edge(0, peer)
        swarm.trees[0].link_up(peer, frozenset(swarm.wants[peer]))
    assert [(peer, message) for _, _, peer, message in swarm.net.log] == [
        (1, Push(sport, 1)),
        (2, Push(news, 1)),
    ]
    swarm.net.run(swarm.net.now + 5.0)
    assert (swarm.receivers(sport), swarm.receivers(news)) == ({1: 1}, {2: 1})


def test_the_newest_unsent_events_are_kept_up_to_a_number() -> None:
    swarm = Swarm(nx.empty_graph(2), parameters=BroadcastTreeParameters(most_undelivered=5))
    events = [swarm.publish(0)[0] for _ in range(20)]
    swarm.graph.add_edge(0, 1)
    swarm.trees[0].link_up(1, frozenset({NEWS}))
    swarm.net.run(swarm.net.now + 5.0)
    assert swarm.got[1] == events[-5:]


def test_unsent_events_of_a_topic_left_are_not_sent() -> None:
    swarm = Swarm(nx.empty_graph(2))
    swarm.publish(0)
    swarm.trees[0].topic_down(NEWS)
    swarm.trees[0].link_up(1, frozenset({NEWS}))
    assert swarm.net.log == []


# Bounded memory.


def size(tree: BroadcastTree) -> int:
    """Everything the tree keeps, counted."""
    tables: list[Sized] = [
        tree._seen,
        tree._cache,
        tree._missing.streams,
        tree._news.untold,
        tree._unsent,
        tree._ways.lazy,
    ]
    tables += [*tree._ways.lazy.values(), *tree._news.untold.values()]
    tables += [missing.sources for missing in tree._missing.streams.values()]
    return sum(map(len, tables))


def test_strangers_leave_no_trace() -> None:
    swarm = Swarm(nx.empty_graph(2), {0: {NEWS}, 1: {NEWS, SPORT}})
    for number in range(2000):
        swarm.tell(1, 0, IHave(tuple(EventRun(number, NEWS, i, 0, 5) for i in range(5))))
        swarm.tell(1, 0, graft_one(EventId(number, NEWS, 0, 0)))
        swarm.tell(1, 0, Prune(NEWS))
        swarm.tell(1, 0, Prune(number))
    assert size(swarm.trees[0]) == 0
    assert swarm.net.worlds[0].pending == {}
    assert swarm.net.log == []


def test_a_hostile_neighbour_fills_no_table_beyond_its_bound() -> None:
    parameters = BroadcastTreeParameters(most_missing=50)
    swarm = Swarm(nx.path_graph(3), {0: {NEWS}, 1: {NEWS}, 2: {NEWS}}, parameters)
    swarm.wants[1] = set(range(5000))  # it claims to want everything
    for number in range(500):
        swarm.tell(1, 0, IHave(tuple(EventRun(number, NEWS, i, 0, 5) for i in range(10))))
        swarm.tell(1, 0, graft_one(EventId(number, number, 0, 0)))
        swarm.tell(1, 0, Prune(number))
    assert size(swarm.trees[0]) <= 2 * 50 + 2
    assert len(swarm.net.worlds[0].pending) == 50
    swarm.net.run(100.0)
    assert size(swarm.trees[0]) <= 2, "nothing, or one lazy link of one topic"
    assert swarm.timers() == []
    event, _ = swarm.publish(2)
    assert swarm.receivers(event) == {0: 1, 1: 1}, "and all still works"


def test_of_a_monstrous_announcement_only_the_beginning_is_read() -> None:
    swarm = Swarm(nx.path_graph(2), parameters=BroadcastTreeParameters(most_missing=100_000))
    swarm.tell(1, 0, IHave(tuple(EventRun(9, NEWS, i, 0, 9) for i in range(5000))))
    assert len(swarm.net.worlds[0].pending) == MOST_RUNS


def test_the_cache_is_bounded_by_number() -> None:
    swarm = Swarm(nx.path_graph(2), parameters=BroadcastTreeParameters(cache_events=10))
    events = [swarm.event(9) for _ in range(30)]
    for event in events:
        swarm.tell(1, 0, Push(event, 1))
    swarm.net.log.clear()
    for event in events:
        swarm.tell(1, 0, graft_one(event.id))
    assert [message for *_, message in swarm.net.log] == [Push(event, 2) for event in events[-10:]]


def test_the_cache_is_bounded_by_bytes_and_holds_one_event_whatever_its_size() -> None:
    swarm = Swarm(nx.path_graph(2), parameters=BroadcastTreeParameters(cache_bytes=1000))
    tree = swarm.trees[0]
    events = [swarm.event(9, payload=bytes(300)) for _ in range(10)]
    for event in events:
        swarm.tell(1, 0, Push(event, 1))
    assert list(tree._cache) == [event.id for event in events[-3:]]
    tree.publish(events[-1])  # the same once more must not be counted twice
    assert tree._cache.bytes == 900
    huge = swarm.event(9, payload=bytes(5000))
    swarm.tell(1, 0, Push(huge, 1))
    assert list(tree._cache) == [huge.id]
    small = swarm.event(9, payload=bytes(10))
    swarm.tell(1, 0, Push(small, 1))
    assert list(tree._cache) == [small.id]
    assert tree._cache.bytes == 10


def test_a_departed_peer_is_forgotten_altogether() -> None:
    swarm = warmed_up(nx.complete_graph(5))
    tree = swarm.trees[0]
    swarm.tell(4, 0, announced_one(EventId(9, NEWS, 0, 0)))
    swarm.tell(4, 0, Prune(NEWS))
    tree.publish(swarm.event(0))
    assert 4 in tree.known_peers()
    for peer in (1, 2, 3, 4):
        swarm.break_link(0, peer)
    assert tree.known_peers() == set()
    swarm.net.run(swarm.net.now + 5.0)
    assert swarm.net.worlds[0].pending == {}
    assert not tree._missing.streams


@pytest.mark.parametrize("name", GRAPHS)
def test_no_timers_are_left_when_idle(name: str) -> None:
    swarm = warmed_up(GRAPHS[name])
    assert swarm.timers() == []
    assert all(not tree._missing.streams and not tree._news.untold for tree in swarm.trees.values())


def test_a_restart_forgets_what_waited_for_timers_and_goes_on() -> None:
    """Timers die with a life; a node that kept its memory must not wait for them for ever."""
    swarm = warmed_up(nx.complete_graph(3))
    tree, world = swarm.trees[0], swarm.net.worlds[0]
    for peer in (1, 2):
        swarm.tell(peer, 0, Prune(NEWS))
    missing = swarm.event(9)
    swarm.tell(1, 0, announced_one(missing.id))
    tree.publish(swarm.event(0))
    world.pending.clear()
    tree.restart()
    assert not tree._missing.streams
    assert not tree._news.untold
    swarm.tell(1, 0, announced_one(missing.id))
    event, _ = swarm.publish(0, settle=300.0)
    assert swarm.receivers(event) == {1: 1, 2: 1}
    assert (0, 1) in swarm.sent_of(Graft)
    assert swarm.timers() == []


# Messages.


@pytest.mark.parametrize(
    "message",
    [
        Push(Event(2**64 - 1, 3, 4, 5, b"\x00\xff"), 6),
        IHave(()),
        IHave((EventRun(2**64 - 1, 2, 3, 4, 4), EventRun(5, 6, 7, 8, 9))),
        graft_one(EventId(1, 2**64 - 1, 3, 4)),
        Prune(2**64 - 1),
    ],
)
def test_messages_survive_the_wire(message: Message) -> None:
    decoder = msgspec.msgpack.Decoder(Push | IHave | Graft | Prune)
    back = decoder.decode(msgspec.msgpack.encode(message))
    assert back == message
    assert type(back) is type(message)
    if isinstance(back, IHave):
        assert all(isinstance(run, EventRun) for run in back.runs)
