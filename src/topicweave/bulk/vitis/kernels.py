"""The rules of Vitis and RVR, compiled, for all nodes of a network: utility, selection, election, lookup.

Nodes are numbered in the order of their identifiers, so that who comes next on the ring is a difference of
two numbers. The rules themselves are those of `topicweave.systems.vitis.rules`,
`topicweave.blocks.small_world` and `topicweave.blocks.newscast`; tests hold each kernel to its rule.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from topicweave.model.workload import Workload

_RING = 2.0**64
_RING_END = np.uint64(2**64 - 1)
_ONE = np.uint64(1)


class Subscribers(NamedTuple):
    """Who wants what, with nodes in the order of the ring."""

    ids: npt.NDArray[np.uint64]
    points: npt.NDArray[np.uint64]
    """Where each topic's rendezvous is."""
    offsets: npt.NDArray[np.int64]
    """Node i wants `topics[offsets[i]:offsets[i + 1]]`."""
    topics: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float64]
    """What each topic counts in Eq. 1."""
    totals: npt.NDArray[np.float64]
    """The sum of that over each node's topics."""


def subscribers_of(
    workload: Workload, weights: npt.NDArray[np.float64]
) -> tuple[Subscribers, npt.NDArray[np.int64]]:
    """The workload in the order of the ring, and the new number of each of its nodes."""
    ids = np.array(workload.node_ids, np.uint64)
    order = np.argsort(ids)
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    offsets = np.zeros(len(order) + 1, np.int64)
    np.cumsum(np.diff(workload.offsets)[order], out=offsets[1:])
    topics = np.concatenate([np.empty(0, np.int32), *(workload.interests(node) for node in order.tolist())])
    topics = topics.astype(np.int32)
    summed = np.concatenate([[0.0], np.cumsum(weights[topics])])
    return (
        Subscribers(
            ids[order],
            np.array(workload.topic_ids, np.uint64),
            offsets,
            topics,
            np.array(weights),  # a copy: Numba compiles anew for what cannot be written to
            summed[offsets[1:]] - summed[offsets[:-1]],
        ),
        number,
    )


@njit(cache=True)
def apart(a: Any, b: Any) -> Any:
    """The shorter way round between two identifiers."""
    forward, backward = b - a, a - b
    return forward if forward < backward else backward


@njit(cache=True)
def nearer(point: Any, ids: Any, one: int, other: int) -> bool:
    """Whether one node is nearer to a point than another; of two equally near ones the lower identifier is."""
    to_one, to_other = apart(ids[one], point), apart(ids[other], point)
    return bool(to_one < to_other or (to_one == to_other and one < other))


@njit(cache=True)
def next_hop(ids: Any, node: int, links: Any, kept: Any, degree: int, point: Any) -> int:
    """Where a lookup goes next over the links that are `kept`; the node itself where it ends (`small_world`,
    rule 3).
    """
    best = node
    for place in range(degree):
        if kept[place] and nearer(point, ids, links[place], best):
            best = links[place]
    return best


@njit(cache=True)
def harmonic_point(own: Any, place: float, nodes: int) -> Any:
    """Where a long link should lead (`small_world.harmonic_distance`)."""
    far = _RING * float(max(nodes, 2)) ** (place - 1.0)
    if far >= _RING:
        return own + _RING_END
    return own + (np.uint64(far) if far >= 1.0 else _ONE)


@njit(cache=True)
def estimated_nodes(own: Any, successor: Any, predecessor: Any) -> int:
    """How many nodes there are if all lie as close as these, as a power of two (`small_world.estimated_nodes`)."""
    arc = (float(successor - own) + float(own - predecessor)) / 2.0
    return 1 << min(max(1, round(math.log2(_RING / max(arc, 1.0)))), 62)


@njit(cache=True)
def onwards(one: int, other: int, nodes: int) -> int:
    """How many nodes further round the ring the other is."""
    steps = other - one
    return steps if steps >= 0 else steps + nodes


@njit(cache=True)
def ring_sides(own: int, nodes: int, peers: Any, count: int, each: int, around: Any) -> int:
    """The next and the previous `each` of the peers, nearest first, each once (`small_world.ring_sides`)."""
    above, below = np.empty(each, np.int64), np.empty(each, np.int64)
    sides = min(each, count)
    for side in range(2):
        found, best = 0, above if side == 0 else below
        for place in range(count):
            peer = peers[place]
            far = onwards(own, peer, nodes) if side == 0 else onwards(peer, own, nodes)
            if found == sides and far >= best[found - 1]:
                continue
            if found < sides:
                found += 1
            slot = found - 1
            while slot > 0 and best[slot - 1] > far:
                best[slot] = best[slot - 1]
                slot -= 1
            best[slot] = far
    held = 0
    for step in range(sides):
        for side in range(2):
            peer = (own + above[step]) % nodes if side == 0 else (own - below[step]) % nodes
            known = False
            for place in range(held):
                known = known or around[place] == peer
            if not known:
                around[held] = peer
                held += 1
    return held


@njit(cache=True)
def mark_topics(subscribers: Any, node: int, mine: Any) -> None:
    """Note what a node wants, for `utility`."""
    for place in range(subscribers.offsets[node], subscribers.offsets[node + 1]):
        mine[subscribers.topics[place]] = node


