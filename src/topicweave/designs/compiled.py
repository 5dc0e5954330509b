"""The designs compiled with Numba: whole networks of tens of thousands of nodes.

Theory of operation
-------------------
Weights only ever fall: taking an edge joins components, and no edge joins more than before. So a greatest weight once seen is an upper bound
for ever, and need not be looked at again until it is the greatest of all bounds.

- Each node u has a row: its edges to all v > u. A `Tracker` keeps, per row, a bound on the greatest weight and the column at which it was last
  seen. Columns before it are known to be lighter than the bound, so a search goes on from there, and passes over a row
  once per weight it takes, not once per edge.
- Levels: the greatest bound of all rows falls step by step, and rows of one level are visited in order. That gives the tie rule for free.
- For e2, nodes whose degree has reached the maximum are blocked. While the maximum stands, blocked nodes only get more, so the same
  tracker works. When the maximum rises, those that come free bring their row and column back in.
- Components are circular lists of slots, spliced when joined; the smaller part gets the larger one's number.

Weights are kept in a matrix up to `DENSE_NODES` nodes: joining components A and B takes 1 off the weight of A x B, which sums up to one
decrement per pair of subscribers of a topic. Beyond that there is no matrix: a row is counted anew from the topics' subscriber lists
whenever it is visited, and memory grows with the subscriptions only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from topicweave.designs.problem import NO_EDGES, Edges, Problem

DENSE_NODES = 12_000
"""288 MB of weights."""

LEVEL, ROW = 0, 1  # where a tracker stands


def design(problem: Problem, rho: float, dense_nodes: int = DENSE_NODES) -> Edges:
    """The edges that make the instance topic-connected, as `reference.design` gives them."""
    instance = problem.instance
    nodes = instance.nodes
    if nodes < 2 or not len(instance.topic):
        return NO_EDGES
    by_topic = np.argsort(instance.topic, kind="stable")
    topic_offsets = np.zeros(instance.topics + 1, np.int64)
    np.cumsum(np.bincount(instance.topic, minlength=instance.topics), out=topic_offsets[1:])
    # Components numbered from 0 over all topics.
    span = int(problem.labels.max()) - int(problem.labels.min()) + 1
    named = instance.topic * span + (problem.labels - problem.labels.min())
    _, component = np.unique(named, return_inverse=True)
    ends = _design(
        instance.offsets,
        instance.topic,
        instance.node.astype(np.int32),
        topic_offsets,
        by_topic,
        component.astype(np.int64).ravel(),
        problem.degrees.copy(),
        problem.ceiling,
        float(rho),
        nodes <= dense_nodes,
    )
    return ends if len(ends) else NO_EDGES


@njit(cache=True)
def _link_components(component: Any, components: int) -> tuple[Any, Any]:
    """Per slot the next one of its component, round in a circle; and the size of each component."""
    slots = len(component)
    first = np.full(components, -1, np.int64)
    last = np.full(components, -1, np.int64)
    following = np.empty(slots, np.int64)
    size = np.zeros(components, np.int64)
    for slot in range(slots):
        c = component[slot]
        if first[c] < 0:
            first[c] = slot
        else:
            following[last[c]] = slot
        last[c] = slot
        following[slot] = first[c]
        size[c] += 1
    return following, size


@njit(cache=True)
def _fill(weights: Any, mirrored: bool, topic_offsets: Any, by_topic: Any, node: Any, component: Any) -> None:
    for topic in range(len(topic_offsets) - 1):
        start, end = topic_offsets[topic], topic_offsets[topic + 1]
        for i in range(start, end):
            one = by_topic[i]
            row, part = node[one], component[one]
            for j in range(i + 1, end):
                other = by_topic[j]
                if component[other] != part:
                    weights[row, node[other]] += 1
                    if mirrored:
                        weights[node[other], row] += 1


@njit(cache=True)
def _count(
    u: int,
    after: bool,
    counts: Any,
    offsets: Any,
    topic: Any,
    node: Any,
    topic_offsets: Any,
    by_topic: Any,
    component: Any,
    parts: Any,
    position: Any,
) -> None:
    """The weights of u's edges, to all nodes or to those after it."""
    counts[:] = 0
    for slot in range(offsets[u], offsets[u + 1]):
        t = topic[slot]
        if parts[t] < 2:
            continue
        part = component[slot]
        start = position[slot] + 1 if after else topic_offsets[t]
        for i in range(start, topic_offsets[t + 1]):
            other = by_topic[i]
            if component[other] != part:
                counts[node[other]] += 1


