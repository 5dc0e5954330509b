"""OPT: coverage connects topics as long as the degree is free; bounded, some subscribers are missed."""

from __future__ import annotations

from typing import Any

import pytest

from topicweave.blocks.membership import Membership
from topicweave.errors import BadInput
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system
from topicweave.testing.invariants import DeliveryLog
from topicweave.workloads.vitis import generate_correlated


def share_reached(membership: str = "full", **parameters: Any) -> tuple[float, int]:
    """(hit ratio, largest degree) after an event on every topic."""
    workload = generate_correlated(150, topics=200, per_node=20, seed=2)
    system = find_system("opt")
    simulation = Simulation(
        workload, system, system.settings(**parameters), seed=1, membership=Membership.parse(membership)
    )
    log = DeliveryLog(simulation)
    simulation.run(20.0)
    expected = {}
    for topic in range(workload.topics):
        subscribers = workload.subscribers(topic).tolist()
        receipt = simulation.publish(subscribers[0], topic)
        expected[receipt.event.id] = set(subscribers)
    simulation.run(simulation.now + 10.0)
    total = sum(len(subscribers) for subscribers in expected.values())
    degrees = [simulation.node(index).degree for index in simulation.up()]
    return 1 - len(log.missed(expected)) / total, max(degrees)


def test_with_a_free_degree_everybody_is_reached() -> None:
    hit_ratio, degree = share_reached(coverage=3)
    assert hit_ratio == 1.0
    assert degree > 10


def test_with_a_bounded_degree_the_bound_is_kept_and_subscribers_are_missed() -> None:
    hit_ratio, degree = share_reached(coverage=3, table_size=6)
    assert degree <= 6
    assert hit_ratio < 0.95


def test_tman_over_gossip_brings_together_whom_coverage_needs() -> None:
    """Views of ten random peers hold few who want the same; T-Man's exchanges find them."""
    plain, _ = share_reached(membership="gossip:10", coverage=2, table_size=12)
    hit_ratio, degree = share_reached(membership="gossip:10", coverage=2, table_size=12, tman=30)
    assert degree <= 12
    assert hit_ratio > plain


def test_tman_needs_views_by_gossip() -> None:
    with pytest.raises(BadInput, match="views by gossip"):
        share_reached(coverage=2, tman=30)
