"""Broadcast trees on the links of a graph, for their tests: who got what, and who sent what to whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import count

import networkx as nx
from hypothesis import strategies as st

from topicweave.blocks.broadcast_tree import (
    BroadcastTree,
    BroadcastTreeParameters,
    EventRun,
    Graft,
    IHave,
    Push,
)
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import Message
from topicweave.testing import VirtualNetwork

NEWS, SPORT = 1, 2


def announced_one(event: Event | EventId) -> IHave:
    return IHave((EventRun.of(event),))


def graft_one(event: Event | EventId) -> Graft:
    return Graft((EventRun.of(event),))


ANNOUNCE, TIMEOUT = BroadcastTreeParameters().announce_period, BroadcastTreeParameters().graft_timeout


class Swarm:
    """Trees on the links of a graph; a node wants the topics given, or news."""

    def __init__(
        self,
        graph: nx.Graph,
        wants: dict[NodeId, set[TopicId]] | None = None,
        parameters: BroadcastTreeParameters | None = None,
        loss: float = 0.0,
        elsewhere: Callable[[NodeId, NodeId, list[NodeId]], tuple[NodeId, ...]] | None = None,
    ) -> None:
        """elsewhere: (node, source, its links) -> who of those surely gets an event of this source from others"""
        self.net = VirtualNetwork(loss=loss, record=True)
        self.graph = graph.copy()
        self.wants = wants or {node: {NEWS} for node in graph}
        self.got: dict[NodeId, list[Event]] = {node: [] for node in graph}
        self._elsewhere = elsewhere
        self.trees = {node: self._tree(node, parameters) for node in graph}
        self._sequences: defaultdict[tuple[NodeId, TopicId], count[int]] = defaultdict(count)

    def _tree(self, node: NodeId, parameters: BroadcastTreeParameters | None) -> BroadcastTree:
        world, elsewhere = self.net.world(node), self._elsewhere

        def links(topic: TopicId) -> list[NodeId]:
            return [peer for peer in self.graph[node] if topic in self.wants[peer]]

        tree = BroadcastTree(
            world,
            links,
            lambda topic: topic in self.wants[node],
            self.got[node].append,
            parameters,
            elsewhere and (lambda topic, source: elsewhere(node, source, links(topic))),
        )
        world.use(tree)
        return tree

    def event(self, publisher: NodeId, topic: TopicId = NEWS, payload: bytes = b"") -> Event:
        return Event(publisher, topic, 0, next(self._sequences[publisher, topic]), payload)

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
        self.net.tell(sender, peer, message)

    def sent_of(self, kind: type[Message]) -> list[tuple[NodeId, NodeId]]:
        """Sender and receiver of each message of a kind since the log was cleared."""
        return [(sender, peer) for _, sender, peer, message in self.net.log if isinstance(message, kind)]

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


def push_links(swarm: Swarm) -> nx.Graph:
    """The links that the last event was pushed over."""
    return nx.Graph(swarm.sent_of(Push))


def is_spanning_tree(links: nx.Graph, members: Iterable[NodeId]) -> bool:
    return set(links) == set(members) and nx.is_tree(links)


def warmed_up(graph: nx.Graph, events: int = 20) -> Swarm:
    """A swarm whose nodes have published in turn until the trees settled."""
    swarm = Swarm(graph)
    nodes = list(graph)
    for number in range(events):
        swarm.publish(nodes[number % len(nodes)])
    return swarm
