"""How events spread over a settled overlay (Vitis §IV): hit ratio, the four readings of traffic overhead,
delay, true degree, clusters.

The paper's traffic overhead is "the proportion of relay (uninteresting) traffic that nodes experience". It
does not say whether a notification that comes a second time is traffic, nor whether the proportion is taken
over all messages or per node and then averaged. So there are four readings: `noise` and `noise_node_mean`
count first receptions, `noise_all` and `noise_all_node_mean` all of them. All are visible to telemetry when
events travel with their notifications (`spreading.inline` of 1, the events being empty): every notification
is then one reception.
"""

from __future__ import annotations

from topicweave.measures.columns import names_array
from topicweave.measures.delivery import Receptions, hit_ratio
from topicweave.measures.graph import Overlay, TopicGraph, snapshot
from topicweave.measures.interests import Interests
from topicweave.measures.overlay import clusters_per_topic, degree_measures
from topicweave.measures.traffic import noise_by_node, traffic_measures
from topicweave.papers.vitis.published import histogram, planned_events, subscription_statistics
from topicweave.runs.run import Result
from topicweave.runs.simulated import Simulated
from topicweave.sim.simulation import Simulation


class Dissemination(Simulated, frozen=True, kw_only=True, tag="dissemination"):
    """Let the overlay settle, look at the links, publish, and measure nothing that takes long at ten thousand
    nodes and topics.
    """

    settle: float = 20.0
    events: int | None = None
    """So many by the topics' rates; None: one on every topic that somebody wants."""
    window: float = 10.0
    """Seconds over which they are published."""
    distribution: bool = False
    """Keep the overhead's distribution over nodes, and every node's degree."""
    watch_every: float = 0.0
    """Look at the ring and the relay paths while the overlay settles, every so many seconds."""

    def run(self) -> Result:
        workload = self.workload.load()
        # What this measures has nothing to do with control traffic.
        simulation, telemetry = self.simulate(workload, count_control=False)
        settling = _watch(simulation, self.watch_every, self.settle) if self.watch_every else []
        simulation.run(self.settle)
        simulation.snapshot()
        published = self._publish(simulation)
        tables = telemetry.tables()
        receptions = Receptions.of(tables.publishes, tables.deliveries)
        everyone = names_array(workload.node_names)
        subscriptions = workload.tables()["subscriptions"]
        interests = Interests.of(subscriptions, everyone)
        overlay = Overlay.of(snapshot(tables.links, None), everyone)
        result: Result = {
            "nodes": workload.nodes,
            "workload": subscription_statistics(workload),
            "settling": settling,
            "events": published,
            "kernel_events": simulation.kernel.events,
            "hit_ratio": hit_ratio(receptions, interests),
            **traffic_measures(receptions.traffic),
            **degree_measures(overlay),
            "clusters_per_topic": clusters_per_topic(TopicGraph.of(overlay, subscriptions)),
            **simulation.gauges(),
        }
        if self.distribution:
            result["overhead_by_node"] = histogram(noise_by_node(receptions.traffic))
            result["overhead_by_node_all"] = histogram(noise_by_node(receptions.traffic, repetitions=True))
            result["degrees"] = sorted(overlay.graph.degrees.tolist())
        return result

    def _publish(self, simulation: Simulation) -> int:
        events, start = planned_events(simulation.workload, self.events, self.seed), simulation.now
        for number, (topic, publisher) in enumerate(events):
            simulation.at(start + self.window * number / len(events), simulation.publish, publisher, topic)
        simulation.run(start + 2 * self.window)
        return len(events)


def _watch(simulation: Simulation, every: float, settle: float) -> list[tuple[float, float, float]]:
    """(second, share of ring links that are right, relay paths asked for per node)."""
    ring = sorted(simulation.workload.node_ids)
    beside = {own: {ring[place - 1], ring[(place + 1) % len(ring)]} for place, own in enumerate(ring)}
    seen = []
    for step in range(1, int(settle / every) + 1):
        simulation.run(step * every)
        right = 0
        for index in simulation.up():
            node = simulation.node(index)
            chosen = {link.peer for link in node.links() if link.kind in ("successor", "predecessor")}
            right += len(chosen & beside[node.id])
        paths = simulation.gauges().get("requested_paths", 0.0)
        seen.append((simulation.now, right / sum(len(peers) for peers in beside.values()), paths))
    return seen
