"""The designs compiled with Numba: whole networks of tens of thousands of nodes.

Theory of operation
-------------------
Weights only ever fall: taking an edge joins components, and no edge
joins more than before. So a greatest weight once seen is an upper bound for ever, and need not be looked at
again until it is the greatest of all bounds.

- Each node u has a row: its edges to all v > u. A `Tracker` keeps, per row, a bound on the greatest weight
  and the column at which it was last seen. Columns before it are known to be lighter than the bound, so a
  search goes on from there, and passes over a row once per weight it takes, not once per edge.
- Levels: the greatest bound of all rows falls step by step, and rows of one level are visited in order. That
  gives the tie rule for free.
- For e2, nodes whose degree has reached the maximum are blocked. While the maximum stands, blocked nodes only
  get more, so the same tracker works. When the maximum rises, those that come free bring their row and column
  back in.
- Components are circular lists of slots, spliced when joined; the smaller part gets the larger one's number.

Weights are kept in a matrix up to `DENSE_NODES` nodes: joining components A and B takes 1 off the weight of A
x B, which sums up to one decrement per pair of subscribers of a topic. Beyond that there is no matrix: a row
is counted anew from the topics' subscriber lists whenever it is visited, and memory grows with the
subscriptions only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from topicweave.designs.problem import NO_EDGES, Edges, Problem

DENSE_NODES = 12_000
"""288 MB of weights."""

LEVEL, ROW = 0, 1  # where a tracker stands


class Lists(NamedTuple):
    """Who wants what: a slot is one subscription, and slots are ordered by node."""

    offsets: Any
    topic: Any
    node: Any
    topic_offsets: Any
    by_topic: Any
    position: Any
    """Where a slot stands in `by_topic`."""


class TopicParts(NamedTuple):
    """The components of each topic's subscribers."""

    component: Any
    following: Any
    size: Any
    left: Any
    """How many parts each topic is in; those in one are passed over."""


class Weights(NamedTuple):
    matrix: Any
    counts: Any
    """The row that was counted last, where there is no matrix."""
    dense: bool
    mirrored: bool


