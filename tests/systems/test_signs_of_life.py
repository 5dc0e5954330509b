"""A neighbour in the overlay that is a contact on the ring of homes, too, gets one sign of life and not two."""

from __future__ import annotations

from collections import Counter

import pytest

from topicweave.blocks.membership import DIRECTORY
from topicweave.blocks.topic_directory import DirectoryParameters
from topicweave.blocks.topic_directory.messages import Beat
from topicweave.model.ids import NodeId
from topicweave.port import Message
from topicweave.sim.host import Host
from topicweave.sim.network import Network
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system
from topicweave.workloads.catalogue import build

SIGNS = {
    "spidercast": {"sc-heartbeat"},
    "weave": {"sc-heartbeat"},
    "ring-per-topic": {"sc-heartbeat"},
    "omen": {"omen-heartbeat"},
    "gossipsub": {"gs-ping"},
}
PERIOD = DirectoryParameters().near_period - DirectoryParameters().tick / 2
SETTLED, END = 60.0, 90.0


@pytest.mark.parametrize("system", SIGNS)
def test_a_neighbour_on_the_ring_gets_one_sign_of_life(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = find_system(system)
    workload = build("spidercast", 1, nodes=16, topics=12, popularity="rss", min_size=4, max_size=4)
    settings = found.settings(**found.paced("lan", {}))
    simulation = Simulation(workload, found, settings, seed=1, membership=DIRECTORY)
    spoken: dict[tuple[NodeId, NodeId], float] = {}
    signs, twice = 0, Counter[tuple[NodeId, NodeId]]()
    send = Network.send

    def watched(network: Network, source: Host, peer: NodeId, message: Message) -> None:
        nonlocal signs
        now, pair = network.kernel.now, (source.name, peer)
        if message.__struct_config__.tag in SIGNS[system]:
            spoken[pair] = now
        elif isinstance(message, Beat) and message.near is None and not (message.asks or message.answer):
            signs += now > SETTLED
            if now > SETTLED and now - spoken.get(pair, -1e9) < PERIOD:
                twice[pair] += 1
        send(network, source, peer, message)

    monkeypatch.setattr(Network, "send", watched)
    simulation.run(END)
    assert len([1 for moment in spoken.values() if moment > SETTLED]) > 16
    assert signs > 0
    # Each eighth sign goes out in any case: it says what else there is to say, as whose finger a node is.
    assert max(twice.values(), default=0) <= 1
