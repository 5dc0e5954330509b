"""From tables to edges between numbered vertices.

The vertex of a node in a topic is a hash of both. An edge of the overlay joins two such vertices when both
its ends want the topic. Whoever lists a link sends it, with each of its own topics, to the other end, which
keeps those it wants too: so no task has more to do for a topic that everybody wants.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from topicweave.measures.expansion import expansion, pieces
from topicweave.model.arrays import IntArray
from topicweave.pipeline.measuring.kernels import found_pairs, numbered_pairs
from topicweave.pipeline.measuring.sources import Scan
from topicweave.pipeline.rounds import Inbox, Letter, Work, hashes, mixed, spread

ALL = 0
"""The topic of a graph that is not cut by topics."""

_EDGE = {"vertex": np.int64, "other": np.int64}
_VERTEX = {"vertex": np.int64, "topic": np.int64, "node": np.int64}


def scan_links(tasks: int, by_topic: bool) -> Scan:
    """For rounds 0 and 1: links (node, peer) to both ends' tasks, subscriptions (node, topic) to the node's."""

    def scan(source: str, rows: pa.Table, rank: int) -> Iterator[Letter]:
        node = hashes(rows["node"])
        if source == "subscriptions":
            columns = {"node": node, "topic": hashes(rows["topic"])}
            yield from spread(0, "wishes", node, tasks, columns)
            yield from spread(1, "wishes", node, tasks, columns)
            return
        peer = hashes(rows["peer"])
        proper = node != peer
        low, high = np.minimum(node, peer)[proper], np.maximum(node, peer)[proper]
        _, once = numbered_pairs(low, high)
        columns = {"node": low[once], "peer": high[once]}
        yield from spread(0, "links", columns["node"], tasks, columns)
        if not by_topic:
            alone = np.unique(np.concatenate([node, peer]))
            yield from spread(0, "wishes", alone, tasks, {"node": alone, "topic": np.full(len(alone), ALL)})
            yield from spread(1, "wishes", alone, tasks, {"node": alone, "topic": np.full(len(alone), ALL)})

    return scan


def _once(rows: dict[str, Any], one: str, other: str) -> dict[str, Any]:
    _, first = numbered_pairs(rows[one], rows[other])
    return {name: column[first] for name, column in rows.items()}


def offered(tasks: int) -> Work:
    """Round 0: each link, with each topic of its lower end, to its higher end."""

    def work(inbox: Inbox) -> Iterator[Letter]:
        links = _once(inbox.take("links", node=np.int64, peer=np.int64), "node", "peer")
        wishes = _once(inbox.take("wishes", node=np.int64, topic=np.int64), "node", "topic")
        order = np.argsort(wishes["node"], kind="stable")
        wishing, topics = wishes["node"][order], wishes["topic"][order]
        starts = np.searchsorted(wishing, links["node"], "left")
        counts = np.searchsorted(wishing, links["node"], "right") - starts
        for piece in pieces(counts):
            link, place = expansion(counts[piece])
            columns = {
                "topic": topics[starts[piece][link] + place],
                "node": links["node"][piece][link],
                "peer": links["peer"][piece][link],
            }
            yield from spread(1, "offers", columns["peer"], tasks, columns)

    return work


def taken(tasks: int) -> Work:
    """Round 1: the edges that both ends want, from each end, and all vertices, to round 2."""

    def work(inbox: Inbox) -> Iterator[Letter]:
        wishes = _once(inbox.take("wishes", node=np.int64, topic=np.int64), "node", "topic")
        offers = inbox.take("offers", topic=np.int64, node=np.int64, peer=np.int64)
        place = found_pairs(wishes["node"], wishes["topic"], offers["peer"], offers["topic"])
        both = place >= 0
        topic = offers["topic"][both]
        one, other = mixed(topic, offers["node"][both]), mixed(topic, offers["peer"][both])
        yield from spread(2, "edges", one, tasks, {"vertex": one, "other": other})
        yield from spread(2, "edges", other, tasks, {"vertex": other, "other": one})
        vertex = mixed(wishes["topic"], wishes["node"])
        yield from spread(2, "vertices", vertex, tasks, {"vertex": vertex, **wishes})

    return work


def take_edges(inbox: Inbox) -> tuple[IntArray, IntArray]:
    """Edges as they came, each from both ends, once."""
    edges = inbox.take("edges", **_EDGE)
    _, once = numbered_pairs(edges["vertex"], edges["other"])
    return edges["vertex"][once], edges["other"][once]


def take_vertices(inbox: Inbox) -> dict[str, Any]:
    """By vertex, growing."""
    vertices = inbox.take("vertices", **_VERTEX)
    order = np.argsort(vertices["vertex"])
    return {name: column[order] for name, column in vertices.items()}
