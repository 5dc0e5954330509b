"""A burst is under way over all links while they are cut: what stays must still be a tree."""

from __future__ import annotations

import functools
import random

import networkx as nx
import pytest

from tests.blocks.broadcast_swarm import NEWS, TIMEOUT, Swarm, is_spanning_tree, push_links
from tests.seeds import seeds
from topicweave.blocks.broadcast_tree import BroadcastTreeParameters, Graft, Prune, Push
from topicweave.model.event import Event
from topicweave.model.ids import NodeId
from topicweave.port import Message
from topicweave.systems.presets import SHARED
from topicweave.testing.network import Sent

SPREAD = 0.03
"""Seconds by which what is sent over one link may come later than over another: many events."""


def overtaking(swarm: Swarm, seed: int) -> None:
    """Links keep their order, but each is ahead of the others at times."""
    net, draw = swarm.net, random.Random(seed)
    free: dict[tuple[NodeId, NodeId], float] = {}

    def send(sender: NodeId, receiver: NodeId, message: Message) -> None:
        net.log.append(Sent(net.now, sender, receiver, message))
        arrives = max(free.get((sender, receiver), 0.0), net.now + draw.uniform(0.001, SPREAD))
        free[sender, receiver] = arrives
        net.at(arrives, lambda: net.tell(sender, receiver, message))

    net.send = send  # type: ignore[method-assign]  # the network's own has one latency for all


BOTH = pytest.mark.parametrize("prefer_short", [False, True])


@BOTH
def test_what_was_under_way_over_a_link_that_was_cut_cuts_no_other(prefer_short: bool) -> None:
    """Two ways of the same length; the one that was cut is ahead for a moment."""
    swarm = Swarm(nx.star_graph(3), parameters=BroadcastTreeParameters(prefer_short=prefer_short))
    first, second = swarm.event(9), swarm.event(9)
    swarm.tell(1, 0, Push(first, 2))
    swarm.tell(2, 0, Push(first, 2))
    assert swarm.sent_of(Prune) == [(0, 2)]
    swarm.tell(2, 0, Push(second, 2))  # Sent before the other end learnt that its link is cut.
    swarm.tell(1, 0, Push(second, 2))
    assert swarm.sent_of(Prune) == [(0, 2)], "nobody would be left who pushes"
    assert sorted(swarm.trees[0].targets(NEWS)) == [1, 3]


@BOTH
@seeds(range(100), always=10)
def test_nobody_has_to_ask_for_a_part_of_a_burst(prefer_short: bool, seed: int) -> None:
    graph = nx.connected_watts_strogatz_graph(12, 6, 0.3, seed=seed)
    swarm = Swarm(graph, parameters=BroadcastTreeParameters(prefer_short=prefer_short))
    overtaking(swarm, seed)
    published = []
    for _ in range(300):
        event = swarm.event(0)
        published.append(event.sequence)
        swarm.trees[0].publish(event)
        swarm.net.run_for(0.002)
        late = [node for node in set(graph) - {0} if len(swarm.got[node]) < len(published) - TIMEOUT / 0.002]
        assert not late, "more than twelve links one after the other take"
    swarm.net.run_for(TIMEOUT)
    for node in set(graph) - {0}:
        assert sorted(event.sequence for event in swarm.got[node]) == published
    swarm.net.run_for(10.0)
    swarm.publish(0)
    assert is_spanning_tree(push_links(swarm), graph)
    assert swarm.sent_of(Graft) == swarm.sent_of(Prune) == []


def test_a_link_that_was_just_cut_pushes_on_if_it_turns_out_to_be_the_shorter_way() -> None:
    swarm = Swarm(nx.star_graph(2), parameters=BroadcastTreeParameters(prefer_short=True))
    first, second = swarm.event(9), swarm.event(9)
    for event, other in ((first, 3), (second, 1)):
        swarm.tell(1, 0, Push(event, 3))
        swarm.tell(2, 0, Push(event, other))
    assert swarm.sent_of(Prune) == [(0, 2), (0, 1)]
    assert swarm.sent_of(Graft) == [(0, 2)]
    assert list(swarm.trees[0].targets(NEWS)) == [2]


