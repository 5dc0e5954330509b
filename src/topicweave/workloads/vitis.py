"""The subscription patterns of Vitis §IV-A.

All nodes know the same buckets: topic t lies in bucket t // (topics / buckets). A node draws some buckets,
and from each the same number of topics, without replacement; so every topic is wanted by as many nodes on
average, whatever the pattern. As in `counter_random`, everything drawn is a function of (seed, node, …)
alone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topicweave.errors import BadInput, UnknownName
from topicweave.model.arrays import IntArray
from topicweave.model.workload import Workload
from topicweave.workloads.counter_random import uniforms
from topicweave.workloads.rates import power_law_rates

PATTERNS: dict[str, int | None] = {"random": None, "low": 5, "high": 2}
"""From how many buckets a node draws its topics; None: from all topics at once."""

_BUCKETS, _TOPICS = 11, 12  # streams of random numbers
_CHUNK_CELLS = 1 << 20


def draw_correlated(
    first_node: int, last_node: int, topics: int, buckets: int, drawn_buckets: int, per_node: int, seed: int
) -> tuple[IntArray, IntArray]:
    """The subscriptions of nodes `first_node` to `last_node - 1`, by node, then topic: (nodes, topics).

    A node's list depends on the node, not on the range.
    """
    width, share = topics // max(buckets, 1), per_node // max(drawn_buckets, 1)
    if buckets < 1 or topics % buckets or not 1 <= drawn_buckets <= buckets:
        raise BadInput(
            f"{topics} topics in {buckets} buckets, {drawn_buckets} drawn: need whole buckets, and enough"
        )
    if per_node % drawn_buckets or not 1 <= share <= width:
        raise BadInput(
            f"{per_node} topics from {drawn_buckets} buckets of {width}: choose equal shares that fit"
        )
    step = max(1, _CHUNK_CELLS // max(buckets, drawn_buckets * width))
    nodes, drawn = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for start in range(first_node, last_node, step):
        chunk = np.arange(start, min(start + step, last_node), dtype=np.int64)
        column = chunk[:, np.newaxis]
        # The smallest of independent uniform numbers are a draw without replacement.
        bucket = _smallest(uniforms(seed, _BUCKETS, column, np.arange(buckets)), drawn_buckets)
        within = bucket[:, :, np.newaxis] * width + np.arange(width)
        lots = uniforms(seed, _TOPICS, chunk[:, np.newaxis, np.newaxis], within)
        chosen = np.take_along_axis(within, _smallest(lots, share), axis=2).reshape(len(chunk), per_node)
        chosen.sort(axis=1)
        nodes.append(np.repeat(chunk, per_node))
        drawn.append(chosen.ravel())
    return np.concatenate(nodes), np.concatenate(drawn)


def generate_correlated(
    nodes: int,
    topics: int = 5000,
    pattern: str = "random",
    per_node: int = 50,
    buckets: int = 100,
    alpha: float = 0.0,
    seed: int = 0,
) -> Workload:
    """A workload of nodes `n0`, … and topics `t0`, …; with `alpha` the rates follow a power law, else they are 1.

    >>> generate_correlated(nodes=100, topics=500, pattern="high", per_node=10, seed=7)
    Workload(nodes=100, topics=500, subscriptions=1000, changes=0, hosts=False)
    """
    if pattern not in PATTERNS:
        raise UnknownName("subscription pattern", pattern, list(PATTERNS))
    if nodes < 1 or topics < 1:
        raise BadInput(f"{nodes} nodes and {topics} topics: too few; ask for at least one of each")
    drawn = PATTERNS[pattern]
    node_index, topic_index = draw_correlated(
        0, nodes, topics, 1 if drawn is None else buckets, drawn or 1, per_node, seed
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
        topics=pa.table({"topic": topic_names, "rate": power_law_rates(topics, alpha)}),
        hosts=pa.table({"node": node_names}),
    )


def _smallest(lots: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.intp]:
    """The places of the `count` smallest along the last axis."""
    return np.argpartition(lots, count - 1, axis=-1)[..., :count]
