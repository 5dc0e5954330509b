"""Weave as a whole, in the simulator."""

from __future__ import annotations

import pyarrow.compute as pc
import pytest

from tests.systems.overlays import (
    asymmetric,
    graph_of,
    mean_degree,
    members,
    parted_topics,
    publish_everywhere,
    settle,
)
from topicweave.sim.simulation import Simulation
from topicweave.telemetry.writer import MemoryTelemetry
from topicweave.workloads import generate


def without_a_lower_link(simulation: Simulation) -> list[tuple[int, int]]:
    """(node, topic), where the topic has somebody lower and the node no link to such a one."""
    ids = {node: simulation.node(node).id for node in simulation.up()}
    graph = graph_of(simulation)
    return [
        (node, topic)
        for topic, wanting in members(simulation).items()
        for node in wanting
        if ids[node] != min(ids[other] for other in wanting)
        and not any(ids[peer] < ids[node] for peer in graph[node] if peer in wanting)
    ]


@pytest.mark.parametrize(
    ("seed", "nodes", "popularity"),
    [(1, 100, "rss"), (2, 120, "uniform"), (3, 150, "nyse"), (4, 200, "zipf1")],
)
def test_an_overlay_at_rest(seed: int, nodes: int, popularity: str) -> None:
    """Bridges are off: lower links alone must do it."""
    workload = generate(nodes, 40, popularity, min_size=4, max_size=10, seed=seed)
    simulation = settle("weave", workload, seed, telemetry=True, bridges=0, until=30.0)
    assert asymmetric(graph_of(simulation)) == []
    assert without_a_lower_link(simulation) == []
    assert parted_topics(simulation) == []
    expected, got = publish_everywhere(simulation)
    assert got == expected  # everyone, once
    assert isinstance(simulation.telemetry, MemoryTelemetry)
    assert pc.all(simulation.telemetry.tables().deliveries["wanted"]).as_py()  # no noise


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_lower_links_are_found_with_the_membership_of_live_nodes(seed: int) -> None:
    """The second lowest subscriber of a topic has one peer to link to. It asks for that one, however many
    others it knows.
    """
    workload = generate(60, 20, "rss", min_size=6, max_size=6, seed=seed)
    simulation = settle("weave", workload, seed, membership="directory", until=30.0)
    assert without_a_lower_link(simulation) == []


def test_fewer_links_than_spidercast_with_the_membership_of_live_nodes() -> None:
    workload = generate(120, 40, "rss", min_size=10, max_size=10, seed=1)
    simulations = {
        name: settle(name, workload, 1, membership="directory", until=40.0)
        for name in ("weave", "spidercast")
    }
    assert parted_topics(simulations["weave"]) == []
    assert mean_degree(simulations["weave"]) < mean_degree(simulations["spidercast"])


def test_the_dial_adds_links() -> None:
    workload = generate(80, 40, "rss", min_size=6, max_size=6, seed=2)
    few, many = (mean_degree(settle("weave", workload, 2, links=links)) for links in (0, 10))
    assert few < many


def test_nobody_gets_far_beyond_busy() -> None:
    """One topic that everybody wants: the lowest would be a neighbour of all."""
    workload = generate(100, 1, "uniform", min_size=1, max_size=1, seed=3)
    simulation = settle("weave", workload, 3, until=40.0, busy=8, links=2)
    assert parted_topics(simulation) == []
    assert max(simulation.node(node).degree for node in simulation.up()) <= 16
