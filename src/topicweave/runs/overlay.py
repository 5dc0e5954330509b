"""An overlay that has settled: what it looks like, and how events spread over it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from topicweave.measures.delivery import Receptions
from topicweave.measures.depth import depth_measures, topics_per_link
from topicweave.measures.diameter import diameter_measures
from topicweave.measures.distributions import hops_counts, latency_quantiles
from topicweave.measures.graph import Overlay, TopicGraph, snapshot
from topicweave.measures.overlay import connectivity_measures, degree_measures
from topicweave.measures.similarity import tdi
from topicweave.measures.summary import measure_run
from topicweave.runs.events import DRAIN, PUBLISHING, drawn_events
from topicweave.runs.run import Result
from topicweave.runs.simulated import Simulated
from topicweave.sim.churn import always_up, from_workload
from topicweave.sim.simulation import Simulation
from topicweave.telemetry.tables import Tables


class SettledOverlay(Simulated, frozen=True, kw_only=True, tag="overlay"):
    """Let the overlay settle, look at it, and perhaps publish events; nodes come and go if the workload says so."""

    settle: float = 20.0
    """Virtual seconds until the overlay is looked at, once all nodes have started."""
    start_window: float = 0.0
    """Seconds over which nodes start that are up from the beginning."""
    events: int = 0
    """How many events to publish after that, by random subscribers on topics by their rates."""
    publishing: float = PUBLISHING
    """Seconds over which they are published, evenly."""
    diameters: bool = False
    """Measure the topics' diameters also without events; with events they always are."""
    tdi: int = 0
    """Measure tdi(d) for this d."""
    kinds: tuple[str, ...] = ()
    """Count the topics that links of these kinds serve."""
    histogram: bool = False
    """Keep the degree of every node and, of events, the distributions of hops and latency, for figures."""

    def run(self) -> Result:
        workload = self.workload.load()
        subscriptions = workload.tables()["subscriptions"]
        churn = from_workload(workload) if len(workload.churn) else always_up(workload.nodes)
        simulation, telemetry = self.simulate(workload, churn=churn._replace(start_window=self.start_window))
        simulation.run(self.start_window + self.settle)
        simulation.snapshot()
        if self.events:
            _publish(simulation, self.events, self.publishing, self.seed)
            simulation.run(simulation.now + DRAIN)
            # Bring the control traffic up to date; the overlay is measured as it was before the events.
            simulation.flush_control()
        tables = telemetry.tables()
        up = sorted(workload.node_names[index] for index in simulation.up())
        result: Result = {
            "nodes": len(up),
            "virtual_seconds": simulation.now,
            "kernel_events": simulation.kernel.events,
        }
        if self.events:
            churn_table = workload.tables().get("churn")
            result |= measure_run(
                tables, subscriptions, nodes=workload.node_names, churn=churn_table, window=DRAIN
            )
        else:
            result |= overlay_measures(tables, subscriptions, pa.array(up), self.diameters)
        if self.histogram:
            result["degrees"] = [simulation.node(index).degree for index in simulation.up()]
            if self.events:
                receptions = Receptions.of(tables.publishes, tables.deliveries)
                result["hops_counts"] = hops_counts(receptions)
                result["latency_quantiles"] = latency_quantiles(receptions)
        if self.kinds:
            result["topics_per_link"] = shared_topics(tables, subscriptions, pa.array(up), self.kinds)
        result |= simulation.gauges()
        if self.tdi:
            result[f"tdi_{self.tdi}"] = tdi(subscriptions, self.tdi)
        return result


def _publish(simulation: Simulation, events: int, seconds: float, seed: int) -> None:
    """Publish so many over the next seconds, evenly."""
    for number, (publisher, topic) in enumerate(drawn_events(simulation.workload, events, seed)):
        simulation.at(simulation.now + seconds * number / events, simulation.publish, publisher, topic)
    simulation.run(simulation.now + seconds)


def overlay_measures(
    tables: Tables,
    subscriptions: pa.Table,
    nodes: pa.Array,
    diameters: bool = False,
    time: float | None = None,
) -> Result:
    """Degrees and connectivity of the overlay at a moment; by default the last."""
    overlay = Overlay.of(snapshot(tables.links, time), nodes)
    topics = TopicGraph.of(overlay, subscriptions)
    result: Result = {**degree_measures(overlay), **connectivity_measures(topics)}
    if diameters:
        result |= diameter_measures(topics) | depth_measures(topics)
    return result


def shared_topics(tables: Tables, subscriptions: pa.Table, nodes: pa.Array, kinds: Sequence[str]) -> Result:
    """How many topics a link of each kind serves, mean over links; nothing of a kind that no link is of."""
    result: Result = {}
    for kind in kinds:
        overlay = Overlay.of(snapshot(tables.links, None), nodes, {kind})
        links = len(overlay.graph.neighbours) // 2
        if links:
            result[kind] = topics_per_link(TopicGraph.of(overlay, subscriptions), links)
    return result
