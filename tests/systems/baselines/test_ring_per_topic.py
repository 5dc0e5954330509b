"""A ring per topic: exactly the rings, however they come about (§3.9.2)."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.systems.overlays import graph_of, members, publish_everywhere, settle
from topicweave.model.ids import RING_SIZE
from topicweave.sim.churn import exponential
from topicweave.sim.faults import Partition
from topicweave.sim.simulation import Simulation
from topicweave.systems.baselines.ring_per_topic import NAME_LASTS, RingNode, ring_neighbours
from topicweave.systems.registry import find_system
from topicweave.testing import NEWS, Bench
from topicweave.workloads import generate

IDS = st.integers(0, RING_SIZE - 1)


@given(IDS, st.lists(IDS, unique=True, max_size=12), st.booleans())
def test_ring_neighbours_are_the_next_and_the_last(own: int, peers: list[int], among_them: bool) -> None:
    others = sorted(set(peers) - {own})
    around = [peer for peer in others if peer > own] + [peer for peer in others if peer < own]
    listed = [*peers, own] if among_them else others
    assert ring_neighbours(own, np.array(listed, dtype=np.uint64)) == (
        {around[0], around[-1]} if around else set()
    )


def rings(simulation: Simulation) -> nx.Graph:
    """All rings by brute force: for each topic its subscribers in the order of their identifiers, joined up."""
    union = nx.Graph()
    union.add_nodes_from(simulation.up())
    for wanting in members(simulation).values():
        ring = sorted(wanting, key=lambda node: simulation.hosts[node].name)
        union.add_edges_from((a, b) for a, b in zip(ring, ring[1:] + ring[:1], strict=True) if a != b)
    return union


def assert_rings(simulation: Simulation) -> None:
    """Every link that a ring needs, and no other."""
    expected, graph = rings(simulation), graph_of(simulation)
    assert set(graph.edges) == {*expected.edges, *((b, a) for a, b in expected.edges)}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_links_are_those_of_the_rings(seed: int) -> None:
    simulation = settle(
        "ring-per-topic", generate(100, 30, min_size=1, max_size=8, seed=seed), seed, until=30.0
    )
    assert_rings(simulation)
    expected, got = publish_everywhere(simulation)
    assert got == expected


def test_rings_close_after_churn_and_changes_of_interest() -> None:
    workload = generate(80, 12, min_size=2, max_size=5, seed=4)
    churn = exponential(80, mean_up=60.0, mean_down=20.0, duration=40.0, seed=4)
    simulation = settle("ring-per-topic", workload, 4, until=20.0, churn=churn)
    for node in simulation.up()[:10]:
        simulation.subscribe(node, node % 12)
        simulation.unsubscribe(node, (node + 5) % 12)
    simulation.run(80.0)
    assert simulation.churn_operations > 10
    assert_rings(simulation)


def test_rings_close_after_a_partition_though_the_directory_never_changed() -> None:
    """A peer that could not be reached is left out of the view for a while: it must be seen when it is back."""
    workload = generate(40, 6, min_size=1, max_size=3, seed=5)
    system = find_system("ring-per-topic")
    split = Partition(10.0, 40.0, frozenset(range(15)))
    simulation = Simulation(workload, system, seed=5, faults=[split])
    simulation.run(39.0)
    assert set(graph_of(simulation).edges) != set(rings(simulation).to_directed().edges)
    simulation.run(80.0)
    assert_rings(simulation)


def test_by_gossip_the_rings_come_about_as_well() -> None:
    workload = generate(40, 8, min_size=1, max_size=4, seed=6)
    assert_rings(settle("ring-per-topic", workload, 6, until=60.0, membership="gossip"))


def test_a_full_node_calls_who_is_named_and_forgets_one_that_is_gone() -> None:
    """One that comes between may have all the links that it needs as well: nobody else would join the rings."""
    simulation = settle("ring-per-topic", generate(5, 1, min_size=1, max_size=1, seed=1), 1, until=30.0)
    node = simulation.node(0)
    assert isinstance(node, RingNode)
    assert node.degree == node._ring.limit() == 2
    gone = node.id + 1
    node._introduced(simulation.workload.topic_ids[0], gone, gone)
    assert node._ring.limit() == 3
    simulation.run(30.1)
    assert gone in node.known_peers()
    simulation.run(40.0)
    assert gone not in node.known_peers()
    assert node.degree == node._ring.limit() == 2
    assert_rings(simulation)


def test_a_name_is_forgotten_after_a_while() -> None:
    """Its bearer may refuse for ever."""
    bench = Bench[RingNode]("ring-per-topic")
    node = bench.add(5, NEWS)
    node._ring.name(NEWS, 7)
    assert node._ring.named == {7}
    bench.now += NAME_LASTS + 1.0
    assert node._ring.lacking() == 0
    assert node._ring.named == set()
