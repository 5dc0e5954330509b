"""Overlays as graphs, and all topics' shares of an overlay as one graph."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from topicweave.measures.columns import codes, distinct, growing, numbers, offsets_of
from topicweave.measures.expansion import expansion, pieces
from topicweave.measures.interests import Interests
from topicweave.model.arrays import IntArray


@dataclass(frozen=True)
class Graph:
    """An undirected simple graph: vertex v's neighbours are neighbours[offsets[v]:offsets[v + 1]], growing."""

    offsets: IntArray
    neighbours: IntArray

    @classmethod
    def of_edges(cls, vertices: int, one: IntArray, other: IntArray) -> Graph:
        """Of edges in any order; loops and repetitions are dropped."""
        proper = one != other
        source = np.concatenate([one[proper], other[proper]])
        target = np.concatenate([other[proper], one[proper]])
        source, target = np.divmod(growing(source * vertices + target), max(vertices, 1))
        return cls(offsets_of(source, vertices), target)

    @property
    def vertices(self) -> int:
        return len(self.offsets) - 1

    @property
    def degrees(self) -> IntArray:
        return np.diff(self.offsets)

    def edges(self) -> tuple[IntArray, IntArray]:
        """Each edge once, as (lower end, higher end)."""
        source = np.repeat(np.arange(self.vertices), self.degrees)
        once = source < self.neighbours
        return source[once], self.neighbours[once]


def snapshot(links: pa.Table, time: float | None = None, within: float = 0.0) -> pa.Table:
    """The rows of a links table that describe one moment, by default the latest.

    Nodes of the simulator are all recorded at the same instant. Live nodes are not: give the period of their
    recording as `within`, and each node counts with its last snapshot in [time - within, time].
    """
    if not links.num_rows:
        return links
    times = numbers(links["time"])
    if time is None:
        time = float(times.max())
    recent = (times >= time - within) & (times <= time)
    nodes = distinct(links["node"])
    node = codes(links["node"], nodes)
    last = np.full(len(nodes), -np.inf)
    np.maximum.at(last, node[recent], times[recent])
    return links.filter(pa.array(recent & (times == last[node])))


@dataclass(frozen=True)
class Overlay:
    """Who is linked to whom. An edge counts when either end lists it, whatever the other end says."""

    nodes: pa.Array
    graph: Graph

    @classmethod
    def of(
        cls, links: pa.Table, nodes: pa.Array | None = None, kinds: Collection[str] | None = None
    ) -> Overlay:
        """Of the rows of one `snapshot`, or of those of some kinds.

        With `nodes` (sorted names) exactly these are the vertices: links to and from others (the departed, say)
        are dropped, and one without links is there with degree 0. Otherwise all that occur in the rows are.
        """
        if kinds is not None:
            links = links.filter(pc.is_in(links["kind"].cast(pa.string()), pa.array(kinds, pa.string())))
        if nodes is None:
            nodes = distinct(links["node"], links["peer"])
        node, peer = codes(links["node"], nodes), codes(links["peer"], nodes)
        known = (node >= 0) & (peer >= 0)
        return cls(nodes, Graph.of_edges(len(nodes), node[known], peer[known]))


@dataclass(frozen=True)
class TopicGraph:
    """All topic-induced subgraphs of an overlay, side by side.

    Vertices are the (node, topic) pairs of `interests`; an edge of the overlay joins two pairs of the same topic
    when both its ends want that topic. So topics never meet, and one pass over this graph serves them all.
    """

    interests: Interests
    graph: Graph

    @classmethod
    def of(cls, overlay: Overlay, subscriptions: pa.Table) -> TopicGraph:
        """Of the subscriptions that the nodes of an overlay have; others do not count."""
        interests = Interests.of(subscriptions, overlay.nodes)
        topics_per_node = interests.topics_per_node
        by_node = np.argsort(interests.node, kind="stable")
        node_offsets = offsets_of(interests.node, len(interests.nodes))
        low, high = overlay.graph.edges()
        # Look up the shorter list in the longer one.
        swap = topics_per_node[low] > topics_per_node[high]
        few, many = np.where(swap, high, low), np.where(swap, low, high)
        ones, others = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for piece in pieces(topics_per_node[few]):
            edge, place = expansion(topics_per_node[few[piece]])
            pair = by_node[node_offsets[few[piece]][edge] + place]
            match = interests.find(interests.topic[pair], many[piece][edge])
            ones.append(pair[match >= 0])
            others.append(match[match >= 0])
        edges = Graph.of_edges(len(interests.node), np.concatenate(ones), np.concatenate(others))
        return cls(interests, edges)


def component_labels(graph: Graph) -> IntArray:
    """The lowest vertex of each vertex's connected component.

    Every vertex points to a lower one, or to itself: trees, each within one component. A round halves the way to
    the roots and hooks each tree onto the lowest tree that an edge leads to, all edges at once (after Shiloach
    and Vishkin). That takes a few rounds even for rings, where spreading labels from neighbour to neighbour
    takes as many as the ring is long.
    """
    source = np.repeat(np.arange(graph.vertices), graph.degrees)
    parent = np.arange(graph.vertices)
    while True:
        grandparent = parent[parent]
        lower = grandparent.copy()
        np.minimum.at(lower, parent[source], grandparent[graph.neighbours])
        # At rest every tree is a star (parents are grandparents) and no edge leads from one to another.
        if np.array_equal(lower, parent):
            return parent
        parent = lower
