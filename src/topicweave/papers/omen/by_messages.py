"""OMen's nodes, or SpiderCast's, in the simulator under the churn of §6: one event after another."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from topicweave.bulk.omen.churn import ChurnSource, Happening, churn_sequence, data_sets
from topicweave.designs import DEFAULT_RHO, Instance, low_oda
from topicweave.measures.columns import names_array
from topicweave.measures.control import ControlTraffic, control_per_operation
from topicweave.measures.diameter import diameter_measures
from topicweave.measures.graph import Overlay, TopicGraph, snapshot
from topicweave.measures.mending import (
    BackupArcs,
    MendedEvents,
    degrees_over_time,
    messages_per_churn,
    view_measures,
)
from topicweave.measures.overlay import connectivity_measures, degree_measures
from topicweave.model.workload import Workload
from topicweave.runs.run import OnSystem, Result
from topicweave.sim.churn import Change, Churn
from topicweave.sim.simulation import Simulation
from topicweave.systems.omen import OMenNode
from topicweave.systems.registry import find_system
from topicweave.telemetry.writer import MemoryTelemetry

LABELS = "omen-label"
"""The kind of the messages that spread the labels of parts."""


class MendedByMessages(OnSystem, frozen=True, kw_only=True, tag="mending-messages"):
    """What `Mended` does as arrays. OMen's nodes are given the links of a LowODA overlay to begin with;
    SpiderCast's choose their own.
    """

    system: Literal["omen", "spidercast"] = "omen"
    rounds: int
    churn: ChurnSource = "random"
    looks: int = 4
    """How often the overlay is looked at, besides the start."""
    rho: float = DEFAULT_RHO
    settle: float = 20.0
    """Seconds for gossip to build the first backup sets, or for nodes to choose their neighbours."""
    pause: float = 30.0
    """Seconds from one event to the next: the trace's idle time is left out."""

    @property
    def data_sets(self) -> tuple[str, ...]:
        return data_sets(self.churn)

    def run(self) -> Result:
        workload = self.workload.load()
        up, happenings = churn_sequence(self.churn, workload.nodes, self.rounds, self.seed)
        changes = tuple(
            Change(self.settle + self.pause * number, happening.node, happening.joins)
            for number, happening in enumerate(happenings)
        )
        telemetry = self.telemetry(workload)
        system = find_system(self.system)
        simulation = Simulation(
            workload,
            system,
            system.settings(**self.parameters),
            seed=self.seed,
            churn=Churn(frozenset(up), changes),
            telemetry=telemetry,
        )
        if self.system == "omen":
            _link(simulation, workload, sorted(up), self.rho)
        simulation.run(self.settle - 1.0)
        looks = [_look(simulation, telemetry, 0)]
        backups = _backups(simulation) if self.system == "omen" else {}
        every = max(1, len(happenings) // self.looks)
        unrestored = 0
        for number, happening in enumerate(happenings, 1):
            # Just before the next event comes.
            simulation.run(self.settle + self.pause * number - 1.0)
            simulation.flush_control()
            unrestored += _parted(simulation, workload.interests(happening.node).tolist())
            if number % every == 0:
                looks.append(_look(simulation, telemetry, number))
        result: Result = {
            "nodes": len(up),
            "rounds": len(happenings),
            "looks": looks,
            **degrees_over_time(looks),
            "unrestored_rounds": unrestored,
            "partitioned_topics": int(looks[-1]["partitioned_topics"]),
            "kernel_events": simulation.kernel.events,
            **backups,
        }
        if happenings:
            result |= messages_per_churn(self._sent(telemetry, workload, happenings))
        return result

    def _sent(
        self, telemetry: MemoryTelemetry, workload: Workload, happenings: list[Happening]
    ) -> MendedEvents:
        """What was sent from each event up to the next."""
        control = telemetry.tables().control
        kinds = [kind for kind in find_system(self.system).control_kinds if kind != LABELS]

        def traffic(number: int, kinds: list[str]) -> ControlTraffic:
            # What was sent up to an event's time was written a second earlier.
            start = self.settle + self.pause * number - 1.0
            return control_per_operation(control, kinds, 1, start=start, end=start + self.pause)

        numbers = range(len(happenings))
        return MendedEvents(
            joins=np.array([happening.joins for happening in happenings]),
            lists=np.array([len(workload.interests(happening.node)) for happening in happenings]),
            messages=np.array([traffic(number, kinds).messages for number in numbers]),
            label_messages=np.array([traffic(number, [LABELS]).messages for number in numbers]),
        )


def _link(simulation: Simulation, workload: Workload, nodes: list[int], rho: float) -> None:
    """Ask for the links of a LowODA overlay; they stand before the first heartbeat."""
    simulation.run(0.0)
    interests = [frozenset(workload.interests(node).tolist()) for node in nodes]
    for one, other in low_oda(Instance.of_lists(interests, workload.topics), rho=rho).tolist():
        node = simulation.node(nodes[one])
        assert isinstance(node, OMenNode)
        node.links_kept.ask(workload.node_ids[nodes[other]])


def _look(simulation: Simulation, telemetry: MemoryTelemetry, number: int) -> dict[str, Any]:
    simulation.snapshot()
    workload = simulation.workload
    names = names_array(workload.node_names[index] for index in simulation.up())
    overlay = Overlay.of(snapshot(telemetry.tables().links), names)
    topics = TopicGraph.of(overlay, workload.tables()["subscriptions"])
    degrees = degree_measures(overlay)
    nodes = (simulation.node(index) for index in simulation.up())
    views = [node.local.size() for node in nodes if isinstance(node, OMenNode)]
    return {
        "round": number,
        "nodes": len(names),
        "degree_max": degrees["degree_max"],
        "degree_mean": degrees["degree_mean"],
        "partitioned_topics": connectivity_measures(topics)["partitioned_topics"],
        **diameter_measures(topics),
        **(view_measures(views) if views else {}),
    }


def _parted(simulation: Simulation, topics: list[int]) -> bool:
    """Whether one of these topics is in several parts."""
    workload, (names, _) = simulation.workload, simulation.workload.names()
    links = [
        (workload.node_names[index], names[link.peer])
        for index in simulation.up()
        for link in simulation.node(index).links()
    ]
    nodes = names_array(workload.node_names[index] for index in simulation.up())
    ends = {
        "node": pa.array([one for one, _ in links], pa.string()),
        "peer": pa.array([other for _, other in links], pa.string()),
    }
    overlay = Overlay.of(pa.table(ends), nodes)
    asked = pa.array([workload.topic_names[topic] for topic in topics], pa.string())
    subscriptions = workload.tables()["subscriptions"]
    some = subscriptions.filter(pc.is_in(subscriptions["topic"].cast(pa.string()), asked))
    return connectivity_measures(TopicGraph.of(overlay, some))["partitioned_topics"] > 0


def _backups(simulation: Simulation) -> Result:
    """Those that the next on the circle keeps for each node."""
    up = sorted(simulation.up(), key=lambda index: simulation.hosts[index].name)
    kept: dict[int, list[int]] = {}
    for index, successor in zip(up, [*up[1:], up[0]], strict=True):
        keeper, name = simulation.node(successor), simulation.hosts[index].name
        assert isinstance(keeper, OMenNode)
        record = keeper.local.records.get(name)
        kept[name] = list(record.backups) if record else []
    backups = BackupArcs.of(kept)
    return {
        "backup_sizes": backups.sizes.tolist(),
        "backup_in_degrees": backups.incoming.tolist(),
        "list_sizes": [len(simulation.workload.interests(index)) for index in up],
    }
