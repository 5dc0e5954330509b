"""Magnet's decisions as functions of plain data."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from math import fsum
from typing import TypeVar

from topicweave.model.ids import Interest, TopicId

Peer = TypeVar("Peer")


def similarity(
    mine: Interest, theirs: Interest, rates: Mapping[TopicId, float] | None = None, unknown: float = 0.0
) -> float:
    """How alike two interests are, from 0 to 1 (§2.1): what both want over what either wants, weighted by rate if given.

    >>> similarity(frozenset("ABC"), frozenset("CD")), similarity(frozenset("AB"), frozenset("B"), {"A": 1.0, "B": 3.0})
    (0.25, 0.75)
    """
    shared = mine & theirs
    if not shared:
        return 0.0
    if rates is None:
        return len(shared) / (len(mine) + len(theirs) - len(shared))
    rate = rates.get
    both = fsum([rate(topic, unknown) for topic in shared])
    either = fsum([rate(topic, unknown) for topic in mine | theirs])
    return both / either if either > 0.0 else 0.0


def most_similar_peer(
    view: Mapping[Peer, Interest], like: Callable[[Interest], float], draw: random.Random
) -> tuple[Peer, float] | None:
    """The subscriber whose successor a node becomes, and how alike they are (Algorithm 1, line 2); ties are broken at random.

    None if the view is empty: then the node takes the place that its name is hashed to (line 5).
    """
    best: list[Peer] = []
    highest = -1.0
    for peer, interest in view.items():
        alike = like(interest)
        if alike > highest:
            best, highest = [peer], alike
        elif alike == highest:
            best.append(peer)
    return (draw.choice(best), highest) if best else None
