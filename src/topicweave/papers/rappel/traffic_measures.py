"""Messages per node, data and control, against subscriptions and heights (figures 10 and 11)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from topicweave.model.arrays import FloatArray
from topicweave.papers.rappel.workloads import LANDMARKS
from topicweave.papers.rappel.world import FeedWorld, quantiles
from topicweave.runs.run import Result
from topicweave.systems.rappel import RappelNode


def data_traffic(world: FeedWorld) -> Result:
    """Data messages per node for one update of each feed, against its subscriptions (Fig. 10b, c)."""
    wanted = np.diff(world.workload.offsets)[world.first :]
    sent = world.sends[world.first :]
    messages = world.receptions[world.first :] + sent
    subscribers = wanted > 0
    return {
        "data_messages": quantiles("messages", messages.astype(np.float64)),
        "data_correlation": _correlation(wanted[subscribers], messages[subscribers]),
        "sent_correlation": _correlation(wanted[subscribers], sent[subscribers]),
        "sent_by_busiest": _busiest(sent),
        "forward_nothing": float(np.mean(sent == 0)),
        "sends_max": int(world.sends.max()),
        "carriers_unwanted": int(np.count_nonzero((world.receptions[world.first :] > 0) & ~subscribers)),
        "by_subscriptions": [
            {"feeds": int(feeds), "messages": float(messages[wanted == feeds].mean())}
            for feeds in np.unique(wanted)
        ],
        "reached": sum(len(delays) for delays in list(world.delays.values())[-world.feeds :]),
        "expected": int(wanted.sum()),
    }


def _busiest(sent: npt.NDArray[np.int64]) -> float:
    """The share of all copies that the busiest tenth of the nodes sends."""
    most = np.sort(sent)[::-1][: math.ceil(len(sent) / 10)]
    return float(most.sum() / max(int(sent.sum()), 1))


def _correlation(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64] | FloatArray) -> float:
    return float(np.corrcoef(one, other)[0, 1]) if np.ptp(one) and np.ptp(other) else math.nan


def rejoins(world: FeedWorld) -> dict[int, int]:
    """Of each subscriber that is up, and of the first publisher."""
    nodes = {**world.nodes(), LANDMARKS: world.simulation.node(LANDMARKS)}
    return {
        index: node.trees.rejoins_received for index, node in nodes.items() if isinstance(node, RappelNode)
    }


def control_traffic(world: FeedWorld, seconds: float) -> Result:
    """Control messages over the last part, per node and second, sent and received; by kind; against
    subscriptions; rejoins by height.
    """
    assert world.telemetry is not None
    before = world.simulation.now - seconds
    world.simulation.flush_control()
    table = world.telemetry.tables().control
    names = {name: index for index, name in enumerate(world.workload.node_names)}
    sent = np.zeros(world.workload.nodes)
    size = np.zeros(world.workload.nodes)
    kinds: dict[str, float] = {}
    rows = zip(
        *(table[column].to_pylist() for column in ("time", "node", "kind", "messages", "bytes")),
        strict=True,
    )
    for time, node, kind, messages, length in rows:
        if time > before + 1.0:
            sent[names[node]] += messages
            size[names[node]] += length
            kinds[kind] = kinds.get(kind, 0.0) + messages
    up = [index for index in world.simulation.up() if index >= world.first]
    wanted = np.diff(world.workload.offsets)
    # Every ping has its ack and every request its reply, so a node receives as many messages as it sends.
    rate, data = 2.0 * sent[up] / seconds, 2.0 * size[up] / seconds
    many = wanted[up]
    slope = float(np.polyfit(many, rate, 1)[0]) if len(set(many.tolist())) > 2 else math.nan
    return {
        "messages": quantiles("rate", rate),
        "bytes": quantiles("rate", data),
        "bytes_per_message": float(size[up].sum() / max(sent[up].sum(), 1)),
        "kinds": {kind: count / seconds / len(up) for kind, count in sorted(kinds.items())},
        "per_subscription": slope,
        "correlation": _correlation(many, rate),
        "by_subscriptions": [
            {
                "feeds": int(feeds),
                "nodes": int((many == feeds).sum()),
                "rate": float(rate[many == feeds].mean()),
            }
            for feeds in np.unique(many)
        ],
        "publisher": float(2.0 * sent[LANDMARKS] / seconds),
        "publisher_rejoins": (rejoins(world)[LANDMARKS] - world.rejoins_before[LANDMARKS]) / seconds * 60.0,
        "rejoins_by_height": _rejoins_by_height(world, seconds),
        "rate_by_height": _rate_by_height(world, dict(zip(up, rate.tolist(), strict=True))),
    }


def _heights(world: FeedWorld) -> dict[int, int]:
    """Of a single feed's tree."""
    if world.feeds != 1:
        return {}
    topic = world.workload.topic_ids[0]
    trees = ((index, node.trees.trees.get(topic)) for index, node in world.nodes().items())
    return {index: tree.height for index, tree in trees if tree is not None and tree.joined}


def _rate_by_height(world: FeedWorld, rate: dict[int, float]) -> list[Result]:
    rows: dict[int, list[float]] = {}
    for index, height in _heights(world).items():
        rows.setdefault(height, []).append(rate[index])
    return [
        {"height": height, "nodes": len(rates), "rate": float(np.median(rates))}
        for height, rates in sorted(rows.items())
    ]


def _rejoins_by_height(world: FeedWorld, seconds: float) -> list[Result]:
    rows: dict[int, list[float]] = {}
    nodes = world.nodes()
    for index, height in _heights(world).items():
        count = nodes[index].trees.rejoins_received - world.rejoins_before.get(index, 0)
        rows.setdefault(height, []).append(count / seconds * 60.0)
    return [
        {"height": height, "nodes": len(rates), "per_minute": float(np.mean(rates))}
        for height, rates in sorted(rows.items())
    ]
