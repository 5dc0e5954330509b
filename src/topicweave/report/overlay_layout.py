"""Places for the nodes of a small graph: linked ones near each other, all apart.

The forces of Fruchterman and Reingold (1991): every two nodes push each other away, a link pulls its ends together, and
the temperature, which bounds how far a node moves, falls. A page must be the same to the byte on any machine, and a
system of springs makes much of a last digit: so the start is fixed, only operations that IEEE 754 rounds exactly are
used, and sums are taken in a fixed order.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

STEPS = 250
GRAVITY = 0.08
"""Pulls towards the middle, so that parts without a link between them stay in sight."""
NEAREST = 1e-4
"""Nodes are never taken to be closer, lest they be thrown out of the picture."""


def laid_out(nodes: int, links: Sequence[Sequence[int]]) -> Floats:
    """(x, y) of each node, within the unit square and filling it in at least one direction."""
    if nodes == 0:
        return np.zeros((0, 2))
    rng = random.Random(0)
    place = np.array([[rng.random(), rng.random()] for _ in range(nodes)])
    ends = np.array(links, np.int64).reshape(-1, 2)
    linked = np.zeros((nodes, nodes))
    linked[ends[:, 0], ends[:, 1]] = linked[ends[:, 1], ends[:, 0]] = 1.0
    ideal_squared = 1.0 / nodes
    ideal = float(np.sqrt(ideal_squared))
    for step in range(STEPS):
        apart = place[:, None, :] - place[None, :, :]
        squared = np.maximum(apart[:, :, 0] * apart[:, :, 0] + apart[:, :, 1] * apart[:, :, 1], NEAREST)
        # Pushed by ideal²/distance, pulled by distance²/ideal: in both cases times the direction, apart/distance.
        strength = ideal_squared / squared - linked * np.sqrt(squared) / ideal
        force = _summed(apart * strength[:, :, None]) - GRAVITY * (place - 0.5)
        length = np.sqrt(np.maximum(force[:, :1] * force[:, :1] + force[:, 1:] * force[:, 1:], NEAREST**2))
        warmth = 0.1 * (1.0 - step / STEPS)
        place = place + force / length * np.minimum(length, warmth)
    return _fitted(place)


def _summed(forces: Floats) -> Floats:
    """Over the other nodes, one after another: `sum` may take them in another order on another machine."""
    total: Floats = np.add.accumulate(forces, axis=1)[:, -1, :]
    return total


def _fitted(place: Floats) -> Floats:
    low, high = place.min(axis=0), place.max(axis=0)
    extent = float((high - low).max())
    if extent == 0.0:
        return np.full_like(place, 0.5)
    # Rounding may put the outermost node a hair's breadth outside.
    fitted: Floats = np.clip(0.5 + (place - (low + high) / 2.0) / extent, 0.0, 1.0)
    return fitted