@njit(cache=True)
def _weight(u: int, v: int, offsets: Any, topic: Any, component: Any) -> int:
    i, j = offsets[u], offsets[v]
    i_end, j_end = offsets[u + 1], offsets[v + 1]
    weight = 0
    while i < i_end and j < j_end:
        if topic[i] < topic[j]:
            i += 1
        elif topic[i] > topic[j]:
            j += 1
        else:
            if component[i] != component[j]:
                weight += 1
            i += 1
            j += 1
    return weight


@njit(cache=True)
def _search_row(row: Any, u: int, bound: Any, column: Any, blocked: Any) -> None:
    """Find the first unblocked column of weight `bound[u]` from where it was seen last, or else lower the bound."""
    nodes = len(row)
    sought = bound[u]
    for v in range(max(u + 1, column[u]), nodes):
        if row[v] == sought and not blocked[v]:
            column[u] = v
            return
    best, where = 0, nodes
    for v in range(u + 1, nodes):
        if row[v] > best and not blocked[v]:
            best, where = row[v], v
    bound[u], column[u] = best, where


@njit(cache=True)
def _design(
    offsets: Any,
    topic: Any,
    node: Any,
    topic_offsets: Any,
    by_topic: Any,
    component: Any,
    degree: Any,
    ceiling: int,
    rho: float,
    dense: bool,
) -> Any:
    nodes, slots = len(offsets) - 1, len(topic)
    components = component.max() + 1
    following, size = _link_components(component, components)
    # How many parts each topic is in; those in one are passed over.
    parts = np.zeros(len(topic_offsets) - 1, np.int64)
    met = np.zeros(components, np.bool_)
    for slot in range(slots):
        if not met[component[slot]]:
            met[component[slot]] = True
            parts[topic[slot]] += 1
    position = np.empty(slots, np.int64)
    for i in range(slots):
        position[by_topic[i]] = i
    counts = np.zeros(nodes, np.uint16)
    weights = np.zeros((nodes, nodes) if dense else (0, 0), np.uint16)
    # Who comes free again asks for its column: mirrored, that is a row, and read in one go.
    mirrored = dense and rho > 0
    if dense:
        _fill(weights, mirrored, topic_offsets, by_topic, node, component)

    free = np.zeros(nodes, np.bool_)  # e1 knows no blocked nodes
    blocked = degree >= ceiling
    bounds = np.zeros((2, nodes), np.int32)
    columns = np.zeros((2, nodes), np.int32)
    stands = np.zeros((2, 2), np.int64)
    for u in range(nodes):
        if dense:
            row = weights[u]
        else:
            _count(u, True, counts, offsets, topic, node, topic_offsets, by_topic, component, parts, position)
            row = counts
        bounds[0, u] = -1
        _search_row(row, u, bounds[0], columns[0], free)
        if rho > 0 and not blocked[u]:
            bounds[1, u] = -1
            _search_row(row, u, bounds[1], columns[1], blocked)
    stands[0, LEVEL] = bounds[0].max()
    stands[1, LEVEL] = bounds[1].max()

    capacity = 1024
    taken = np.empty((capacity, 2), np.int64)
    edges = 0
    ends = np.empty((2, 2), np.int64)
    heaviest = np.zeros(2, np.int64)
    while True:
        for which in range(2 if rho > 0 else 1):
            # The first row of the highest level that still holds what its bound promises.
            bound, column = bounds[which], columns[which]
            barred = free if which == 0 else blocked
            level, u = stands[which, LEVEL], stands[which, ROW]
            while level > 0:
                if u == nodes:
                    level, u = level - 1, 0
                    continue
                if bound[u] != level or barred[u]:
                    u += 1
                    continue
                v = column[u]
                if not barred[v]:
                    now = weights[u, v] if dense else _weight(u, v, offsets, topic, component)
                    if now == level:
                        break
                if dense:
                    row = weights[u]
                else:
                    _count(
                        u,
                        True,
                        counts,
                        offsets,
                        topic,
                        node,
                        topic_offsets,
                        by_topic,
                        component,
                        parts,
                        position,
                    )
                    row = counts
                _search_row(row, u, bound, column, barred)
            stands[which, LEVEL], stands[which, ROW] = level, u
            heaviest[which] = level
            if level > 0:
                ends[which, 0], ends[which, 1] = u, column[u]
        if heaviest[0] == 0:
            return taken[:edges].copy()
        chosen = 0
        if rho > 0 and heaviest[1] > 0 and not heaviest[0] > rho * heaviest[1]:
            chosen = 1
        u, v = ends[chosen, 0], ends[chosen, 1]
        if edges == capacity:
            larger = np.empty((2 * capacity, 2), np.int64)
            larger[:capacity] = taken
            taken, capacity = larger, 2 * capacity
        taken[edges, 0], taken[edges, 1] = u, v
        edges += 1

        # Join the components of both in every topic they share.
        i, j = offsets[u], offsets[v]
        while i < offsets[u + 1] and j < offsets[v + 1]:
            if topic[i] < topic[j]:
                i += 1
            elif topic[i] > topic[j]:
                j += 1
            else:
                if component[i] != component[j]:
                    few, many = (i, j) if size[component[i]] <= size[component[j]] else (j, i)
                    if dense:
                        a = few
                        while True:
                            b = many
                            while True:
                                low, high = min(node[a], node[b]), max(node[a], node[b])
                                weights[low, high] -= 1
                                if mirrored:
                                    weights[high, low] -= 1
                                b = following[b]
                                if b == many:
                                    break
                            a = following[a]
                            if a == few:
                                break
                    old, new = component[few], component[many]
                    size[new] += size[old]
                    a = few
                    while True:
                        component[a] = new
                        a = following[a]
                        if a == few:
                            break
                    following[few], following[many] = following[many], following[few]
                    parts[topic[i]] -= 1
                i += 1
                j += 1

        degree[u] += 1
        degree[v] += 1
        if rho == 0:
            continue
        risen = max(degree[u], degree[v])
        if risen <= ceiling:
            blocked[u] = degree[u] >= ceiling
            blocked[v] = degree[v] >= ceiling
            continue
        ceiling = risen
        bound, column = bounds[1], columns[1]
        was_blocked = blocked.copy()
        for w in range(nodes):
            blocked[w] = degree[w] >= ceiling
        for w in range(nodes):
            if not was_blocked[w] or blocked[w]:
                continue
            # Free again: its own row anew, and its column into the rows before it.
            if dense:
                row = weights[w]
            else:
                _count(
                    w,
                    False,
                    counts,
                    offsets,
                    topic,
                    node,
                    topic_offsets,
                    by_topic,
                    component,
                    parts,
                    position,
                )
                row = counts
            bound[w] = -1
            _search_row(row, w, bound, column, blocked)
            for r in range(w):
                now = row[r]
                if now > 0 and (now > bound[r] or (now == bound[r] and w < column[r])):
                    bound[r], column[r] = now, w
        level = 0
        for w in range(nodes):
            if not blocked[w] and bound[w] > level:
                level = bound[w]
        stands[1, LEVEL], stands[1, ROW] = level, 0
