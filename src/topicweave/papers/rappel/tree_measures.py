"""A feed's tree: how late updates are, against the distance; stretch, heights, and what observers saw
(figures 7, 8 and 10a).
"""

from __future__ import annotations

import math

import numpy as np

from topicweave.model.event import EventId
from topicweave.model.ids import NodeId
from topicweave.papers.rappel.workloads import LANDMARKS
from topicweave.papers.rappel.world import LANDMARKS_READY, FeedWorld, quantiles
from topicweave.runs.run import Result
from topicweave.systems.rappel import RappelNode


def tree_stretch(world: FeedWorld, feed: int) -> Result:
    """Of every subscriber that is in the tree: the way down the tree over the direct distance, in
    coordinates; and its height.
    """
    if not world.is_rappel:
        return {}
    topic = world.workload.topic_ids[feed]
    root = world.simulation.node(LANDMARKS + feed)
    assert isinstance(root, RappelNode)
    ways: dict[NodeId, tuple[float, int]] = {root.id: (0.0, 0)}
    layer = [root]
    nodes = {node.id: node for node in world.nodes().values()}
    while layer:
        deeper = []
        for node in layer:
            tree = node.trees.trees.get(topic)
            way, height = ways[node.id]
            for child in tree.children if tree is not None else ():
                other = nodes.get(child)
                if other is not None and child not in ways:
                    step = math.dist(node.place.coordinate, other.place.coordinate)
                    ways[child] = (way + step, height + 1)
                    deeper.append(other)
        layer = deeper
    stretch: dict[int, float] = {}
    heights: dict[int, int] = {}
    direct: dict[int, float] = {}
    for node_id, node in nodes.items():
        if node_id in ways:
            index = world.index[node_id]
            away = math.dist(node.place.coordinate, root.place.coordinate)
            direct[index] = away
            stretch[index] = ways[node_id][0] / max(away, 1e-4)
            heights[index] = ways[node_id][1]
    up = sum(1 for index in world.simulation.up() if index >= world.first)
    return {"stretch": stretch, "height": heights, "direct": direct, "up": up}


def update_row(world: FeedWorld, name: EventId, snapshot: Result) -> Result:
    """One update: when, how many of those up it reached, how fast; stretch measured and in coordinates."""
    publisher, time = LANDMARKS, world.published[name]
    delays = world.delays[name]
    seconds = np.array(list(delays.values()))
    direct = np.array(
        [world.network.latency.delay(publisher, index, time) for index in delays], dtype=np.float64
    )
    row: Result = {"time": time, "reached": len(delays), "up": snapshot.get("up", 0)}
    row |= quantiles("latency", seconds)
    row |= quantiles("stretch", seconds / np.maximum(direct, 5e-4))
    row |= quantiles("coordinate_stretch", np.array(list(snapshot.get("stretch", {}).values())))
    return row


def final(world: FeedWorld, name: EventId | None) -> Result:
    """The last update: distance against stretch in ten parts of equal size (Fig. 8a), latencies, heights."""
    if name is None:
        return {}
    snapshot = tree_stretch(world, 0)
    delays = world.delays[name]
    result: Result = {"latencies": np.percentile(list(delays.values()) or [0.0], range(0, 101, 2)).tolist()}
    if snapshot:
        order = sorted(snapshot["direct"], key=snapshot["direct"].__getitem__)
        tenths = [part.tolist() for part in np.array_split(np.array(order, np.int64), 10)]
        result["by_distance"] = [
            {
                "distance": float(np.mean([snapshot["direct"][index] for index in part])),
                "stretch_p50": float(np.median([snapshot["stretch"][index] for index in part])),
                "stretch_p95": float(np.percentile([snapshot["stretch"][index] for index in part], 95)),
            }
            for part in tenths
            if part
        ]
        result["parent_distance"] = _parent_distance(world)
        heights = list(snapshot["height"].values())
        result["height_max"] = max(heights, default=0)
        result["height_mean"] = float(np.mean(heights)) if heights else 0.0
    return result


def _parent_distance(world: FeedWorld) -> float:
    """How far a subscriber's parent is, over how far subscribers are from each other, both by the network (Fig. 6)."""
    topic, nodes, rtt = world.workload.topic_ids[0], world.nodes(), world.network.rtt_ms
    steps = [
        float(rtt[index, world.index[tree.parent]])
        for index, node in nodes.items()
        if (tree := node.trees.trees.get(topic)) is not None and tree.parent is not None
    ]
    everybody = np.array(sorted(nodes), np.int64)
    apart = rtt[np.ix_(everybody, everybody)][np.triu_indices(len(everybody), 1)]
    return float(np.mean(steps) / np.mean(apart)) if steps and len(apart) else math.nan


def observed(world: FeedWorld) -> Result:
    """Updates at the observers: how late, and how many were pulled (Fig. 8b)."""
    observers = world.spec.churn.observers if world.spec.churn is not None else 10
    chosen = range(world.first, world.first + observers)
    settled = LANDMARKS_READY + world.spec.window + 600.0
    late: list[float] = []
    missing = pulled = 0
    for name, time in world.published.items():
        if time < settled or time > world.spec.duration - 60.0:
            continue
        for index in chosen:
            delay = world.delays[name].get(index)
            if delay is None:
                missing += 1
            else:
                late.append(delay)
                pulled += (name, index) in world.pulled
    seconds = np.array(late)
    result: Result = {"count": len(late), "missing": missing, "pulled": pulled}
    times = [name for name, time in world.published.items() if settled <= time <= world.spec.duration - 60.0]
    result["up"] = (
        float(np.mean([world.up_then[name][world.first :].sum() for name in times])) if times else math.nan
    )
    heights = tree_stretch(world, 0).get("height", {}) if world.feeds == 1 else {}
    mine = [heights[index] for index in chosen if index in heights]
    result["height"] = float(np.mean(mine)) if mine else math.nan
    result["within_1s"] = float(np.mean(seconds <= 1.0)) if late else math.nan
    result["max"] = float(seconds.max()) if late else math.nan
    result["latencies"] = np.percentile(seconds, range(0, 101, 2)).tolist() if late else []
    return result | quantiles("latency", seconds)
