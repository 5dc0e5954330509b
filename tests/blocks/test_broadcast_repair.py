"""Broadcast trees mend themselves: what is missed is announced, asked for, and asked for again."""

from __future__ import annotations

import random
from itertools import pairwise

import networkx as nx
import pytest

from tests.blocks.broadcast_swarm import (
    NEWS,
    TIMEOUT,
    Swarm,
    announced_one,
    graft_one,
    is_spanning_tree,
    push_links,
    warmed_up,
)
from topicweave.blocks.broadcast_tree import (
    BroadcastTreeParameters,
    EventRun,
    Graft,
    IHave,
    Push,
)
from topicweave.blocks.broadcast_tree.missing import MOST_PATIENCE, MOST_SEARCHES
from topicweave.blocks.broadcast_tree.parameters import MOST_ASKED, MOST_SENT
from topicweave.blocks.late_neighbours import LATE
from topicweave.model.event import Event, EventId


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_a_broken_tree_link_heals_through_graft(seed: int, silent: bool) -> None:
    """Whether the nodes are told that the link is gone, or it just swallows all that is sent over it."""
    graph = nx.connected_watts_strogatz_graph(16, 4, 0.3, seed=seed)
    swarm = warmed_up(graph)
    draw = random.Random(seed)
    bridges = set(map(frozenset, nx.bridges(graph)))
    edges = sorted(edge for edge in push_links(swarm).edges if frozenset(edge) not in bridges)
    a, b = draw.choice(edges)
    if silent:
        swarm.net.cut = lambda sender, peer: {sender, peer} == {a, b}
    else:
        swarm.break_link(a, b)
    others = swarm.graph.number_of_nodes() - 1
    publisher = draw.randrange(len(graph))
    event, _ = swarm.publish(publisher)
    assert swarm.receivers(event) == dict.fromkeys(set(graph) - {publisher}, 1)
    assert swarm.sent_of(Graft), "somebody had to ask"
    for publisher in range(4):
        swarm.publish(publisher)
    event, _ = swarm.publish(publisher)
    useful = [pair for pair in swarm.sent_of(Push) if set(pair) != {a, b}]
    assert len(swarm.receivers(event)) == len(useful) == others
    assert swarm.sent_of(Graft) == [], "the tree is whole again"
    assert is_spanning_tree(nx.Graph(useful), graph)


