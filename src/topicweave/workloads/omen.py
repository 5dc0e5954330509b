"""The synthetic subscriptions of OMen §6.1: list sizes by a power law in [10, 90], topics by popularity.

The paper gives the interval, not the exponent of the sizes' law; ours is a parameter, 2 by default. It writes that
a node "subscribes to t with a probability p(t)" where the p(t) add up to 1, and that sizes are given: we read it,
as SpiderCast's §3.1 which it follows, as drawing topics by p without replacement until the list is full.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from topicweave.errors import BadInput
from topicweave.model.arrays import IntArray
from topicweave.workloads.counter_random import uniforms
from topicweave.workloads.spidercast import draw_lists

POPULARITIES = {"uniform": "uniform", "zipf": "zipf2", "expo": "nyse"}
"""OMen's names (Unif, Zipf, Expo) and ours of SpiderCast §3.1, where they come from."""

_SIZES = 3  # a stream of random numbers that `spidercast` does not use


def power_law_sizes(nodes: IntArray, min_size: int, max_size: int, exponent: float, seed: int) -> IntArray:
    """A list size for each node, s with probability proportional to `s**-exponent`."""
    if not 1 <= min_size <= max_size:
        raise BadInput(f"list sizes {min_size} to {max_size}: impossible; choose 1 <= min <= max")
    sizes = np.arange(min_size, max_size + 1)
    steps = np.cumsum(sizes**-exponent)
    drawn = uniforms(seed, _SIZES, nodes) * steps[-1]
    place = np.searchsorted(steps, drawn, side="right").clip(max=len(sizes) - 1)
    return np.asarray(sizes[place])


def sized_lists(
    first_node: int,
    last_node: int,
    popularity: npt.NDArray[np.float64],
    min_size: int,
    max_size: int,
    exponent: float,
    seed: int,
) -> tuple[IntArray, IntArray]:
    """The subscriptions of nodes `first_node` to `last_node - 1`, by node, then topic: (nodes, topics)."""
    sizes = power_law_sizes(np.arange(first_node, last_node), min_size, max_size, exponent, seed)
    return draw_lists(first_node, last_node, popularity, min_size, max_size, seed, sizes=sizes)
