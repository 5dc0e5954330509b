"""Popular topics and rare ones: everybody wants a few of the former, and each of the latter has only a
handful of subscribers among all nodes.

No paper's model, but the case that tells whether subscribers find each other: a view that knows a hundred
nodes of ten thousand almost never holds the two others who want a rare topic.
"""

from __future__ import annotations

import numpy as np

from topicweave.errors import BadInput
from topicweave.model.arrays import IntArray
from topicweave.workloads.counter_random import uniforms

_POPULAR, _ORDER = 61, 62  # streams of random numbers of this module's own


def rare_topics(nodes: int, rare: int, audience: int) -> int:
    """How many rare topics there are.

    >>> rare_topics(1000, rare=2, audience=3)
    666
    """
    return rare * max(1, nodes // audience)


def rare_lists(
    first: int, last: int, nodes: int, popular_topics: int, popular: int, rare: int, audience: int, seed: int
) -> tuple[IntArray, IntArray]:
    """The lists of a range of nodes: `popular` of the first `popular_topics` topics, and `rare` others that
    `audience` nodes want each.

    For each rare topic of a node all nodes are put in a random order and cut into groups. What is left over
    joins the last group.
    """
    if not 0 <= popular <= popular_topics or rare < 0 or popular + rare < 1:
        raise BadInput(
            f"{popular} of {popular_topics} popular topics and {rare} rare ones: impossible; choose 0 <= popular <= popular_topics, "
            "and at least one topic per node"
        )
    if audience < 1:
        raise BadInput(f"an audience of {audience}: impossible; choose at least 1")
    chosen = np.arange(first, last, dtype=np.int64)
    columns = []
    if popular:
        lots = uniforms(seed, _POPULAR, chosen[:, np.newaxis], np.arange(popular_topics))
        columns.append(np.argsort(lots, axis=1, kind="stable")[:, :popular])
    groups = max(1, nodes // audience)
    for number in range(rare):
        order = np.argsort(uniforms(seed, _ORDER, np.arange(nodes), number), kind="stable")
        place = np.empty(nodes, np.int64)
        place[order] = np.arange(nodes)
        group = np.minimum(place[first:last] // audience, groups - 1)
        columns.append((popular_topics + number * groups + group)[:, np.newaxis])
    lists = (
        np.sort(np.concatenate(columns, axis=1), axis=1)
        if len(chosen)
        else np.empty((0, popular + rare), np.int64)
    )
    return np.repeat(chosen, popular + rare), lists.ravel().astype(np.int64)
