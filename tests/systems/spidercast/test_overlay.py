"""SpiderCast as a whole, in the simulator: what §1 and §2 promise of the overlay."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.systems.overlays import (
    asymmetric,
    graph_of,
    mean_degree,
    parted_topics,
    publish_everywhere,
    settle,
    uncovered,
)
from topicweave.model.workload import Workload
from topicweave.sim.churn import exponential
from topicweave.sim.faults import Partition
from topicweave.sim.latency import Constant
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system
from topicweave.systems.spidercast import CONTROL_KINDS, SpiderCastNode
from topicweave.telemetry.writer import MemoryTelemetry
from topicweave.workloads import generate


def overlay(nodes: int, seed: int, popularity: str = "rss", topics: int = 40) -> Workload:
    return generate(nodes, topics, popularity, min_size=4, max_size=10, seed=seed)


@pytest.mark.parametrize(
    ("seed", "nodes", "popularity"),
    [(1, 100, "rss"), (2, 120, "uniform"), (3, 150, "nyse"), (4, 200, "zipf1")],
)
def test_an_overlay_at_rest(seed: int, nodes: int, popularity: str) -> None:
    """Bridges are off: coverage alone must do it."""
    simulation = settle("spidercast", overlay(nodes, seed, popularity), seed, telemetry=True, bridges=0)
    graph = graph_of(simulation)
    assert asymmetric(graph) == []
    assert parted_topics(simulation) == []
    assert uncovered(simulation, k=3) == []
    for node in simulation.up():
        limit = 3 * len(simulation.node(node).subscriptions)
        assert graph.out_degree(node) <= limit

    expected, got = publish_everywhere(simulation)
    assert got == expected  # everyone, once
    assert isinstance(simulation.telemetry, MemoryTelemetry)
    deliveries = simulation.telemetry.tables().deliveries
    assert deliveries.num_rows > len(expected) / 2
    assert pc.all(deliveries["wanted"]).as_py()  # no noise


@pytest.mark.parametrize("membership", ["25%", "gossip"])
def test_partial_views_do(membership: str) -> None:
    """§3.7."""
    workload = generate(160, 20, min_size=4, max_size=8, seed=7)
    simulation = settle("spidercast", workload, seed=7, until=40.0, membership=membership, bridges=0)
    assert parted_topics(simulation) == []
    assert asymmetric(graph_of(simulation)) == []
    expected, got = publish_everywhere(simulation)
    assert got == expected


def test_more_coverage_means_more_links() -> None:
    workload = overlay(120, seed=5)
    degrees = [
        mean_degree(settle("spidercast", workload, bridges=0, k_greedy=greedy, k_random=random))
        for greedy, random in ((1, 0), (2, 0), (3, 0), (3, 1))
    ]
    assert all(fewer < more for fewer, more in pairwise(degrees))


def test_greedy_needs_fewer_links_than_random() -> None:
    """§2.1: a greedy link covers much more than one topic."""
    workload = overlay(150, seed=6)
    greedy = mean_degree(settle("spidercast", workload, bridges=0))
    at_random = mean_degree(settle("spidercast", workload, bridges=0, k_greedy=0, k_random=3))
    assert greedy < 0.8 * at_random


def test_topics_with_few_subscribers_do_not_swell_the_degree() -> None:
    """Most nodes have a topic that cannot be covered three times: they trim all the same."""
    workload = generate(120, 300, "zipf1", min_size=8, max_size=8, seed=1)
    simulation = settle("spidercast", workload, bridges=0)
    assert parted_topics(simulation) == []
    assert uncovered(simulation, k=3) == []
    at_rest = [(node, peer) for node in simulation.up() for peer in _spare_at_both_ends(simulation, node)]
    assert at_rest == []


def _spare_at_both_ends(simulation: Simulation, index: int) -> list[int]:
    index_of = {host.name: host.index for host in simulation.hosts}
    mine = _spidercast(simulation, index)
    return [
        peer
        for peer in mine.tasks["greedy"].neighbours
        if mine.tasks["greedy"].state(peer).spare
        and _spidercast(simulation, index_of[peer]).tasks["greedy"].state(mine.id).spare
    ]


def _spidercast(simulation: Simulation, index: int) -> SpiderCastNode:
    node = simulation.node(index)
    assert isinstance(node, SpiderCastNode)
    return node


@pytest.mark.parametrize("delay", [0.4, 1.0])
def test_slow_links_do_not_keep_it_from_settling(delay: float) -> None:
    """Answers take longer than `connect_timeout`: asking on and on would never end."""
    workload = overlay(80, seed=8)
    telemetry = MemoryTelemetry("slow", {}, {})
    system = find_system("spidercast")
    simulation = Simulation(
        workload, system, system.settings(bridges=0), seed=8, latency=Constant(delay), telemetry=telemetry
    )
    simulation.run(60.0)
    simulation.flush_control()
    simulation.run(90.0)
    simulation.flush_control()
    assert uncovered(simulation, k=3) == []
    assert asymmetric(graph_of(simulation)) == []
    control = telemetry.tables().control
    late = control.filter(pc.greater(control["time"], 60.0))
    kinds = set(late["kind"].cast(pa.string()).to_pylist())
    assert "sc-heartbeat" in kinds
    assert kinds.isdisjoint(CONTROL_KINDS)


def test_adaptive_nodes_take_random_links_only_where_all_want_the_same() -> None:
    """§3.3.1: nothing changes for varied interests; nodes that all want the same get random links."""
    varied = settle("spidercast", overlay(150, seed=9), bridges=0, adaptive=True)
    assert varied.gauges()["k_random"] == 0
    same = generate(60, 10, min_size=10, max_size=10, seed=9)
    alike = settle("spidercast", same, bridges=0, adaptive=True)
    assert alike.gauges()["random_coverage_share"] > 0.5
    plain = settle("spidercast", same, bridges=0)
    assert plain.gauges()["k_random"] == 0
    assert mean_degree(alike) > mean_degree(plain)


def test_topics_stay_connected_under_churn() -> None:
    """§3.8, with bridges off: nodes come and go all the time, and every topic holds together."""
    workload = generate(120, 10, min_size=3, max_size=6, seed=10)
    churn = exponential(120, mean_up=100.0, mean_down=25.0, duration=100.0, seed=10)
    simulation = settle("spidercast", workload, 10, until=40.0, churn=churn, bridges=0)
    assert simulation.churn_operations > 20
    for moment in range(50, 101, 10):
        simulation.run(float(moment))
        settled = [
            node for node in simulation.up() if simulation.hosts[node].up_since <= simulation.now - 4.0
        ]
        assert 60 < len(settled) < 120
        assert parted_topics(simulation, settled) == []


def test_a_partition_heals_through_bridges() -> None:
    workload = generate(60, 8, min_size=2, max_size=4, seed=11)
    system = find_system("spidercast")
    simulation = Simulation(workload, system, seed=11, faults=[Partition(5.0, 40.0, frozenset(range(25)))])
    simulation.run(39.0)
    assert len(parted_topics(simulation)) == 8
    simulation.run(120.0)
    assert parted_topics(simulation) == []
    assert asymmetric(graph_of(simulation)) == []
    expected, got = publish_everywhere(simulation)
    assert got == expected


def test_a_run_is_a_function_of_its_seed() -> None:
    workload = overlay(60, seed=12)
    edges = [sorted(graph_of(settle("spidercast", workload, seed)).edges) for seed in (1, 1, 2)]
    assert edges[0] == edges[1] != edges[2]
