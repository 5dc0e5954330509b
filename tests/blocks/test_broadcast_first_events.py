"""A topic's first event: there is no tree yet, but a system may know who gets it from elsewhere."""

from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from tests.blocks.broadcast_swarm import Swarm
from topicweave.blocks.broadcast_tree import Graft, IHave, Push
from topicweave.model.ids import NodeId
from topicweave.systems.weave.rules import get_it_from_lower


@st.composite
def lower_linked(draw: st.DrawFn) -> nx.Graph:
    """Up to 14 nodes, each of which but the lowest has a lower neighbour."""
    nodes = draw(st.integers(2, 14))
    graph = nx.empty_graph(nodes)
    for node in range(1, nodes):
        lower = draw(st.sets(st.integers(0, node - 1), min_size=1, max_size=4))
        graph.add_edges_from((node, peer) for peer in sorted(lower))
    return graph


@given(lower_linked(), st.data())
def test_it_reaches_everybody_though_nobody_passes_it_down_that_has_it_from_below(
    graph: nx.Graph, data: st.DataObject
) -> None:
    publisher = data.draw(st.sampled_from(list(graph)))
    swarm, flooded = Swarm(graph, elsewhere=get_it_from_lower), Swarm(graph)
    event, _ = swarm.publish(publisher)
    assert swarm.receivers(event) == dict.fromkeys(set(graph) - {publisher}, 1)
    assert swarm.sent_of(Graft) == []  # nobody had to ask
    first_from: dict[NodeId, NodeId] = {}
    for sender, peer in swarm.sent_of(Push):
        first_from.setdefault(peer, sender)
        assert not (sender in first_from and first_from[sender] < sender and peer < sender)
    flooded.publish(publisher)
    assert len(swarm.sent_of(Push)) <= len(flooded.sent_of(Push))


@given(lower_linked())
def test_the_next_event_goes_over_a_tree(graph: nx.Graph) -> None:
    swarm = Swarm(graph, elsewhere=get_it_from_lower)
    for _ in range(3):
        swarm.publish(0)
    assert len(swarm.sent_of(Push)) == len(graph) - 1


def test_who_is_spared_by_mistake_asks_for_it() -> None:
    swarm = Swarm(nx.path_graph(5), elsewhere=lambda node, source, links: tuple(set(links) - {source}))
    event, _ = swarm.publish(0)
    assert swarm.receivers(event) == dict.fromkeys([1, 2, 3, 4], 1)
    assert swarm.sent_of(IHave)
    assert swarm.sent_of(Graft)


def test_what_is_known_of_those_that_are_gone_is_forgotten() -> None:
    swarm = Swarm(nx.complete_graph(5), elsewhere=lambda node, source, links: tuple(links))
    tree = swarm.trees[0]
    swarm.tell(1, 0, Push(swarm.event(1), 1))
    assert tree.known_peers() == {1, 2, 3, 4}
    for peer in (1, 2, 3, 4):
        swarm.break_link(0, peer)
    assert tree.known_peers() == set()
