"""A part of an overlay that is small enough to be looked at."""

from __future__ import annotations

import random
from collections import Counter, deque
from typing import Any

import numpy as np
import pyarrow as pa

from topicweave.measures.columns import codes
from topicweave.measures.delivery import Receptions
from topicweave.measures.graph import snapshot
from topicweave.model.workload import Workload
from topicweave.telemetry.tables import Tables

PICTURED_NODES = 70
NEIGHBOURS_AT_ONCE = 6
COLOURED_TOPICS = 7


def picture(tables: Tables, workload: Workload, receptions: Receptions, seed: int) -> dict[str, Any]:
    """A node's surroundings, breadth first.

    Each node with the topic, of a few that explain the links of this part, that it shares with most of its neighbours
    there; and whether it was handed events that it did not want.
    """
    links = snapshot(tables.links)
    names = pa.array(workload.node_names)
    ends = (codes(links["node"], names), codes(links["peer"], names))
    near: dict[int, dict[int, None]] = {}
    for a, b in zip(ends[0].tolist(), ends[1].tolist(), strict=True):
        if a >= 0 and b >= 0 and a != b:
            near.setdefault(a, {})[b] = None
            near.setdefault(b, {})[a] = None
    if not near:
        return {"nodes": [], "links": [], "topics": []}
    chosen = _surroundings(near, random.Random(f"picture/{seed}"))
    place = {node: number for number, node in enumerate(chosen)}
    drawn = sorted(
        {(min(place[a], place[b]), max(place[a], place[b])) for a in chosen for b in near[a] if b in place}
    )
    interests = {node: set(workload.interests(node).tolist()) for node in chosen}
    topics, group = _groups(chosen, drawn, interests)
    relays = receptions.first & ~receptions.wanted
    carriers = set(codes(receptions.nodes, names)[np.unique(receptions.node[relays])].tolist())
    return {
        "nodes": [
            {"name": workload.node_names[node], "group": group[node], "relay": node in carriers}
            for node in chosen
        ],
        "links": [list(link) for link in drawn],
        "topics": [workload.topic_names[topic] for topic in topics],
    }


def _surroundings(near: dict[int, dict[int, None]], rng: random.Random) -> list[int]:
    """Breadth first from a random node, a few neighbours of each at a time, so that one hub does not fill the picture.

    A hub has its turn again when the others had theirs: around a broker there is nobody else.
    """
    start = rng.choice(sorted(near))
    chosen, seen, ahead = [start], {start}, deque([start])
    while ahead and len(chosen) < PICTURED_NODES:
        node = ahead.popleft()
        around = [peer for peer in sorted(near[node]) if peer not in seen]
        taken = rng.sample(around, min(NEIGHBOURS_AT_ONCE, len(around), PICTURED_NODES - len(chosen)))
        seen.update(taken)
        chosen += taken
        ahead.extend(taken)
        if len(taken) < len(around):
            ahead.append(node)
    return chosen


def _groups(
    chosen: list[int], links: list[tuple[int, int]], interests: dict[int, set[int]]
) -> tuple[list[int], dict[int, int]]:
    """A few topics that together explain most links, and for each node the one that it shares most (-1: none).

    Each topic taken is the one that most of the links not explained yet have in common. Simply the topics of most
    links would all be the popular ones, wanted by the same nodes.
    """
    common = [interests[chosen[a]] & interests[chosen[b]] for a, b in links]
    topics = _explaining(common)
    rank = {topic: number for number, topic in enumerate(topics)}
    carried = {topic: sum(topic in shared for shared in common) for topic in topics}
    by_node: dict[int, dict[int, int]] = {node: {} for node in chosen}
    for (a, b), shared in zip(links, common, strict=True):
        for topic in sorted(shared & rank.keys()):
            for end in (chosen[a], chosen[b]):
                by_node[end][topic] = by_node[end].get(topic, 0) + 1
    group = {}
    for node, counts in by_node.items():
        # Of equals, the topic that says more about a node: the one on fewer links of the whole picture.
        best = min(counts, key=lambda topic: (-counts[topic], carried[topic], rank[topic]), default=None)
        group[node] = -1 if best is None else rank[best]
    return topics, group


def _explaining(common: list[set[int]]) -> list[int]:
    """Greedy cover of the links by topics that both ends want."""
    topics: list[int] = []
    left = [shared for shared in common if shared]
    while left and len(topics) < COLOURED_TOPICS:
        counts = Counter(topic for shared in left for topic in sorted(shared))
        topics.append(min(counts, key=lambda topic: (-counts[topic], topic)))
        left = [shared for shared in left if topics[-1] not in shared]
    return topics
