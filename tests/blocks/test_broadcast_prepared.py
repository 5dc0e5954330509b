"""Trees that are there before the first event."""

from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from tests.blocks.broadcast_swarm import NEWS, SPORT, Swarm, announced_one, is_spanning_tree, push_links
from tests.blocks.test_broadcast_first_events import lower_linked
from topicweave.blocks.broadcast_tree import Graft, Prepare, Prune, Push
from topicweave.blocks.broadcast_tree.parameters import MOST_PREPARED
from topicweave.blocks.broadcast_tree.tree import BroadcastTree
from topicweave.model.event import EventId
from topicweave.model.ids import NodeId
from topicweave.systems.weave.rules import parent_first


def choices(swarm: Swarm, node: NodeId) -> dict[int, list[NodeId]]:
    linked = [peer for peer in swarm.graph[node] if NEWS in swarm.wants[peer]]
    lower = parent_first(node, linked, ())
    return {NEWS: lower} if lower else {}


def prepared(graph: nx.Graph) -> Swarm:
    swarm = Swarm(graph)
    for node, tree in swarm.trees.items():
        tree.prepare(choices(swarm, node))
    swarm.net.run(swarm.net.now + 5.0)
    return swarm


def eager(swarm: Swarm) -> nx.Graph:
    """The links that are eager at both ends."""
    links = nx.Graph(swarm.graph)
    links.remove_edges_from(
        (node, peer) for node, tree in swarm.trees.items() for peer in tree._ways.lazy.get(NEWS, ())
    )
    return links


@given(lower_linked(), st.data())
def test_the_first_event_goes_over_a_tree(graph: nx.Graph, data: st.DataObject) -> None:
    swarm = prepared(graph)
    publisher = data.draw(st.sampled_from(list(graph)))
    event, _ = swarm.publish(publisher)
    assert swarm.receivers(event) == dict.fromkeys(set(graph) - {publisher}, 1)
    assert len(swarm.sent_of(Push)) == len(graph) - 1
    assert is_spanning_tree(push_links(swarm), graph)
    assert swarm.sent_of(Graft) == swarm.sent_of(Prune) == []


@given(lower_linked(), st.data())
def test_who_prepares_later_than_others_is_reached_all_the_same(graph: nx.Graph, data: st.DataObject) -> None:
    """Some have not come to it when the first event goes out; then all do, in any order."""
    swarm = Swarm(graph)
    nodes = data.draw(st.permutations(list(graph)))
    some = data.draw(st.integers(0, len(nodes)))
    for node in nodes[:some]:
        swarm.trees[node].prepare(choices(swarm, node))
    publishers = data.draw(st.lists(st.sampled_from(nodes), min_size=2, max_size=2))
    first, _ = swarm.publish(publishers[0])
    for node in nodes[some:]:
        swarm.trees[node].prepare(choices(swarm, node))
    swarm.net.run(swarm.net.now + 5.0)
    second, _ = swarm.publish(publishers[1])
    assert swarm.receivers(first) == dict.fromkeys(set(graph) - {publishers[0]}, 1)
    assert swarm.receivers(second) == dict.fromkeys(set(graph) - {publishers[1]}, 1)


def test_a_prepare_is_sent_once_to_each_peer_and_tells_all_its_topics() -> None:
    swarm = Swarm(nx.complete_graph(4), {node: {NEWS, SPORT} for node in range(4)})
    tree = swarm.trees[3]
    tree.prepare({NEWS: [0, 1, 2], SPORT: [0, 2, 1]})
    tree.prepare({NEWS: [0, 1, 2], SPORT: [0, 2, 1]})
    assert [(peer, message) for _, _, peer, message in swarm.net.log] == [
        (1, Prepare((NEWS, SPORT))),
        (2, Prepare((NEWS, SPORT))),
    ]


def test_a_new_parent_that_was_turned_down_is_told() -> None:
    swarm = prepared(nx.complete_graph(4))
    swarm.net.log.clear()
    swarm.trees[3].prepare({NEWS: [1, 0, 2]})
    swarm.net.run(swarm.net.now + 1.0)
    assert [(peer, message) for _, _, peer, message in swarm.net.log] == [
        (0, Prepare((NEWS,))),
        (1, Prepare((), (NEWS,))),
    ]
    assert eager(swarm).has_edge(1, 3)
    assert not eager(swarm).has_edge(0, 3)


