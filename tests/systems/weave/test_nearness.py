"""Distances: what is measured, what it counts, and what a node makes of it."""

from __future__ import annotations

from statistics import fmean

import pytest

from tests.systems.overlays import graph_of, parted_topics
from topicweave.blocks.membership import Membership
from topicweave.model.ids import NodeId
from topicweave.sim.latency import Coordinates
from topicweave.sim.simulation import Simulation
from topicweave.systems.weave import WEAVE, nearness
from topicweave.systems.weave.nearness import KEEP, MOST_AT_ONCE, PATIENCE, TIMES, HowFar, Nearness, SoFar
from topicweave.testing import VirtualNetwork
from topicweave.workloads import generate

WEIGHT = 2.0


class Measuring:
    """Node 1, which measures others."""

    def __init__(self, *peers: NodeId) -> None:
        self.net = VirtualNetwork(latency=0.05)
        self.done = 0
        self.nearness = self._node(1)
        for peer in peers:
            self._node(peer)

    def _node(self, node: NodeId) -> Nearness:
        world = self.net.world(node)
        nearness = Nearness(world, WEIGHT, self._measured)
        world.use(nearness)
        return nearness

    def _measured(self) -> None:
        self.done += 1

    def measure(self, *peers: NodeId, latency: float = 0.05) -> None:
        self.net.latency = latency
        self.nearness.measure(peers)
        self.net.run_for(PATIENCE + 0.1)


def test_who_is_twice_as_far_counts_twice_as_much_less_and_a_stranger_like_the_nearer_quarter() -> None:
    one = Measuring(*range(2, 7))
    one.measure(2, latency=0.02)
    one.measure(3, 4, 5, latency=0.05)
    one.measure(6, latency=0.1)
    assert [one.nearness.less(peer) for peer in (2, 3, 6)] == pytest.approx(
        [0.4 * WEIGHT, WEIGHT, 2 * WEIGHT]
    )
    one.measure(2, 3, 4, 5, 6, latency=9.0)
    assert one.nearness.less(2) == pytest.approx(0.4 * WEIGHT), "nobody is measured twice"
    assert one.nearness.less(99) == one.nearness.less(3)
    assert one.done == 3


def test_the_least_of_some_round_trips_counts() -> None:
    one = Measuring(2, 3)
    one.measure(3)
    one.net.latency = 0.5  # The first question has to wait for a connection.
    one.nearness.measure([2])
    one.net.latency = 0.05
    one.net.run_for(PATIENCE)
    assert one.nearness.less(2) == one.nearness.less(3) == WEIGHT


def test_who_does_not_answer_is_far_away_and_holds_nobody_up() -> None:
    one = Measuring(2)
    one.nearness.measure([2, 7])
    one.net.run_for(PATIENCE - 0.1)
    assert not one.nearness.settled(2)
    one.net.run_for(0.2)
    assert one.nearness.settled(2)
    assert one.nearness.settled(7)
    assert one.nearness.less(7) > one.nearness.less(2)
    assert one.done == 1


def test_few_are_asked_at_a_time_and_what_was_measured_is_forgotten_in_the_end() -> None:
    peers = tuple(range(2, 30))
    one = Measuring(*peers)
    one.net.listen()
    one.measure(*peers)
    assert len(one.net.sent(HowFar)) == TIMES * MOST_AT_ONCE
    assert len(one.nearness.known_peers()) == MOST_AT_ONCE
    one.net.run_for(KEEP)
    one.measure(2)
    assert one.nearness.known_peers() == {2}
    one.nearness.forget(2)
    assert one.nearness.known_peers() == set()


def test_who_has_measured_enough_measures_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearness, "MOST_KNOWN", 3)
    one = Measuring(2, 3, 4, 5)
    one.measure(2, 3)
    assert not one.nearness.settled(4)
    one.measure(4)
    one.net.listen()
    one.measure(5)
    assert one.nearness.settled(5)
    assert one.net.log == []
    assert one.nearness.known_peers() == {2, 3, 4}


def test_answers_to_no_question_count_for_nothing() -> None:
    one = Measuring()
    one.net.tell(2, 1, SoFar(0))
    one.nearness.measure([2])
    one.net.tell(2, 1, SoFar(0))
    one.net.tell(3, 1, SoFar(0))
    assert not one.nearness.settled(2)
    assert one.nearness.known_peers() == {2}


def test_who_speaks_an_earlier_wire_format_is_not_asked_nor_waited_for() -> None:
    one = Measuring(2)
    one.net.earlier.add(2)
    one.net.listen()
    one.measure(2)
    assert one.nearness.settled(2)
    assert one.net.log == []


def mean_distance(near: float) -> float:
    """Of a link's ends. Nodes are at two places, far apart."""
    workload = generate(80, 30, "rss", min_size=6, max_size=6, seed=1)
    points = [(0.0, node % 2 * 100.0) for node in range(80)]
    simulation = Simulation(
        workload,
        WEAVE,
        WEAVE.settings(near=near),
        seed=1,
        membership=Membership.parse("directory"),
        latency=Coordinates(points, floor=5e-3),
    )
    simulation.run(90.0)
    assert parted_topics(simulation) == []
    return fmean(a % 2 != b % 2 for a, b in graph_of(simulation).edges)


def test_with_distance_counted_neighbours_are_nearer() -> None:
    far, near = mean_distance(0.0), mean_distance(2.0)
    assert near < 0.9 * far
