"""What may go wrong, by name: the node that everything hangs on dies, the ring is cut, half the network comes
at once.
"""

from __future__ import annotations

import pytest

from tests.systems.vitis.virtual import VirtualNetwork, small_workload
from topicweave.sim.churn import Change, Churn
from topicweave.sim.faults import Partition
from topicweave.systems.vitis import VitisNode

SETTLED, MENDED = 30.0, 25.0
"""Long enough to notice the silent (9 s), elect anew (d heartbeats) and renew the paths."""


def settled(system: str) -> VirtualNetwork:
    network = VirtualNetwork(system, table_size=6)
    network.sim.run(SETTLED)
    return network


def crash(network: VirtualNetwork, nodes: set[int]) -> None:
    for index in nodes:
        network.sim.stop(index, orderly=False)
    network.sim.run(network.sim.now + MENDED)


@pytest.mark.parametrize("system", ["vitis", "rvr"])
def test_rendezvous_crash(system: str) -> None:
    network = settled(system)
    topics = network.workload.topic_ids[:5]
    crash(network, {network.index_of(node) for topic in topics for node in network.rendezvous(topic)})
    assert all(len(network.rendezvous(topic)) == 1 for topic in topics)
    assert network.missed() == []


def test_gateway_crash() -> None:
    network = settled("vitis")
    topic = max(network.workload.topic_ids, key=lambda topic: len(network.subscribers(topic)))
    gateways = {
        network.index_of(node.id)
        for node in network.nodes().values()
        if isinstance(node, VitisNode) and topic in node.election.gateway_topics
    }
    assert 0 < len(gateways) < len(network.subscribers(topic))
    crash(network, gateways)
    assert network.missed() == []


@pytest.mark.parametrize("system", ["vitis", "rvr"])
def test_relay_crash(system: str) -> None:
    network = settled(system)
    topic = network.workload.topic_ids[0]
    relays = {
        network.index_of(node.id)
        for node in network.nodes().values()
        if node.relays.relays(topic) and topic not in node.subscriptions
    }
    assert relays
    crash(network, relays)
    assert network.missed() == []


@pytest.mark.parametrize("system", ["vitis", "rvr"])
def test_partition_and_heal_of_the_ring(system: str) -> None:
    """Both halves become rings of their own, and one ring again once they hear of each other."""
    workload = small_workload()
    island = frozenset(range(0, workload.nodes, 2))
    network = VirtualNetwork(
        system, workload, table_size=6, faults=[Partition(SETTLED, SETTLED + 60.0, island)]
    )
    network.sim.run(SETTLED + 59.0)
    ids = {workload.node_ids[index] for index in island}
    for own, node in network.nodes().items():
        assert all((peer in ids) == (own in ids) for peer in node.table)
    network.sim.run(SETTLED + 60.0 + 90.0)
    assert network.ring_share() == 1.0
    assert network.missed() == []


@pytest.mark.parametrize("system", ["vitis", "rvr"])
def test_simultaneous_join_of_half_the_network(system: str) -> None:
    workload = small_workload(80)
    late = range(40, 80)
    churn = Churn(frozenset(range(40)), tuple(Change(SETTLED, node, True) for node in late))
    network = VirtualNetwork(system, workload, table_size=6, churn=churn)
    network.sim.run(SETTLED + MENDED)
    assert len(network.sim.up()) == 80
    assert network.ring_share() == 1.0
    assert network.missed() == []