def test_an_announced_event_is_asked_for_of_one_after_another_at_the_times_set() -> None:
    swarm = Swarm(nx.star_graph(3))
    event_id = EventId(9, NEWS, 0, 0)
    swarm.net.cut = lambda sender, peer: sender == 0
    swarm.net.log.clear()
    for leaf in (3, 1, 2, 1):
        swarm.tell(leaf, 0, announced_one(event_id))
    swarm.net.run(300.0)
    asked = [(time, peer) for time, _, peer, message in swarm.net.log if message == graft_one(event_id)]
    attempts = BroadcastTreeParameters().graft_attempts
    searching, asked = asked[3 * attempts :], asked[: 3 * attempts]
    assert [peer for _, peer in asked] == [3, 1, 2] * attempts
    assert sorted(peer for _, peer in searching) == sorted([1, 2, 3] * MOST_SEARCHES), "then anybody"
    pauses = [later - earlier for (earlier, _), (later, _) in pairwise([(0.0, 0), *asked])]
    rounds = [2 ** min(number // 3, 2) for number in range(3 * attempts)]
    assert all(
        TIMEOUT * times <= pause <= 2 * TIMEOUT * times for pause, times in zip(pauses, rounds, strict=True)
    )
    assert len(set(pauses)) == len(pauses), "drawn at random, so that not all ask at once"
    assert swarm.trees[0].given_up == 1
    assert swarm.trees[0].known_peers() == set()
    assert swarm.timers() == []


def test_what_arrives_in_time_is_not_asked_for() -> None:
    swarm = Swarm(nx.star_graph(3))
    event = swarm.event(9)
    swarm.tell(1, 0, announced_one(event.id))
    swarm.net.run(TIMEOUT / 2)
    swarm.tell(2, 0, Push(event, 1))
    swarm.net.run(10.0)
    assert swarm.timers() == []
    assert swarm.sent_of(Graft) == []
    swarm.tell(3, 0, announced_one(event.id))
    assert swarm.trees[0].known_peers() == set(), "what is known already is not waited for"


def test_a_lost_graft_to_the_only_announcer_is_repeated() -> None:
    swarm = Swarm(nx.path_graph(2))
    event = swarm.event(0)
    swarm.net.cut = lambda sender, peer: True
    swarm.trees[0].publish(event)
    swarm.tell(0, 1, announced_one(event))
    swarm.net.run(2 * TIMEOUT)
    swarm.net.cut = lambda sender, peer: False
    swarm.net.run(10.0)
    assert swarm.receivers(event) == {1: 1}
    assert len(swarm.sent_of(Graft)) == 2


def test_what_is_merely_late_is_not_asked_for() -> None:
    """A burst announced ahead of its events, which trickle in in order over another link."""
    swarm = Swarm(nx.star_graph(2))
    events = [Event(9, NEWS, 0, number) for number in range(20)]
    swarm.tell(1, 0, IHave((EventRun(9, NEWS, 0, 0, 19),)))
    for event in events:
        swarm.net.run(swarm.net.now + TIMEOUT / 3)
        swarm.tell(2, 0, Push(event, 1))
    swarm.net.run(swarm.net.now + 5.0)
    assert swarm.sent_of(Graft) == []
    assert swarm.timers() == []


def test_who_asks_in_vain_has_more_patience_and_less_again_when_asking_helps() -> None:
    swarm = Swarm(nx.star_graph(2))
    tree = swarm.trees[0]
    swarm.net.cut = lambda sender, peer: True  # only what is told here counts

    def asks(publisher: int, helps: bool) -> float:
        """How long it takes until it asks 1, which answers before or after 2 pushes the event."""
        event = Event(publisher, NEWS, 0, 0)
        swarm.net.log.clear()
        began = swarm.net.now
        swarm.tell(1, 0, announced_one(event))
        while not swarm.sent_of(Graft):
            swarm.net.run(swarm.net.now + TIMEOUT / 10)
        took = swarm.net.now - began
        for peer in (1, 2) if helps else (2, 1):
            swarm.tell(peer, 0, Push(event, 1))
        return took

    pauses = [asks(publisher, helps=False) for publisher in range(10, 16)]
    assert pauses[0] <= 2.1 * TIMEOUT
    assert min(pauses[3:]) >= MOST_PATIENCE * TIMEOUT
    assert max(pauses) <= (2 * MOST_PATIENCE + 0.1) * TIMEOUT
    for publisher in range(20, 24):
        asks(publisher, helps=True)
    assert asks(30, helps=True) <= 2.1 * TIMEOUT
    assert tree.known_peers() <= {1, 2}


def test_a_gap_in_a_stream_that_goes_on_is_asked_for() -> None:
    swarm = Swarm(nx.star_graph(2))
    swarm.tell(1, 0, IHave((EventRun(9, NEWS, 0, 0, 9),)))
    for number in (0, 1, 2, 6, 7, 8, 9):
        swarm.net.run(swarm.net.now + TIMEOUT / 3)
        swarm.tell(2, 0, Push(Event(9, NEWS, 0, number), 1))
    swarm.net.run(swarm.net.now + 1.1 * TIMEOUT)
    grafts = [message for *_, message in swarm.net.log if isinstance(message, Graft)]
    assert grafts
    assert set(grafts) == {Graft((EventRun(9, NEWS, 0, 3, 5),))}, "what is missing, and no more"


def test_a_graft_asks_for_no_more_than_its_bound_and_is_answered_with_no_more() -> None:
    parameters = BroadcastTreeParameters(cache_events=3 * MOST_ASKED)
    swarm = Swarm(nx.path_graph(2), parameters=parameters)
    events = [Event(0, NEWS, 0, number) for number in range(2 * MOST_ASKED)]
    swarm.net.cut = lambda sender, peer: True
    for event in events:
        swarm.trees[0].publish(event)
    swarm.net.cut = lambda sender, peer: False
    swarm.net.log.clear()
    swarm.tell(1, 0, Graft((EventRun(0, NEWS, 0, 0, 2**63 - 1), EventRun(0, NEWS, 0, 0, 2**63 - 1))))
    assert len(swarm.sent_of(Push)) == MOST_ASKED
    swarm.net.run(1.0)
    swarm.tell(0, 1, IHave((EventRun(0, NEWS, 0, 0, 2 * MOST_ASKED - 1),)))
    swarm.net.run(swarm.net.now + 10.0)
    assert swarm.got[1] == events, "the rest at another time"


def test_who_is_far_behind_asks_for_the_next_part_as_soon_as_one_has_come() -> None:
    """Caches forget while a stream goes on: who waited a time-out for each part would find the next one gone."""
    parameters = BroadcastTreeParameters(cache_events=5 * MOST_ASKED)
    swarm = Swarm(nx.path_graph(2), parameters=parameters)
    swarm.net.cut = lambda sender, peer: True
    events = [Event(0, NEWS, 0, number) for number in range(4 * MOST_ASKED)]
    for event in events:
        swarm.trees[0].publish(event)
    swarm.net.cut = lambda sender, peer: False
    swarm.net.log.clear()
    swarm.tell(0, 1, IHave((EventRun(0, NEWS, 0, 0, 4 * MOST_ASKED - 1),)))
    while not swarm.sent_of(Graft):
        swarm.net.step()
    swarm.net.run(swarm.net.now + TIMEOUT / 2)
    assert swarm.got[1] == events
    assert len(swarm.sent_of(Graft)) == 4
    assert len(swarm.sent_of(Push)) == 4 * MOST_ASKED, "nothing was asked for twice"
    swarm.net.run(swarm.net.now + 30.0)
    assert swarm.timers() == []


def test_a_part_that_did_not_come_is_not_asked_for_again_at_once() -> None:
    """Its first event is not here: the answer has not begun, or the peer has forgotten it."""
    swarm = Swarm(nx.path_graph(2))
    swarm.tell(0, 1, IHave((EventRun(9, NEWS, 0, 0, 2 * MOST_ASKED),)))
    while not swarm.sent_of(Graft):
        swarm.net.step()
    for number in range(MOST_ASKED, MOST_ASKED + 20):
        swarm.tell(0, 1, Push(Event(9, NEWS, 0, number), 1))
    assert len(swarm.sent_of(Graft)) == 1


def test_when_the_announcer_is_gone_others_are_asked() -> None:
    """Announcements are of news only: nobody would ever speak of these events again."""
    swarm = Swarm(nx.star_graph(2))
    event = swarm.event(9)
    swarm.net.cut = lambda sender, peer: True
    swarm.tell(2, 2, Push(event, 1))  # 2 has it, and what it sends gets lost
    swarm.net.run(1.0)
    swarm.net.cut = lambda sender, peer: False
    swarm.net.log.clear()
    swarm.tell(1, 0, announced_one(event))
    swarm.break_link(0, 1)
    swarm.net.run(20.0)
    assert swarm.receivers(event) == {0: 1, 2: 1}
    assert swarm.sent_of(Graft) == [(0, 2)]


def test_large_events_that_were_asked_for_come_in_parts() -> None:
    parameters = BroadcastTreeParameters(cache_bytes=1 << 30)
    swarm = Swarm(nx.path_graph(2), parameters=parameters)
    events = [Event(0, NEWS, 0, number, bytes(MOST_SENT // 2)) for number in range(7)]
    swarm.net.cut = lambda sender, peer: True
    for event in events:
        swarm.trees[0].publish(event)
    swarm.net.cut = lambda sender, peer: False
    swarm.net.log.clear()
    swarm.tell(1, 0, Graft((EventRun(0, NEWS, 0, 0, 6),)))
    assert len(swarm.sent_of(Push)) == 2
    swarm.tell(0, 1, IHave((EventRun(0, NEWS, 0, 0, 6),)))
    swarm.net.run(swarm.net.now + 10.0)
    assert swarm.got[1] == events


def test_a_peer_that_went_is_not_asked() -> None:
    swarm = Swarm(nx.star_graph(2))
    event_id = EventId(9, NEWS, 0, 0)
    for leaf in (1, 2):
        swarm.tell(leaf, 0, announced_one(event_id))
    swarm.break_link(0, 1)
    swarm.net.run(10.0)
    assert set(swarm.sent_of(Graft)) == {(0, 2)}


@pytest.mark.parametrize("seed", range(5))
def test_lossy_links_lose_little_and_double_nothing(seed: int) -> None:
    graph = nx.random_regular_graph(4, 20, seed=seed)
    swarm = Swarm(graph, loss=0.1)
    received = 0
    for number in range(30):
        event, _ = swarm.publish(number % 20)
        assert set(swarm.receivers(event).values()) == {1}
        received += len(swarm.receivers(event))
    assert received >= 0.99 * 30 * 19


def test_what_was_lost_with_a_link_comes_over_the_next_one() -> None:
    """Nobody else announces it: 2 hangs on 1 alone, and the link breaks while the event is on its way."""
    swarm = Swarm(nx.path_graph(3))
    swarm.break_link(1, 2)
    event, _ = swarm.publish(0, settle=1.0)
    assert swarm.receivers(event) == {1: 1}
    swarm.graph.add_edge(0, 2)
    for node, peer in ((0, 2), (2, 0)):
        swarm.trees[node].link_up(peer, frozenset({NEWS}))
    swarm.net.run(swarm.net.now + 5.0)
    assert swarm.receivers(event) == {1: 1, 2: 1}
    old, _ = swarm.publish(0, settle=LATE + 1.0)
    announced = len(swarm.sent_of(IHave))
    swarm.trees[0].link_up(2, frozenset({NEWS}))
    swarm.net.run(swarm.net.now + 5.0)
    assert len(swarm.sent_of(IHave)) == announced, "what is old is not brought up again"
    assert swarm.receivers(old) == {1: 1, 2: 1}
    assert swarm.timers() == []


def test_who_took_part_later_does_not_ask_for_what_was_before() -> None:
    swarm = Swarm(nx.Graph([(0, 1), (0, 2)]))
    swarm.break_link(0, 2)
    before, _ = swarm.publish(0, settle=1.0)
    swarm.trees[2].topic_up(NEWS)
    swarm.net.run(swarm.net.now + 0.5)
    after, _ = swarm.publish(0, settle=1.0)
    swarm.graph.add_edge(0, 2)
    for node, peer in ((0, 2), (2, 0)):
        swarm.trees[node].link_up(peer, frozenset({NEWS}))
    swarm.net.run(swarm.net.now + 5.0)
    assert swarm.receivers(before) == {1: 1}
    assert swarm.receivers(after) == {1: 1, 2: 1}