@pytest.mark.parametrize("preset", ["local", "lan"])
@pytest.mark.parametrize("pause", [0.3, 0.6])
def test_a_node_that_pauses_brings_few_second_copies(preset: str, pause: float) -> None:
    """Who hears nothing for longer than it has patience asks another one, and gets all twice for a moment.
    Nodes are busy to three quarters: if that took much more of their time, the queues would grow, everybody
    would ask, and it would not end.
    """
    rate, seconds, work = 1000, 2.5, 0.00075
    graph = nx.connected_watts_strogatz_graph(12, 6, 0.3, seed=1)
    swarm = Swarm(graph, parameters=BroadcastTreeParameters(**SHARED[preset]["tree"]))
    net, busy, pushes = swarm.net, dict.fromkeys(graph, 0.0), 0

    def send(sender: NodeId, receiver: NodeId, message: Message) -> None:
        net.at(net.now + 0.0005, lambda: queue(sender, receiver, message))

    def queue(sender: NodeId, receiver: NodeId, message: Message) -> None:
        nonlocal pushes
        pushes += isinstance(message, Push)
        busy[receiver] = max(net.now, busy[receiver]) + (work if isinstance(message, Push) else work / 4)
        net.at(busy[receiver], lambda: net.tell(sender, receiver, message))

    net.send = send  # type: ignore[method-assign]  # the network's own nodes are never busy

    def pauses(node: NodeId) -> None:
        busy[node] += pause

    for number, node in enumerate([3, 7, 5]):
        net.at(0.5 + 0.5 * number, functools.partial(pauses, node))
    for _ in range(int(rate * seconds)):
        swarm.trees[0].publish(swarm.event(0))
        net.run_for(1 / rate)
    net.run_for(2.0)
    events = int(rate * seconds)
    assert all(len(swarm.got[node]) == events for node in set(graph) - {0})
    assert pushes < 1.2 * events * (len(graph) - 1)


@BOTH
@seeds(range(20), always=3)
def test_links_that_come_and_go_during_a_burst_leave_nobody_behind(prefer_short: bool, seed: int) -> None:
    """Every tenth of a second one goes and another one comes, of which one end learns a moment later."""
    graph = nx.connected_watts_strogatz_graph(12, 4, 0.3, seed=seed)
    parameters = BroadcastTreeParameters(prefer_short=prefer_short, announce_period=0.03, cache_events=10_000)
    swarm, draw, events = Swarm(graph, parameters=parameters), random.Random(seed), 800
    overtaking(swarm, seed)
    links, news = swarm.graph, frozenset({NEWS})

    def learns(node: NodeId, peer: NodeId) -> None:
        if links.has_edge(node, peer):
            swarm.trees[node].link_up(peer, news)

    for number in range(events):
        swarm.trees[0].publish(swarm.event(0))
        swarm.net.run_for(0.002)
        if number % 50 == 25:
            swarm.break_link(*draw.choice(sorted(set(links.edges) - set(nx.bridges(links)))))
            one, other = draw.choice(sorted(nx.non_edges(links)))
            links.add_edge(one, other)
            learns(one, other)
            swarm.net.at(swarm.net.now + 0.01, functools.partial(learns, other, one))
    swarm.net.run_for(5.0)
    assert all(len(swarm.got[node]) == events for node in set(graph) - {0})
    assert len(swarm.sent_of(Push)) < 1.5 * events * (len(graph) - 1)


def holey(*numbers: int) -> Swarm:
    """Node 0, which got these events of publisher 9 from node 1."""
    swarm = Swarm(nx.star_graph(2))
    for number in numbers:
        swarm.tell(1, 0, Push(Event(9, NEWS, 0, number), 2))
    return swarm


def asked_for(swarm: Swarm) -> list[tuple[NodeId, list[tuple[int, int]]]]:
    return [
        (peer, [(run.first, run.last) for run in message.runs])
        for _, sender, peer, message in swarm.net.log
        if sender == 0 and isinstance(message, Graft)
    ]


def test_what_a_stream_jumped_over_is_asked_for_before_caches_forget_it() -> None:
    """Links keep their order, so nobody is going to announce it."""
    swarm = holey(0, 1, 5)
    assert asked_for(swarm) == [], "it may be under way over another link"
    swarm.net.run_for(TIMEOUT / 2)
    assert asked_for(swarm) == [(1, [(2, 4)])]


def test_a_hole_that_closes_by_itself_is_not_asked_for() -> None:
    swarm = holey(0, 1, 5, 2, 4, 3)
    swarm.net.run_for(10.0)
    assert asked_for(swarm) == []
    assert swarm.timers() == []


def test_what_was_published_before_this_node_took_part_is_no_hole() -> None:
    swarm = holey(5, 6)
    swarm.net.run_for(1.0)
    swarm.trees[0].topic_down(NEWS)
    swarm.trees[0].topic_up(NEWS)
    swarm.tell(1, 0, Push(Event(9, NEWS, 0, 20), 2))
    swarm.net.run_for(10.0)
    assert asked_for(swarm) == []