class Tracker(NamedTuple):
    bound: Any
    column: Any
    stand: Any
    blocked: Any


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
    position = np.empty(len(by_topic), np.int64)
    position[by_topic] = np.arange(len(by_topic))
    node = instance.node.astype(np.int32)
    topic = np.ascontiguousarray(instance.topic)  # Numba compiles anew for every layout
    lists = Lists(instance.offsets, topic, node, topic_offsets, by_topic, position)
    component = component.astype(np.int64).ravel()
    ends = _design(
        lists, component, problem.degrees.copy(), problem.ceiling, float(rho), nodes <= dense_nodes
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
def _row(u: int, after: bool, lists: Any, parts: Any, weights: Any) -> Any:
    """The weights of u's edges, to all nodes or (only these are asked for) to those after it."""
    if weights.dense:
        return weights.matrix[u]
    counts, component = weights.counts, parts.component
    counts[:] = 0
    for slot in range(lists.offsets[u], lists.offsets[u + 1]):
        t = lists.topic[slot]
        if parts.left[t] < 2:
            continue
        part = component[slot]
        start = lists.position[slot] + 1 if after else lists.topic_offsets[t]
        for i in range(start, lists.topic_offsets[t + 1]):
            other = lists.by_topic[i]
            if component[other] != part:
                counts[lists.node[other]] += 1
    return counts


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
def _heaviest(tracker: Any, lists: Any, parts: Any, weights: Any) -> Any:
    """The greatest weight left; it is that of the first row of the highest level that holds what its bound promises."""
    bound, column, blocked = tracker.bound, tracker.column, tracker.blocked
    level, u = tracker.stand[LEVEL], tracker.stand[ROW]
    while level > 0:
        if u == len(bound):
            level, u = level - 1, 0
            continue
        if bound[u] != level or blocked[u]:
            u += 1
            continue
        v = column[u]
        if not blocked[v]:
            if weights.dense:
                now: Any = np.int64(weights.matrix[u, v])
            else:
                now = _weight(u, v, lists.offsets, lists.topic, parts.component)
            if now == level:
                break
        _search_row(_row(u, True, lists, parts, weights), u, bound, column, blocked)
    tracker.stand[LEVEL], tracker.stand[ROW] = level, u
    return level


@njit(cache=True)
def _join(u: int, v: int, lists: Any, parts: Any, weights: Any) -> None:
    """Join the components of both in every topic they share."""
    topic, component = lists.topic, parts.component
    i, j = lists.offsets[u], lists.offsets[v]
    while i < lists.offsets[u + 1] and j < lists.offsets[v + 1]:
        if topic[i] < topic[j]:
            i += 1
        elif topic[i] > topic[j]:
            j += 1
        else:
            if component[i] != component[j]:
                fewer = parts.size[component[i]] <= parts.size[component[j]]
                few, many = (i, j) if fewer else (j, i)
                if weights.dense:
                    _lighten(few, many, lists.node, parts.following, weights)
                _splice(few, many, parts)
                parts.left[topic[i]] -= 1
            i += 1
            j += 1


@njit(cache=True)
def _lighten(few: int, many: int, node: Any, following: Any, weights: Any) -> None:
    """One off the weight of every pair across two components."""
    a = few
    while True:
        b = many
        while True:
            low, high = min(node[a], node[b]), max(node[a], node[b])
            weights.matrix[low, high] -= 1
            if weights.mirrored:
                weights.matrix[high, low] -= 1
            b = following[b]
            if b == many:
                break
        a = following[a]
        if a == few:
            break


@njit(cache=True)
def _splice(few: int, many: int, parts: Any) -> None:
    following, component = parts.following, parts.component
    old, new = component[few], component[many]
    parts.size[new] += parts.size[old]
    a = few
    while True:
        component[a] = new
        a = following[a]
        if a == few:
            break
    following[few], following[many] = following[many], following[few]


@njit(cache=True)
def _rise(ceiling: int, degree: Any, tracker: Any, lists: Any, parts: Any, weights: Any) -> None:
    """A higher maximum: who comes free again brings its own row anew, and its column into the rows before it."""
    bound, column, blocked = tracker.bound, tracker.column, tracker.blocked
    nodes = len(bound)
    was_blocked = blocked.copy()
    for w in range(nodes):
        blocked[w] = degree[w] >= ceiling
    for w in range(nodes):
        if not was_blocked[w] or blocked[w]:
            continue
        row = _row(w, False, lists, parts, weights)
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
    tracker.stand[LEVEL], tracker.stand[ROW] = level, 0


@njit(cache=True)
def _tracker(blocked: Any, lists: Any, parts: Any, weights: Any) -> Any:
    nodes = len(blocked)
    bound, column = np.zeros(nodes, np.int32), np.zeros(nodes, np.int32)
    for u in range(nodes):
        if not blocked[u]:
            bound[u] = -1
            _search_row(_row(u, True, lists, parts, weights), u, bound, column, blocked)
    stand = np.zeros(2, np.int64)
    stand[LEVEL] = bound.max()
    return Tracker(bound, column, stand, blocked)


@njit(cache=True)
def _design(lists: Any, component: Any, degree: Any, ceiling: int, rho: float, dense: bool) -> Any:
    nodes = len(lists.offsets) - 1
    components = component.max() + 1
    following, size = _link_components(component, components)
    left = np.zeros(len(lists.topic_offsets) - 1, np.int64)
    met = np.zeros(components, np.bool_)
    for slot in range(len(component)):
        if not met[component[slot]]:
            met[component[slot]] = True
            left[lists.topic[slot]] += 1
    parts = TopicParts(component, following, size, left)
    # Who comes free again asks for its column: mirrored, that is a row, and read in one go.
    mirrored = dense and rho > 0
    matrix = np.zeros((nodes, nodes) if dense else (0, 0), np.uint16)
    if dense:
        _fill(matrix, mirrored, lists.topic_offsets, lists.by_topic, lists.node, component)
    weights = Weights(matrix, np.zeros(nodes, np.uint16), dense, mirrored)

    e1 = _tracker(np.zeros(nodes, np.bool_), lists, parts, weights)  # it knows no blocked nodes
    e2 = _tracker(degree >= ceiling if rho > 0 else np.ones(nodes, np.bool_), lists, parts, weights)
    taken, edges = np.empty((1024, 2), np.int64), 0
    while True:
        first = _heaviest(e1, lists, parts, weights)
        second = _heaviest(e2, lists, parts, weights) if rho > 0 else 0
        if first == 0:
            return taken[:edges].copy()
        chosen = e2 if second > 0 and not first > rho * second else e1
        u = chosen.stand[ROW]
        v: Any = np.int64(chosen.column[u])
        if edges == len(taken):
            larger = np.empty((2 * edges, 2), np.int64)
            larger[:edges] = taken
            taken = larger
        taken[edges, 0], taken[edges, 1] = u, v
        edges += 1
        _join(u, v, lists, parts, weights)
        degree[u] += 1
        degree[v] += 1
        if rho == 0:
            continue
        risen = max(degree[u], degree[v])
        if risen <= ceiling:
            e2.blocked[u] = degree[u] >= ceiling
            e2.blocked[v] = degree[v] >= ceiling
        else:
            ceiling = risen
            _rise(ceiling, degree, e2, lists, parts, weights)
