"""Magnet's decisions as functions of plain data."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import TypeVar

from topicweave.model.ids import Interest

Peer = TypeVar("Peer")


def most_similar_peer(
    view: Mapping[Peer, Interest], like: Callable[[Interest], float], draw: random.Random
) -> tuple[Peer, float] | None:
    """The subscriber whose successor a node becomes, and how alike they are (Algorithm 1, line 2); ties are
    broken at random.

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
