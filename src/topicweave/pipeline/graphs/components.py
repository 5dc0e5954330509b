"""Connected components by large and small stars (Kiveris, Lattanzi, Mirrokni, Rastogi and Vassilvitskii, SoCC 2014).

In a round every vertex hangs its neighbours (large star: those above it; small star: those below it, and
itself) on the lowest of them. That keeps the components and, in a number of rounds like the logarithm of the
vertices, leaves one star for each, around its lowest vertex. Tasks first replace the edges they have by stars
of their own, which leaves at most one edge a vertex.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from topicweave.model.arrays import IntArray
from topicweave.pipeline.graphs.links import offered, take_edges, take_vertices, taken
from topicweave.pipeline.measuring.kernels import numbered_pairs
from topicweave.pipeline.rounds import TOLD, Inbox, Letter, Loop, Work, mixed, spread

Arrays = tuple[IntArray, IntArray]


def local_stars(one: IntArray, other: IntArray) -> Arrays:
    """Edges (vertex, lowest vertex it is connected with by these edges), for all but the lowest."""
    vertices, code = np.unique(np.concatenate([one, other]), return_inverse=True)
    source, target = np.split(code, 2)
    size = len(vertices)
    _, label = connected_components(
        coo_array((np.ones(len(source), np.bool_), (source, target)), (size, size)), False
    )
    lowest = np.full(size, size)
    np.minimum.at(lowest, label, np.arange(size))  # vertices grow
    root = vertices[lowest[label]]
    return vertices[vertices != root], root[vertices != root]


def _lowest(vertex: IntArray, other: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Edges by vertex, and for each the lowest of that vertex and its neighbours."""
    order = np.argsort(vertex, kind="stable")
    vertex, other = vertex[order], other[order]
    if not len(vertex):
        return vertex, other, vertex
    starts = np.flatnonzero(np.append(True, vertex[1:] != vertex[:-1]))
    lowest = np.minimum(np.minimum.reduceat(other, starts), vertex[starts])
    return vertex, other, np.repeat(lowest, np.diff(np.append(starts, len(vertex))))


def large_star(vertex: IntArray, other: IntArray) -> Arrays:
    """Of all edges at some vertices, each from both ends."""
    vertex, other, lowest = _lowest(vertex, other)
    above = other > vertex
    return other[above], lowest[above]


def small_star(vertex: IntArray, other: IntArray) -> Arrays:
    """Of all edges from some vertices to lower ones."""
    vertex, other, lowest = _lowest(vertex, other)
    ends = np.concatenate([vertex, other])
    roots = np.concatenate([lowest, lowest])
    return ends[ends != roots], roots[ends != roots]


def _distinct(vertex: IntArray, other: IntArray) -> Arrays:
    _, once = numbered_pairs(vertex, other)
    return vertex[once], other[once]


def first_stars(tasks: int) -> Work:
    """Round 2: edges become stars of the task's own; vertices are kept for the end."""

    def work(inbox: Inbox) -> Iterator[Letter]:
        one, other = local_stars(*take_edges(inbox))
        for vertex, peer in ((one, other), (other, one)):
            yield from spread(3, "edges", vertex, tasks, {"vertex": vertex, "other": peer})
        vertices = take_vertices(inbox)
        yield from spread(3, "vertices", vertices["vertex"], tasks, vertices)

    return work


def large(tasks: int) -> Work:
    def work(inbox: Inbox) -> Iterator[Letter]:
        vertex, other = _distinct(*large_star(*take_edges(inbox)))
        high, low = np.maximum(vertex, other), np.minimum(vertex, other)
        yield from spread(1, "edges", high, tasks, {"vertex": high, "other": low})
        yield from _kept(inbox, 1, tasks)

    return work


def small(tasks: int) -> Work:
    def work(inbox: Inbox) -> Iterator[Letter]:
        one, other = _distinct(*small_star(*take_edges(inbox)))
        yield Letter(
            TOLD, 0, "edges", {"sum": np.array([mixed(one, other).view(np.uint64).sum()], np.uint64)}
        )
        for vertex, peer in ((one, other), (other, one)):
            yield from spread(2, "edges", vertex, tasks, {"vertex": vertex, "other": peer})
        yield from _kept(inbox, 2, tasks)

    return work


def _kept(inbox: Inbox, round_: int, tasks: int) -> Iterator[Letter]:
    vertices = inbox.take("vertices", vertex=np.int64, topic=np.int64, node=np.int64)
    yield from spread(round_, "vertices", vertices["vertex"], tasks, vertices)


def labelled(tasks: int) -> Work:
    """At the end: every vertex with the lowest vertex of its component."""

    def work(inbox: Inbox) -> Iterator[Letter]:
        vertex, other = take_edges(inbox)
        vertices = take_vertices(inbox)
        component = vertices["vertex"].copy()
        below = other < vertex  # a star's ray knows its centre, the centre has only rays above it
        component[np.searchsorted(vertices["vertex"], vertex[below])] = other[below]
        if len(component):
            columns = {"topic": vertices["topic"], "node": vertices["node"], "component": component}
            yield Letter(1, 0, "labels", columns)

    return work


def components(loop: Loop) -> Any:
    """Rows (topic, node, component), hashes all, of what `links.scan_links` has sent."""
    loop.step(offered(loop.tasks), taken(loop.tasks), first_stars(loop.tasks))
    before = None
    while True:
        told = loop.step(large(loop.tasks), small(loop.tasks))
        after = sum(int(one.columns["sum"][0]) for one in told) % 2**64
        if after == before:
            break
        before = after
    loop.step(labelled(loop.tasks))
    return loop.rows(["topic", "node", "component"])
