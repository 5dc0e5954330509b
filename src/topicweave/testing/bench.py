"""A few nodes of a system on a virtual network. All see each other through one directory.

Example:

    bench = pair("spidercast")
    bench.run_for(5.0)
    one, other = bench.nodes.values()
    one.publish(NEWS, b"hello")
    bench.run_for(1.0)
    assert [event.payload for event in bench.delivered(other.id)] == [b"hello"]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar, cast

from topicweave.blocks.views import Directory, FullView
from topicweave.model.event import Event
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import Node
from topicweave.systems.registry import find_system
from topicweave.systems.system import System
from topicweave.testing.network import Sent, VirtualNetwork, VirtualWorld

N = TypeVar("N", bound=Node)

NEWS, SPORT = 1, 2
"""Two topics to test with."""
LATENCY = 0.05


class Bench(VirtualNetwork, Generic[N]):
    """A few nodes. They come and go with `add`, `leave`, `crash` and `restart`. `log` holds every message
    that was sent.
    """

    def __init__(
        self, system: System | str, seed: int = 0, latency: float = LATENCY, **parameters: Any
    ) -> None:
        super().__init__(seed, latency, record=True)
        self.system = find_system(system) if isinstance(system, str) else system
        self.parameters = self.system.settings(**parameters)
        self.directory = Directory(seed)
        self.nodes: dict[NodeId, N] = {}

    def add(self, node_id: NodeId, *topics: TopicId, contacts: Sequence[NodeId] = ()) -> N:
        """Add and start a node. In place of one that crashed, it is a restart without memory."""
        world = self.world(node_id)
        view = FullView(world, node_id, frozenset(topics), self.directory)
        node = cast(N, self.system.build(world, node_id, topics, view, self.parameters))
        world.host(node)
        self.nodes[node_id] = node
        node.start(contacts or [peer for peer in self.nodes if peer != node_id])
        return node

    def leave(self, node_id: NodeId) -> None:
        """Let a node leave: it says goodbye and stops."""
        self.nodes[node_id].leave()
        self.crash(node_id)

    def crash(self, node_id: NodeId) -> N:
        """Crash a node: it stops without a word. Returns its memory, for `restart`."""
        self.worlds[node_id].pending.clear()
        self.directory.discard(node_id)
        self.kill([node_id])
        return self.nodes.pop(node_id)

    def restart(self, memory: N) -> None:
        """Restart a crashed node with its memory. (`add` brings it back without.)"""
        assert isinstance(memory.world, VirtualWorld)
        self.worlds[memory.id] = memory.world
        self.nodes[memory.id] = memory
        memory.start([peer for peer in self.nodes if peer != memory.id])

    def delivered(self, node_id: NodeId) -> list[Event]:
        """The events that a node's application got, in its present life."""
        return self.worlds[node_id].delivered

    def linked(self, one: NodeId, other: NodeId) -> tuple[bool, bool]:
        """Whether the first node has a link to the second, and the second to the first."""
        ends = ((one, other), (other, one))
        there, back = (
            node in self.nodes and peer in {link.peer for link in self.nodes[node].links()}
            for node, peer in ends
        )
        return there, back

    @property
    def noise(self) -> list[Sent]:
        """The events that nodes got and did not want."""
        return [sent for world in self.worlds.values() for sent in world.unwanted]


def pair(system: System | str, *topics: TopicId, seed: int = 0, **parameters: Any) -> Bench[Any]:
    """Nodes 1 and 2 of a system. Both want the same topics (`NEWS` by default)."""
    bench: Bench[Any] = Bench(system, seed, **parameters)
    for node_id in (1, 2):
        bench.add(node_id, *(topics or (NEWS,)))
    return bench
