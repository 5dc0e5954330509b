"""A handful of nodes of a system on a virtual network, which all see each other in one directory.

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
    """Nodes come and go by `add`, `leave`, `crash` and `restart`; everything that is sent is in `log`."""

    def __init__(
        self, system: System | str, seed: int = 0, latency: float = LATENCY, **parameters: Any
    ) -> None:
        super().__init__(seed, latency, record=True)
        self.system = find_system(system) if isinstance(system, str) else system
        self.parameters = self.system.settings(**parameters)
        self.directory = Directory(seed)
        self.nodes: dict[NodeId, N] = {}

    def add(self, node_id: NodeId, *topics: TopicId, contacts: Sequence[NodeId] = ()) -> N:
        """A new node, started; in place of one that crashed it is a restart without memory."""
        world = self.world(node_id)
        view = FullView(world, node_id, frozenset(topics), self.directory)
        node = cast(N, self.system.build(world, node_id, topics, view, self.parameters))
        world.host(node)
        self.nodes[node_id] = node
        node.start(contacts or [peer for peer in self.nodes if peer != node_id])
        return node

    def leave(self, node_id: NodeId) -> None:
        """It says goodbye, and stops."""
        self.nodes[node_id].leave()
        self.crash(node_id)

    def crash(self, node_id: NodeId) -> N:
        """It stops without a word. Returns what it knew, for `restart`."""
        self.worlds[node_id].pending.clear()
        self.directory.discard(node_id)
        self.kill([node_id])
        return self.nodes.pop(node_id)

    def restart(self, memory: N) -> None:
        """A node that crashed comes back with its memory; `add` brings it back without."""
        assert isinstance(memory.world, VirtualWorld)
        self.worlds[memory.id] = memory.world
        self.nodes[memory.id] = memory
        memory.start([peer for peer in self.nodes if peer != memory.id])

    def delivered(self, node_id: NodeId) -> list[Event]:
        """What the application of a node was handed, in its life of now."""
        return self.worlds[node_id].delivered

    def linked(self, one: NodeId, other: NodeId) -> tuple[bool, bool]:
        """Whether the one has a link to the other, and the other to the one."""
        ends = ((one, other), (other, one))
        there, back = (
            node in self.nodes and peer in {link.peer for link in self.nodes[node].links()}
            for node, peer in ends
        )
        return there, back

    @property
    def noise(self) -> list[Sent]:
        """Events that nodes were sent and did not want."""
        return [sent for world in self.worlds.values() for sent in world.unwanted]


def pair(system: System | str, *topics: TopicId, seed: int = 0, **parameters: Any) -> Bench[Any]:
    """Nodes 1 and 2 of a system, which want the same topics (`NEWS` if none are given)."""
    bench: Bench[Any] = Bench(system, seed, **parameters)
    for node_id in (1, 2):
        bench.add(node_id, *(topics or (NEWS,)))
    return bench
