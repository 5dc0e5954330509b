"""Magnet and its strawman at rest, as arrays: where everybody stands, the fingers, and the trees' paths.

What a distribution tree costs is decided by the converged overlay alone: the order on the ring, the fingers,
and the greedy routes from each home. This computes that state without messages, so that networks of the
paper's size take seconds. It follows the rules that the nodes of `topicweave.systems.magnet` follow, and a
test compares the two. What is put in place of the messages, and only that:

- nodes arrive one after another in a random order, each with a fresh uniform sample of every topic's
  subscribers, without the last `lag` to arrive (the nodes' rounds of reports bring all subscribers of a topic
  the same sample for a while, a few seconds old);
- a random walk on an arc ends at a uniform node of the arc (the nodes' walks do so approximately, by
  Metropolis and Hastings);
- fingers are drawn when everybody has come.

Places on the skewed ring are those of `growing_ids`, mean by mean, respaced where there is no room.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numba import njit

from topicweave.blocks.growing_ids import Position, mean, position_of, respace
from topicweave.bulk.magnet.plan import Converged
from topicweave.bulk.magnet.trees import (
    RingOverlay,
    Trees,
    greedy_trees,
    links,
    look_at,
    route_hops,
    spread,
)
from topicweave.errors import BadInput
from topicweave.measures.columns import ratio
from topicweave.measures.graph import Overlay
from topicweave.measures.overlay import degree_measures
from topicweave.measures.trees import relays_by_rate
from topicweave.model.arrays import IntArray
from topicweave.model.workload import Workload

SIDES = 3
"""Ring neighbours known on either side: medians among them end the search (see `blocks.oscar`)."""
TRIES = 4
"""How often fingers drawn twice are drawn again."""


class MagnetEngine:
    """One of the two systems at rest: its only round takes it there."""

    def __init__(self, system: str, workload: Workload, spec: Converged, seed: int) -> None:
        self._given = system, workload, spec, seed
        self.overlay: RingOverlay | None = None

    def step(self) -> bool:
        if self.overlay is not None:
            return False
        self.overlay = build_overlay(*self._given)
        return True

    def observe(self) -> dict[str, Any]:
        """The cost of one event on every topic, and by the topics' rates; and that every tree is right."""
        _, workload, spec, seed = self._given
        if self.overlay is None:
            raise BadInput("nobody has come yet: take the step first")
        return measure_trees(workload, self.overlay, greedy_trees(workload, self.overlay), spec, seed)


def measure_trees(
    workload: Workload, overlay: RingOverlay, trees: Trees, spec: Converged, seed: int
) -> dict[str, Any]:
    """What the trees cost: uninterested nodes in them, the home included (§4)."""
    relays, reached, wrong = look_at(workload, overlay, trees)
    rates = workload.rates
    wanted = np.bincount(workload.topic_index, minlength=workload.topics)
    used = wanted > 0
    names = pa.array([workload.node_names[node] for node in overlay.order], pa.string())
    ring = Overlay(names, links(overlay))
    degrees = ring.graph.degrees
    result: dict[str, Any] = {
        "nodes": workload.nodes,
        "topics": int(used.sum()),
        "relays_per_topic": spread(workload, overlay, trees).sums.relays_per_topic,
        "relays_by_rate": relays_by_rate(relays, wanted, rates),
        "tree_size": ratio(int(reached[used].sum()), int(used.sum())),
        "wrong_trees": int(wrong.sum()),
        "overlay_degree": degree_measures(ring)["degree_mean"],
        "in_degree_max": int((degrees - (overlay.tables < workload.nodes).sum(axis=1)).max()),
        "route_hops": route_hops(overlay, seed),
        "place_bits": overlay.bits,
        "respaced": overlay.respaced,
    }
    size = wanted[used]
    result |= {"subscribers_mean": float(size.mean()), "subscribers_max": int(size.max())}
    if spec.by_topic:
        result |= {
            "wanted": wanted.tolist(),
            "relays": relays.tolist(),
            "rates": rates.tolist(),
            "degrees": degrees.tolist(),
        }
    return result


def build_overlay(
    system: Literal["magnet", "strawman"] | str, workload: Workload, spec: Converged, seed: int
) -> RingOverlay:
    if system not in ("magnet", "strawman"):
        raise BadInput(f"system {system!r}: only magnet and strawman have a converged state of their own")
    if workload.nodes < 2 * SIDES:
        raise BadInput(
            f"{workload.nodes} nodes: too few for a ring with fingers; ask for {2 * SIDES} or more"
        )
    rng = np.random.default_rng([seed, 0x6D61676E])
    magnet = system == "magnet"
    weights = np.asarray(workload.rates if spec.weighted else np.ones(workload.topics), np.float64)
    offsets = np.asarray(workload.offsets, np.int64)
    topics = np.asarray(workload.topic_index, np.int64)
    ids = workload.node_ids
    if magnet and spec.samples:
        arrival = rng.permutation(workload.nodes)
        beside = _most_similar(offsets, topics, weights, arrival, spec.samples, spec.lag, rng)
        order, bits, respaced = _stand(arrival, beside, ids, spec.most_bytes)
    else:
        order, bits, respaced = np.argsort(np.array(ids, np.uint64), kind="stable"), 64, 0
    whole, part = divmod(spec.fingers, 1.0)
    wanted = int(whole) + (rng.random(workload.nodes) < part)
    tables = _fingers(
        offsets,
        topics,
        weights,
        np.asarray(order, np.int64),
        wanted.astype(np.int64),
        spec.walks,
        spec.choices if magnet else 1,
        rng,
    )
    return RingOverlay(np.asarray(order, np.int64), tables, bits, respaced)


