"""Broadcast trees: everybody once, and soon without waste."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.blocks.broadcast_swarm import (
    GRAPHS,
    NEWS,
    SPORT,
    TIMEOUT,
    Swarm,
    announced_one,
    graft_one,
    graphs,
    is_spanning_tree,
    push_links,
)
from tests.seeds import seeds
from topicweave.blocks.broadcast_tree import (
    BroadcastTreeParameters,
    EventRun,
    Graft,
    IHave,
    Prune,
    Push,
)
from topicweave.blocks.broadcast_tree.parameters import MOST_RUNS
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId


@pytest.mark.parametrize("name", GRAPHS)
def test_every_member_of_the_publishers_part_but_itself_gets_each_event_once(name: str) -> None:
    swarm = Swarm(GRAPHS[name])
    for publisher in [*swarm.graph] * 2:
        event, _ = swarm.publish(publisher)
        part = nx.node_connected_component(swarm.graph, publisher)
        assert swarm.receivers(event) == dict.fromkeys(part - {publisher}, 1)


@given(graphs(connected=False), st.data())
def test_on_random_graphs_with_several_topics(graph: nx.Graph, data: st.DataObject) -> None:
    wants = {node: data.draw(st.sets(st.sampled_from([NEWS, SPORT]))) for node in graph}
    swarm = Swarm(graph, wants)
    for _ in range(5):
        topic = data.draw(st.sampled_from([NEWS, SPORT]))
        members = [node for node in graph if topic in wants[node]]
        if members:
            publisher = data.draw(st.sampled_from(members))
            event, _ = swarm.publish(publisher, topic, settle=data.draw(st.sampled_from([0.0, 0.05, 5.0])))
            swarm.net.run(swarm.net.now + 5.0)
            part = nx.node_connected_component(graph.subgraph(members), publisher)
            assert swarm.receivers(event) == dict.fromkeys(part - {publisher}, 1)
            assert all(topic in wants[peer] for _, peer in swarm.sent_of(Push))
    assert swarm.timers() == []


@given(graphs(), st.lists(st.integers(0, 13), min_size=2, max_size=8))
def test_events_published_together(graph: nx.Graph, publishers: list[int]) -> None:
    swarm = Swarm(graph)
    published = []
    for publisher in publishers:
        publisher %= len(graph)
        published.append(swarm.publish(publisher, settle=0.003)[0])
    swarm.net.run(swarm.net.now + 30.0)
    for event in published:
        assert swarm.receivers(event) == dict.fromkeys(set(graph) - {event.publisher}, 1)


def test_hops_are_counted() -> None:
    swarm = Swarm(nx.path_graph(5))
    swarm.publish(0)
    pushes = [message for _, _, _, message in swarm.net.log if isinstance(message, Push)]
    assert [push.hops for push in pushes] == [1, 2, 3, 4]


# Without waste.


@seeds(range(10), always=4)
def test_what_stays_eager_is_a_spanning_tree_whoever_publishes(seed: int) -> None:
    graph = nx.connected_watts_strogatz_graph(24, 6, 0.3, seed=seed)
    swarm = Swarm(graph)
    _, _ = swarm.publish(0)
    first = len(swarm.sent_of(Push))
    assert first > graph.number_of_nodes(), "the first event floods"
    for publisher in range(1, 4):
        swarm.publish(publisher)
    trees = []
    for publisher in (0, 5, 23):
        event, _ = swarm.publish(publisher)
        assert len(swarm.sent_of(Push)) == graph.number_of_nodes() - 1, "no push is in vain"
        assert is_spanning_tree(push_links(swarm), graph)
        assert swarm.sent_of(Prune) == swarm.sent_of(Graft) == []
        assert len(swarm.receivers(event)) == graph.number_of_nodes() - 1
        trees.append(set(map(frozenset, push_links(swarm).edges)))
    assert trees[0] == trees[1] == trees[2], "the tree is shared by all publishers"


def test_each_topic_has_a_tree_of_its_own() -> None:
    """Over the same links: a path through all for news, the even nodes of a complete graph for sport."""
    graph = nx.complete_graph(8)
    wants = {node: {NEWS, SPORT} if node % 2 == 0 else {NEWS} for node in graph}
    swarm = Swarm(graph, wants)
    for _ in range(3):
        swarm.publish(0, NEWS)
        swarm.publish(0, SPORT)
    swarm.publish(6, SPORT)
    assert is_spanning_tree(push_links(swarm), [0, 2, 4, 6])
    swarm.publish(7, NEWS)
    assert is_spanning_tree(push_links(swarm), graph)


def test_lazy_links_announce_and_nothing_more() -> None:
    """In a triangle, the link that a publisher's first event did not need turns lazy at both ends."""
    swarm = Swarm(nx.complete_graph(3))
    swarm.publish(0)
    assert sorted(swarm.sent_of(Push)) == [(0, 1), (0, 2), (1, 2), (2, 1)]
    assert sorted(swarm.sent_of(Prune)) == [(1, 2), (2, 1)]
    second, _ = swarm.publish(0)
    assert sorted(swarm.sent_of(Push)) == [(0, 1), (0, 2)]
    announced = [(time, a, b, message) for time, a, b, message in swarm.net.log if isinstance(message, IHave)]
    assert sorted((a, b) for _, a, b, _ in announced) == [(1, 2), (2, 1)]
    assert all(message == announced_one(second) for *_, message in announced)
    assert swarm.sent_of(Graft) == [], "what came in time is not asked for"


