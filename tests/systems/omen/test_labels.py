"""Labels of components, spread on demand: every part comes to be named by its lowest source, and all is forgotten."""

from __future__ import annotations

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from topicweave.systems.omen.labels import LabelSpreading
from topicweave.testing import VirtualNetwork


@given(st.integers(2, 12), st.data())
@settings(max_examples=40)
def test_labels_name_the_parts_of_every_topic(nodes: int, data: st.DataObject) -> None:
    node = st.integers(0, nodes - 1)
    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(
        data.draw(st.lists(st.tuples(node, node).filter(lambda e: e[0] != e[1]), max_size=16))
    )
    interest = {one: data.draw(st.frozensets(st.integers(0, 3), max_size=3)) for one in range(nodes)}
    sources = data.draw(st.frozensets(node, min_size=1))
    net = VirtualNetwork()
    spreadings = {}
    for one in range(nodes):

        def serving(topic: int, one: int = one) -> list[int]:
            return [peer for peer in graph[one] if topic in interest[peer]]

        def wants(topic: int, one: int = one) -> bool:
            return topic in interest[one]

        spreadings[one] = LabelSpreading(net.world(one), one, serving, wants, keep=20.0)
        net.worlds[one].use(spreadings[one])
    for source in sources:
        spreadings[source].begin((99, 98), interest[source])
    net.run(5.0)
    for topic in range(4):
        members = [one for one in range(nodes) if topic in interest[one]]
        for part in nx.connected_components(graph.subgraph(members)):
            lowest = min(part & sources, default=None)
            for one in part:
                expected = () if lowest is None else ((topic, lowest),)
                assert spreadings[one].labels((99, 98), {topic}) == expected
    net.run(40.0)
    assert all(not spreading.known_peers() for spreading in spreadings.values())
    assert all(not world.pending for world in net.worlds.values())
