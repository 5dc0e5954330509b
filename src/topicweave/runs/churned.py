"""An overlay whose nodes come and go, with a new interest each time (SpiderCast §3.8)."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from topicweave.measures.control import control_per_operation
from topicweave.model.ids import Interest
from topicweave.model.workload import Workload
from topicweave.runs.overlay import overlay_measures
from topicweave.runs.run import Result
from topicweave.runs.simulated import Simulated
from topicweave.runs.sources import GeneratedWorkload, ModelWorkload
from topicweave.sim.churn import exponential
from topicweave.sim.simulation import Simulation
from topicweave.telemetry.tables import Tables

LIVES = 20
"""Lives of a node until its interests come again."""


class ChurnedOverlay(Simulated, frozen=True, kw_only=True, tag="churned"):
    """Snapshots of the overlay while nodes come and go for exponentially distributed times."""

    workload: GeneratedWorkload | ModelWorkload
    duration: float
    """Virtual seconds in all."""
    mean_up: float
    mean_down: float
    snapshots: int = 5
    """The duration is cut into so many equal parts; the overlay is looked at after each."""
    grace: float = 2.0
    """Nodes that joined less than this before a snapshot are not counted."""

    def run(self) -> Result:
        workload = self.workload.load()
        simulation, telemetry = self.simulate(
            workload,
            churn=exponential(workload.nodes, self.mean_up, self.mean_down, self.duration, self.seed),
            interest_of_life=self._interests_of_lives(workload),
        )
        views = []
        step = self.duration / self.snapshots
        operations_before = 0
        for number in range(1, self.snapshots + 1):
            simulation.run(number * step)
            simulation.snapshot()
            if number == 1:
                # The first part includes the start, when everybody joins at once.
                operations_before = simulation.churn_operations
            views.append(_look(simulation, telemetry.tables(), self.grace))
        tables = telemetry.tables()
        traffic = control_per_operation(
            tables.control,
            simulation.system.control_kinds,
            simulation.churn_operations - operations_before,
            start=step,
        )
        return {
            "nodes": sum(view["nodes"] for view in views) / len(views),
            "degree_mean": sum(view["degree_mean"] for view in views) / len(views),
            "degree_max": max(view["degree_max"] for view in views),
            "partitioned_topics": max(view["partitioned_topics"] for view in views),
            "snapshots": views,
            "churn_operations": simulation.churn_operations,
            "messages_per_operation": traffic.messages,
            "bytes_per_operation": traffic.bytes,
        }

    def _interests_of_lives(self, workload: Workload) -> Callable[[int, int], Interest]:
        """Every life of a node takes the list of another node of a larger workload of the same kind."""
        pool = self.workload.of_size(LIVES * workload.nodes).load()

        def interest(index: int, life: int) -> Interest:
            place = (index + life * workload.nodes) % pool.nodes
            return frozenset(pool.topic_ids[topic] for topic in pool.interests(place).tolist())

        return interest


def _look(simulation: Simulation, tables: Tables, grace: float) -> Result:
    settled = [
        index for index in simulation.up() if simulation.hosts[index].up_since <= simulation.now - grace
    ]
    names = simulation.workload.node_names
    rows = [
        (names[index], topic) for index in settled for topic in sorted(simulation.node(index).subscriptions)
    ]
    current = pa.table({"node": [name for name, _ in rows], "topic": [f"{topic:016x}" for _, topic in rows]})
    nodes = pa.array(sorted(names[index] for index in settled))
    measures = overlay_measures(tables, current, nodes, time=simulation.now)
    return {"time": simulation.now, "nodes": len(settled), **measures}
