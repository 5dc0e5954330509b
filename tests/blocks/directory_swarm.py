"""Swarms whose nodes do nothing but keep a view with a topic directory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from topicweave.blocks.directory_view import DirectoryView
from topicweave.blocks.membership import Membership
from topicweave.blocks.topic_directory import TopicDirectory
from topicweave.blocks.views import InterestView
from topicweave.model.event import Event
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.model.workload import Workload
from topicweave.port import Link, Node, Published, World
from topicweave.sim.churn import Churn
from topicweave.sim.simulation import Simulation
from topicweave.systems.system import System


class NoParameters(msgspec.Struct, frozen=True):
    """There are none."""


class DirectoryNode(Node):
    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        view: InterestView,
        _parameters: NoParameters,
    ) -> None:
        super().__init__(world, node_id, subscriptions)
        assert isinstance(view, DirectoryView)
        self.view = view
        self.use(view)

    @property
    def directory(self) -> TopicDirectory:
        return self.view.directory

    def _interest(self) -> Interest:
        return frozenset(self.subscriptions)

    def start(self, contacts: Sequence[NodeId]) -> None:
        self.view.set_interest(self._interest())
        self.view.start(contacts)

    def subscribe(self, topic: TopicId) -> None:
        self.subscriptions.add(topic)
        self.view.set_interest(self._interest())

    def unsubscribe(self, topic: TopicId) -> None:
        self.subscriptions.discard(topic)
        self.view.set_interest(self._interest())

    def publish(self, topic: TopicId, payload: bytes = b"") -> Published:
        self.view.seek(topic)
        return Published(Event(self.id, topic, 0, 0, payload), 0)

    def peer_lost(self, peer: NodeId) -> None:
        self.view.lost(peer)

    def leave(self) -> None:
        self.view.leave()

    def links(self) -> list[Link]:
        return [Link(peer, "membership") for peer in sorted(self.view.contacts())]

    def known_peers(self) -> set[NodeId]:
        return self.view.known_peers()


DIRECTORY_ONLY = System(
    name="directory-only",
    summary="nothing but membership",
    source="tests",
    parameters=NoParameters,
    build=DirectoryNode,
    connects_topics=False,
)


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
