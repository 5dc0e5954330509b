"""Hand-made messages of any peer: no node fails on them, and all are served again when they stop."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from topicweave.blocks.membership import Membership
from topicweave.blocks.ring.messages import Contact
from topicweave.blocks.topic_trees.messages import TreeGraft, TreeMisplaced
from topicweave.model.ids import NodeId, TopicId, ring_id
from topicweave.port import EventMessage, Node
from topicweave.systems.registry import SYSTEMS
from topicweave.systems.system import System
from topicweave.testing.hostile import HostileMessages
from topicweave.testing.network import VirtualNetwork

NODES = [ring_id(f"node-{number}") for number in range(8)]
TOPICS = [ring_id(name) for name in ("a", "b", "c")]
ATTACKER = ring_id("attacker")


class Swarm(VirtualNetwork):
    """Nodes that gossip as live ones do, after their time to settle."""

    def __init__(self, system: System, seed: int, **changes: Any) -> None:
        super().__init__(seed)
        settings = system.settings(**changes)
        self.nodes: dict[NodeId, Node] = {}
        interest = frozenset(TOPICS)
        for number, node_id in enumerate(NODES):
            world = self.world(node_id)
            view = Membership(capacity=100).view(world, node_id, interest, None)
            node = self.nodes[node_id] = system.build(world, node_id, interest, view, settings)
            world.host(node)
            node.start(NODES[max(0, number - 3) : number])
        self.run_for(max(30.0, system.settles_within))

    def served(self, topic: TopicId) -> set[NodeId]:
        """Who gets an event that is published now."""
        event = self.nodes[NODES[0]].publish(topic, b"still here").event
        self.run_for(20.0)
        return {
            node for node, world in self.worlds.items() if event.id in {one.id for one in world.delivered}
        }


@pytest.mark.parametrize(
    ("name", "changes"),
    [*((name, {}) for name in SYSTEMS), ("weave", {"max_degree": 6}), ("weave", {"near": 2.0})],
)
def test_no_message_makes_a_node_fail_and_all_are_served_again(name: str, changes: dict[str, Any]) -> None:
    system = SYSTEMS[name]
    network = Swarm(system, 1, **changes)
    types = network.nodes[NODES[0]].message_types
    hostile = HostileMessages(types, [*NODES, ATTACKER], TOPICS, seed=2)
    rng = random.Random(3)
    for burst in range(12):
        # A burst at one node: what one message makes of it the next may exploit.
        victim = NODES[1 + burst % 6]
        sender = rng.choice((ATTACKER, ATTACKER, NODES[7]))
        for number in range(40):
            message = hostile.draw(types[(40 * burst + number) % len(types)])
            # Signatures see to it that nobody speaks in another's name.
            if isinstance(message, EventMessage):
                event = msgspec.structs.replace(message.event, publisher=ATTACKER)
                message = msgspec.structs.replace(message, event=event)
            network.tell(sender, victim, message)
            if number % 8 == 0:
                network.run_for(0.05)
        network.run_for(1.0)
    network.run_for(max(30.0, system.settles_within))
    if system.connects_topics:
        assert network.served(TOPICS[0]) == set(NODES)


@pytest.mark.parametrize("name", ["magnet", "strawman"])
def test_a_false_parent_that_says_everything_twice_upsets_nobody(name: str) -> None:
    network = Swarm(SYSTEMS[name], seed=1)
    topic = TOPICS[0]
    for victim in NODES[:6]:
        graft = TreeGraft((topic, topic), ((b"\x05", ATTACKER),) * 2, Contact(NODES[7], b"\x09\x01", 1), 1)
        network.tell(ATTACKER, victim, graft)
        network.tell(ATTACKER, victim, TreeMisplaced((topic, topic)))
    network.run_for(60.0)
    assert network.served(topic) == set(NODES)
