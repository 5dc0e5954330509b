"""What an overlay could be that is made in one place, by somebody who knows everything: few links, and short ways.

LowODA, then links of high overlap between nodes without a common neighbour; events take the shortest ways. No
node of a real system knows enough for that.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from topicweave.designs.design import low_oda
from topicweave.designs.problem import Instance
from topicweave.model.arrays import BoolArray, IntArray
from topicweave.model.workload import Workload

DEGREES = (7.0, 8.0, 9.0, 10.0, 12.0, 15.0)


def sketch(workload: Workload, degrees: tuple[float, ...] = DEGREES) -> Iterator[tuple[float, float]]:
    """(links per node, hops) of LowODA alone, then with so many links per node."""
    wants = np.zeros((workload.nodes, workload.topics), np.bool_)
    for node in range(workload.nodes):
        wants[node, workload.interests(node)] = True
    linked = np.zeros((workload.nodes, workload.nodes), np.bool_)
    for a, b in low_oda(Instance.of_workload(workload)).tolist():
        linked[a, b] = linked[b, a] = True
    yield linked.sum() / workload.nodes, hops(linked, wants)
    shared = wants.astype(np.int64) @ wants.T.astype(np.int64)
    np.fill_diagonal(shared, 0)
    for degree in degrees:
        add_links(linked, shared, round(degree * workload.nodes / 2))
        if linked.sum() / workload.nodes < degree - 0.1:
            return  # Everybody has a common neighbour with whomever it shares something with.
        yield linked.sum() / workload.nodes, hops(linked, wants)


def add_links(linked: BoolArray, shared: IntArray, most: int) -> None:
    """Links between those who share most among those without a common neighbour, each to whoever has few
    links, until there are so many.
    """
    near = linked | (linked.astype(np.float32) @ linked.astype(np.float32) > 0)
    degree = linked.sum(axis=0)
    for _ in range(most - int(degree.sum()) // 2):
        worth = np.where(near | (shared == 0), 0.0, shared - 0.01 * (degree[:, None] + degree[None, :]))
        a, b = divmod(int(worth.argmax()), len(linked))
        if worth[a, b] <= 0:
            return
        linked[a, b] = linked[b, a] = near[a, b] = near[b, a] = True
        degree[[a, b]] += 1
        for one, other in ((a, b), (b, a)):
            # Who is linked to the one has it in common with the other.
            near[other] |= linked[one]
            near[:, other] |= linked[one]


def hops(linked: BoolArray, wants: BoolArray) -> float:
    """Of an event on any topic by any subscriber, on average over all who get it: over the shortest ways
    among those who want the topic.
    """
    total = reached = 0.0
    for topic in range(wants.shape[1]):
        nodes = np.flatnonzero(wants[:, topic])
        if len(nodes) < 2:
            continue
        among = linked[np.ix_(nodes, nodes)].astype(np.float32)
        seen = np.eye(len(nodes), dtype=np.bool_)
        front, far = seen, 0
        while front.any():
            far += 1
            front = (front.astype(np.float32) @ among > 0) & ~seen
            seen |= front
            total += far * front.sum() / len(nodes)
            reached += front.sum() / len(nodes)
    return total / reached
