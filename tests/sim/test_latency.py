"""How long messages take, by each model."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicweave.data.networks import measured_slices
from topicweave.errors import BadInput
from topicweave.sim.latency import Constant, Coordinates, RoundTripMatrix, Uniform

nan, inf = math.nan, math.inf


def test_constant() -> None:
    assert Constant().delay(0, 1, 0.0) == 0.05
    assert Constant(0.2).delay(5, 5, 1e6) == 0.2


@pytest.mark.parametrize("seconds", [-0.1, nan, inf])
def test_constant_refuses(seconds: float) -> None:
    with pytest.raises(BadInput, match=r"^constant latency: need 0 or more seconds, got "):
        Constant(seconds)


def test_uniform_draws_anew_within_its_bounds_from_its_own_generator() -> None:
    model = Uniform(0.1, 0.3, random.Random("uniform"))
    delays = [model.delay(0, 1, 0.0) for _ in range(4000)]
    assert 0.1 <= min(delays) < 0.101
    assert 0.299 < max(delays) <= 0.3
    # The mean's standard deviation is 0.2 / sqrt(12 · 4000) = 0.0009.
    assert abs(sum(delays) / len(delays) - 0.2) < 0.004
    again = Uniform(0.1, 0.3, random.Random("uniform"))
    assert [again.delay(7, 8, 9.0) for _ in range(4000)] == delays


def test_uniform_of_no_width() -> None:
    assert Uniform(0.2, 0.2, random.Random(0)).delay(0, 1, 0.0) == 0.2


@pytest.mark.parametrize(("low", "high"), [(-0.1, 1.0), (0.2, 0.1), (nan, 1.0), (0.0, nan), (0.0, inf)])
def test_uniform_refuses(low: float, high: float) -> None:
    with pytest.raises(BadInput, match=rf"^uniform latency: need 0 <= low <= high, got {low} and {high}$"):
        Uniform(low, high, random.Random(0))


def test_coordinates_are_distances() -> None:
    model = Coordinates([(0, 0), (3, 4), (6, 8)], seconds_per_unit=0.01)
    assert model.delay(0, 1, 0.0) == model.delay(1, 0, 5.0) == pytest.approx(0.05)
    assert model.delay(0, 2, 0.0) == pytest.approx(0.1)


def test_coordinates_have_any_number_of_dimensions() -> None:
    assert Coordinates([(5,), (7,)], 1.0).delay(0, 1, 0.0) == pytest.approx(2.0)
    assert Coordinates([(0, 0, 0), (1, 2, 2)], 1.0).delay(0, 1, 0.0) == pytest.approx(3.0)


def test_coordinates_have_a_floor_and_more_hosts_than_points() -> None:
    model = Coordinates([(0, 0), (3, 4)], seconds_per_unit=0.01, floor=0.001)
    assert model.delay(0, 0, 0.0) == 0.001
    assert model.delay(0, 2, 0.0) == 0.001, "hosts 0 and 2 share a place"
    assert model.delay(2, 5, 0.0) == model.delay(0, 1, 0.0)


@pytest.mark.parametrize(
    "points",
    [[], [1.0, 2.0], [[]], [(0, nan)], [(0, inf)], [(0, 0), (1,)], [("here", "there")], None],
)
def test_coordinates_refuse(points: Any) -> None:
    with pytest.raises(BadInput, match=r"^coordinates: need one finite point \(x, y, …\) per host$"):
        Coordinates(points)


@pytest.mark.parametrize(("scale", "floor"), [(-1.0, 0.0), (nan, 0.0), (1.0, -0.1), (1.0, nan)])
def test_coordinates_refuse_negative_times(scale: float, floor: float) -> None:
    with pytest.raises(BadInput, match="coordinates: need 0 or more seconds"):
        Coordinates([(0, 0)], scale, floor)


def test_half_a_round_trip_each_way_in_its_direction() -> None:
    model = RoundTripMatrix([[[0, 100], [60, 0]]])
    assert model.delay(0, 1, 0.0) == 0.05
    assert model.delay(1, 0, 0.0) == 0.03
    assert model.delay(0, 0, 0.0) == 0.0


def test_slices_follow_each_other_and_start_again() -> None:
    slices = [np.full((2, 2), rtt) for rtt in (20.0, 40.0, 60.0)]
    model = RoundTripMatrix(slices, slice_seconds=10.0)
    times = [0.0, 9.99, 10.0, 19.99, 20.0, 29.99, 30.0, 39.99, 40.0, 305.0]
    assert [model.delay(0, 1, time) * 1000 for time in times] == [10, 10, 20, 20, 30, 30, 10, 10, 20, 10]


@given(st.integers(0, 100), st.integers(0, 100))
def test_host_i_is_at_place_i_modulo_their_number(source: int, target: int) -> None:
    rtt = np.arange(9.0).reshape(3, 3)
    delay = RoundTripMatrix([rtt]).delay(source, target, 0.0)
    assert delay == rtt[source % 3, target % 3] / 2000


@pytest.mark.parametrize("bad", [nan, -1.0, inf])
def test_a_time_that_is_none_becomes_the_median_between_different_places_of_its_slice(bad: float) -> None:
    """The zeros on the diagonal do not count, or the hole in a small matrix would become a wormhole."""
    holed: Any = [[0, 80, 40], [bad, 0, 60], [50, 70, 0]]
    other = [[0, 2, 2], [2, 0, 2], [2, 2, 0]]
    model = RoundTripMatrix([holed, other], slice_seconds=1.0)
    assert model.delay(1, 0, 0.0) == 0.03
    assert model.delay(0, 1, 0.0) == 0.04
    assert model.delay(1, 0, 1.0) == 0.001
    assert RoundTripMatrix([[[0.0, 80.0], [bad, 0.0]]]).delay(1, 0, 0.0) == 0.04


def test_the_callers_matrix_stays_as_it_is() -> None:
    rtt = np.array([[0.0, nan], [8.0, 0.0]])
    RoundTripMatrix([rtt])
    assert np.isnan(rtt[0, 1])
    assert rtt[1, 0] == 8.0


@pytest.mark.parametrize(
    ("slices", "problem"),
    [
        ([], "need at least one slice, all of the same size"),
        ([[[1.0]], [[1.0, 2.0], [3.0, 4.0]]], "need at least one slice, all of the same size"),
        ([[[1.0]], [[1.0, 2.0]]], r"slice 2: need a square matrix, got shape \(1, 2\)"),
        ([[1.0, 2.0]], "slice 1: need a square matrix"),
        ([[[1.0, 2.0], [3.0]]], "slice 1: need a square matrix"),
        ([[["x"]]], "slice 1: need a square matrix"),
        ([[[1.0]], [[nan]]], "slice 2: no valid entry"),
        ([np.empty((0, 0))], "slice 1: no valid entry"),
    ],
)
def test_matrices_refused(slices: Any, problem: str) -> None:
    with pytest.raises(BadInput, match=rf"^RTT matrix(,|:) {problem}"):
        RoundTripMatrix(slices)


@pytest.mark.parametrize("seconds", [0.0, -1.0, nan, inf])
def test_slice_lengths_refused(seconds: float) -> None:
    with pytest.raises(BadInput, match=f"slice_seconds must be positive, got {seconds}"):
        RoundTripMatrix([[[1.0]]], seconds)


@pytest.mark.usefixtures("made_up_data")
def test_measured_slices_hold_one_after_another() -> None:
    slices = list(measured_slices()[:2])
    hosts = len(slices[0])
    model = RoundTripMatrix(slices, slice_seconds=100.0)
    draw = random.Random("planetlab")
    for _ in range(1000):
        source, target, now = draw.randrange(2000), draw.randrange(2000), draw.uniform(0.0, 1000.0)
        rtt = slices[int(now // 100) % 2][source % hosts, target % hosts]
        assert model.delay(source, target, now) == pytest.approx(rtt / 2000)


@pytest.mark.real_data
@pytest.mark.usefixtures("real_data")
def test_planetlab() -> None:
    model = RoundTripMatrix(list(measured_slices()), slice_seconds=100.0)
    apart = [model.delay(a, b, 0.0) for a in range(490) for b in range(a)]
    assert min(apart) > 0.0
    assert 0.02 < float(np.median(apart)) < 0.2
