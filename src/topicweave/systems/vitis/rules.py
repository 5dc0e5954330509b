"""Vitis' decisions as functions of plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from topicweave.blocks.likeness import likeness
from topicweave.blocks.small_world import nearest, ring_sides
from topicweave.model.arrays import IdArray, IntArray
from topicweave.model.ids import Interest, NodeId, TopicId


def utility(
    mine: Interest, theirs: Interest, rates: Mapping[TopicId, float] | None = None, unknown: float = 0.0
) -> float:
    """How much two nodes gain by being friends (Eq. 1): the rate of what both want over that of what either wants.

    >>> p, q, r = frozenset("ABC"), frozenset("CD"), frozenset("CDEFGH")
    >>> utility(p, q), utility(p, r), round(utility(q, r), 2)
    (0.25, 0.125, 0.33)
    """
    return likeness(mine, theirs, rates, unknown)


Choice = tuple[NodeId, str]
"""An entry of the routing table, and what it is for."""


def select_neighbours(
    own: NodeId,
    candidates: Sequence[NodeId],
    ring: Sequence[NodeId],
    targets: Sequence[int],
    size: int,
    utilities: Callable[[Sequence[NodeId]], Sequence[float]] | None,
) -> list[Choice]:
    """The routing table out of all known peers (Alg. 4): the ring, the small world, and then friends by utility.

    `ring` holds the candidates in growing order. The peer nearest to each of the `targets` becomes a
    small-world neighbour. Of equally good friends those named first stay first, so naming the present table
    first keeps it from changing for nothing. Without `utilities` there are no friends.
    """
    chosen = dict(zip(ring_sides(own, ring, 1), ("successor", "predecessor"), strict=False))
    for target in targets:
        peer_near = nearest(target, ring, chosen)
        if peer_near is None:
            break
        chosen[peer_near] = "small-world"
    if utilities is not None and len(chosen) < size:
        rest = [peer for peer in candidates if peer not in chosen]
        gain = utilities(rest)
        # Sorting keeps the order of equals, in this direction, too.
        ranked = sorted(range(len(rest)), key=gain.__getitem__, reverse=True)
        for place in ranked[: size - len(chosen)]:
            chosen[rest[place]] = "friend"
    return list(chosen.items())[:size]


GATEWAYS, PARENTS, HOPS = 0, 1, 2
"""The rows of proposals: per topic the proposed gateway, the parent that proposed it, and how many hops it is away."""


class Offers(NamedTuple):
    """What neighbours propose: one column per neighbour and topic that both want, by growing neighbours."""

    topic: IntArray
    """The topic's place among the node's own."""
    neighbour: IdArray
    proposals: IdArray
    """Three rows, as above."""


def elect_gateways(own: NodeId, points: IdArray, offers: Offers, links: IdArray, most_hops: int) -> IdArray:
    """What a node proposes for each of its topics next (Alg. 5), for all topics at once: three rows.

    `points` are the topics' places on the ring, `links` its neighbours in growing order. Each topic begins
    with the node itself; a neighbour's proposal is better if its gateway is nearer to the topic, or the same
    and fewer hops away. It counts only if (line 7) the neighbour is itself the gateway's first proposer or
    its parent is not a neighbour of this node, which would tell directly; and (line 10) the gateway is no
    more than `most_hops` hops away.

    Deviations. The prose bounds the hops by d, line 10 prints `hops + 1 < d`: the prose is followed, and the printed
    bound is d - 1 here. A proposal whose parent is this very node is refused: no node is in its own table, so line
    7 as printed would take one's own word, come back over a neighbour, for news. Among equally good proposals
    that of the neighbour with the lowest identifier is taken, so that the order of asking does not matter.
    """
    itself = np.uint64(own)
    proposals = np.full((3, len(points)), itself)
    proposals[HOPS] = 0
    parents, away = offers.proposals[PARENTS], offers.proposals[HOPS]
    counts = (away < most_hops) & (parents != itself)
    counts &= (parents == offers.neighbour) | ~_among(parents, links)
    topic = offers.topic[counts]
    if not len(topic):
        return proposals
    offered, neighbour = offers.proposals[:, counts], offers.neighbour[counts]
    far = ring_distances(offered[GATEWAYS], points[topic])
    order = np.lexsort((offered[HOPS], far, topic))  # stable, so neighbours stay in order among equals
    ordered = topic[order]
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    best = order[first]
    best = best[far[best] < ring_distances(itself, points[topic[best]])]
    topic = topic[best]
    proposals[GATEWAYS, topic] = offered[GATEWAYS, best]
    proposals[PARENTS, topic] = neighbour[best]
    proposals[HOPS, topic] = offered[HOPS, best] + np.uint64(1)
    return proposals


def ring_distances(a: IdArray | np.uint64, b: IdArray) -> IdArray:
    """The shorter way round, element by element."""
    forward = b - a  # unsigned: wraps as the ring does
    shorter: IdArray = np.minimum(forward, a - b)
    return shorter


def _among(values: IdArray, ordered: IdArray) -> npt.NDArray[np.bool_]:
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    place = np.minimum(ordered.searchsorted(values), len(ordered) - 1)
    found: npt.NDArray[np.bool_] = ordered[place] == values
    return found