@njit(cache=True)
def utility(subscribers: Any, node: int, peer: int, mine: Any) -> float:
    """Eq. 1, once `mark_topics` was called for the node."""
    both = 0.0
    for place in range(subscribers.offsets[peer], subscribers.offsets[peer + 1]):
        topic = subscribers.topics[place]
        if mine[topic] == node:
            both += subscribers.weights[topic]
    if both <= 0.0:
        return 0.0
    either = subscribers.totals[node] + subscribers.totals[peer] - both
    return both / either if either > 0.0 else 0.0


@njit(cache=True)
def select_neighbours(
    subscribers: Any,
    own: int,
    peers: Any,
    count: int,
    targets: Any,
    size: int,
    friends: bool,
    mine: Any,
    chosen: Any,
) -> int:
    """The routing table out of the candidates, in the order in which they are named (Alg. 4): successor,
    predecessor, small world, friends.

    Writes places among the candidates; returns how many.
    """
    ids, nodes = subscribers.ids, len(subscribers.ids)
    if count == 0:
        return 0
    taken = np.zeros(count, np.bool_)
    successor = predecessor = 0
    for place in range(1, count):
        if onwards(own, peers[place], nodes) < onwards(own, peers[successor], nodes):
            successor = place
        if onwards(peers[place], own, nodes) < onwards(peers[predecessor], own, nodes):
            predecessor = place
    chosen[0] = successor
    taken[successor] = True
    held = 1
    if predecessor != successor:
        chosen[1] = predecessor
        taken[predecessor] = True
        held = 2
    for target in targets:
        best = -1
        for place in range(count):
            if not taken[place] and (best < 0 or nearer(target, ids, peers[place], peers[best])):
                best = place
        if best < 0:
            break
        chosen[held] = best
        taken[best] = True
        held += 1
    if friends and held < size:
        mark_topics(subscribers, own, mine)
        first, gains = held, np.empty(size, np.float64)
        for place in range(count):
            if taken[place]:
                continue
            gain = utility(subscribers, own, peers[place], mine)
            if held == size:
                if gain <= gains[held - 1]:
                    continue
            else:
                held += 1
            slot = held - 1
            while slot > first and gains[slot - 1] < gain:
                gains[slot] = gains[slot - 1]
                chosen[slot] = chosen[slot - 1]
                slot -= 1
            gains[slot] = gain
            chosen[slot] = place
    return min(held, size)


class Proposals(NamedTuple):
    """Per node and topic it wants, in the order of `Subscribers.topics`: the gateway, the parent that
    proposed it, the hops.
    """

    gateways: npt.NDArray[np.int32]
    parents: npt.NDArray[np.int32]
    hops: npt.NDArray[np.int32]


@njit(cache=True)
def elect_gateways(
    subscribers: Any,
    proposals: Any,
    node: int,
    neighbours: Any,
    most_hops: int,
    mine: Any,
    slots: Any,
    linked: Any,
) -> None:
    """What a node proposes next for each of its topics (Alg. 5); `neighbours` in growing order. Scratch:
    `mine`, `slots`, `linked`.
    """
    ids, points, offsets = subscribers.ids, subscribers.points, subscribers.offsets
    start, end = offsets[node], offsets[node + 1]
    far = np.empty(end - start, np.uint64)
    gateways = np.full(end - start, node, np.int32)
    parents = np.full(end - start, node, np.int32)
    hops = np.zeros(end - start, np.int32)
    for place in range(start, end):
        topic = subscribers.topics[place]
        mine[topic] = node
        slots[topic] = place - start
        far[place - start] = apart(ids[node], points[topic])
    for peer in neighbours:
        linked[peer] = node
    for peer in neighbours:
        for place in range(offsets[peer], offsets[peer + 1]):
            topic = subscribers.topics[place]
            if mine[topic] != node:
                continue
            parent, away = proposals.parents[place], proposals.hops[place]
            if away >= most_hops or parent == node or (parent != peer and linked[parent] == node):
                continue
            slot, gateway = slots[topic], proposals.gateways[place]
            distance = apart(ids[gateway], points[topic])
            # Nearer than all before; or the same and sooner, unless that is the node itself.
            if distance < far[slot] or (
                distance == far[slot] and gateways[slot] != node and away + 1 < hops[slot]
            ):
                far[slot] = distance
                gateways[slot], parents[slot], hops[slot] = gateway, peer, away + 1
    for peer in neighbours:
        linked[peer] = -1
    proposals.gateways[start:end] = gateways
    proposals.parents[start:end] = parents
    proposals.hops[start:end] = hops


@njit(cache=True)
def keep_freshest(peers: Any, made: Any, count: int, most: int) -> int:
    """The `most` made last, latest first, of equals the first; all as they are if there are no more
    (`newscast`, rule 2).
    """
    if count <= most:
        return count
    held = 0
    for place in range(count):
        peer, when = peers[place], made[place]
        if held == most:
            if when <= made[held - 1]:
                continue
        else:
            held += 1
        slot = held - 1
        while slot > 0 and made[slot - 1] < when:
            peers[slot], made[slot] = peers[slot - 1], made[slot - 1]
            slot -= 1
        peers[slot], made[slot] = peer, when
    return held
