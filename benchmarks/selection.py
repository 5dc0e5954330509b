"""Greedy selection over a large view: the inverted index against a loop over candidates."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial

from benchmarks.sheet import Column, Sheet
from topicweave.blocks.interest_index import InterestIndex
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.systems.spidercast.rules import most_overlapping
from topicweave.workloads import generate


class IndexView(InterestIndex):
    """An index as the view that rules ask for."""

    candidates = InterestIndex.alive_slots


def by_loop(peers: dict[NodeId, Interest], topics: list[TopicId], rng: random.Random) -> NodeId:
    """The rule as the paper prints it."""
    uncovered, best, ties = frozenset(topics), 0, []
    for peer, interest in peers.items():
        overlap = len(interest & uncovered)
        if overlap > best:
            best, ties = overlap, [peer]
        elif overlap == best:
            ties.append(peer)
    return ties[rng.randrange(len(ties))]


def _rate(function: Callable[[], object], calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        function()
    return calls / (time.process_time() - start)


def run(quick: bool) -> list[Sheet]:
    sheet = Sheet(
        "selection",
        "greedy choice of one neighbour, 10 uncovered topics of 100: choices per CPU second",
        1,
        Column("candidates", ",d"),
        Column("by the index", ",.0f", "more"),
        Column("by a loop", ",.0f"),
        Column("ratio", ".1f"),
    )
    for nodes in (1000,) if quick else (200, 1000, 10_000, 50_000):
        workload = generate(nodes, 100)
        peers = {
            node: frozenset(workload.topic_ids[topic] for topic in workload.interests(index).tolist())
            for index, node in enumerate(workload.node_ids)
        }
        view = IndexView()
        for node, interest in peers.items():
            view.put(node, interest)
        own = sorted(next(iter(peers.values())))
        rng = random.Random(1)
        fast = _rate(partial(most_overlapping, view, own, (), rng), 200)
        slow = _rate(partial(by_loop, peers, own, rng), max(3, 100_000 // nodes))
        sheet.add(nodes, fast, slow, fast / slow)
    return [sheet]
