"""Magnet and its strawman by messages: nodes arrive one after another in the simulator, settle, and their
trees are measured.

When the last has come, every node draws its fingers anew, since most were drawn from a smaller population:
what nodes do by themselves, later and not all of them, when they notice that it has grown.

The same measures as of the converged state (`topicweave.bulk.magnet.engine`), taken from what the nodes have
in their tables and trees; and one event on every topic, which shows whom the trees hand it to.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from topicweave.bulk.magnet import trees as tree_arrays
from topicweave.bulk.magnet.engine import measure_trees
from topicweave.bulk.magnet.plan import Converged
from topicweave.bulk.magnet.trees import RingOverlay
from topicweave.measures.columns import distinct
from topicweave.measures.delivery import Receptions, hit_ratio
from topicweave.measures.graph import Overlay
from topicweave.measures.interests import Interests
from topicweave.measures.overlay import degree_measures
from topicweave.model.workload import Workload
from topicweave.papers.magnet.runs import TreesRun
from topicweave.runs.run import Result
from topicweave.sim.churn import Change, Churn
from topicweave.sim.simulation import Simulation
from topicweave.systems.baselines.strawman import StrawmanNode
from topicweave.systems.magnet.home_trees import HomeTreeNode
from topicweave.systems.magnet.node import MagnetNode
from topicweave.systems.registry import find_system
from topicweave.telemetry.writer import MemoryTelemetry, Telemetry

QUIET_PERIODS, SETTLE_PERIODS = 10, 45
"""After the last arrival until fingers are drawn anew, and from then on: twice, and what the trees take to follow."""
EVENT_SECONDS = 6.0


class SettledTrees(TreesRun, frozen=True, kw_only=True, tag="magnet-messages"):
    """The same by nodes in the simulator."""

    arrivals: float = 60.0
    """Nodes come one after another over so many seconds."""
    period: float = 1.0
    """Seconds between two signs of life."""

    def __post_init__(self) -> None:
        TreesRun.__post_init__(self)
        if self.lag:
            raise ValueError("lag: by messages samples lag as far behind as reports take")

    def run(self) -> Result:
        return run_settled(self.system, self.workload.load(), self, self.arrivals, self.period, self.seed)


def run_settled(
    system: str, workload: Workload, spec: Converged, arrivals: float, period: float, seed: int
) -> dict[str, Any]:
    telemetry = MemoryTelemetry(system, *workload.names())
    telemetry.counts_control = False
    simulation = settle(system, workload, spec, arrivals, period, seed, telemetry)
    overlay, trees = snapshot(simulation)
    result = measure_trees(workload, overlay, trees, spec, seed)
    simulation.snapshot()
    unattached = simulation.gauges()["unattached_topics"]
    publish_on_every_topic(simulation)
    tables = telemetry.tables()
    ring = _overlay(tables.links)
    receptions = Receptions.of(tables.publishes, tables.deliveries)
    subscriptions = workload.tables()["subscriptions"]
    return {
        **result,
        "relays_per_topic": receptions.traffic.sums.relays_per_topic,
        "overlay_degree": degree_measures(ring)["degree_mean"],
        **({"degrees": ring.graph.degrees.tolist()} if spec.by_topic else {}),
        "unattached_topics": unattached,
        "hit_ratio": hit_ratio(receptions, Interests.of(subscriptions)),
        "virtual_seconds": simulation.now,
        "kernel_events": simulation.kernel.events,
    }


def _overlay(links: pa.Table) -> Overlay:
    """The ring that the trees run over, with its fingers: without the control ring, where that is another."""
    kinds = [kind for kind in distinct(links["kind"]).to_pylist() if not kind.startswith("control-")]
    return Overlay.of(links, kinds=kinds)


def settle(
    system: str,
    workload: Workload,
    spec: Converged,
    arrivals: float,
    period: float,
    seed: int,
    telemetry: Telemetry | None = None,
) -> Simulation:
    """Everybody has come within so many seconds, and all is quiet; `period` is that of signs of life."""
    found = find_system(system)
    count = workload.nodes
    parameters: dict[str, Any] = {
        "ring": {"period": period, "signs_every": 1, "suspect_after": 4 * period},
        "oscar": {
            "fingers": spec.fingers,
            "walks": spec.walks,
            "choices": spec.choices,
            "check_period": 24 * period,
            "calm": 1.0,
            "refinements": 1,
        },
    }
    if system == "magnet":
        parameters |= {
            # Samples as in the paper: drawn anew every round.
            "samples": {"size": spec.samples, "round_period": 4 * period, "fresh_rounds": math.inf},
            "view_patience": 4 * period,
            "place_patience": 2 * period,
            # Each stands where it chose to on arrival, as in the paper.
            "improvements": 0,
            "most_bytes": spec.most_bytes,
        }
        if spec.weighted and len(np.unique(workload.rates)) > 1:
            rates = dict(zip(workload.topic_ids, workload.rates.tolist(), strict=True))
            parameters |= {"rates": "given", "topic_rates": rates}
    arrival = np.random.default_rng([seed, 0x61727269]).permutation(count).tolist()
    churn = Churn(
        frozenset(arrival[:1]),
        tuple(Change(number * arrivals / count, node, True) for number, node in enumerate(arrival) if number),
    )
    simulation = Simulation(
        workload, found, found.settings(**parameters), seed=seed, churn=churn, telemetry=telemetry
    )
    simulation.run(arrivals + QUIET_PERIODS * period)
    for index in simulation.up():
        node = simulation.node(index)
        assert isinstance(node, MagnetNode | StrawmanNode)
        node.oscar.moved()
    simulation.run(simulation.now + SETTLE_PERIODS * period)
    return simulation


def snapshot(simulation: Simulation) -> tuple[RingOverlay, tree_arrays.Trees]:
    """What the nodes have in their tables and trees, as arrays."""
    workload = simulation.workload
    nodes: dict[int, HomeTreeNode] = {}
    for index in simulation.up():
        node = simulation.node(index)
        assert isinstance(node, HomeTreeNode)
        nodes[index] = node
    index_of = {node.id: index for index, node in nodes.items()}
    order = sorted(nodes, key=lambda index: nodes[index].overlay.here)
    place = {nodes[index].id: number for number, index in enumerate(order)}
    count = len(order)
    rows = [
        sorted((place[peer] - number) % count for _, peer in nodes[index].overlay.table if peer in place)[1:]
        for number, index in enumerate(order)
    ]
    tables = np.full((count, max(len(row) for row in rows)), count, np.int64)
    for number, row in enumerate(rows):
        tables[number, : len(row)] = row
    edges = [
        (topic, place[child], place[node.id])
        for node in nodes.values()
        for topic, topic_id in enumerate(workload.topic_ids)
        for child in node.trees.children(topic_id)
        if child in index_of
    ]
    edges.sort()
    topic_column, child, parent = np.array(edges or [(0, 0, 0)], np.int64).T
    longest = max(len(node.overlay.here[0]) for node in nodes.values())
    moves = sum(node.places.moves for node in nodes.values() if isinstance(node, MagnetNode))
    return RingOverlay(np.array(order), tables, 8 * longest, moves), tree_arrays.Trees(
        topic_column, child, parent
    )


def publish_on_every_topic(simulation: Simulation) -> None:
    """One event each, by the first who wants the topic; until all have arrived."""
    workload = simulation.workload
    for topic in range(workload.topics):
        subscribers = workload.subscribers(topic).tolist()
        if subscribers:
            simulation.publish(subscribers[0], topic)
    simulation.run(simulation.now + EVENT_SECONDS)
