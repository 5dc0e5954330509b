"""How alike nodes' interests are."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topicweave.errors import BadInput
from topicweave.measures.interests import Interests

# Cells of one block of the nodes-by-nodes and of the topics-by-nodes matrix: 32 MB each.
BLOCK_CELLS = 1 << 23


def tdi(subscriptions: pa.Table, d: int, block_cells: int = BLOCK_CELLS) -> float:
    """top-d-intersection of SpiderCast §3.4, in percent.

    The intersection of two nodes is 100 |A ∩ B| / min(|A|, |B|) of their topic lists. For each node take the d
    others with the highest intersection, average, and average that over all nodes. With fewer than d others, all
    of them are taken. Nodes with an empty list are left out, both as nodes and as others: their intersection
    would be 0 / 0. nan below two nodes.
    """
    if d < 1:
        raise BadInput(f"tdi: d is {d}; compare with at least 1 other node")
    interests = Interests.of(subscriptions)
    nodes = len(interests.nodes)
    taken = min(d, nodes - 1)
    if taken < 1:
        return math.nan
    sizes = interests.topics_per_node.astype(np.float32)
    block = max(block_cells // nodes, 1)
    total = 0.0
    for start in range(0, nodes, block):
        rows = np.arange(start, min(start + block, nodes))
        share = _common_topics(interests, start, start + len(rows), block)
        share /= np.minimum(sizes[rows, None], sizes)
        share[np.arange(len(rows)), rows] = -1.0  # A node is not one of its others.
        share.partition(nodes - taken, axis=1)
        total += float(share[:, nodes - taken :].mean(axis=1, dtype=np.float64).sum())
    return 100.0 * total / nodes


def _common_topics(interests: Interests, start: int, stop: int, block: int) -> npt.NDArray[np.float32]:
    """How many topics each of the nodes start up to stop has in common with every node.

    A matrix product, some topics at a time. Whole numbers below 2**24 are exact in float32.
    """
    nodes = len(interests.nodes)
    common = np.zeros((stop - start, nodes), np.float32)
    # Topics with a single subscriber come last and are in nobody's intersection.
    shared = int(np.count_nonzero(interests.subscribers > 1))
    for first in range(0, shared, block):
        last = min(first + block, shared)
        pairs = slice(interests.offsets[first], interests.offsets[last])
        wants = np.zeros((last - first, nodes), np.float32)
        wants[interests.topic[pairs] - first, interests.node[pairs]] = 1.0
        common += wants[:, start:stop].T @ wants
    return common
