"""Feeds over a network with true distances: who comes when, what is published, and what is written down meanwhile.

Landmarks and publishers are up from the start; subscribers come one after another within a window once the
landmarks have their places. Latencies and distances are one way, in seconds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from topicweave.data.availability import host_sessions
from topicweave.data.networks import BuiltNetwork
from topicweave.model.arrays import FloatArray
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId
from topicweave.model.workload import Workload
from topicweave.papers.rappel.workloads import LANDMARKS
from topicweave.port import EventMessage
from topicweave.runs.run import Result
from topicweave.sim.churn import Change, Churn
from topicweave.sim.faults import Crash, Fault
from topicweave.sim.host import Host
from topicweave.sim.simulation import Simulation
from topicweave.systems.rappel import RappelNode
from topicweave.systems.registry import find_system

if TYPE_CHECKING:
    from topicweave.papers.rappel.feeds import Feeds


LANDMARKS_READY = 30.0
PAYLOAD = bytes(1024)
"""§6.1.5: updates of 1 KB."""


class FeedWorld:
    """A simulation of feeds, and what was seen of it so far."""

    def __init__(self, spec: Feeds, workload: Workload) -> None:
        self.spec = spec
        self.workload = workload
        self.feeds = workload.topics
        self.first = LANDMARKS + self.feeds
        """The first subscriber."""
        found = find_system(spec.system)
        self.network: BuiltNetwork = spec.network.build(workload.nodes, LANDMARKS)
        settings: dict[str, Any] = {
            "publishers": {
                topic: workload.node_ids[LANDMARKS + number]
                for number, topic in enumerate(workload.topic_ids)
            }
        }
        if self.is_rappel:
            # §3.3 makes room for fans among the candidates: neighbours are heard of with every ping and ack.
            settings |= {
                "landmarks": tuple(workload.node_ids[:LANDMARKS]),
                "void_period": 0.0,
                "neighbours_vote": True,
            }
        self.returning: set[int] = set()
        """Who comes back after a failure."""
        self.telemetry = spec.telemetry(workload) if spec.control else None
        churn, faults = self._comings_and_goings(random.Random(f"feeds/{spec.seed}"))
        self.simulation = Simulation(
            workload,
            found,
            found.settings(**{**settings, **spec.parameters}),
            seed=spec.seed,
            latency=self.network.latency,
            churn=churn,
            faults=faults,
            telemetry=self.telemetry,
        )
        self.index = {node_id: index for index, node_id in enumerate(workload.node_ids)}
        self.published: dict[EventId, float] = {}
        self.up_then: dict[EventId, npt.NDArray[np.bool_]] = {}
        """Who was up when an update was published: what others pull when they come back is late for good reason."""
        self.delays: dict[EventId, dict[int, float]] = {}
        self.noise = 0
        self.receptions: npt.NDArray[np.int64] = np.zeros(workload.nodes, np.int64)
        self.sends: npt.NDArray[np.int64] = np.zeros(workload.nodes, np.int64)
        self.simulation.on_delivery(self._delivered)
        self.simulation.on_reception(self._received)
        self.pulled: set[tuple[EventId, int]] = set()
        self.rejoins_before: dict[int, int] = {}

    @property
    def is_rappel(self) -> bool:
        return self.spec.system == "rappel"

    def _comings_and_goings(self, rng: random.Random) -> tuple[Churn, list[Fault]]:
        spec = self.spec
        subscribers = range(self.first, self.workload.nodes)
        changes = [Change(LANDMARKS_READY + rng.random() * spec.window, index, True) for index in subscribers]
        faults: list[Fault] = []
        if spec.failure is not None:
            failing = rng.sample(list(subscribers), round(spec.failure.share * len(subscribers)))
            self.returning = set(failing[: round(spec.failure.returning * len(failing))])
            faults = [
                Crash(
                    spec.failure.start,
                    spec.failure.end if index in self.returning else math.inf,
                    index,
                    spec.failure.keeps_memory,
                )
                for index in failing
            ]
        if spec.churn is not None:
            settled = LANDMARKS_READY + spec.window
            staying = self.first + spec.churn.observers
            changes = [change for change in changes if change.node < staying]
            for index, sessions in zip(
                range(staying, self.workload.nodes), self._sessions(rng, settled), strict=False
            ):
                (first, _), *later = sessions
                changes.append(Change(first, index, True))
                ends = [end for _, end in sessions]
                starts = [start for start, _ in later]
                faults += [
                    Crash(end, max(start, end), index, True)
                    for end, start in zip(ends, [*starts, spec.duration + 1.0], strict=True)
                    if end < spec.duration
                ]
        return Churn(frozenset(range(self.first)), tuple(sorted(changes))), faults

    def _sessions(self, rng: random.Random, settled: float) -> Iterator[list[tuple[float, float]]]:
        """Sessions of hosts of the trace, stretched in time to the churn wanted; those up at first start
        within the window.
        """
        assert self.spec.churn is not None
        hosts = [sessions for sessions in host_sessions() if sessions]
        rng.shuffle(hosts)
        hosts = hosts[: self.workload.nodes]
        length = max(end for sessions in hosts for _, end in sessions)
        joins = sum(len(sessions) for sessions in hosts) * (self.workload.nodes - self.first) / len(hosts)
        wanted = self.spec.churn.joins_per_minute / 60.0
        scale = joins / length / wanted  # virtual seconds per second of the trace
        for sessions in hosts:
            stretched = [
                (
                    settled + start * scale
                    if start > 0
                    else LANDMARKS_READY + rng.random() * self.spec.window,
                    settled + end * scale,
                )
                for start, end in sessions
            ]
            # A host that left before it had come is none of those that come and go.
            if there := [(start, end) for start, end in stretched if end > start]:
                yield there

    def publish(self, feed: int) -> Event | None:
        publisher = LANDMARKS + feed
        if self.simulation.hosts[publisher].node is None:
            return None
        event = self.simulation.publish(publisher, feed, PAYLOAD).event
        self.published[event.id] = self.simulation.now
        up = self.up_then[event.id] = np.zeros(self.workload.nodes, np.bool_)
        up[self.simulation.up()] = True
        self.delays[event.id] = {}
        return event

    def _delivered(self, host: Host, event: Event) -> None:
        delays = self.delays.get(event.id)
        if delays is not None and host.index >= self.first and self.up_then[event.id][host.index]:
            delays.setdefault(host.index, self.simulation.now - self.published[event.id])

    def _received(self, host: Host, sender: NodeId, message: EventMessage) -> None:
        wanted = host.node is not None and message.event.topic in host.node.subscriptions
        self.noise += not wanted
        self.receptions[host.index] += 1
        self.sends[self.index[sender]] += 1
        if getattr(message, "pulled", False):
            self.pulled.add((message.event.id, host.index))

    def nodes(self) -> dict[int, RappelNode]:
        found = {}
        for index in self.simulation.up():
            node = self.simulation.node(index)
            if index >= self.first and isinstance(node, RappelNode):
                found[index] = node
        return found


def quantiles(name: str, values: FloatArray) -> Result:
    """p5, p50, p95 of values; nan of none."""
    if not len(values):
        return {f"{name}_{part}": math.nan for part in ("p5", "p50", "p95")}
    low, middle, high = np.percentile(values, [5, 50, 95])
    return {f"{name}_p5": float(low), f"{name}_p50": float(middle), f"{name}_p95": float(high)}
