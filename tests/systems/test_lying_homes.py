"""A home that lies names members that do not want a topic. Where nodes have keys, nobody is called because of
it; elsewhere how often is bounded: docs/security.md.
"""

from __future__ import annotations

import random
from collections.abc import Collection

import pytest

from topicweave.blocks.directory_view import DirectoryView
from topicweave.blocks.interest_node import ViewNode
from topicweave.blocks.membership import DIRECTORY
from topicweave.blocks.named_contacts import AT_ONCE, PAUSE
from topicweave.blocks.topic_directory.messages import (
    WITHDRAWS,
    Announcement,
    Carry,
    Proof,
    ProvenCarry,
    Record,
    Told,
    TopicContact,
)
from topicweave.model.ids import NodeId, TopicId
from topicweave.model.workload import Workload
from topicweave.port import Message, Node
from topicweave.sim.host import Host
from topicweave.sim.network import Network
from topicweave.sim.proofs import LENGTH, SimulatedProofs
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system

SETTLED, HONEST, LYING = 20.0, 20.0, 60.0
IDLE = 30.0
"""A live connection that was silent for so long is closed: the next message would need another one."""


class Calls:
    """What a node sends to strangers, and for how much of that a connection would have to be made."""

    def __init__(
        self,
        node: Node,
        strangers: list[NodeId],
        membership: Collection[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.kinds: set[type[Message]] = set()
        """Those that honest times know. Gossip and the ring of homes go to anybody, at any time."""
        self.lied_to = False
        self.made: list[NodeId] = []
        self._last: dict[NodeId, float] = {}
        send = Network.send

        def noted(network: Network, source: Host, peer: NodeId, message: Message) -> None:
            if (
                source.name == node.id
                and peer in strangers
                and message.__struct_config__.tag not in membership
            ):
                if not self.lied_to:
                    self.kinds.add(type(message))
                elif type(message) not in self.kinds:
                    self._call(peer, network.kernel.now)
            send(network, source, peer, message)

        monkeypatch.setattr(Network, "send", noted)

    def _call(self, peer: NodeId, now: float) -> None:
        if now - self._last.get(peer, -IDLE) >= IDLE:
            self.made.append(peer)
        self._last[peer] = now


def swarm_with_a_liar(
    system: str, proofs: SimulatedProofs | None = None
) -> tuple[Simulation, dict[str, Node]]:
    """Two that want the same rare topic, one that lies, and many strangers."""
    wanted = {"victim": ["rare"], "friend": ["rare"], "liar": ["else"]}
    wanted |= {f"n{number}": [f"other{number % 20}"] for number in range(60)}
    workload = Workload.from_lists(wanted)
    found = find_system(system)
    simulation = Simulation(
        workload, found, found.settings(**found.paced("lan", {})), seed=1, membership=DIRECTORY
    )
    if proofs is not None:
        simulation.use_proofs(proofs)
    simulation.run(SETTLED)
    return simulation, {name: simulation.node(index) for index, name in enumerate(workload.node_names)}


def view_of(node: Node) -> DirectoryView:
    assert isinstance(node, ViewNode)
    assert isinstance(node.view, DirectoryView)
    return node.view


SYSTEMS = ["spidercast", "omen", "rappel", "gossipsub", "ring-per-topic", "weave"]


@pytest.mark.parametrize("parted", [False, True], ids=["named", "introduced"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_lies_cost_a_bounded_number_of_calls(
    system: str, parted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulation, nodes = swarm_with_a_liar(system)
    victim, [topic] = nodes["victim"], nodes["victim"].subscriptions
    strangers = [node.id for name, node in nodes.items() if name.startswith("n")]
    rng = random.Random(5)
    calls = Calls(victim, strangers, simulation.membership_kinds, monkeypatch)
    simulation.run(SETTLED + HONEST)
    calls.lied_to = True
    for second in range(int(LYING)):
        told = tuple(
            TopicContact(peer, rng.choice(strangers) if parted else None, 100_000)
            for peer in rng.sample(strangers, 8)
        )
        lie = Told(victim.id, topic, told, 200, 60.0, parted)
        victim.receive(nodes["liar"].id, Carry(second, told=(lie,)))
        simulation.run(SETTLED + HONEST + second + 1)
    assert len(calls.made) <= AT_ONCE + LYING / PAUSE
    assert len(view_of(victim)._contacts) <= AT_ONCE
    assert victim.degree <= AT_ONCE + LYING / PAUSE


def lies(liar: NodeId, proofs: SimulatedProofs, topic: TopicId, peer: NodeId, now: float) -> list[Proof]:
    """Whatever somebody else can show for a peer that never said that it wants the topic."""
    said = bytes([1]) + (1).to_bytes(8, "big") + topic.to_bytes(8, "big")
    return [
        Proof(peer, 1, (topic,), bytes(LENGTH)),
        Proof(peer, 1, (topic,), proofs.make(liar, said, now)),
        Proof(peer, 1, (topic,), b""),
    ]


@pytest.mark.parametrize("parted", [False, True], ids=["named", "introduced"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_with_keys_lies_cost_no_call_at_all(
    system: str, parted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    proofs = SimulatedProofs()
    simulation, nodes = swarm_with_a_liar(system, proofs)
    victim, friend, liar = nodes["victim"], nodes["friend"], nodes["liar"]
    [topic] = victim.subscriptions
    strangers = [node.id for name, node in nodes.items() if name.startswith("n")]
    rng = random.Random(5)
    calls = Calls(victim, strangers, simulation.membership_kinds, monkeypatch)
    simulation.run(SETTLED + LYING)  # What it sends to strangers in as long a time without lies.
    calls.lied_to = True
    for second in range(int(LYING)):
        named = rng.sample(strangers, 8)
        told = tuple(TopicContact(peer, liar.id if parted else None, 100_000) for peer in named)
        shown = tuple(lie for peer in named for lie in lies(liar.id, proofs, topic, peer, simulation.now))
        lie = Told(victim.id, topic, told, 200, 60.0, parted)
        victim.receive(liar.id, ProvenCarry(second, told=(lie,), proofs=shown if second % 2 else ()))
        simulation.run(SETTLED + LYING + second + 1)
    assert calls.made == []
    assert view_of(victim).subscribers(topic).tolist() == [friend.id]


@pytest.mark.parametrize("system", SYSTEMS)
def test_with_keys_nobody_is_put_down_or_struck_off_by_others(system: str) -> None:
    """The home of a topic, and those who keep its records, are told in the names of others."""
    proofs = SimulatedProofs()
    simulation, nodes = swarm_with_a_liar(system, proofs)
    simulation.run(SETTLED + HONEST)
    victim, friend, liar = nodes["victim"], nodes["friend"], nodes["liar"]
    [topic] = victim.subscriptions
    strangers = [node.id for name, node in nodes.items() if name.startswith("n")]
    by_ring = sorted(nodes.values(), key=lambda node: (node.id - topic) % (1 << 64))
    keepers = [view_of(node).directory for node in by_ring[:4]]
    epoch = keepers[0].home._topics[topic].kept[friend.id].epoch
    for number in range(200):
        peer = strangers[number % len(strangers)]
        shown = tuple(lies(liar.id, proofs, topic, peer, simulation.now))
        claimed = Announcement(peer, 1, 6000.0, (topic,), b"\0")
        record = Record(topic, peer, 1, 6000.0, None, -1.0)
        struck = Announcement(friend.id, epoch + 5, 60.0, (topic,), bytes([WITHDRAWS]))
        gone = Record(topic, friend.id, 0, 0.0, None, -1.0)
        for node in by_ring[:4]:
            said = ProvenCarry(number, (claimed, struck), records=(record,), proofs=shown)
            node.receive(liar.id, said)
        by_ring[0].receive(liar.id, Carry(number, records=(gone,)))
        simulation.run(SETTLED + HONEST + number / 10)
    for directory in keepers:
        assert set(directory.home.subscribers(topic)) == {victim.id, friend.id}
