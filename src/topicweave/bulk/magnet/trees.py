"""The trees over a ring with fingers, as arrays: what greedy routes give, what they cost, and whether trees
are right.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from numba import njit

from topicweave.measures.graph import Graph
from topicweave.measures.traffic import Traffic
from topicweave.model.arrays import IntArray
from topicweave.model.workload import Workload


class Trees(msgspec.Struct, frozen=True):
    """Every edge of every tree, by topic: `child` got what `parent` sent; both are places on the ring, clockwise."""

    topic: IntArray
    child: IntArray
    parent: IntArray


class RingOverlay(msgspec.Struct, frozen=True):
    """The ring and its fingers."""

    order: IntArray
    """Which node stands at each place, clockwise."""
    tables: IntArray
    """Per place: how far clockwise its links lead, growing; padded with the number of nodes."""
    bits: int
    """The longest identifier."""
    respaced: int
    """How many nodes were moved to make room."""


class TreeLook(NamedTuple):
    """What trees show, per topic."""

    relays: IntArray
    """Nodes of the tree that do not want the topic, the home too if it does not."""
    reached: IntArray
    """All nodes of the tree."""
    wrong: npt.NDArray[np.bool_]
    """Whether it does not span its subscribers, has a cycle, or leaves a greedy route."""


def greedy_trees(workload: Workload, overlay: RingOverlay) -> Trees:
    """The greedy routes from every home to all who want its topic, put together."""
    return Trees(*_routes(overlay.tables, *_homes_and_subscribers(workload, overlay)))


def look_at(workload: Workload, overlay: RingOverlay, trees: Trees) -> TreeLook:
    """Costs and faults of trees, however they were made.

    Not by routing down, as `greedy_trees` does: every subscriber climbs over the trees' edges to the home,
    and meanwhile each edge is held against the table of its upper end, whose last entry not beyond the
    subscriber it must be.
    """
    order = np.argsort(trees.topic, kind="stable")
    starts = np.searchsorted(trees.topic[order], np.arange(workload.topics + 1))
    return TreeLook(
        *_climb(
            overlay.tables,
            *_homes_and_subscribers(workload, overlay),
            starts.astype(np.int64),
            trees.child[order],
            trees.parent[order],
        )
    )


def spread(workload: Workload, overlay: RingOverlay, trees: Trees) -> Traffic:
    """One event on every topic that somebody wants. The first who does hands it to the home, which sends it down
    the tree; so it comes back to its publisher, unless that is the home.
    """
    order = np.argsort(trees.topic, kind="stable")
    starts = np.searchsorted(trees.topic[order], np.arange(workload.topics + 1))
    counts, hops, relays = _spread(
        len(overlay.order),
        *_homes_and_subscribers(workload, overlay),
        starts.astype(np.int64),
        trees.child[order],
        trees.parent[order],
    )
    topics = len(np.unique(workload.topic_index))
    return Traffic(counts[0], counts[1], counts[2], counts[3], hops, relays, topics)


def places_of(overlay: RingOverlay) -> IntArray:
    """Where each node stands."""
    place = np.empty(len(overlay.order), np.int64)
    place[overlay.order] = np.arange(len(overlay.order))
    return place


def owners(workload: Workload) -> IntArray:
    """The home of each topic: the last node at or before its hash on the control ring."""
    ids = np.array(workload.node_ids, np.uint64)
    ring = np.argsort(ids, kind="stable")
    points = np.array(workload.topic_ids, np.uint64)
    return np.asarray(ring[np.searchsorted(ids[ring], points, side="right") - 1], np.int64)


def _homes_and_subscribers(workload: Workload, overlay: RingOverlay) -> tuple[IntArray, IntArray, IntArray]:
    """Per topic its home, and from where on its subscribers stand in a list of them all."""
    place = places_of(overlay)
    by_topic = np.argsort(workload.topic_index, kind="stable")
    node, _ = workload.subscription_pairs()
    starts = np.zeros(workload.topics + 1, np.int64)
    np.cumsum(np.bincount(workload.topic_index, minlength=workload.topics), out=starts[1:])
    return place[owners(workload)], starts, place[np.asarray(node)[by_topic]]


@njit(cache=True)
def _routes(tables: Any, homes: Any, starts: Any, subscribers: Any) -> Any:
    nodes, width = tables.shape
    seen = np.full(nodes, -1, np.int64)
    edges = np.empty((3, 4 * len(subscribers) + 16), np.int64)
    count = 0
    for topic in range(len(homes)):
        seen[homes[topic]] = topic
        for target in subscribers[starts[topic] : starts[topic + 1]]:
            here = homes[topic]
            while here != target:
                far = (target - here) % nodes
                step = 1
                for index in range(width):
                    if tables[here, index] > far:
                        break
                    step = tables[here, index]
                hop = (here + step) % nodes
                if seen[hop] != topic:
                    seen[hop] = topic
                    if count == edges.shape[1]:
                        bigger = np.empty((3, 2 * count), np.int64)
                        bigger[:, :count] = edges
                        edges = bigger
                    edges[0, count], edges[1, count], edges[2, count] = topic, hop, here
                    count += 1
                here = hop
    return edges[0, :count].copy(), edges[1, :count].copy(), edges[2, :count].copy()


@njit(cache=True)
def _climb(
    tables: Any, homes: Any, starts: Any, subscribers: Any, edge_starts: Any, child: Any, parent: Any
) -> Any:
    nodes = tables.shape[0]
    topics = len(homes)
    relays, reached = np.zeros(topics, np.int64), np.zeros(topics, np.int64)
    wrong = np.zeros(topics, np.bool_)
    wants, in_tree = np.full(nodes, -1, np.int64), np.full(nodes, -1, np.int64)
    above = np.empty(nodes, np.int64)
    for topic in range(topics):
        first, last = starts[topic], starts[topic + 1]
        if first == last:
            continue
        home = homes[topic]
        wants[subscribers[first:last]] = topic
        in_tree[home] = topic
        reached[topic] = 1
        relays[topic] = wants[home] != topic
        for edge in range(edge_starts[topic], edge_starts[topic + 1]):
            node = child[edge]
            if in_tree[node] == topic:
                wrong[topic] = True  # a second parent, or one above the home
                continue
            in_tree[node] = topic
            above[node] = parent[edge]
            reached[topic] += 1
            relays[topic] += wants[node] != topic
        for place in range(first, last):
            target = subscribers[place]
            here, steps = target, 0
            while here != home and steps <= nodes:
                steps += 1
                if in_tree[here] != topic:
                    wrong[topic] = True
                    break
                up = above[here]
                far = (target - up) % nodes
                nearest = 0
                for entry in tables[up]:
                    if nearest < entry <= far and entry < nodes:
                        nearest = entry
                if (up + nearest) % nodes != here:
                    wrong[topic] = True
                    break
                here = up
            if steps > nodes:
                wrong[topic] = True  # a cycle
    return relays, reached, wrong


@njit(cache=True)
def _spread(
    nodes: int, homes: Any, starts: Any, subscribers: Any, edge_starts: Any, child: Any, parent: Any
) -> Any:
    # By node: first receptions of what it wants and of what it does not, and all of either kind.
    counts = np.zeros((4, nodes), np.int64)
    hops = np.zeros(nodes + 1, np.int64)
    relays = 0
    wants, reached, in_tree = (
        np.full(nodes, -1, np.int64),
        np.full(nodes, -1, np.int64),
        np.full(nodes, -1, np.int64),
    )
    above, far = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    for topic in range(len(homes)):
        first, last = starts[topic], starts[topic + 1]
        if first == last:
            continue
        home, publisher = homes[topic], subscribers[first]
        wants[subscribers[first:last]] = topic
        begin, end = edge_starts[topic], edge_starts[topic + 1]
        for edge in range(begin, end):
            in_tree[child[edge]] = topic
            above[child[edge]] = parent[edge]
        reached[home] = topic
        far[home] = 0 if home == publisher else 1
        for edge in range(begin - 1, end):
            node = home if edge < begin else child[edge]
            here, steps = node, 0
            while reached[here] != topic and in_tree[here] == topic and steps <= nodes:
                here = above[here]
                steps += 1
            if reached[here] != topic:
                continue  # the tree is broken above it
            reached[node] = topic
            far[node] = far[here] + steps
            if far[node] == 0:
                continue  # the publisher is the home
            wanted = wants[node] == topic
            counts[2 if wanted else 3, node] += 1
            if node == publisher:
                continue
            counts[0 if wanted else 1, node] += 1
            if wanted:
                hops[far[node]] += 1
            else:
                relays += 1
    return counts, hops, relays


def links(overlay: RingOverlay) -> Graph:
    """Who is linked to whom, by its own choice or the other's; vertices are places on the ring."""
    nodes = len(overlay.order)
    row, column = np.nonzero(overlay.tables < nodes)
    return Graph.of_edges(nodes, row, (row + overlay.tables[row, column]) % nodes)


def route_hops(overlay: RingOverlay, seed: int, routes: int = 2000) -> float:
    """Links of greedy routes between random nodes, on average. No event takes them, so this is no `hops_mean`,
    which is of the links until a delivery.
    """
    nodes = len(overlay.order)
    rng = np.random.default_rng([seed, 0x686F7073])
    here, target = rng.integers(nodes, size=(2, routes))
    hops = 0
    while True:
        far = (target - here) % nodes
        going = far > 0
        if not going.any():
            return hops / routes
        here, target, far = here[going], target[going], far[going]
        rows = overlay.tables[here]
        here = (here + np.where(rows <= far[:, np.newaxis], rows, 0).max(axis=1)) % nodes
        hops += len(here)
