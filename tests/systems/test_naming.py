"""Every system with names: its nodes find topics by patterns, and serve their subscribers as before."""

from __future__ import annotations

import pytest

from topicweave.blocks.membership import DIRECTORY
from topicweave.blocks.topic_directory.messages import Beat, Carry
from topicweave.blocks.topic_names import NameDirectory, NamesParameters, ignore_names
from topicweave.model.ids import NodeId, TopicId, ring_id
from topicweave.port import Node
from topicweave.systems.naming import with_names
from topicweave.systems.registry import SYSTEMS
from topicweave.testing.network import VirtualNetwork

NODES = [ring_id(f"node-{number}") for number in range(10)]
NEWS = ring_id("news/today")
QUICK = NamesParameters(renew=20.0, watch_renew=10.0)


class Swarm(VirtualNetwork):
    """Nodes of a system with the membership that live ones have, each with names."""

    def __init__(self, name: str) -> None:
        super().__init__(seed=3)
        self.names: dict[NodeId, NameDirectory] = {}
        self.nodes: dict[NodeId, Node] = {}
        self.found: dict[str, TopicId] = {}
        self.system = with_names(SYSTEMS[name], self.names.__setitem__, QUICK)
        interest = frozenset({NEWS})
        for number, node_id in enumerate(NODES):
            world = self.world(node_id)
            view = DIRECTORY.view(world, node_id, interest, None, self.system.needs)
            node = self.nodes[node_id] = self.system.build(
                world, node_id, interest, view, self.system.settings()
            )
            world.host(node)
            node.start(NODES[max(0, number - 3) : number])
        self.run_for(max(20.0, self.system.settles_within))

    def is_found(
        self, _pattern: str, name: str, topic: TopicId, _age: float, publisher: NodeId | None
    ) -> None:
        assert publisher in NODES
        self.found[name] = topic

    def is_gone(self, _pattern: str, name: str, _topic: TopicId) -> None:
        del self.found[name]

    def stop(self, node_id: NodeId, orderly: bool) -> None:
        if orderly:
            self.nodes[node_id].leave()
        self.kill([node_id])
        del self.nodes[node_id], self.names[node_id]
        for node in self.nodes.values():
            node.peer_lost(node_id)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_pattern_finds_its_topics_in_every_system_and_after_a_crash(name: str) -> None:
    swarm = Swarm(name)
    watcher = swarm.names[NODES[0]]
    watcher.on_found = swarm.is_found
    watcher.on_gone = swarm.is_gone
    for number, node in enumerate(NODES):
        swarm.names[node].publishes(f"zone/{number}/temperature")
    watcher.watch("zone/+/temperature")
    swarm.run_for(10.0)
    expected = {f"zone/{number}/temperature": ring_id(f"zone/{number}/temperature") for number in range(10)}
    assert swarm.found == expected
    assert swarm.nodes[NODES[0]].gauges()["names_found"] == 10
    event = swarm.nodes[NODES[0]].publish(NEWS, b"hello").event
    swarm.run_for(10.0)
    got = {node for node, world in swarm.worlds.items() if event.id in {one.id for one in world.delivered}}
    assert got == set(NODES) or not swarm.system.connects_topics

    swarm.stop(NODES[4], orderly=True)
    swarm.run_for(5.0)
    assert "zone/4/temperature" not in swarm.found
    swarm.stop(NODES[7], orderly=False)
    swarm.names[NODES[5]].publishes("zone/new/temperature")
    swarm.run_for(60.0)
    assert swarm.found.keys() == expected.keys() - {"zone/4/temperature", "zone/7/temperature"} | {
        "zone/new/temperature"
    }


@pytest.mark.parametrize("name", SYSTEMS)
def test_nobody_keeps_state_for_a_node_that_is_gone(name: str) -> None:
    swarm = Swarm(name)
    swarm.names[NODES[3]].publishes("a/b")
    swarm.names[NODES[3]].watch("#")
    swarm.run_for(5.0)
    swarm.stop(NODES[3], orderly=False)
    swarm.run_for(60.0)
    assert [node for node in swarm.nodes if NODES[3] in swarm.names[node].known_peers()] == []


def test_a_node_that_takes_no_part_ignores_what_others_say() -> None:
    for name in ("vitis", "spidercast"):
        system = SYSTEMS[name]
        network = VirtualNetwork()
        world = network.world(1)
        node = system.build(
            world, 1, (), DIRECTORY.view(world, 1, frozenset(), None, system.needs), system.settings()
        )
        ignore_names(node)
        assert {Beat, Carry} <= set(node.message_types)
        world.host(node)
        node.start(())
        network.tell(2, 1, Carry(1))
        network.tell(2, 1, Beat((3,)))
