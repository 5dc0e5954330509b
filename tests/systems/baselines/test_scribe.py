"""Scribe: Pastry's routing, trees that reach everybody, near peers preferred."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest

from topicweave.blocks.membership import Membership
from topicweave.model.ids import NodeId, distance
from topicweave.model.workload import Workload
from topicweave.sim.faults import Crash
from topicweave.sim.latency import Coordinates, Latency, Uniform
from topicweave.sim.simulation import Simulation
from topicweave.systems.baselines.scribe import SCRIBE, PastryRouter, ScribeNode, digit, shared_digits
from topicweave.testing.invariants import DeliveryLog


def network(
    nodes: int, seed: int = 1, width: float = 80, latency: Latency | None = None, **more: Any
) -> tuple[Simulation, DeliveryLog, list[tuple[float, float]]]:
    rng = random.Random(seed)
    workload = Workload.from_lists({f"n{n:03d}": ["feed"] if n % 4 == 0 else [] for n in range(nodes)})
    places = [(rng.uniform(0, width), rng.uniform(0, width)) for _ in range(nodes)]
    settings = SCRIBE.settings(publishers={workload.topic_ids[0]: workload.node_ids[0]})
    latency = latency or Coordinates(places)
    simulation = Simulation(workload, SCRIBE, settings, seed=seed, latency=latency, **more)
    return simulation, DeliveryLog(simulation), places


def test_lookups_end_at_the_same_node_from_everywhere_and_come_nearer() -> None:
    simulation, _, _ = network(150)
    simulation.run(20.0)
    nodes = nodes_of(simulation)
    rng = random.Random(2)
    for _ in range(50):
        point = rng.getrandbits(64)
        ends = set()
        for start in rng.sample(sorted(nodes), 10):
            way = [start]
            while (hop := nodes[way[-1]].router().next_hop(point)) != way[-1]:
                way.append(hop)
            assert len(way) <= 8
            for one, other in pairwise(way):
                closer = distance(other, point) < distance(one, point)
                assert closer or shared_digits(other, point) > shared_digits(one, point)
            ends.add(way[-1])
        assert ends == {min(nodes, key=lambda node: (distance(node, point), node))}


def nodes_of(simulation: Simulation) -> dict[NodeId, ScribeNode]:
    nodes: dict[NodeId, ScribeNode] = {}
    for index in simulation.up():
        node = simulation.node(index)
        assert isinstance(node, ScribeNode)
        nodes[node.id] = node
    return nodes


def end_of_lookup(nodes: dict[NodeId, ScribeNode], start: NodeId, point: int) -> NodeId:
    way = [start]
    while (hop := nodes[way[-1]].router().next_hop(point)) != way[-1]:
        assert hop not in way, f"a circle: {[*way, hop]}"
        way.append(hop)
    return way[-1]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_lookups_end_at_the_same_node_though_nobody_knows_everybody(seed: int) -> None:
    """Each node has heard of a tenth of the others: neighbours on the ring find each other through those
    between them.
    """
    simulation, _, _ = network(150, seed, membership=Membership(share=0.1))
    simulation.run(60.0)
    nodes = nodes_of(simulation)
    rng = random.Random(seed)
    for point in [*rng.sample(sorted(nodes), 20), *(rng.getrandbits(64) for _ in range(30))]:
        root = min(nodes, key=lambda node: (distance(node, point), node))
        assert {end_of_lookup(nodes, start, point) for start in nodes} == {root}


def routes(nodes: dict[NodeId, ScribeNode]) -> set[tuple[NodeId, NodeId]]:
    return {
        (name, link.peer) for name, node in nodes.items() for link in node.links() if link.kind == "route"
    }


def test_tables_do_not_follow_views_that_forget_living_nodes() -> None:
    """Views of 20 of 100 nodes name others all the time. Those who are gone lose their places all the same."""
    simulation, _, _ = network(100, membership=Membership.parse("gossip:20"))
    simulation.run(80.0)
    before = routes(nodes_of(simulation))
    simulation.run(110.0)
    after = routes(nodes_of(simulation))
    assert len(before ^ after) <= 0.02 * len(after)
    gone = {simulation.hosts[index].name for index in range(1, 100, 10)}
    assert any(peer in gone for _, peer in after)
    for index in range(1, 100, 10):
        simulation.stop(index, orderly=False)
    simulation.run(250.0)
    assert {peer for _, peer in routes(nodes_of(simulation))} & gone == set()


@pytest.mark.parametrize("membership", ["gossip", "directory"])
def test_a_crashed_root_is_replaced_long_before_gossip_forgets_it(membership: str) -> None:
    workload = Workload.from_lists({f"n{n:03d}": ["feed"] if n % 4 == 0 else [] for n in range(60)})
    topic = workload.topic_ids[0]
    by_distance = sorted(range(60), key=lambda n: distance(workload.node_ids[n], topic))
    crashes = [Crash(60.0, 1000.0, node, False) for node in by_distance[:2]]
    simulation = Simulation(
        *(workload, SCRIBE, None), seed=1, membership=Membership.parse(membership), faults=crashes
    )
    log = DeliveryLog(simulation)
    simulation.run(90.0)
    wanting = {index for index in simulation.up() if index % 4 == 0}
    receipt = simulation.publish(min(wanting), 0)
    simulation.run(95.0)
    assert log.missed({receipt.event.id: wanting}) == []


def test_where_the_table_has_nobody_a_lookup_does_not_go_back() -> None:
    """Across a border of digits a nearer node shares fewer of them, and would send the lookup back by its table."""
    key = 0x2FFF_0000_0000_0000
    own, across = 0x2000_0000_0000_0000, 0x3000_0000_0000_0000
    leaf = own + 5
    router = PastryRouter(own, [own - 5, own, leaf], False, {(0, 3): across}, {})
    assert distance(across, key) < distance(leaf, key)
    assert router.next_hop(key) == leaf


def test_every_subscriber_gets_every_event_through_whoever_is_on_the_way() -> None:
    simulation, log, _ = network(150)
    simulation.run(30.0)
    receipt = simulation.publish(0, 0)
    simulation.run(35.0)
    wanting = {index for index in range(150) if index % 4 == 0}
    assert log.missed({receipt.event.id: wanting}) == []
    assert log.violations == []


def test_the_publishers_node_is_the_root() -> None:
    simulation, _, _ = network(80)
    simulation.run(30.0)
    root = simulation.node(0)
    assert isinstance(root, ScribeNode)
    assert root.relays.parent(simulation.workload.topic_ids[0]) is None
    assert len(root.relays.neighbours(simulation.workload.topic_ids[0])) > 0


def test_a_crashed_relay_is_replaced() -> None:
    simulation, _, _ = network(100, faults=[Crash(30.0, 1000.0, 5, False), Crash(30.0, 1000.0, 8, False)])
    log = DeliveryLog(simulation)
    simulation.run(90.0)
    receipt = simulation.publish(0, 0)
    simulation.run(95.0)
    wanting = {index for index in simulation.up() if index % 4 == 0}
    assert log.missed({receipt.event.id: wanting}) == []


def test_near_peers_are_preferred() -> None:
    """The table's entries are nearer than peers that would do as well are on average."""
    simulation, _, places = network(200)
    simulation.run(20.0)
    index_of = {host.name: host.index for host in simulation.hosts}
    chosen, possible = [], []
    for index in simulation.up():
        node = simulation.node(index)
        assert isinstance(node, ScribeNode)
        for (row, column), peer in node._table().items():
            assert shared_digits(node.id, peer) == row
            assert digit(peer, row) == column
            here = places[index]
            far = [
                sum((a - b) ** 2 for a, b in zip(here, places[index_of[one]], strict=True)) ** 0.5
                for one in (peer, *node._places[row, column])
            ]
            chosen.append(far[0])
            possible += far[1:]
    assert sum(chosen) / len(chosen) < 0.8 * sum(possible) / len(possible)


