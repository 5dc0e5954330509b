"""Vivaldi coordinates, their filters, and placing by landmarks."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from topicweave.blocks.vivaldi import (
    LatencyFilter,
    StableCoordinate,
    Vivaldi,
    distance,
    place,
    relative_errors,
)


def points(count: int, dimensions: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-0.1, 0.1, (count, dimensions))


def test_springs_find_a_plane_again() -> None:
    """Hosts in two dimensions embed in two dimensions with hardly an error."""
    truth = points(30, 2, seed=1)
    one_way = np.sqrt(((truth[:, None] - truth[None]) ** 2).sum(axis=2))
    rng = random.Random(1)
    nodes = [Vivaldi(rng, 2) for _ in truth]
    for _ in range(300):
        for one, node in enumerate(nodes):
            other = rng.randrange(len(nodes))
            if other != one:
                node.update(one_way[one, other], nodes[other].position, nodes[other].error)
    errors = relative_errors(np.array([node.position for node in nodes]), one_way)
    assert np.median(errors) < 0.05
    assert all(node.error < 0.2 for node in nodes)


def test_nodes_at_the_same_point_come_apart() -> None:
    node = Vivaldi(random.Random(1), 3)
    node.update(0.05, node.position, 0.1)
    assert distance(node.position, (0.0, 0.0, 0.0)) > 0.005


def test_nonsense_moves_nothing() -> None:
    node = Vivaldi(random.Random(1), 3)
    before = node.position
    node.update(math.nan, (0.0, 0.0, 0.0), 0.5)
    node.update(math.inf, (0.0, 0.0, 0.0), 0.5)
    node.update(-1.0, (0.0, 0.0, 0.0), 0.5)
    node.update(0.1, (0.0, 0.0), 0.5)
    assert node.position == before


@pytest.mark.parametrize("dimensions", [2, 3, 5])
def test_landmarks_place_a_host_where_it_is(dimensions: int) -> None:
    landmarks = [tuple(point) for point in points(18, dimensions, seed=2)]
    for host in points(10, dimensions, seed=3):
        found = place(landmarks, [distance(tuple(host), landmark) for landmark in landmarks])
        assert distance(found, tuple(host)) < 0.005


def test_a_place_depends_on_the_measurements_alone() -> None:
    landmarks = [tuple(point) for point in points(18, 5, seed=2)]
    assert place(landmarks, [0.05] * 18) == place(landmarks, [0.05] * 18)


def test_a_burst_of_delay_is_not_taken_for_distance() -> None:
    samples = LatencyFilter()
    believed = [samples.add(7, seconds) for seconds in (0.05, 0.9, 0.8, 0.051, 0.7)]
    assert max(believed[1:]) <= 0.8
    assert believed[3] == pytest.approx(0.051)
    assert samples.add(8, 0.2) == 0.2


def test_filters_of_many_peers_stay_bounded() -> None:
    samples = LatencyFilter(peers=3)
    for peer in range(10):
        samples.add(peer, 0.1)
    assert samples.add(0, 5.0) == 5.0  # forgotten long ago


def test_the_shown_coordinate_stands_still_while_the_true_one_trembles() -> None:
    rng = random.Random(4)
    shown = StableCoordinate()
    moves = sum(shown.follow((rng.gauss(0, 1e-4), rng.gauss(0, 1e-4))) for _ in range(200))
    assert moves == 0
    assert any(shown.follow((0.05 + rng.gauss(0, 1e-4), 0.0)) for _ in range(20))
    assert abs(shown.shown[0]) > 0.01
