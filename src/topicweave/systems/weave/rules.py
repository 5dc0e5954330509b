"""Weave's decisions as functions of plain data.

A node keeps, for each of its topics, a link to a node with a lower id that wants the topic, too. Following
such links, whoever wants a topic comes to lower and lower ids, until it is at the topic's lowest. So a topic
is in one piece as soon as all of its nodes but the lowest have such a link. Nobody needs to know the other
parts of a topic, and one link serves all topics that its ends share. Ids are hashes of names: they say
nothing of what a node wants.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from topicweave.blocks.interest_index import Slots
from topicweave.model.ids import RING_SIZE, Interest, NodeId, TopicId

KEPT = 0.5
"""How many topics it is worth to keep the neighbours that one has."""


class SlotView(Protocol):
    """What the rules need of an interest view."""

    def overlap_counts(self, topics: Collection[TopicId]) -> Slots: ...

    def slots(self, peers: Collection[NodeId]) -> Slots: ...

    def slot_ids(self) -> NDArray[np.uint64]: ...

    def interest_of(self, peer: NodeId) -> Interest: ...


def cover(
    view: SlotView,
    own: NodeId,
    topics: Collection[TopicId],
    excluded: Collection[NodeId],
    lean: float,
    rng: random.Random,
    less: Callable[[NodeId], float] | None = None,
) -> NodeId | None:
    """The peer with a lower id that wants most of the topics. The lowest id of all counts like `lean` topics
    more, the highest like none; each counts like so many topics `less`.
    """
    counts = view.overlap_counts(topics)
    counts[view.slots(excluded)] = 0
    ids = view.slot_ids()
    counts[ids >= own] = 0
    if not counts.any():
        return None
    worth = np.where(counts > 0, counts + _extra(ids, lean, less), -np.inf)
    equal = np.flatnonzero(worth == worth.max())
    return int(ids[equal[rng.randrange(len(equal))]])


def aim(
    view: SlotView,
    own: NodeId,
    topics: Collection[TopicId],
    below: Mapping[NodeId, Collection[TopicId]],
    kept: Collection[NodeId],
    excluded: Collection[NodeId],
    lean: float,
    less: Callable[[NodeId], float] | None = None,
) -> list[NodeId]:
    """Whom a node would link to if it chose anew, one after the other as `cover` does; the worth of each is as there.

    below   neighbours with a lower id, and what they share; they need not be in the view, nor are they excluded
    kept    those of them that it aimed at before: each counts like `KEPT` topics more, so that little changes
            for little
    """
    left, found = set(topics), []
    # The view lets go of what is too old: slots are other ones from here on.
    counts = view.overlap_counts(left)
    ids = view.slot_ids()
    worth = _extra(ids, lean, less)
    useless = ids >= own
    useless[view.slots([*excluded, *below])] = True
    extra = _extra(np.array(list(below), dtype=np.uint64), lean, less)
    linked = {peer: more + KEPT * (peer in kept) for peer, more in zip(below, extra.tolist(), strict=True)}
    while left:
        counts[useless] = 0
        best, chosen = -np.inf, None
        if counts.any():
            slot = int(np.where(counts > 0, counts + worth, -np.inf).argmax())
            best, chosen = float(counts[slot] + worth[slot]), int(ids[slot])
        for peer, more in linked.items():
            shared = len(left.intersection(below[peer]))
            if shared and shared + more >= best:
                best, chosen = shared + more, peer
        if chosen is None:
            break
        found.append(chosen)
        if linked.pop(chosen, None) is not None:
            left.difference_update(below[chosen])
        else:
            useless[slot] = True
            left -= view.interest_of(chosen)
        counts = view.overlap_counts(left)
    return found


def _extra(
    ids: NDArray[np.uint64], lean: float, less: Callable[[NodeId], float] | None
) -> NDArray[np.float64]:
    """How many topics more a peer counts than it shares."""
    extra: NDArray[np.float64] = lean * (1.0 - ids / RING_SIZE)
    return extra if less is None else extra - np.array([less(peer) for peer in ids.tolist()])


def stand_in(
    asker: NodeId,
    shared: Collection[TopicId],
    neighbours: Mapping[NodeId, tuple[int, Interest]],
    busy: Callable[[NodeId], int],
) -> NodeId | None:
    """The neighbour that a busy node names to one who asks for a link: lower than the asker, not busy itself,
    and good for half of what the two share or more.

    neighbours  how many links each has, and what it wants
    busy        from how many links on a node is no stand-in

    >>> both = frozenset({1, 2})
    >>> stand_in(9, {1, 2}, {3: (5, both), 4: (4, frozenset({1})), 5: (9, both)}, busy=lambda peer: 8)
    3
    """
    wanted = frozenset(shared)
    good = [
        (-len(wanted & interest), links, peer)
        for peer, (links, interest) in neighbours.items()
        if peer < asker and links < busy(peer) and 2 * len(wanted & interest) >= len(wanted) > 0
    ]
    return min(good)[2] if good else None


def is_hub(peer: NodeId, share: float) -> bool:
    """Whether a node is among those with the lowest ids, of which there are such a share.

    >>> is_hub(RING_SIZE // 50, 0.04), is_hub(RING_SIZE // 20, 0.04)
    (True, False)
    """
    return peer < share * RING_SIZE


def get_it_from_lower(own: NodeId, source: NodeId, linked: Collection[NodeId]) -> tuple[NodeId, ...]:
    """Of those linked for a topic, the ones that get an event from others if it came to this node from a lower one:
    all lower ones. Who has the event from a higher node, or made it, passes it to all. So it comes down to the lowest
    node of the topic; from there it goes up, since everybody has a lower neighbour, which passes it up.

    >>> get_it_from_lower(5, 3, [2, 3, 7]), get_it_from_lower(5, 7, [2, 3, 7])
    ((2,), ())
    """
    return tuple([peer for peer in linked if peer < own and peer != source]) if source < own else ()


def parent_first(own: NodeId, linked: Collection[NodeId], bridged: Collection[NodeId]) -> list[NodeId]:
    """Those linked for a topic of whom one is enough, its tree's parent first: the lower ones, the lowest first. If
    everybody has such a parent, all are in one piece, and nobody is reached twice.

    >>> parent_first(5, [4, 2, 7, 1], bridged=[1])
    [2, 4]
    """
    return sorted(peer for peer in linked if peer < own and peer not in bridged)