def test_when_the_parent_is_gone_the_others_push_again() -> None:
    swarm = prepared(nx.complete_graph(4))
    assert sorted(eager(swarm)[3]) == [0]
    swarm.break_link(3, 0)
    swarm.net.run(swarm.net.now + 1.0)
    assert sorted(eager(swarm)[3]) == [1, 2]
    event, _ = swarm.publish(0)
    assert swarm.receivers(event) == {1: 1, 2: 1, 3: 1}
    assert swarm.sent_of(Graft) == []  # nobody had to ask


def test_a_parent_that_wants_the_topic_no_more_is_none() -> None:
    swarm = prepared(nx.complete_graph(3))
    swarm.wants[0] = {SPORT}
    swarm.trees[2].link_up(0, frozenset({SPORT}))
    swarm.net.run(swarm.net.now + 1.0)
    assert sorted(eager(swarm).subgraph([1, 2])[2]) == [1]


def test_without_a_parent_what_is_announced_is_asked_for_at_once() -> None:
    """Before any event. With one, it would wait for that."""
    swarm = prepared(nx.complete_graph(4))
    swarm.tell(1, 3, announced_one(EventId(9, NEWS, 0, 0)))
    assert swarm.sent_of(Graft) == []
    swarm.trees[3].link_down(0)
    swarm.tell(1, 3, announced_one(EventId(9, NEWS, 0, 1)))
    assert swarm.sent_of(Graft) == [(3, 1)]
    swarm.tell(2, 3, announced_one(EventId(9, NEWS, 0, 2)))
    assert swarm.sent_of(Graft) == [(3, 1)], "one was asked to push"


def test_peers_that_run_an_earlier_version_are_not_turned_down() -> None:
    swarm = Swarm(nx.complete_graph(3))
    swarm.net.earlier = {1}
    swarm.trees[2].prepare({NEWS: [0, 1]})
    swarm.net.run(swarm.net.now + 1.0)
    assert swarm.net.log == []
    event, _ = swarm.publish(1)
    assert swarm.receivers(event) == {0: 1, 2: 1}


# Bounds.


def kept(tree: BroadcastTree) -> int:
    return tree._ways.count_lazy() + len(tree._ways.parents)


def test_strangers_leave_no_trace() -> None:
    swarm = Swarm(nx.empty_graph(2), {0: {NEWS}, 1: {NEWS, SPORT}})
    for number in range(100):
        swarm.tell(1, 0, Prepare((NEWS, SPORT, number), (NEWS, number)))
    assert kept(swarm.trees[0]) == 0
    assert swarm.net.log == []


def test_of_a_monstrous_prepare_only_the_beginning_is_read() -> None:
    topics = tuple(range(10 * MOST_PREPARED))
    swarm = Swarm(nx.path_graph(2), {node: set(topics) for node in range(2)})
    swarm.tell(1, 0, Prepare(topics))
    assert kept(swarm.trees[0]) == MOST_PREPARED
    swarm.tell(1, 0, Prepare((), topics[::-1]))
    assert kept(swarm.trees[0]) == MOST_PREPARED
    swarm.tell(1, 0, Prepare((), topics))
    assert kept(swarm.trees[0]) == 0


def test_a_node_prepares_so_much_and_no_more() -> None:
    topics = range(6000)
    swarm = Swarm(nx.complete_graph(5), {node: set(topics) for node in range(5)})
    tree = swarm.trees[4]
    tree.prepare({topic: [0, 1, 2, 3] for topic in topics})
    assert tree._ways.count_lazy() == 16_384
    assert max(len(message.lazy) for *_, message in swarm.net.log if isinstance(message, Prepare)) == 1024
    for topic in topics:
        tree.topic_down(topic)
    assert kept(tree) == 0


def test_the_departed_are_forgotten() -> None:
    swarm = prepared(nx.complete_graph(5))
    for peer in (1, 2, 3, 4):
        swarm.break_link(0, peer)
    assert swarm.trees[0].known_peers() == set()
    event, _ = swarm.publish(4)
    assert swarm.receivers(event) == {1: 1, 2: 1, 3: 1}
