"""Relay paths over a settled overlay, and events that spread along them, hop by hop, compiled.

A topic's paths are what the nodes of `topicweave.blocks.relay_paths` have asked for once links rest: from whoever wants one, by greedy lookups,
to the rendezvous; each node on them has one parent. Events spread as `topicweave.blocks.notify_pull` and `RendezvousNode` say: whoever gets one for the
first time tells all its targets but the one it came from. All links take the same time, so events arrive in the order of hops.

What is counted is what `topicweave.measures.traffic` measures.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from topicweave.bulk.vitis.kernels import next_hop
from topicweave.measures.traffic import Traffic

Counts = npt.NDArray[np.int64]


class Spread(NamedTuple):
    """What became of some events."""

    traffic: Traffic
    hits: Counts
    """By event: subscribers reached, without the publisher."""
    path_nodes: int
    """Nodes on relay paths, summed over topics."""


@njit(cache=True)
def build_paths(
    ids: Any, links: Any, kept: Any, degree: Any, starts: Any, point: Any, mark: Any, token: int, tree: Any
) -> int:
    """Climb from every start to the rendezvous, or to where a path is already.

    Marks who is on a path with the token, and fills the tree: each node's parent (-1 at the rendezvous), first child and next
    sibling. Returns how many nodes are on paths.
    """
    parents, children, siblings = tree
    found = 0
    for start in starts:
        here = start
        child = -1
        while True:
            new = mark[here] != token
            if new:
                mark[here] = token
                parents[here] = children[here] = siblings[here] = -1
                found += 1
            if child >= 0:
                parents[child] = here
                siblings[child] = children[here]
                children[here] = child
            if not new:
                break
            following = next_hop(ids, here, links[here], kept[here], degree[here], point)
            if following == here:
                break
            child, here = here, following
    return found


@njit(cache=True)
def spread_events(
    ids: Any,
    points: Any,
    links: Any,
    kept: Any,
    degree: Any,
    wanting_at: Any,
    wanting: Any,
    asking: Any,
    floods: bool,
    relays_hand_on: bool,
    event_topic: Any,
    event_node: Any,
) -> Any:
    """Events, ordered by topic, over the links: all of them carry events, those `kept` route as well.

    Topic t is wanted by `wanting[wanting_at[t]:wanting_at[t + 1]]`, of whom those `asking` keep up a relay path. With `floods`
    events go to interested neighbours, too; from a node that only relays, if `relays_hand_on`.
    """
    nodes = len(ids)
    wants = np.full(nodes, -1, np.int64)
    on_path = np.full(nodes, -1, np.int64)
    carried = np.full(nodes, -1, np.int64)
    seen = np.full(nodes, -1, np.int64)
    told = np.full(nodes, -1, np.int64)
    tree = (np.empty(nodes, np.int64), np.empty(nodes, np.int64), np.empty(nodes, np.int64))
    parents, children, siblings = tree
    queue, source, crossed = np.empty(nodes, np.int64), np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    targets = np.empty(nodes, np.int64)
    counts = np.zeros((4, nodes), np.int64)
    hops = np.zeros(nodes, np.int64)  # no event crosses more links than there are other nodes
    hits = np.zeros(len(event_topic), np.int64)
    relays = path_nodes = turn = 0
    present = -1
    for event in range(len(event_topic)):
        topic, point = event_topic[event], points[event_topic[event]]
        if topic != present:
            present = topic
            wanting_here = wanting[wanting_at[topic] : wanting_at[topic + 1]]
            for node in wanting_here:
                wants[node] = topic
            starts = wanting_here[asking[wanting_at[topic] : wanting_at[topic + 1]]]
            path_nodes += build_paths(ids, links, kept, degree, starts, point, on_path, topic, tree)
        queue[0], source[0], crossed[0] = event_node[event], -1, 0
        seen[queue[0]] = event
        head, tail = 0, 1
        while head < tail:
            here, came_from, far = queue[head], source[head], crossed[head]
            head += 1
            turn += 1
            count = 0
            if on_path[here] == topic:
                child = children[here]
                while child >= 0:
                    told[child] = turn
                    targets[count] = child
                    count += 1
                    child = siblings[child]
                if parents[here] >= 0:
                    told[parents[here]] = turn
                    targets[count] = parents[here]
                    count += 1
            if floods and (came_from < 0 or wants[here] == topic or relays_hand_on):
                for place in range(degree[here]):
                    peer = links[here, place]
                    if wants[peer] == topic and told[peer] != turn:
                        told[peer] = turn
                        targets[count] = peer
                        count += 1
            if count == 0 or (wants[here] != topic and on_path[here] != topic):
                following = next_hop(ids, here, links[here], kept[here], degree[here], point)
                if following != here and told[following] != turn:
                    targets[count] = following
                    count += 1
            for place in range(count):
                peer = targets[place]
                if peer == came_from:
                    continue
                wanted = wants[peer] == topic
                counts[2 if wanted else 3, peer] += 1
                if seen[peer] == event:
                    continue
                seen[peer] = event
                queue[tail], source[tail], crossed[tail] = peer, here, far + 1
                tail += 1
                counts[0 if wanted else 1, peer] += 1
                if wanted:
                    hits[event] += 1
                    hops[far + 1] += 1
                elif carried[peer] != topic:
                    carried[peer] = topic
                    relays += 1
    return counts, hops, hits, relays, path_nodes