def test_of_equally_near_peers_all_choose_the_same() -> None:
    """Differences below what a round trip can tell are not acted upon: paths meet."""
    simulation, _, _ = network(200, width=1)
    simulation.run(20.0)
    for index in simulation.up():
        node = simulation.node(index)
        assert isinstance(node, ScribeNode)
        table = node._table()
        assert table
        assert all(table[place] == min(peers) for place, peers in node._places.items())


def test_round_trips_on_both_sides_of_a_border_are_as_near() -> None:
    """Each message takes 50 to 54.5 ms: no two round trips are further apart than can be told."""
    simulation, _, _ = network(200, latency=Uniform(0.05, 0.0545, random.Random(7)))
    simulation.run(20.0)
    for index in simulation.up():
        node = simulation.node(index)
        assert isinstance(node, ScribeNode)
        assert len(set(node._seconds.values())) > 1
        table = node._table()
        assert all(table[place] == min(peers) for place, peers in node._places.items())


def test_the_least_of_several_round_trips_counts() -> None:
    """The first one may have had to wait for a connection, or for a busy machine."""
    simulation, _, _ = network(60)
    simulation.run(2.0)
    node = simulation.node(0)
    assert isinstance(node, ScribeNode)
    peer, before = max(node._seconds.items(), key=lambda item: (item[1], item[0]))
    node._seconds[peer] = 9.0
    simulation.run(20.0)
    assert node._seconds[peer] == pytest.approx(before)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_tiny_rings_know_everybody(count: int) -> None:
    ids = [100, 2**40, 2**63][:count]
    router = PastryRouter(ids[0], sorted(ids), True, {}, {})
    for point in (0, 5000, 2**62, 2**64 - 1):
        assert router.next_hop(point) == min(ids, key=lambda one: (distance(one, point), one))


def test_a_node_that_leaves_says_so_and_its_branches_miss_nothing() -> None:
    simulation, log, _ = network(80)
    simulation.run(30.0)
    topic = simulation.workload.topic_ids[0]
    inner = [
        index
        for index in simulation.up()[1:]
        if len(simulation.node(index).relays.neighbours(topic)) > 2  # type: ignore[attr-defined]  # a node of Scribe
    ]
    assert inner
    gone = simulation.workload.node_ids[inner[0]]
    receipt = simulation.publish(0, 0)
    simulation.stop(inner[0], orderly=True)
    simulation.run(33.0)
    left = set(simulation.up())
    assert not [index for index in left if gone in simulation.node(index).known_peers()]
    wanting = {index for index in left if index % 4 == 0}
    assert log.missed({receipt.event.id: wanting}) == []
