"""Near its publisher an event goes over lazy links, too."""

from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from tests.blocks.broadcast_swarm import NEWS, Swarm
from tests.blocks.test_broadcast_first_events import lower_linked
from tests.blocks.test_broadcast_prepared import eager, prepared
from topicweave.blocks.broadcast_tree import Graft, IHave, Prune, Push, Spill
from topicweave.blocks.broadcast_tree.spills import MOST_SPILT, OTHERS_PER_SPILL, SPILL_EVERY, spilt_to


def spilling(graph: nx.Graph, hops: int) -> Swarm:
    swarm = prepared(graph)
    for tree in swarm.trees.values():
        tree.spill(hops)
    return swarm


@given(lower_linked(), st.integers(1, 3), st.data())
def test_the_tree_stays_as_it_is(graph: nx.Graph, hops: int, data: st.DataObject) -> None:
    swarm = spilling(graph, hops)
    tree = nx.Graph(eager(swarm))
    for _ in range(3):
        publisher = data.draw(st.sampled_from(list(graph)))
        event, sent_to = swarm.publish(publisher)
        assert swarm.receivers(event) == dict.fromkeys(set(graph) - {publisher}, 1)
        assert sent_to == len(graph[publisher])
        assert swarm.sent_of(Prune) == swarm.sent_of(Graft) == []
        assert nx.utils.graphs_equal(eager(swarm), tree)
        reached = {
            peer for sender, peer in [*swarm.sent_of(Push), *swarm.sent_of(Spill)] if sender == publisher
        }
        assert reached == set(graph[publisher])


def test_it_shortens_ways() -> None:
    """A ring whose tree is a path, from 6 over 0 to 7: from its one end the other is a link away."""
    graph = nx.cycle_graph(8)
    for hops, last in ((0, 7), (1, 1)):
        swarm = spilling(graph, hops)
        swarm.publish(7)
        came = [m.hops for *_, peer, m in swarm.net.log if peer == 6 and isinstance(m, Push | Spill)]
        assert min(came) == last


def test_who_had_a_spill_passes_on_spills_and_takes_the_way_of_the_tree() -> None:
    swarm = spilling(nx.cycle_graph(4), 1)  # the tree: 3-0-1-2
    swarm.tell(3, 2, Spill(event := swarm.event(3), 1))
    assert swarm.sent_of(Spill) == [(2, 1)]
    assert NEWS not in swarm.trees[2]._ways.of
    swarm.tell(1, 2, Push(event, 3))
    assert swarm.trees[2]._ways.of[NEWS].peer == 1
    assert swarm.sent_of(Prune) == []
    swarm.tell(3, 2, Push(event, 3))
    assert swarm.sent_of(Prune) == [(2, 3)], "two copies over the tree: there is a circle"


def test_of_many_events_of_a_topic_few_are_spilt() -> None:
    swarm = spilling(nx.cycle_graph(4), 1)
    for _ in range(20):
        swarm.trees[3].publish(swarm.event(3))
    assert swarm.sent_of(Spill) == [(3, 2)]
    swarm.net.run(swarm.net.now + SPILL_EVERY)
    assert [len(got) for got in swarm.got.values()] == [20, 20, 20, 0]
    swarm.net.log.clear()
    swarm.trees[3].publish(swarm.event(3))
    assert swarm.sent_of(Spill) == [(3, 2)]


@given(st.sets(st.integers(0, 50)), st.integers(0, 100))
def test_of_copies_there_are_no_more_than_a_share_of_the_audience(peers: set[int], audience: int) -> None:
    chosen = spilt_to(peers, audience)
    assert len(chosen) == min(len(peers), audience // OTHERS_PER_SPILL)
    assert chosen == sorted(peers)[: len(chosen)]
    assert spilt_to(peers, None) == sorted(peers)


def test_who_gets_no_copy_is_told() -> None:
    """3 has two neighbours outside of the tree."""
    graph = nx.star_graph(9)
    graph.add_edges_from([(3, 1), (3, 2)])
    for audience, copies in ((19, []), (20, [1]), (40, [1, 2]), (None, [1, 2])):
        swarm = spilling(graph, 1)
        for tree in swarm.trees.values():
            tree.spill(1, {NEWS: audience}.get)
        event, _ = swarm.publish(3)
        assert swarm.receivers(event) == dict.fromkeys(set(graph) - {3}, 1)
        assert sorted(peer for sender, peer in swarm.sent_of(Spill) if sender == 3) == copies
        assert {peer for sender, peer in swarm.sent_of(IHave) if sender == 3} >= {1, 2} - set(copies)


@given(lower_linked(), st.data())
def test_each_copy_beside_the_tree_makes_two_too_many_and_no_more(
    graph: nx.Graph, data: st.DataObject
) -> None:
    swarm = spilling(graph, 1)
    publisher = data.draw(st.sampled_from(list(graph)))
    beside = len(graph[publisher]) - len(eager(swarm)[publisher])
    event, _ = swarm.publish(publisher)
    assert swarm.receivers(event) == dict.fromkeys(set(graph) - {publisher}, 1)
    assert len(swarm.sent_of(Push)) + len(swarm.sent_of(Spill)) <= len(graph) - 1 + 2 * beside


def test_what_is_spilt_to_all_is_not_announced() -> None:
    swarm = spilling(nx.cycle_graph(4), 1)
    swarm.publish(3)
    assert (3, 2) not in swarm.sent_of(IHave)


def test_a_burst_of_which_something_was_spilt_is_no_second_copy() -> None:
    swarm = spilling(nx.cycle_graph(4), 1)
    first, second = swarm.event(3), swarm.event(3)
    swarm.tell(3, 2, Spill(first, 1))
    assert swarm.trees[2].receive_run(1, [Push(first, 3), Push(second, 3)]) is None
    assert swarm.trees[2].receive_run(1, [Push(second, 3)]) is not None


def test_peers_that_run_an_earlier_version_get_pushes_only() -> None:
    swarm = spilling(nx.cycle_graph(4), 2)
    swarm.net.earlier = {1, 2}
    swarm.trees[3].publish(swarm.event(3))
    assert swarm.sent_of(Spill) == []
    swarm.tell(3, 2, Spill(swarm.event(3), 1))
    assert swarm.sent_of(Push) == [(3, 0), (2, 1)]


def test_a_hostile_neighbour_fills_no_table_beyond_its_bound() -> None:
    swarm = spilling(nx.path_graph(2), 1)
    tree = swarm.trees[0]
    for _ in range(2 * MOST_SPILT):
        swarm.tell(1, 0, Spill(swarm.event(1), 1))
    assert len(tree._spills._came) == MOST_SPILT
    for number in range(100):
        swarm.tell(1, 0, Spill(swarm.event(1, topic=number + 7), 1))
    assert len(tree._spills._last) <= 1
    tree.topic_down(NEWS)
    assert not tree._spills._last
