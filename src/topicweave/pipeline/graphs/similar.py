"""Nodes with like interests, without comparing all with all: MinHash and bands (Broder 1997; Indyk and Motwani 1998).

A node's signature is, for each of some hash functions, the lowest hash among its topics: two nodes agree in a
place as often as their lists overlap (Jaccard). The signature is cut into bands; nodes that agree in a whole
band are compared, exactly. Of pairs of similarity s, 1 - (1 - s**rows)**bands are found: with 32 bands of 4
rows 87% at 0.5, 99.98% at 0.7. What is found is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from topicweave.measures.columns import offsets_of
from topicweave.measures.expansion import expansion, pieces
from topicweave.model.arrays import IntArray
from topicweave.pipeline.measuring.kernels import found_pairs, numbered_pairs
from topicweave.pipeline.measuring.sources import Scan
from topicweave.pipeline.rounds import TOLD, Inbox, Letter, Loop, Work, hashes, mixed, spread

BANDS, ROWS = 32, 4
MOST = 1000
"""A band in which more nodes than that agree says little: each of them is compared with so many others only."""


def scan_subscriptions(tasks: int) -> Scan:
    """(node, topic) to the node's task, for round 0."""

    def scan(_source: str, rows: pa.Table, _rank: int) -> Iterator[Letter]:
        node = hashes(rows["node"])
        yield from spread(0, "wishes", node, tasks, {"node": node, "topic": hashes(rows["topic"])})

    return scan


def take_lists(inbox: Inbox, kind: str = "wishes") -> tuple[IntArray, IntArray, IntArray]:
    """Nodes, growing; where the list of each starts, and the last ends; their topics, growing within a list."""
    rows = inbox.take(kind, node=np.int64, topic=np.int64)
    _, once = numbered_pairs(rows["node"], rows["topic"])
    node, topic = rows["node"][once], rows["topic"][once]
    order = np.lexsort((topic, node))
    nodes, code = np.unique(node, return_inverse=True)
    return nodes, offsets_of(code, len(nodes)), topic[order]


def signatures(offsets: IntArray, topic: IntArray, places: int, seed: int = 0) -> IntArray:
    """A row for each list, a column for each hash function."""
    made = np.empty((len(offsets) - 1, places), np.int64)
    for place in range(places):
        hashed = mixed(np.int64(seed * places + place + 1), topic)
        made[:, place] = np.minimum.reduceat(hashed, offsets[:-1]) if len(topic) else 0
    return made


def signed(tasks: int, bands: int, rows: int, seed: int) -> Work:
    """Round 0: each node to the task of each of its bands; its list waits at home."""

    def work(inbox: Inbox) -> Iterator[Letter]:
        nodes, offsets, topic = take_lists(inbox)
        marks = signatures(offsets, topic, bands * rows, seed)
        for band in range(bands):
            key = np.full(len(nodes), band, np.int64)
            for row in range(rows):
                key = mixed(key, marks[:, band * rows + row])
            yield from spread(1, "bands", key, tasks, {"key": key, "node": nodes})
        columns = {"node": np.repeat(nodes, np.diff(offsets)), "topic": topic}
        for round_ in (2, 3):
            yield from spread(round_, "wishes", columns["node"], tasks, columns)

    return work


def paired(tasks: int, most: int) -> Work:
    """Round 1: pairs of nodes that agree in a band, to the lower one's task."""

    def work(inbox: Inbox) -> Iterator[Letter]:
        rows = inbox.take("bands", key=np.int64, node=np.int64)
        order = np.lexsort((rows["node"], rows["key"]))
        key, node = rows["key"][order], rows["node"][order]
        starts = np.flatnonzero(np.append(True, key[1:] != key[:-1])) if len(key) else np.empty(0, np.int64)
        sizes = np.diff(np.append(starts, len(key)))
        if (crowded := int((sizes > most).sum())) > 0:
            yield Letter(TOLD, 0, "crowded", {"bands": np.array([crowded])})
        place = np.arange(len(key)) - np.repeat(starts, sizes)
        after = np.minimum(np.repeat(sizes, sizes) - place - 1, most)
        for piece in pieces(after):
            owner, step = expansion(after[piece])
            low, high = node[piece][owner], node[piece.start + owner + step + 1]
            _, once = numbered_pairs(low, high)
            yield from spread(2, "pairs", low[once], tasks, {"node": low[once], "other": high[once]})

    return work


def lists_sent(tasks: int) -> Work:
    """Round 2: the lower node's list to each node it is to be compared with."""

    def work(inbox: Inbox) -> Iterator[Letter]:
        nodes, offsets, topic = take_lists(inbox)
        rows = inbox.take("pairs", node=np.int64, other=np.int64)
        _, once = numbered_pairs(rows["node"], rows["other"])
        node, other = rows["node"][once], rows["other"][once]
        place = np.searchsorted(nodes, node)
        sizes = np.diff(offsets)[place]
        for piece in pieces(sizes):
            pair, at = expansion(sizes[piece])
            columns = {
                "node": other[piece][pair],
                "other": node[piece][pair],
                "topic": topic[offsets[place[piece]][pair] + at],
            }
            yield from spread(3, "lists", columns["node"], tasks, columns)

    return work


def compared(threshold: float) -> Work:
    """Round 3: how alike they are."""

    def work(inbox: Inbox) -> Iterator[Letter]:
        nodes, offsets, topic = take_lists(inbox)
        rows = inbox.take("lists", node=np.int64, other=np.int64, topic=np.int64)
        pair, first = numbered_pairs(rows["node"], rows["other"])
        owner = np.repeat(nodes, np.diff(offsets))
        common = np.bincount(
            pair[found_pairs(owner, topic, rows["node"], rows["topic"]) >= 0], minlength=len(first)
        )
        theirs = np.bincount(pair, minlength=len(first))
        mine = np.diff(offsets)[np.searchsorted(nodes, rows["node"][first])]
        similarity = common / np.maximum(mine + theirs - common, 1)
        alike = similarity >= threshold
        if alike.any():
            columns = {"node": rows["other"][first], "other": rows["node"][first], "similarity": similarity}
            yield Letter(4, 0, "similar", {name: column[alike] for name, column in columns.items()})

    return work


def similar(
    loop: Loop,
    threshold: float = 0.5,
    *,
    bands: int = BANDS,
    rows: int = ROWS,
    most: int = MOST,
    seed: int = 0,
) -> tuple[Any, int]:
    """Rows (node, other, similarity) with hashes for names, and in how many bands too many nodes agreed to
    compare all.
    """
    works = (
        signed(loop.tasks, bands, rows, seed),
        paired(loop.tasks, most),
        lists_sent(loop.tasks),
        compared(threshold),
    )
    told = loop.step(*works)
    return loop.rows(["node", "other", "similarity"]), sum(int(one.columns["bands"][0]) for one in told)
