"""Vitis, RVR and OPT in the simulator, for tests: settle, publish on every topic, see who got what."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from topicweave.model.event import EventId
from topicweave.model.ids import NodeId, TopicId
from topicweave.model.workload import Workload
from topicweave.sim.churn import Churn
from topicweave.sim.faults import Fault
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system
from topicweave.systems.vitis.rendezvous import RendezvousNode
from topicweave.testing.invariants import DeliveryLog
from topicweave.workloads.vitis import generate_correlated


def small_workload(nodes: int = 60, pattern: str = "random", seed: int = 1) -> Workload:
    """Few enough subscribers per topic that topics fall into several clusters when tables are small."""
    return generate_correlated(nodes, topics=40, pattern=pattern, per_node=4, buckets=4, seed=seed)


class VirtualNetwork:
    """A simulation with what tests ask of it."""

    def __init__(
        self,
        system: str,
        workload: Workload | None = None,
        seed: int = 1,
        churn: Churn | None = None,
        faults: Iterable[Fault] = (),
        **parameters: Any,
    ) -> None:
        found = find_system(system)
        self.workload = workload or small_workload()
        self.sim = Simulation(
            self.workload, found, found.settings(**parameters), seed=seed, churn=churn, faults=faults
        )
        self.log = DeliveryLog(self.sim)

    def node(self, index: int) -> RendezvousNode:
        node = self.sim.node(index)
        assert isinstance(node, RendezvousNode)
        return node

    def nodes(self) -> dict[NodeId, RendezvousNode]:
        return {self.sim.hosts[index].name: self.node(index) for index in self.sim.up()}

    def index_of(self, node_id: NodeId) -> int:
        return self.workload.node_ids.index(node_id)

    def ring_share(self) -> float:
        """How many of the ring links of all nodes are right."""
        nodes = self.nodes()
        ring = sorted(nodes)
        right = 0
        for place, own in enumerate(ring):
            chosen = {peer for peer, neighbour in nodes[own].table.items() if neighbour.chosen}
            right += (ring[(place + 1) % len(ring)] in chosen) + (ring[place - 1] in chosen)
        return right / (2 * len(ring))

    def missed(self, payload: bytes = b"", settle: float = 10.0) -> list[str]:
        """Publish on every topic from a random subscriber; who did not get it?"""
        rng = random.Random("publishers")
        expected: dict[EventId, set[int]] = {}
        for topic, topic_id in enumerate(self.workload.topic_ids):
            subscribers = self.subscribers(topic_id)
            if subscribers:
                receipt = self.sim.publish(rng.choice(subscribers), topic, payload)
                expected[receipt.event.id] = set(subscribers)
        self.sim.run(self.sim.now + settle)
        assert not self.log.violations
        return self.log.missed(expected)

    def subscribers(self, topic_id: TopicId) -> list[int]:
        return [index for index in self.sim.up() if topic_id in self.sim.node(index).subscriptions]

    def rendezvous(self, topic_id: TopicId) -> set[NodeId]:
        """Where lookups for a topic end, from every node."""
        nodes, ends = self.nodes(), set()
        for start in nodes:
            here = start
            while (hop := nodes[here].table.router().next_hop(topic_id)) != here:
                here = hop
            ends.add(here)
        return ends