def pushes_over_its_link(swarm: Swarm) -> bool:
    """Whether node 0 of a pair pushes to node 1 when it passes on what a third one published."""
    swarm.net.log.clear()
    swarm.tell(2, 0, Push(swarm.event(2), 1))
    return (0, 1) in swarm.sent_of(Push)


def test_the_second_copy_turns_a_link_lazy_at_both_ends_and_a_new_event_over_it_eager() -> None:
    swarm = Swarm(nx.star_graph(2))
    event = swarm.event(2)
    assert pushes_over_its_link(swarm)
    swarm.tell(2, 0, Push(event, 1))
    swarm.net.log.clear()
    swarm.tell(1, 0, Push(event, 1))
    assert [message for *_, message in swarm.net.log] == [Prune(NEWS)], "so the other end knows"
    assert not pushes_over_its_link(swarm)
    swarm.tell(1, 0, Push(swarm.event(9), 1))
    assert not pushes_over_its_link(swarm), "that was under way when the other end learnt of it"
    swarm.net.run_for(TIMEOUT)
    swarm.tell(1, 0, Push(swarm.event(9), 1))
    assert pushes_over_its_link(swarm)
    swarm.tell(1, 0, Prune(NEWS))
    assert not pushes_over_its_link(swarm)


def test_a_graft_turns_a_link_eager_at_both_ends() -> None:
    swarm = Swarm(nx.star_graph(2))
    swarm.tell(1, 0, Prune(NEWS))
    swarm.tell(1, 0, announced_one(EventId(9, NEWS, 0, 0)))
    assert not pushes_over_its_link(swarm)
    swarm.net.run(2 * TIMEOUT)
    assert pushes_over_its_link(swarm), "at the end that asks"
    swarm.tell(1, 0, Prune(NEWS))
    swarm.tell(1, 0, graft_one(EventId(9, NEWS, 0, 0)))
    assert pushes_over_its_link(swarm), "at the end that is asked, though it cannot help"


def announced(swarm: Swarm, sender: NodeId, peer: NodeId) -> list[IHave]:
    return [m for _, a, b, m in swarm.net.log if isinstance(m, IHave) and (a, b) == (sender, peer)]


def test_a_burst_is_announced_as_one_run() -> None:
    swarm = Swarm(nx.complete_graph(3))
    swarm.publish(0)
    swarm.net.log.clear()
    events = [swarm.event(0) for _ in range(500)]
    for event in events:
        swarm.trees[0].publish(event)
    swarm.net.run(swarm.net.now + 5.0)
    whole = EventRun(0, NEWS, 0, events[0].sequence, events[-1].sequence)
    assert announced(swarm, 1, 2) == announced(swarm, 2, 1) == [IHave((whole,))]
    assert swarm.sent_of(Graft) == []
    assert swarm.timers() == []


def test_announcements_are_gathered_and_none_is_left_out() -> None:
    """More runs in one announcing period than one announcement may name."""
    swarm = Swarm(nx.complete_graph(3), parameters=BroadcastTreeParameters(cache_events=10_000))
    swarm.publish(0)
    swarm.net.log.clear()
    events = [Event(0, NEWS, 0, 10 + 2 * number) for number in range(2 * MOST_RUNS + 10)]
    for event in events:
        swarm.trees[0].publish(event)
    swarm.net.run(swarm.net.now + 5.0)
    batches = announced(swarm, 1, 2)
    assert [len(batch.runs) for batch in batches] == [MOST_RUNS, MOST_RUNS, 10]
    assert [run for batch in batches for run in batch.runs] == [EventRun.of(event) for event in events]
    swarm.net.run_for(200.0)
    assert swarm.timers() == [], "those between them were asked for in vain"


def test_a_link_that_turns_eager_is_still_told_what_it_was_not_pushed() -> None:
    swarm = Swarm(nx.star_graph(2))
    swarm.tell(1, 0, Prune(NEWS))
    event = swarm.event(9)
    swarm.tell(2, 0, Push(event, 1))
    swarm.net.log.clear()
    swarm.tell(1, 0, graft_one(EventId(8, NEWS, 0, 0)))
    assert announced(swarm, 0, 1) == [announced_one(event)]
    swarm.net.run(10.0)
    assert swarm.receivers(event)[1] == 1


