"""A simulated swarm as a recording for the dashboard: many nodes without their processes. See docs/dashboard.md.

What the page shows is what nodes do in virtual time. Nodes tell of themselves as live ones do, in ticks, and
the same picture is made of them.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Literal

from topicweave.blocks.membership import Membership
from topicweave.live.dashboard.picture import Picture
from topicweave.live.dashboard.recording import FrameFile
from topicweave.live.dashboard.watch import MOST_TOPICS_TOLD, TICK, event_name, key_of
from topicweave.live.dashboard.words import Hop, NodeTick, SentEvent
from topicweave.model.event import EventId
from topicweave.model.ids import NodeId
from topicweave.model.workload import Workload
from topicweave.port import EventMessage, Link
from topicweave.sim.churn import Churn
from topicweave.sim.host import Host
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system
from topicweave.telemetry.writer import MemoryTelemetry

JOINING = 5.0
"""Seconds within which all nodes come."""


class _Traffic(MemoryTelemetry):
    """Keeps the control traffic since the last tick, by node, and nothing else."""

    def __init__(self) -> None:
        super().__init__("", {}, {})
        self.sums: dict[NodeId, tuple[int, int]] = {}

    def control(self, time: float, node_id: NodeId, kind: str, messages: int, bytes: int) -> None:  # noqa: A002
        before = self.sums.get(node_id, (0, 0))
        self.sums[node_id] = (before[0] + messages, before[1] + bytes)

    def publish(self, *_: object) -> None:
        pass

    def reception(self, *_: object) -> None:
        pass


class _Node:
    """What one node has to tell."""

    def __init__(self) -> None:
        self.seen: set[EventId] = set()
        self.hops: list[Hop] = []
        self.sent: list[SentEvent] = []
        self.links: frozenset[Link] | None = None
        self.counts = {"publishes": 0, "deliveries": 0}


class _Recorder:
    """Looks at all nodes of a simulation."""

    def __init__(self, simulation: Simulation, picture: Picture, traffic: _Traffic) -> None:
        self._simulation, self._picture, self._traffic = simulation, picture, traffic
        workload = simulation.workload
        self._nodes = [_Node() for _ in range(workload.nodes)]
        self._topics = [
            sorted(workload.topic_names[topic] for topic in workload.interests(index).tolist())
            for index in range(workload.nodes)
        ]
        simulation.on_reception(self._received)
        simulation.on_delivery(lambda host, _event: self._count(host.index, "deliveries"))

    def _count(self, index: int, name: str) -> None:
        self._nodes[index].counts[name] += 1

    def _received(self, host: Host, sender: NodeId, message: EventMessage) -> None:
        node, event = self._nodes[host.index], message.event.id
        wanted = host.node is not None and event.topic in host.node.subscriptions
        first = event not in node.seen
        node.seen.add(event)
        node.hops.append(
            Hop(
                event_name(event),
                key_of(event.topic),
                key_of(sender),
                key_of(host.name),
                message.hops,
                wanted,
                first,
                host.now,
            )
        )

    def publish(self, index: int, topic: int) -> None:
        simulation = self._simulation
        event = simulation.publish(index, topic).event.id
        self._count(index, "publishes")
        sent = SentEvent(event_name(event), key_of(event.topic), simulation.now)
        self._nodes[index].sent.append(sent)

    def tick(self) -> None:
        """All nodes that are up tell what is new."""
        simulation, names = self._simulation, self._simulation.workload.node_names
        simulation.flush_control()
        for index in simulation.up():
            host, node = simulation.hosts[index], self._nodes[index]
            tick = NodeTick(key_of(host.name), names[index], simulation.now, counts=dict(node.counts))
            links = frozenset(simulation.node(index).links())
            if node.links is None:
                tick.topics = self._topics[index][:MOST_TOPICS_TOLD]
            if links != node.links:
                node.links = links
                tick.links = sorted((key_of(link.peer), link.kind) for link in links)
            tick.control = self._traffic.sums.pop(host.name, (0, 0))
            tick.hops, node.hops = node.hops, []
            tick.sent, node.sent = node.sent, []
            self._picture.take(tick)


def record_simulation(
    system: str,
    interests: list[list[str]],
    rate: float,
    seconds: float,
    seed: int,
    file: Path,
    membership: Literal["directory", "gossip"] = "directory",
) -> int:
    """So many virtual seconds of a swarm, into a file; how many frames there are. `membership`: as for live nodes."""
    workload = Workload.from_lists({f"node-{number:04d}": topics for number, topics in enumerate(interests)})
    found, traffic = find_system(system), _Traffic()
    everybody = frozenset(range(workload.nodes))
    simulation = Simulation(
        workload,
        found,
        seed=seed,
        membership=Membership(directory=membership == "directory", live=True),
        churn=Churn(everybody, (), start_window=min(JOINING, seconds)),
        telemetry=traffic,
    )
    picture = Picture(f"{workload.nodes} simulated nodes, {system}", whole_swarm=True)
    recorder = _Recorder(simulation, picture, traffic)
    rng = random.Random(f"recording/{seed}")
    frames, due = round(seconds / TICK), rng.expovariate(rate) if rate else seconds
    with FrameFile(file, picture.whole(0.0)) as recording:
        for number in range(1, frames + 1):
            end = number * TICK
            while due < end:
                simulation.run(due)
                if up := simulation.up():
                    index = rng.choice(up)
                    recorder.publish(index, rng.choice(workload.interests(index).tolist()))
                due += rng.expovariate(rate)
            simulation.run(end)
            recorder.tick()
            recording.add(picture.frame(end))
    return frames
