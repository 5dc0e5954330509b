"""Relay paths over a settled overlay, and events that spread along them, hop by hop, compiled.

A topic's paths are what the nodes of `topicweave.blocks.relay_paths` have asked for once links rest: from
whoever wants one, by greedy lookups, to the rendezvous; each node on them has one parent. Events spread as
`topicweave.blocks.notify_pull` and `RendezvousNode` say: whoever gets one for the first time tells all its
targets but the one it came from. All links take the same time, so events arrive in the order of hops.

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
    path_nodes: int
    """Nodes on relay paths, summed over topics."""


class LinkRows(NamedTuple):
    """A row per node, of which the first `degree` are in use: all of them carry events, those `kept` route as well."""

    ids: npt.NDArray[np.uint64]
    peers: npt.NDArray[np.int32]
    kept: npt.NDArray[np.bool_]
    degree: Counts


class Audience(NamedTuple):
    """Topic t is wanted by `nodes[at[t]:at[t + 1]]`, of whom those `asking` keep up a relay path to its point."""

    points: npt.NDArray[np.uint64]
    at: Counts
    nodes: Counts
    asking: npt.NDArray[np.bool_]


class Marks(NamedTuple):
    """Per node the last topic, event or turn for which something was so; and each path node's place in its tree."""

    wants: Counts
    on_path: Counts
    carried: Counts
    seen: Counts
    told: Counts
    parents: Counts
    children: Counts
    siblings: Counts


@njit(cache=True)
def _onwards(links: Any, here: int, point: Any) -> int:
    return next_hop(links.ids, here, links.peers[here], links.kept[here], links.degree[here], point)


@njit(cache=True)
def build_paths(links: Any, starts: Any, point: Any, token: int, marks: Any) -> int:
    """Climb from every start to the rendezvous, or to where a path is already.

    Marks who is on a path with the token, and fills the tree: each node's parent (-1 at the rendezvous),
    first child and next sibling. Returns how many nodes are on paths.
    """
    mark, parents, children, siblings = marks.on_path, marks.parents, marks.children, marks.siblings
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
            following = _onwards(links, here, point)
            if following == here:
                break
            child, here = here, following
    return found


@njit(cache=True)
def _targets(
    links: Any, marks: Any, here: int, topic: int, turn: int, floods: bool, point: Any, targets: Any
) -> int:
    """Whom a node tells of an event: who is beside it on the paths, interested neighbours if it `floods`,
    else whoever is nearer to the rendezvous. Returns how many.
    """
    told, count = marks.told, 0
    if marks.on_path[here] == topic:
        child = marks.children[here]
        while child >= 0:
            told[child] = turn
            targets[count] = child
            count += 1
            child = marks.siblings[child]
        if marks.parents[here] >= 0:
            told[marks.parents[here]] = turn
            targets[count] = marks.parents[here]
            count += 1
    if floods:
        for place in range(links.degree[here]):
            peer = links.peers[here, place]
            if marks.wants[peer] == topic and told[peer] != turn:
                told[peer] = turn
                targets[count] = peer
                count += 1
    if count == 0 or (marks.wants[here] != topic and marks.on_path[here] != topic):
        following = _onwards(links, here, point)
        if following != here and told[following] != turn:
            targets[count] = following
            count += 1
    return count


@njit(cache=True)
def spread_events(
    links: Any, audience: Any, floods: bool, relays_hand_on: bool, event_topic: Any, event_node: Any
) -> Any:
    """Events, ordered by topic. With `floods` they go to interested neighbours, too; from a node that only
    relays, if `relays_hand_on`.
    """
    nodes = len(links.ids)
    never = np.full((5, nodes), -1, np.int64)
    tree = np.empty((3, nodes), np.int64)
    marks = Marks(never[0], never[1], never[2], never[3], never[4], tree[0], tree[1], tree[2])
    wants, carried, seen = marks.wants, marks.carried, marks.seen
    queue, source, crossed = np.empty(nodes, np.int64), np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    targets = np.empty(nodes, np.int64)
    counts = np.zeros((4, nodes), np.int64)
    hops = np.zeros(nodes, np.int64)  # no event crosses more links than there are other nodes
    relays = path_nodes = turn = 0
    present = -1
    for event in range(len(event_topic)):
        topic, point = event_topic[event], audience.points[event_topic[event]]
        if topic != present:
            present = topic
            first, last = audience.at[topic], audience.at[topic + 1]
            wanting = audience.nodes[first:last]
            for node in wanting:
                wants[node] = topic
            path_nodes += build_paths(links, wanting[audience.asking[first:last]], point, topic, marks)
        queue[0], source[0], crossed[0] = event_node[event], -1, 0
        seen[queue[0]] = event
        head, tail = 0, 1
        while head < tail:
            here, came_from, far = queue[head], source[head], crossed[head]
            head += 1
            turn += 1
            flood = floods and (came_from < 0 or wants[here] == topic or relays_hand_on)
            for place in range(_targets(links, marks, here, topic, turn, flood, point, targets)):
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
                    hops[far + 1] += 1
                elif carried[peer] != topic:
                    carried[peer] = topic
                    relays += 1
    return counts, hops, relays, path_nodes
