"""A home that lies names members that do not want a topic. How often they are called in vain is bounded: docs/security.md."""

from __future__ import annotations

import random
from collections.abc import Collection

import pytest

from topicweave.blocks.directory_view import DirectoryView
from topicweave.blocks.membership import DIRECTORY
from topicweave.blocks.named_contacts import AT_ONCE, PAUSE
from topicweave.blocks.topic_directory.messages import Carry, Told, TopicContact
from topicweave.model.ids import NodeId
from topicweave.model.workload import Workload
from topicweave.port import Message, Node
from topicweave.sim.host import Host
from topicweave.sim.network import Network
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


@pytest.mark.parametrize("parted", [False, True], ids=["named", "introduced"])
@pytest.mark.parametrize("system", ["spidercast", "omen", "rappel", "gossipsub", "ring-per-topic"])
def test_lies_cost_a_bounded_number_of_calls(
    system: str, parted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = {"victim": ["rare"], "friend": ["rare"], "liar": ["else"]}
    wanted |= {f"n{number}": [f"other{number % 20}"] for number in range(60)}
    workload = Workload.from_lists(wanted)
    found = find_system(system)
    simulation = Simulation(
        workload, found, found.settings(**found.paced("lan", {})), seed=1, membership=DIRECTORY
    )
    simulation.run(SETTLED)
    nodes = {name: simulation.node(index) for index, name in enumerate(workload.node_names)}
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
    view = victim.view  # type: ignore[attr-defined]  # all of these have one
    assert isinstance(view, DirectoryView)
    assert len(view._contacts) <= AT_ONCE
    assert victim.degree <= AT_ONCE + LYING / PAUSE