def test_of_publishers_that_send_at_once_only_the_lowest_ones_second_copies_cut_links() -> None:
    swarm = Swarm(nx.star_graph(3))
    low, high = swarm.event(5), swarm.event(6)
    for event in (low, high):
        swarm.tell(2, 0, Push(event, 1))
    swarm.tell(1, 0, Push(high, 1))
    assert swarm.sent_of(Prune) == []
    swarm.tell(3, 0, Push(low, 1))
    assert swarm.sent_of(Prune) == [(0, 3)]
    swarm.net.run(TIMEOUT)
    swarm.tell(1, 0, Push(high, 1))
    assert swarm.sent_of(Prune) == [(0, 3), (0, 1)], "the lower one is silent"


def test_who_asks_asks_for_all_it_misses_of_the_topic() -> None:
    swarm = Swarm(nx.star_graph(2), {node: {NEWS, SPORT} for node in range(3)})
    runs = (EventRun(8, NEWS, 0, 0, 3), EventRun(9, NEWS, 0, 5, 5), EventRun(7, SPORT, 0, 0, 0))
    swarm.tell(1, 0, IHave(runs))
    while not swarm.sent_of(Graft):
        swarm.net.run(swarm.net.now + TIMEOUT / 10)
    grafts = {run for *_, message in swarm.net.log if isinstance(message, Graft) for run in message.runs}
    assert grafts in ({*runs[:2]}, {runs[2]})
    swarm.net.run(2 * TIMEOUT)
    grafts = {run for *_, message in swarm.net.log if isinstance(message, Graft) for run in message.runs}
    assert grafts == {*runs}
    assert len(swarm.sent_of(Graft)) <= 3


def test_a_burst_of_second_copies_is_answered_once_and_again_if_it_goes_on() -> None:
    swarm = Swarm(nx.star_graph(2))
    events = [swarm.event(9) for _ in range(100)]
    for event in events:
        swarm.tell(2, 0, Push(event, 1))
    for event in events:
        swarm.tell(1, 0, Push(event, 1))
    assert swarm.sent_of(Prune) == [(0, 1)]
    swarm.net.run(TIMEOUT)
    swarm.tell(1, 0, Push(events[0], 1))
    assert swarm.sent_of(Prune) == [(0, 1), (0, 1)], "the first one may have been lost"


def test_a_publisher_with_lazy_links_alone_does_not_wait_to_be_asked() -> None:
    swarm = Swarm(nx.star_graph(3))
    for leaf in (1, 2, 3):
        swarm.tell(leaf, 0, Prune(NEWS))
    event, sent_to = swarm.publish(0, settle=0.05)
    assert sent_to == 1
    assert len(swarm.receivers(event)) == 1
    swarm.net.run(swarm.net.now + 5.0)
    assert len(swarm.receivers(event)) == 3, "the others asked"


SHORT = BroadcastTreeParameters(prefer_short=True)


def test_the_longer_of_two_ways_is_cut_whichever_copy_came_first() -> None:
    swarm = Swarm(nx.star_graph(2), parameters=SHORT)
    first, second = swarm.event(9), swarm.event(9)
    swarm.tell(1, 0, Push(first, 2))
    swarm.tell(2, 0, Push(first, 1))
    assert swarm.sent_of(Prune) == [(0, 1)]
    swarm.net.log.clear()
    swarm.tell(1, 0, Push(second, 2))  # Still under way when the other end learnt of it.
    swarm.tell(2, 0, Push(second, 1))
    assert swarm.sent_of(Prune) == []
    assert list(swarm.trees[0].targets(NEWS)) == [2], "only the short way is eager"


def test_a_publisher_does_not_cut_who_heard_of_its_event_from_elsewhere_first() -> None:
    """It gets the publisher's own copy a moment later, and cuts the other way."""
    swarm = Swarm(nx.star_graph(2), parameters=SHORT)
    event = swarm.event(0)
    swarm.trees[0].publish(event)
    swarm.tell(1, 0, Push(event, 3))
    assert swarm.sent_of(Prune) == []
    swarm.tell(1, 0, Push(event, 2))
    assert swarm.sent_of(Prune) == [(0, 1)], "no longer than from here: one of the two is too much"


@pytest.mark.parametrize("seed", range(5))
def test_with_short_ways_what_stays_eager_is_a_tree_as_well(seed: int) -> None:
    graph = nx.connected_watts_strogatz_graph(24, 6, 0.3, seed=seed)
    swarm = Swarm(graph, parameters=SHORT)
    for publisher in (0, 1, 2, 3):
        swarm.publish(publisher)
    for publisher in (0, 5, 23):
        event, _ = swarm.publish(publisher)
        assert is_spanning_tree(push_links(swarm), graph)
        assert swarm.sent_of(Prune) == swarm.sent_of(Graft) == []
        assert len(swarm.receivers(event)) == graph.number_of_nodes() - 1
