"""Vitis and RVR while nodes come and go by a real trace (§IV-F), by messages."""

from __future__ import annotations

import math
import random
from typing import Literal

from topicweave.measures.columns import names_array
from topicweave.measures.course import course
from topicweave.measures.interests import Interests
from topicweave.measures.uptime import Uptime
from topicweave.papers.vitis.workloads import TraceLists
from topicweave.runs.run import Result
from topicweave.runs.simulated import Simulated
from topicweave.sim.churn import Change, Churn, from_workload
from topicweave.sim.faults import Crash
from topicweave.sim.simulation import Simulation


class UnderChurn(Simulated, frozen=True, kw_only=True, tag="vitis-churn"):
    """Events at a steady pace while the trace runs; measured in equal parts of it."""

    workload: TraceLists
    events_per_second: float = 5.0
    parts: int = 8
    grace: float = 10.0
    """A node is expected to receive what is published from so long after it joined (§IV-E)."""
    window: float = 10.0
    departures: Literal["crash", "goodbye"] = "crash"
    """Whether who goes falls silent, as hosts of a trace do, or tells its neighbours."""

    def run(self) -> Result:
        """Hit ratio, overhead and delay over time."""
        trace, workload = self.workload, self.workload.load()
        churn, faults = from_workload(workload), list[Crash]()
        if self.departures == "crash":
            churn, faults = crashing(churn)
        simulation, telemetry = self.simulate(workload, churn=churn, faults=faults, count_control=False)
        rng = random.Random(f"churned/{self.seed}")
        first, last = trace.quiet, trace.quiet + trace.duration
        population = []
        times = sorted(rng.uniform(first, last) for _ in range(int(self.events_per_second * trace.duration)))
        for time in times:
            simulation.run(time)
            _publish_somewhere(simulation, rng)
            population.append((time, len(simulation.up())))
        simulation.run(last + self.window)
        everyone = names_array(workload.node_names)
        interests = Interests.of(workload.tables()["subscriptions"], everyone)
        uptime = Uptime(everyone, workload.tables()["churn"])
        step = trace.duration / self.parts
        edges = [first + part * step for part in range(self.parts + 1)]
        parts = course(telemetry.tables(), interests, uptime, edges, grace=self.grace, window=self.window)
        for part in parts:
            here = [count for time, count in population if part["start"] <= time < part["start"] + step]
            part["nodes"] = sum(here) / len(here) if here else 0.0
        return {
            "parts": parts,
            "changes": simulation.churn_operations,
            "kernel_events": simulation.kernel.events,
        }


def crashing(churn: Churn) -> tuple[Churn, list[Crash]]:
    """The same comings and goings, but who goes crashes, and has forgotten everything when it comes again."""
    joins, crashes = [], []
    gone: dict[int, float] = {}
    for time, node, up in churn.changes:
        if not up:
            gone[node] = time
        elif node in gone:
            crashes.append(Crash(gone.pop(node), time, node, keeps_memory=False))
        else:
            joins.append(Change(time, node, True))
    crashes += [Crash(time, math.inf, node, keeps_memory=False) for node, time in gone.items()]
    return Churn(churn.up_at_start, tuple(joins), churn.start_window), crashes


def _publish_somewhere(simulation: Simulation, rng: random.Random) -> None:
    """An event on a random topic that somebody who is up wants, from one of them."""
    up = set(simulation.up())
    for topic in rng.sample(range(simulation.workload.topics), simulation.workload.topics):
        subscribers = [node for node in simulation.workload.subscribers(topic).tolist() if node in up]
        if subscribers:
            simulation.publish(rng.choice(subscribers), topic)
            return
