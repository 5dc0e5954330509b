"""Swarms whose nodes do nothing but keep a view with a topic directory."""

from __future__ import annotations

from collections.abc import Sequence

from topicweave.blocks.membership import Membership
from topicweave.model.ids import NodeId, TopicId
from topicweave.model.workload import Workload
from topicweave.sim.churn import Churn
from topicweave.sim.simulation import Simulation
from topicweave.testing.directory_only import DIRECTORY_ONLY, DirectoryNode


class Swarm:
    """A simulation of such nodes, and what is true of it."""

    def __init__(
        self,
        workload: Workload,
        seed: int = 1,
        membership: str = "directory:100",
        seeds: Sequence[int] = (0, 1, 2),
    ) -> None:
        self.simulation = Simulation(
            workload,
            DIRECTORY_ONLY,
            seed=seed,
            membership=Membership.parse(membership),
            churn=Churn(frozenset(range(workload.nodes)), (), start_window=10.0),
        )
        self.simulation.seeds = seeds

    def run(self, seconds: float) -> None:
        self.simulation.run(self.simulation.now + seconds)

    def nodes(self) -> list[DirectoryNode]:
        nodes = [self.simulation.node(index) for index in self.simulation.up()]
        assert all(isinstance(node, DirectoryNode) for node in nodes)
        return nodes  # type: ignore[return-value]  # nodes of one kind

    def misplaced(self) -> int:
        """How many nodes do not know the three that come next on the ring."""
        nodes = self.nodes()
        ring = sorted(node.id for node in nodes)
        place = {node_id: number for number, node_id in enumerate(ring)}
        wrong = 0
        for node in nodes:
            following = [ring[(place[node.id] + step) % len(ring)] for step in (1, 2, 3)]
            wrong += node.directory.ring.after != following
        return wrong

    def subscribers(self) -> dict[TopicId, set[NodeId]]:
        wanted: dict[TopicId, set[NodeId]] = {}
        for node in self.nodes():
            for topic in node.subscriptions:
                wanted.setdefault(topic, set()).add(node.id)
        return wanted

    def unknown(self, at_most: int = 3) -> int:
        """Of topics that so few want: how many pairs do not know each other."""
        wanted = self.subscribers()
        missing = 0
        for node in self.nodes():
            for topic in node.subscriptions:
                if len(wanted[topic]) <= at_most:
                    known = set(node.view.subscribers(topic).tolist())
                    missing += len(wanted[topic] - known - {node.id})
        return missing

    def home_of(self, topic: TopicId) -> DirectoryNode:
        return min(self.nodes(), key=lambda node: (node.id - topic) % (1 << 64))
