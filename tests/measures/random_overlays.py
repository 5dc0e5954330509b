"""Random overlays with subscriptions, and NetworkX's view of them."""

from dataclasses import dataclass

import networkx as nx
from hypothesis import strategies as st

from tests.measures.builders import links_table, subscriptions_table
from topicweave.measures.columns import names_array
from topicweave.measures.graph import Overlay, TopicGraph


@dataclass(frozen=True)
class Case:
    nodes: list[str]
    edges: list[tuple[str, str]]
    wants: list[tuple[str, str]]

    def overlay(self) -> Overlay:
        return Overlay.of(links_table(self.edges), names_array(self.nodes))

    def topic_graph(self) -> TopicGraph:
        return TopicGraph.of(self.overlay(), subscriptions_table(self.wants))

    def networkx(self) -> "nx.Graph[str]":
        graph: nx.Graph[str] = nx.Graph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from((one, other) for one, other in self.edges if one != other)
        return graph

    def topic_subgraphs(self) -> "dict[str, nx.Graph[str]]":
        whole = self.networkx()
        topics = {topic for _, topic in self.wants}
        return {
            topic: whole.subgraph([node for node, wanted in self.wants if wanted == topic])
            for topic in topics
        }


@st.composite
def cases(draw: st.DrawFn, max_nodes: int = 14) -> Case:
    """Few enough edges that topics are often partitioned, and long paths occur."""
    nodes = [f"n{number}" for number in range(draw(st.integers(1, max_nodes)))]
    some_node = st.sampled_from(nodes)
    edges = draw(st.lists(st.tuples(some_node, some_node), max_size=2 * len(nodes)))
    wants = draw(st.lists(st.tuples(some_node, st.sampled_from(["t0", "t1", "t2", "t3"])), max_size=40))
    return Case(nodes, edges, wants)
