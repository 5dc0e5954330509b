"""Events published while nodes come and go by a real availability trace (Vitis §IV-F)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from topicweave.data.availability import host_sessions
from topicweave.measures.columns import names_array
from topicweave.measures.course import course
from topicweave.measures.interests import Interests
from topicweave.measures.uptime import Uptime
from topicweave.model.workload import Workload
from topicweave.runs.dissemination import CorrelatedLists, FollowersSample
from topicweave.sim.simulation import Simulation
from topicweave.telemetry.writer import MemoryTelemetry

Change = tuple[float, str, str]


class TraceLists(msgspec.Struct, frozen=True, tag="vitis-trace"):
    """Correlated lists whose nodes follow hosts of the trace, and a flash crowd on top.

    A stretch of `hours` of the trace passes in `duration` virtual seconds, after `quiet` seconds in which those that are
    up at first settle. Nodes of the crowd, a share of all, are down until the middle, come within five seconds, and
    stay.
    """

    lists: CorrelatedLists
    begin: float = 1.0
    """The hour of the trace at which the stretch begins. All hosts of the trace are seen for the first time in its first minutes."""
    hours: float = 12.0
    quiet: float = 40.0
    duration: float = 400.0
    crowd: float = 0.3
    seed: int = 0

    @property
    def nodes(self) -> int:
        return self.lists.nodes

    def load(self) -> Workload:
        workload = self.lists.load()
        rng = random.Random(f"trace/{self.seed}")
        names = list(workload.node_names)
        crowd = set(rng.sample(names, int(self.crowd * len(names))))
        middle = self.quiet + self.duration / 2
        changes: list[Change] = [(middle + 5.0 * rng.random(), name, "join") for name in sorted(crowd)]
        hosts = list(host_sessions())
        rng.shuffle(hosts)
        # Hosts that never show up in the stretch would be nodes that do nothing.
        squeezed = (self._squeeze(sessions) for sessions in hosts)
        active = (sessions for sessions in squeezed if sessions)
        for name, sessions in zip([name for name in names if name not in crowd], active, strict=False):
            for start, end in sessions:
                if start > 0.0:
                    changes.append((self.quiet + start, name, "join"))
                if end < self.duration:
                    changes.append((self.quiet + end, name, "leave"))
        tables = workload.tables()
        time, node, change = zip(*sorted(changes), strict=True)
        return Workload.from_tables(
            tables["subscriptions"],
            tables["topics"],
            pa.table({"time": pa.array(time, pa.float64()), "node": list(node), "change": list(change)}),
            tables.get("hosts"),
        )

    def _squeeze(self, sessions: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
        """The host's sessions in the stretch, in virtual seconds; gaps and sessions below a second are closed."""
        scale = self.duration / (self.hours * 3600.0)
        before = self.begin * 3600.0 * scale
        found: list[tuple[float, float]] = []
        for start, end in sessions:
            start, end = max(0.0, start * scale - before), min(self.duration, end * scale - before)
            if end - start < 1.0:
                continue
            if found and start - found[-1][1] < 1.0:
                found[-1] = (found[-1][0], end)
            else:
                found.append((start, end))
        return found


VitisWorkload = CorrelatedLists | FollowersSample | TraceLists
"""The workloads of Vitis §IV."""


class UnderChurn(msgspec.Struct, frozen=True):
    """Events at a steady pace while the trace runs; measured in equal parts of it."""

    events_per_second: float = 5.0
    parts: int = 8
    grace: float = 10.0
    """A node is expected to receive what is published from so long after it joined (§IV-E)."""
    window: float = 10.0


def run_under_churn(
    simulation: Simulation, telemetry: MemoryTelemetry, trace: TraceLists, spec: UnderChurn, seed: int
) -> dict[str, Any]:
    """Hit ratio, overhead and delay over time."""
    workload = simulation.workload
    rng = random.Random(f"churned/{seed}")
    first, last = trace.quiet, trace.quiet + trace.duration
    population = []
    times = sorted(rng.uniform(first, last) for _ in range(int(spec.events_per_second * trace.duration)))
    for time in times:
        simulation.run(time)
        _publish_somewhere(simulation, rng)
        population.append((time, len(simulation.up())))
    simulation.run(last + spec.window)
    tables = telemetry.tables()
    everyone = names_array(workload.node_names)
    interests = Interests.of(workload.tables()["subscriptions"], everyone)
    uptime = Uptime(everyone, workload.tables()["churn"])
    step = trace.duration / spec.parts
    edges = [first + part * step for part in range(spec.parts + 1)]
    parts = course(tables, interests, uptime, edges, grace=spec.grace, window=spec.window)
    for part in parts:
        here = [count for time, count in population if part["start"] <= time < part["start"] + step]
        part["nodes"] = sum(here) / len(here) if here else 0.0
    return {"parts": parts, "changes": simulation.churn_operations, "kernel_events": simulation.kernel.events}


def _publish_somewhere(simulation: Simulation, rng: random.Random) -> None:
    """An event on a random topic that somebody who is up wants, from one of them."""
    up = set(simulation.up())
    for topic in rng.sample(range(simulation.workload.topics), simulation.workload.topics):
        subscribers = [node for node in simulation.workload.subscribers(topic).tolist() if node in up]
        if subscribers:
            simulation.publish(rng.choice(subscribers), topic)
            return
