"""Broadcast trees: everybody once, soon without waste, in spite of broken links and hostile peers."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sized
from itertools import count, pairwise

import msgspec
import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.blocks.tiny_world import TinyNet
from topicweave.blocks.broadcast_tree import (
    MOST_ASKED,
    MOST_PATIENCE,
    MOST_RUNS,
    MOST_SEARCHES,
    MOST_SENT,
    BroadcastTree,
    BroadcastTreeParameters,
    Graft,
    IHave,
    Prune,
    Push,
    Run,
)
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import Message

NEWS, SPORT = 1, 2


def announced_one(event: Event | EventId) -> IHave:
    return IHave((Run.of(event),))


def graft_one(event: Event | EventId) -> Graft:
    return Graft((Run.of(event),))


ANNOUNCE, TIMEOUT = BroadcastTreeParameters().announce_period, BroadcastTreeParameters().graft_timeout


class Wire(TinyNet):
    """Writes down who sent what to whom, and when."""

    def __init__(self, seed: int = 0, loss: float = 0.0) -> None:
        super().__init__(seed, loss=loss)
        self.log: list[tuple[float, NodeId, NodeId, Message]] = []

    def send(self, sender: NodeId, peer: NodeId, message: Message) -> None:
        self.log.append((self.now, sender, peer, message))
        super().send(sender, peer, message)

    def sent_of(self, kind: type[Message]) -> list[tuple[NodeId, NodeId]]:
        """Sender and receiver of each message of a kind since the log was cleared."""
        return [(sender, peer) for _, sender, peer, message in self.log if isinstance(message, kind)]


class Swarm:
    """Trees on the links of a graph; a node wants the topics given, or news."""

    def __init__(
        self,
        graph: nx.Graph,
        wants: dict[NodeId, set[TopicId]] | None = None,
        parameters: BroadcastTreeParameters | None = None,
        loss: float = 0.0,
    ) -> None:
        self.net = Wire(loss=loss)
        self.graph = graph.copy()
        self.wants = wants or {node: {NEWS} for node in graph}
        self.got: dict[NodeId, list[Event]] = {node: [] for node in graph}
        self.trees = {node: self._tree(node, parameters) for node in graph}
        self._sequence = count()

    def _tree(self, node: NodeId, parameters: BroadcastTreeParameters | None) -> BroadcastTree:
        world = self.net.world(node)
        tree = BroadcastTree(
            world,
            lambda topic: [peer for peer in self.graph[node] if topic in self.wants[peer]],
            lambda topic: topic in self.wants[node],
            self.got[node].append,
            parameters,
        )
        world.use(tree)
        return tree

    def event(self, publisher: NodeId, topic: TopicId = NEWS, payload: bytes = b"") -> Event:
        return Event(publisher, topic, 0, next(self._sequence), payload)

    def publish(self, publisher: NodeId, topic: TopicId = NEWS, settle: float = 30.0) -> tuple[Event, int]:
        event = self.event(publisher, topic)
        self.net.log.clear()
        sent_to = self.trees[publisher].publish(event)
        self.net.run(self.net.now + settle)
        return event, sent_to

    def receivers(self, event: Event) -> dict[NodeId, int]:
        """How often each node was handed the event, if at all."""
        counts = {node: got.count(event) for node, got in self.got.items()}
        return {node: times for node, times in counts.items() if times}

    def tell(self, sender: NodeId, peer: NodeId, message: Message) -> None:
        """Let a message arrive at once."""
        self.net.worlds[peer].receivers[type(message)](sender, message)

    def break_link(self, a: NodeId, b: NodeId) -> None:
        self.graph.remove_edge(a, b)
        self.trees[a].link_down(b)
        self.trees[b].link_down(a)

    def timers(self) -> list[object]:
        return [key for world in self.net.worlds.values() for key in world.pending]


GRAPHS = {
    "path": nx.path_graph(7),
    "ring": nx.cycle_graph(8),
    "star": nx.star_graph(6),
    "complete": nx.complete_graph(7),
    "grid": nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 4)),
    "two rings": nx.disjoint_union(nx.cycle_graph(4), nx.cycle_graph(5)),
    "alone": nx.empty_graph(1),
}


@st.composite
def graphs(draw: st.DrawFn, connected: bool = True) -> nx.Graph:
    """Up to 14 nodes; connected ones are a random tree and some more links."""
    nodes = draw(st.integers(2, 14))
    graph = nx.empty_graph(nodes)
    if connected:
        graph.add_edges_from((node, draw(st.integers(0, node - 1))) for node in range(1, nodes))
    pairs = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).filter(
        lambda pair: pair[0] != pair[1]
    )
    graph.add_edges_from(draw(st.lists(pairs, max_size=20)))
    return graph


# Everybody once.


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
            assert all(topic in wants[peer] for _, peer in swarm.net.sent_of(Push))
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


def push_links(swarm: Swarm) -> nx.Graph:
    """The links that the last event was pushed over."""
    return nx.Graph(swarm.net.sent_of(Push))


def is_spanning_tree(links: nx.Graph, members: Iterable[NodeId]) -> bool:
    return set(links) == set(members) and nx.is_tree(links)


def warmed_up(graph: nx.Graph, events: int = 20) -> Swarm:
    """A swarm whose nodes have published in turn until the trees settled."""
    swarm = Swarm(graph)
    nodes = list(graph)
    for number in range(events):
        swarm.publish(nodes[number % len(nodes)])
    return swarm


@pytest.mark.parametrize("seed", range(10))
def test_what_stays_eager_is_a_spanning_tree_whoever_publishes(seed: int) -> None:
    graph = nx.connected_watts_strogatz_graph(24, 6, 0.3, seed=seed)
    swarm = Swarm(graph)
    _, _ = swarm.publish(0)
    first = len(swarm.net.sent_of(Push))
    assert first > graph.number_of_nodes(), "the first event floods"
    for publisher in range(1, 4):
        swarm.publish(publisher)
    trees = []
    for publisher in (0, 5, 23):
        event, _ = swarm.publish(publisher)
        assert len(swarm.net.sent_of(Push)) == graph.number_of_nodes() - 1, "no push is in vain"
        assert is_spanning_tree(push_links(swarm), graph)
        assert swarm.net.sent_of(Prune) == swarm.net.sent_of(Graft) == []
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
    assert sorted(swarm.net.sent_of(Push)) == [(0, 1), (0, 2), (1, 2), (2, 1)]
    assert sorted(swarm.net.sent_of(Prune)) == [(1, 2), (2, 1)]
    second, _ = swarm.publish(0)
    assert sorted(swarm.net.sent_of(Push)) == [(0, 1), (0, 2)]
    announced = [(time, a, b, message) for time, a, b, message in swarm.net.log if isinstance(message, IHave)]
    assert sorted((a, b) for _, a, b, _ in announced) == [(1, 2), (2, 1)]
    assert all(message == announced_one(second) for *_, message in announced)
    assert swarm.net.sent_of(Graft) == [], "what came in time is not asked for"


def pushes_over_its_link(swarm: Swarm) -> bool:
    """Whether node 0 of a pair pushes to node 1 when it passes on what a third one published."""
    swarm.net.log.clear()
    swarm.tell(2, 0, Push(swarm.event(2), 1))
    return (0, 1) in swarm.net.sent_of(Push)


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
    whole = Run(0, NEWS, 0, events[0].sequence, events[-1].sequence)
    assert announced(swarm, 1, 2) == announced(swarm, 2, 1) == [IHave((whole,))]
    assert swarm.net.sent_of(Graft) == []
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
    assert [run for batch in batches for run in batch.runs] == [Run.of(event) for event in events]
    assert swarm.timers() == []


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
    assert swarm.net.sent_of(Prune) == []
    swarm.tell(3, 0, Push(low, 1))
    assert swarm.net.sent_of(Prune) == [(0, 3)]
    swarm.net.run(TIMEOUT)
    swarm.tell(1, 0, Push(high, 1))
    assert swarm.net.sent_of(Prune) == [(0, 3), (0, 1)], "the lower one is silent"


def test_who_asks_asks_for_all_it_misses_of_the_topic() -> None:
    swarm = Swarm(nx.star_graph(2), {node: {NEWS, SPORT} for node in range(3)})
    runs = (Run(8, NEWS, 0, 0, 3), Run(9, NEWS, 0, 5, 5), Run(7, SPORT, 0, 0, 0))
    swarm.tell(1, 0, IHave(runs))
    while not swarm.net.sent_of(Graft):
        swarm.net.run(swarm.net.now + TIMEOUT / 10)
    grafts = {run for *_, message in swarm.net.log if isinstance(message, Graft) for run in message.runs}
    assert grafts in ({*runs[:2]}, {runs[2]})
    swarm.net.run(2 * TIMEOUT)
    grafts = {run for *_, message in swarm.net.log if isinstance(message, Graft) for run in message.runs}
    assert grafts == {*runs}
    assert len(swarm.net.sent_of(Graft)) <= 3


def test_a_burst_of_second_copies_is_answered_once_and_again_if_it_goes_on() -> None:
    swarm = Swarm(nx.star_graph(2))
    events = [swarm.event(9) for _ in range(100)]
    for event in events:
        swarm.tell(2, 0, Push(event, 1))
    for event in events:
        swarm.tell(1, 0, Push(event, 1))
    assert swarm.net.sent_of(Prune) == [(0, 1)]
    swarm.net.run(TIMEOUT)
    swarm.tell(1, 0, Push(events[0], 1))
    assert swarm.net.sent_of(Prune) == [(0, 1), (0, 1)], "the first one may have been lost"


def test_a_publisher_with_lazy_links_alone_does_not_wait_to_be_asked() -> None:
    swarm = Swarm(nx.star_graph(3))
    for leaf in (1, 2, 3):
        swarm.tell(leaf, 0, Prune(NEWS))
    event, sent_to = swarm.publish(0, settle=0.05)
    assert sent_to == 1
    assert len(swarm.receivers(event)) == 1
    swarm.net.run(swarm.net.now + 5.0)
    assert len(swarm.receivers(event)) == 3, "the others asked"


# Broken links.


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
    assert swarm.net.sent_of(Graft), "somebody had to ask"
    for publisher in range(4):
        swarm.publish(publisher)
    event, _ = swarm.publish(publisher)
    useful = [pair for pair in swarm.net.sent_of(Push) if set(pair) != {a, b}]
    assert len(swarm.receivers(event)) == len(useful) == others
    assert swarm.net.sent_of(Graft) == [], "the tree is whole again"
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
    assert swarm.net.sent_of(Graft) == []
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
    assert len(swarm.net.sent_of(Graft)) == 2


def test_what_is_merely_late_is_not_asked_for() -> None:
    """A burst announced ahead of its events, which trickle in in order over another link."""
    swarm = Swarm(nx.star_graph(2))
    events = [Event(9, NEWS, 0, number) for number in range(20)]
    swarm.tell(1, 0, IHave((Run(9, NEWS, 0, 0, 19),)))
    for event in events:
        swarm.net.run(swarm.net.now + TIMEOUT / 3)
        swarm.tell(2, 0, Push(event, 1))
    swarm.net.run(swarm.net.now + 5.0)
    assert swarm.net.sent_of(Graft) == []
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
        while not swarm.net.sent_of(Graft):
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
    swarm.tell(1, 0, IHave((Run(9, NEWS, 0, 0, 9),)))
    for number in (0, 1, 2, 6, 7, 8, 9):
        swarm.net.run(swarm.net.now + TIMEOUT / 3)
        swarm.tell(2, 0, Push(Event(9, NEWS, 0, number), 1))
    swarm.net.run(swarm.net.now + 1.1 * TIMEOUT)
    grafts = [message for *_, message in swarm.net.log if isinstance(message, Graft)]
    assert grafts
    assert set(grafts) == {Graft((Run(9, NEWS, 0, 3, 5),))}, "what is missing, and no more"


def test_a_graft_asks_for_no_more_than_its_bound_and_is_answered_with_no_more() -> None:
    parameters = BroadcastTreeParameters(cache_events=3 * MOST_ASKED)
    swarm = Swarm(nx.path_graph(2), parameters=parameters)
    events = [Event(0, NEWS, 0, number) for number in range(2 * MOST_ASKED)]
    swarm.net.cut = lambda sender, peer: True
    for event in events:
        swarm.trees[0].publish(event)
    swarm.net.cut = lambda sender, peer: False
    swarm.net.log.clear()
    swarm.tell(1, 0, Graft((Run(0, NEWS, 0, 0, 2**63 - 1), Run(0, NEWS, 0, 0, 2**63 - 1))))
    assert len(swarm.net.sent_of(Push)) == MOST_ASKED
    swarm.net.run(1.0)
    swarm.tell(0, 1, IHave((Run(0, NEWS, 0, 0, 2 * MOST_ASKED - 1),)))
    swarm.net.run(swarm.net.now + 10.0)
    assert swarm.got[1] == events, "the rest at another time"


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
    assert swarm.net.sent_of(Graft) == [(0, 2)]


def test_large_events_that_were_asked_for_come_in_parts() -> None:
    parameters = BroadcastTreeParameters(cache_bytes=1 << 30)
    swarm = Swarm(nx.path_graph(2), parameters=parameters)
    events = [Event(0, NEWS, 0, number, bytes(MOST_SENT // 2)) for number in range(7)]
    swarm.net.cut = lambda sender, peer: True
    for event in events:
        swarm.trees[0].publish(event)
    swarm.net.cut = lambda sender, peer: False
    swarm.net.log.clear()
    swarm.tell(1, 0, Graft((Run(0, NEWS, 0, 0, 6),)))
    assert len(swarm.net.sent_of(Push)) == 2
    swarm.tell(0, 1, IHave((Run(0, NEWS, 0, 0, 6),)))
    swarm.net.run(swarm.net.now + 10.0)
    assert swarm.got[1] == events


def test_a_peer_that_went_is_not_asked() -> None:
    swarm = Swarm(nx.star_graph(2))
    event_id = EventId(9, NEWS, 0, 0)
    for leaf in (1, 2):
        swarm.tell(leaf, 0, announced_one(event_id))
    swarm.break_link(0, 1)
    swarm.net.run(10.0)
    assert set(swarm.net.sent_of(Graft)) == {(0, 2)}


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
    assert sorted(swarm.net.sent_of(Push)) == [(0, 1), (0, 2)]


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
        tree._missing,
        tree._news,
        tree._unsent,
        tree._lazy,
    ]
    tables += [*tree._lazy.values(), *tree._news.values()]
    tables += [missing.sources for missing in tree._missing.values()]
    return sum(map(len, tables))


def test_strangers_leave_no_trace() -> None:
    swarm = Swarm(nx.empty_graph(2), {0: {NEWS}, 1: {NEWS, SPORT}})
    for number in range(2000):
        swarm.tell(1, 0, IHave(tuple(Run(number, NEWS, i, 0, 5) for i in range(5))))
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
        swarm.tell(1, 0, IHave(tuple(Run(number, NEWS, i, 0, 5) for i in range(10))))
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
    swarm.tell(1, 0, IHave(tuple(Run(9, NEWS, i, 0, 9) for i in range(5000))))
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
    assert not tree._missing


@pytest.mark.parametrize("name", GRAPHS)
def test_no_timers_are_left_when_idle(name: str) -> None:
    swarm = warmed_up(GRAPHS[name])
    assert swarm.timers() == []
    assert all(not tree._missing and not tree._news for tree in swarm.trees.values())


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
    assert not tree._missing
    assert not tree._news
    swarm.tell(1, 0, announced_one(missing.id))
    event, _ = swarm.publish(0, settle=300.0)
    assert swarm.receivers(event) == {1: 1, 2: 1}
    assert (0, 1) in swarm.net.sent_of(Graft)
    assert swarm.timers() == []


# Messages.


@pytest.mark.parametrize(
    "message",
    [
        Push(Event(2**64 - 1, 3, 4, 5, b"\x00\xff"), 6),
        IHave(()),
        IHave((Run(2**64 - 1, 2, 3, 4, 4), Run(5, 6, 7, 8, 9))),
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
        assert all(isinstance(run, Run) for run in back.runs)
