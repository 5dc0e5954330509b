"""Which topics are wanted by the same nodes, and their communities by label propagation (Raghavan, Albert and
Kumara 2007).

A node with n topics adds n (n - 1) / 2 pairs. Nodes with very many topics say little about any pair and would
cost most of the work: they are left out, and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from topicweave.measures.expansion import expansion, pieces
from topicweave.model.arrays import IntArray
from topicweave.pipeline.graphs.similar import take_lists
from topicweave.pipeline.measuring.kernels import numbered_pairs
from topicweave.pipeline.rounds import TOLD, Inbox, Letter, Loop, Work, mixed, spread

MOST_TOPICS = 1000
MOST_STEPS = 50


def added(one: IntArray, other: IntArray, weight: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Each pair once, with all its weight."""
    pair, first = numbered_pairs(one, other)
    sums = np.zeros(len(first), np.int64)
    np.add.at(sums, pair, weight)
    return one[first], other[first], sums


def pairs_of_lists(tasks: int, most_topics: int) -> Work:
    """Round 0: every two topics of a node, to the lower one's task."""

    def work(inbox: Inbox) -> Iterator[Letter]:
        _, offsets, topic = take_lists(inbox)
        sizes = np.diff(offsets)
        few = sizes <= most_topics
        yield Letter(TOLD, 0, "left_out", {"nodes": np.array([int((~few).sum())])})
        place = np.arange(len(topic)) - np.repeat(offsets[:-1], sizes)
        after = np.where(np.repeat(few, sizes), np.repeat(sizes, sizes) - place - 1, 0)
        for piece in pieces(after):
            owner, step = expansion(after[piece])
            low, high = topic[piece][owner], topic[piece.start + owner + step + 1]  # lists grow
            low, high, weight = added(low, high, np.ones(len(low), np.int64))
            yield from spread(1, "pairs", low, tasks, {"topic": low, "other": high, "nodes": weight})

    return work


def pairs_added(least: int) -> Work:
    """Round 1: how many nodes want both."""

    def work(inbox: Inbox) -> Iterator[Letter]:
        rows = inbox.take("pairs", topic=np.int64, other=np.int64, nodes=np.int64)
        topic, other, nodes = added(rows["topic"], rows["other"], rows["nodes"])
        often = nodes >= least
        if often.any():
            columns = {"topic": topic[often], "other": other[often], "nodes": nodes[often]}
            yield Letter(2, 0, "pairs", columns)

    return work


def cooccurrence(loop: Loop, least: int = 1, most_topics: int = MOST_TOPICS) -> tuple[Any, int]:
    """Rows (topic, other, nodes), and how many nodes were left out. Of what `similar.scan_subscriptions` has sent."""
    told = loop.step(pairs_of_lists(loop.tasks, most_topics), pairs_added(least))
    return loop.rows(["topic", "other", "nodes"]), _left_out(told)


def _left_out(told: list[Letter]) -> int:
    return sum(int(one.columns["nodes"][0]) for one in told if one.kind == "left_out")


def both_ends(tasks: int, least: int) -> Work:
    """Round 1, if communities are wanted: pairs from both ends."""

    def work(inbox: Inbox) -> Iterator[Letter]:
        rows = inbox.take("pairs", topic=np.int64, other=np.int64, nodes=np.int64)
        topic, other, nodes = added(rows["topic"], rows["other"], rows["nodes"])
        often = nodes >= least
        topic, other, nodes = topic[often], other[often], nodes[often]
        for end, peer in ((topic, other), (other, topic)):
            yield from spread(2, "edges", end, tasks, {"topic": end, "other": peer, "nodes": nodes})
            # A topic's first label is its own name; every topic tells all neighbours.
            yield from spread(2, "told", peer, tasks, {"topic": peer, "other": end, "label": end})

    return work


def propagated(tasks: int, step: int) -> Work:
    """Each topic of one half takes the label that most nodes of its pairs say (of equals the lowest); then
    tells neighbours.

    Halves take turns: if all moved at once, two topics could swap labels for ever.
    """

    def work(inbox: Inbox) -> Iterator[Letter]:
        edges = inbox.take("edges", topic=np.int64, other=np.int64, nodes=np.int64)
        labels = inbox.take("labels", topic=np.int64, label=np.int64)
        told = inbox.take("told", topic=np.int64, other=np.int64, label=np.int64)
        order = np.lexsort((edges["other"], edges["topic"]))
        edges = {name: column[order] for name, column in edges.items()}
        order = np.lexsort((told["other"], told["topic"]))
        heard = told["label"][order]  # one for each edge, in the same order
        topics, code = np.unique(edges["topic"], return_inverse=True)
        current = topics.copy()
        current[np.searchsorted(topics, labels["topic"])] = labels["label"]
        best = _heaviest(code, heard, edges["nodes"], current)
        turn = (mixed(np.int64(7), topics) & 1) == step % 2
        chosen = np.where(turn, best, current)
        yield Letter(TOLD, 0, "moved", {"topics": np.array([int((chosen != current).sum())])})
        yield from spread(1, "edges", edges["topic"], tasks, edges)
        yield from spread(1, "labels", topics, tasks, {"topic": topics, "label": chosen})
        yield from spread(
            1,
            "told",
            edges["other"],
            tasks,
            {"topic": edges["other"], "other": edges["topic"], "label": chosen[code]},
        )

    return work


def _heaviest(code: IntArray, label: IntArray, weight: IntArray, current: IntArray) -> IntArray:
    """For each vertex the label with most weight among its edges; its own if that is one of them, else the lowest."""
    vertex, name, sums = added(code, label, weight)
    own = (name == current[vertex]).astype(np.int64)
    order = np.lexsort((-name, own, sums, vertex))
    last = np.append(vertex[order][1:] != vertex[order][:-1], True) if len(order) else np.empty(0, np.bool_)
    best = current.copy()
    best[vertex[order][last]] = name[order][last]
    return best


def labels_only(inbox: Inbox) -> Iterator[Letter]:
    labels = inbox.take("labels", topic=np.int64, label=np.int64)
    if len(labels["topic"]):
        yield Letter(1, 0, "communities", {"topic": labels["topic"], "community": labels["label"]})


def communities(
    loop: Loop, least: int = 1, most_topics: int = MOST_TOPICS, most_steps: int = MOST_STEPS
) -> tuple[Any, int, int]:
    """Rows (topic, community): topics in no pair are in none. Also how many nodes were left out, and the
    steps taken.
    """
    left_out = _left_out(loop.step(pairs_of_lists(loop.tasks, most_topics), both_ends(loop.tasks, least)))
    quiet = steps = 0
    while quiet < 2 and steps < most_steps:
        told = loop.step(propagated(loop.tasks, steps))
        quiet = 0 if sum(int(one.columns["topics"][0]) for one in told) else quiet + 1
        steps += 1
    loop.step(labels_only)
    return loop.rows(["topic", "community"]), left_out, steps
