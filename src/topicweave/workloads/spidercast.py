"""The subscription lists of SpiderCast §3.1: each node wants T topics, drawn one by one by popularity.

The paper chooses topic i "with a probability `p_i`" until a node has T topics; we read that as drawing
without replacement, the topics not taken yet keeping their proportions. Such a draw has the law of a race:
topic i arrives after an exponential time of rate `p_i`, and the first T to arrive are taken (whatever came
before, the next to arrive is i with probability proportional to `p_i`). The race needs one random number per
node and topic and no memory, so nodes are drawn in bulk and independently of each other, here or on any
Spark partition.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topicweave.errors import BadInput
from topicweave.model.arrays import IntArray
from topicweave.model.workload import Workload
from topicweave.workloads.counter_random import uniforms
from topicweave.workloads.popularity import popularity as popularity_of

_SIZES, _ARRIVALS = 1, 2  # streams of random numbers
_CHUNK_CELLS = 1 << 18  # arrivals held at once: a few arrays of 2 MB, which stay in the cache


def draw_lists(
    first_node: int,
    last_node: int,
    popularity: npt.NDArray[np.float64],
    min_size: int,
    max_size: int,
    seed: int,
    sizes: IntArray | None = None,
) -> tuple[IntArray, IntArray]:
    """The subscriptions of nodes `first_node` to `last_node - 1`, by node, then topic: (nodes, topics).

    `popularity` holds each topic's probability. A node's list depends on the node, not on the range. `sizes` are
    the lengths of these nodes' lists, from `min_size` to `max_size`; by default uniform in that interval.
    """
    topics = len(popularity)
    if not 0 <= min_size <= max_size <= topics:
        asked = f"{min_size} to {max_size} of {topics} topics per node"
        raise BadInput(f"{asked}: impossible; choose sizes with 0 <= min <= max <= topics")
    step = max(1, _CHUNK_CELLS // max(topics, 1))
    if sizes is None:
        sizes = uniform_sizes(np.arange(first_node, last_node), min_size, max_size, seed)
    chunks = [
        _draw_chunk(
            np.arange(start, min(start + step, last_node)),
            popularity,
            sizes[start - first_node : start - first_node + step],
            max_size,
            seed,
        )
        for start in range(first_node, last_node, step)
    ]
    if not chunks:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    nodes, drawn = zip(*chunks, strict=True)
    return np.concatenate(nodes), np.concatenate(drawn)


def uniform_sizes(nodes: IntArray, min_size: int, max_size: int, seed: int) -> IntArray:
    """A list size for each node, uniform in `min_size` to `max_size`."""
    return min_size + (uniforms(seed, _SIZES, nodes) * (max_size - min_size + 1)).astype(np.int64)


def generate(
    nodes: int,
    topics: int,
    popularity: str = "rss",
    min_size: int = 10,
    max_size: int = 10,
    seed: int = 0,
) -> Workload:
    """A workload of nodes `n0`, `n1`, … and topics `t0` (the most popular), `t1`, …, each at rate 1.

    Each node wants T topics, T uniform in `min_size` to `max_size`.

    >>> generate(nodes=1000, topics=100, popularity="nyse", seed=7)
    Workload(nodes=1000, topics=100, subscriptions=10000, changes=0, hosts=False)
    """
    if nodes < 1 or topics < 1:
        raise BadInput(f"{nodes} nodes and {topics} topics: too few; ask for at least one of each")
    node_index, topic_index = draw_lists(
        0, nodes, popularity_of(popularity, topics), min_size, max_size, seed
    )
    node_names = pa.array([f"n{node}" for node in range(nodes)])
    topic_names = pa.array([f"t{topic}" for topic in range(topics)])
    return Workload.from_tables(
        pa.table(
            {
                "node": pa.DictionaryArray.from_arrays(node_index, node_names),
                "topic": pa.DictionaryArray.from_arrays(topic_index, topic_names),
            }
        ),
        topics=pa.table({"topic": topic_names, "rate": np.ones(topics)}),
        hosts=pa.table({"node": node_names}),
    )


def _draw_chunk(
    nodes: IntArray, popularity: npt.NDArray[np.float64], sizes: IntArray, max_size: int, seed: int
) -> tuple[IntArray, IntArray]:
    exponentials = -np.log1p(-uniforms(seed, _ARRIVALS, nodes[:, np.newaxis], np.arange(len(popularity))))
    arrivals = exponentials / popularity

    # The first `max_size` to arrive in order of arrival; each node keeps as many as it wants.
    first = np.argpartition(arrivals, max_size - 1, axis=1)[:, :max_size]
    in_order = np.take_along_axis(first, np.take_along_axis(arrivals, first, axis=1).argsort(axis=1), axis=1)
    too_late = len(popularity)
    kept = np.where(np.arange(max_size) < sizes[:, np.newaxis], in_order, too_late)
    kept.sort(axis=1)
    return np.repeat(nodes, sizes), kept[kept < too_late]
