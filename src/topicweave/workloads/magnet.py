"""Magnet's structural models, after Wong et al.: interests by category (§4.2) and by place (§4.3)."""

from __future__ import annotations

import math

import numpy as np

from topicweave.errors import BadInput
from topicweave.model.arrays import FloatArray, IntArray
from topicweave.workloads.counter_random import uniforms
from topicweave.workloads.distinct import distinct_choices

_CATEGORIES, _ARRIVALS, _X, _Y = 21, 22, 23, 24  # streams of random numbers
_CHUNK_CELLS = 1 << 18


def multi_modal_lists(
    first_node: int,
    last_node: int,
    *,
    topics: int,
    size: int,
    chosen_categories: int,
    categories: int,
    alpha: float,
    seed: int,
) -> tuple[IntArray, IntArray]:
    """Magnet §4.2: `chosen_categories` (b_p) of `categories` (b_n) at random, topics inside by a power law.

    Topic t belongs to category t mod b_n and is the (t // b_n + 1)-th most popular there: so topic 0 and its
    neighbours are the most popular of all. Each list has `size` topics; the paper stops when lists have that size
    on average, and says in its defaults that each node has 50.
    """
    per_category = -(-topics // categories) if categories > 0 else 0
    if not 1 <= chosen_categories <= categories <= topics:
        raise BadInput(
            f"{chosen_categories} of {categories} categories of {topics} topics: impossible; "
            "choose 1 <= chosen <= categories <= topics"
        )
    if not 0 <= size <= chosen_categories * (topics // categories):
        raise BadInput(
            f"lists of {size} topics from {chosen_categories} categories of {topics // categories} topics: "
            "impossible; choose shorter lists or more categories"
        )
    step = max(1, _CHUNK_CELLS // (chosen_categories * per_category))
    nodes, drawn = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for start in range(first_node, last_node, step):
        chunk = np.arange(start, min(start + step, last_node))
        mine = distinct_choices(seed, _CATEGORIES, chunk, categories, chosen_categories)
        candidates = (mine[:, :, np.newaxis] + categories * np.arange(per_category)).reshape(len(chunk), -1)
        popularity = (candidates // categories + 1.0) ** -alpha
        # The race of spidercast.py: the first to arrive have the law of drawing without replacement.
        numbers = uniforms(seed, _ARRIVALS, chunk[:, np.newaxis], candidates)
        arrivals = np.where(candidates < topics, -np.log1p(-numbers) / popularity, np.inf)
        first = np.argsort(arrivals, axis=1, kind="stable")[:, :size]
        nodes.append(np.repeat(chunk, size))
        drawn.append(np.sort(np.take_along_axis(candidates, first, axis=1), axis=1).ravel())
    return np.concatenate(nodes), np.concatenate(drawn)


def places(first_node: int, last_node: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Where nodes are on the unit square (Magnet §4.3)."""
    nodes = np.arange(first_node, last_node)
    return uniforms(seed, _X, nodes), uniforms(seed, _Y, nodes)


def radius_for(nodes: int, average: float) -> float:
    """The radius within which a node finds `average` nodes, itself included, on average.

    Two random points of the unit square are within r <= 1 of each other with probability
    `pi r^2 - 8/3 r^3 + r^4 / 2`, which is the disc less what sticks out over the border.
    """
    if not 1 <= average <= 1 + (nodes - 1) * _within(1.0):
        raise BadInput(
            f"{average:g} topics per node on average among {nodes} nodes: out of reach; "
            f"choose 1 to {1 + (nodes - 1) * _within(1.0):.0f}"
        )
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        if 1 + (nodes - 1) * _within(middle) < average:
            low = middle
        else:
            high = middle
    return high


def _within(radius: float) -> float:
    return math.pi * radius**2 - 8 / 3 * radius**3 + radius**4 / 2


def spatial_lists(
    first_node: int, last_node: int, *, nodes: int, average: float, seed: int
) -> tuple[IntArray, IntArray]:
    """Magnet §4.3: node i's own topic is i; a node wants the topics of all nodes within a radius, its own too.

    All places are made anew wherever a part is drawn (16 bytes a node): cheaper than moving them about.
    """
    radius = radius_for(nodes, average)
    x, y = places(0, nodes, seed)
    # Cells a little wider than the radius: whoever is near is in one of the nine cells around, and a few nodes
    # in each keep the grid no finer than it is useful.
    across = max(1, min(int(1 / radius) if radius > 0 else 1, math.isqrt(nodes) + 1))
    row, column = (y * across).astype(np.int64), (x * across).astype(np.int64)
    by_cell = np.argsort(row * across + column, kind="stable")
    starts = np.searchsorted((row * across + column)[by_cell], np.arange(across * across + 1))
    found_nodes, found_topics = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for start in range(first_node, last_node, 1 << 14):
        chunk = np.arange(start, min(start + (1 << 14), last_node))
        for down in (-1, 0, 1):
            near_row = row[chunk] + down
            inside = (near_row >= 0) & (near_row < across)
            own, base = chunk[inside], near_row[inside] * across
            low = starts[base + np.maximum(column[own] - 1, 0)]
            high = starts[base + np.minimum(column[own] + 1, across - 1) + 1]
            counts = high - low
            owner = np.repeat(np.arange(len(own)), counts)
            place = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
            other, node = by_cell[low[owner] + place], own[owner]
            near = (x[node] - x[other]) ** 2 + (y[node] - y[other]) ** 2 <= radius * radius
            found_nodes.append(node[near])
            found_topics.append(other[near])
    node, topic = np.concatenate(found_nodes), np.concatenate(found_topics)
    order = np.lexsort((topic, node))
    return node[order], topic[order]