def _stand(
    arrival: IntArray, beside: IntArray, ids: list[int] | tuple[int, ...], most: int
) -> tuple[IntArray, int, int]:
    """Algorithm 1, line 3, for one newcomer after another: the nodes in the order of their places."""
    ring: list[tuple[Position, int]] = []
    at: dict[int, Position] = {}
    respaced = 0
    for node in arrival.tolist():
        chosen = int(beside[node])
        if chosen < 0:
            position = position_of(ids[node])
        else:
            index = bisect_right(ring, (at[chosen], chosen)) - 1
            following = ring[(index + 1) % len(ring)][0]
            found = mean(at[chosen], following, most)
            if found is None:
                positions = [place for place, _ in ring]
                respaced += respace(positions, index, most)
                ring = sorted(zip(positions, (other for _, other in ring), strict=True))
                at = {other: place for place, other in ring}
                index = bisect_right(ring, (at[chosen], chosen)) - 1
                found = mean(at[chosen], ring[(index + 1) % len(ring)][0], most)
            assert found is not None
            position = found
        at[node] = position
        insort(ring, (position, node))
    bits = 8 * max(len(place) for place, _ in ring)
    return np.array([node for _, node in ring]), bits, respaced


@njit(cache=True)
def _most_similar(
    offsets: Any, topics: Any, weights: Any, arrival: Any, samples: Any, lag: Any, rng: Any
) -> Any:
    """For each node the most similar among the samples of its topics when it arrives; -1 if there is nobody
    (Alg. 1, line 2).
    """
    nodes, count = len(offsets) - 1, len(weights)
    # Subscribers that have arrived, by topic; the first `filled` of a topic's room.
    room = np.zeros(count + 1, np.int64)
    for topic in topics:
        room[topic + 1] += 1
    room = np.cumsum(room)
    members = np.empty(len(topics), np.int64)
    filled = np.zeros(count, np.int64)
    total = np.zeros(nodes)
    for node in range(nodes):
        for place in range(offsets[node], offsets[node + 1]):
            total[node] += weights[topics[place]]
    mine = np.full(count, -1, np.int64)
    looked = np.full(nodes, -1, np.int64)
    beside = np.full(nodes, -1, np.int64)
    for number in range(nodes):
        newcomer = arrival[number]
        for place in range(offsets[newcomer], offsets[newcomer + 1]):
            mine[topics[place]] = newcomer
        best, ties = -1.0, 0
        for place in range(offsets[newcomer], offsets[newcomer + 1]):
            topic = topics[place]
            base, there = room[topic], filled[topic]
            for draw in range(min(samples, there)):
                other = draw + rng.integers(0, there - draw)
                person = members[base + other]
                members[base + other] = members[base + draw]
                members[base + draw] = person
                if looked[person] == newcomer:
                    continue
                looked[person] = newcomer
                both = 0.0
                for place_2 in range(offsets[person], offsets[person + 1]):
                    if mine[topics[place_2]] == newcomer:
                        both += weights[topics[place_2]]
                either = total[newcomer] + total[person] - both
                alike = both / either if either > 0.0 else 0.0
                if alike > best:
                    best, ties = alike, 1
                    beside[newcomer] = person
                elif alike == best:
                    ties += 1
                    if rng.integers(0, ties) == 0:
                        beside[newcomer] = person
        if number >= lag:
            shown = arrival[number - lag]
            for place in range(offsets[shown], offsets[shown + 1]):
                topic = topics[place]
                members[room[topic] + filled[topic]] = shown
                filled[topic] += 1
    return beside


@njit(cache=True)
def _fingers(
    offsets: Any, topics: Any, weights: Any, order: Any, wanted: Any, walks: Any, choices: Any, rng: Any
) -> Any:
    """OSCAR's medians, partitions and fingers for every place; returns how far they lead, with the ring's links."""
    nodes = len(order)
    width = wanted.max() + 2
    tables = np.full((nodes, width), nodes, np.int64)
    total = np.zeros(nodes)
    for node in range(nodes):
        for place in range(offsets[node], offsets[node + 1]):
            total[node] += weights[topics[place]]
    mine = np.full(len(weights), -1, np.int64)
    medians = np.empty(64, np.int64)
    drawn = np.empty(walks, np.int64)
    for here in range(nodes):
        node = order[here]
        for place in range(offsets[node], offsets[node + 1]):
            mine[topics[place]] = node
        found, arc = 0, nodes - 1
        while arc > 0 and found < 64:
            for walk in range(walks):
                drawn[walk] = 1 + rng.integers(0, arc)
            median = np.sort(drawn)[(walks - 1) // 2]
            medians[found] = median
            found += 1
            arc = median - 1
            if median <= SIDES:
                break
        table = tables[here]
        table[0], table[1] = 1, nodes - 1
        held = 2
        for _ in range(TRIES):
            missing = wanted[node] - (held - 2)
            for _ in range(missing):
                part = rng.integers(0, found)
                start = medians[part]
                end = medians[part - 1] if part > 0 else nodes
                best, best_alike = -1, -1.0
                for _ in range(choices):
                    far = start + rng.integers(0, end - start)
                    taken = False
                    for index in range(held):
                        taken = taken or table[index] == far
                    if taken:
                        continue
                    alike = 0.0
                    if choices > 1:
                        person = order[(here + far) % nodes]
                        both = 0.0
                        for place in range(offsets[person], offsets[person + 1]):
                            if mine[topics[place]] == node:
                                both += weights[topics[place]]
                        either = total[node] + total[person] - both
                        alike = both / either if either > 0.0 else 0.0
                    if alike > best_alike:
                        best, best_alike = far, alike
                if best >= 0:
                    table[held] = best
                    held += 1
        tables[here] = np.sort(table)
    return tables
