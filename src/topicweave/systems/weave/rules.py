"""Weave's decisions as functions of plain data.

A node keeps, for each of its topics, a link to a node with a lower id that wants the topic, too. Following such links, whoever wants a
topic comes to lower and lower ids, until it is at the topic's lowest. So a topic is in one piece as soon as all of its nodes but the lowest
have such a link. Nobody needs to know the other parts of a topic, and one link serves all topics that its ends share. Ids are hashes of
names: they say nothing of what a node wants.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from topicweave.blocks.interest_index import Slots
from topicweave.model.ids import Interest, NodeId, TopicId


class SlotView(Protocol):
    """What the rules need of an interest view."""

    def overlap_counts(self, topics: Collection[TopicId]) -> Slots: ...

    def slots(self, peers: Collection[NodeId]) -> Slots: ...

    def slot_ids(self) -> NDArray[np.uint64]: ...


def cover(
    view: SlotView,
    own: NodeId,
    topics: Collection[TopicId],
    excluded: Collection[NodeId],
    tie: int,
    rng: random.Random,
) -> NodeId | None:
    """The peer with a lower id that wants most of the topics; of `tie` such peers, drawn at random, the lowest."""
    counts = view.overlap_counts(topics)
    counts[view.slots(excluded)] = 0
    ids = view.slot_ids()
    counts[ids >= own] = 0
    best = counts.max(initial=0)
    if not best:
        return None
    equal = np.flatnonzero(counts == best)
    drawn = equal if len(equal) <= tie else equal[rng.sample(range(len(equal)), tie)]
    return int(ids[drawn].min())


def replacement(
    view: SlotView,
    own: NodeId,
    alone: Mapping[NodeId, Collection[TopicId]],
    excluded: Collection[NodeId],
) -> tuple[NodeId, list[NodeId]] | None:
    """A peer that would do for two neighbours or more, and those neighbours.

    alone   neighbours with a lower id, and the topics that each of them alone covers
    """
    total: Slots | None = None
    does = {}
    for neighbour, topics in alone.items():
        if not topics:
            continue  # Anybody would do: whoever covers nothing alone goes by itself.
        does[neighbour] = view.overlap_counts(topics) == len(topics)
        total = does[neighbour].astype(np.intp) if total is None else total + does[neighbour]
    if total is None or not len(total):
        return None
    total[view.slots(excluded)] = 0
    ids = view.slot_ids()
    total[ids >= own] = 0
    best = int(total.argmax())
    if total[best] < 2:
        return None
    return int(ids[best]), [neighbour for neighbour, them in does.items() if them[best]]


def stand_in(
    asker: NodeId, shared: Collection[TopicId], neighbours: Mapping[NodeId, tuple[int, Interest]], busy: int
) -> NodeId | None:
    """The neighbour that a busy node names to one who asks for a link: lower than the asker, not busy itself, and good for half of what the two share or more.

    neighbours  how many links each has, and what it wants

    >>> stand_in(9, {1, 2}, {3: (5, frozenset({1, 2})), 4: (4, frozenset({1})), 5: (9, frozenset({1, 2}))}, busy=8)
    3
    """
    wanted = frozenset(shared)
    good = [
        (-len(wanted & interest), links, peer)
        for peer, (links, interest) in neighbours.items()
        if peer < asker and links < busy and 2 * len(wanted & interest) >= len(wanted) > 0
    ]
    return min(good)[2] if good else None
