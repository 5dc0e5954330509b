"""The AS model: routes against NetworkX, latencies as drawn, fluctuation from a series."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from topicweave.data.as_network import (
    ASGraph,
    FluctuatingDelays,
    PairDelays,
    generated_graph,
    link_latencies,
    round_trips,
    spread_out,
)
from topicweave.data.networks import measured_graph, measured_slices
from topicweave.errors import BadInput


def test_link_latencies_fall_into_the_papers_classes() -> None:
    drawn = link_latencies(100_000, np.random.default_rng(1))
    assert np.mean(drawn < 4) == pytest.approx(0.10, abs=0.005)
    assert np.mean((drawn >= 4) & (drawn < 30)) == pytest.approx(0.30, abs=0.01)
    assert np.mean(drawn >= 30) == pytest.approx(0.60, abs=0.01)
    assert drawn.max() < 115


def test_routes_take_the_fewest_hops_and_then_the_least_latency() -> None:
    graph = generated_graph(200, seed=3)
    hosts, seed = 20, 5
    rtt = round_trips(graph, hosts, seed)
    # The same draws, in the same order, on a graph of NetworkX.
    rng = np.random.default_rng([seed, 0xA5])
    latency = link_latencies(len(graph.source), rng)
    stub = graph.stubs
    network = nx.Graph()
    for one, other, milliseconds in zip(graph.source, graph.target, latency, strict=True):
        network.add_edge(int(one), int(other), cost=1e5 + float(milliseconds))
    ends = np.concatenate([graph.source, graph.target]), np.concatenate([graph.target, graph.source])
    attached = np.unique(ends[0][stub[ends[0]] & ~stub[ends[1]]])
    homes = rng.choice(attached, size=hosts, replace=False).tolist()
    assert len(set(homes)) == hosts
    transit = set(np.flatnonzero(~stub).tolist())
    for one in range(hosts):
        passed = network.subgraph(transit | {homes[one]})
        reach = nx.single_source_dijkstra_path_length(passed, homes[one], weight="cost")
        for other in range(hosts):
            if one != other:
                last = min(
                    reach[provider] + network[provider][homes[other]]["cost"]
                    for provider in network[homes[other]]
                    if provider in reach and provider != homes[one]
                )
                assert rtt[one, other] == pytest.approx(last % 1e5, abs=0.05)


def test_a_generated_graph_is_of_the_same_kind() -> None:
    graph = generated_graph(5000, seed=1)
    assert 0.7 < graph.stubs.mean() < 0.85
    apart = round_trips(graph, 300, seed=1)[np.triu_indices(300, 1)]
    assert 90 < np.median(apart) < 180
    assert 180 < np.percentile(apart, 95) < 380


def test_more_hosts_than_stubs_are_refused_in_words() -> None:
    with pytest.raises(BadInput, match="stub ASes of their own"):
        round_trips(generated_graph(20, seed=1), 100, seed=1)


def test_only_the_largest_part_counts() -> None:
    graph = ASGraph.of_links([10, 11, 12, 90], [11, 12, 10, 91])
    assert graph.ases == 3
    assert sorted(graph.degrees.tolist()) == [2, 2, 2]


def test_a_delay_is_half_a_round_trip() -> None:
    delays = PairDelays([[0.0, 100.0], [100.0, 0.0]])
    assert delays.delay(0, 1, 0.0) == pytest.approx(0.05)
    assert delays.delay(1, 1, 0.0) == 0.0


def test_pairs_follow_a_measured_pair_of_their_own_distance() -> None:
    rng = np.random.default_rng(1)
    base = rng.uniform(10, 300, (40, 40))
    base = (base + base.T) / 2
    np.fill_diagonal(base, 0)
    factors = (1.0, 1.1, 0.9)
    slices = [base * factor for factor in factors]
    rtt = np.array([[0.0, 50.0, 200.0], [50.0, 0.0, 120.0], [200.0, 120.0, 0.0]])
    delays = FluctuatingDelays(rtt, slices, slice_seconds=10.0)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        seen = [delays.delay(one, other, moment) for moment in (0.0, 10.0, 20.0, 30.0)]
        assert seen[0] == pytest.approx(rtt[one, other] / 2000, rel=0.12)
        assert seen[3] == seen[0]
        assert seen[1] / seen[0] == pytest.approx(1.1)
        assert seen[2] / seen[0] == pytest.approx(0.9)
        assert delays.delay(other, one, 0.0) == seen[0]


def test_bad_matrices_are_refused() -> None:
    for bad in ([[0.0, 1.0]], [[0.0, -1.0], [1.0, 0.0]], [[0.0, np.nan], [1.0, 0.0]]):
        with pytest.raises(BadInput, match="round-trip times"):
            PairDelays(bad)


def test_landmarks_are_far_apart() -> None:
    line = np.abs(np.arange(10.0)[:, None] - np.arange(10.0)[None, :])
    assert spread_out(line, 3) == [0, 9, 4]


@pytest.mark.real_data
@pytest.mark.usefixtures("real_data")
def test_on_the_measured_graph_round_trips_are_those_of_planetlab() -> None:
    graph, measured = measured_graph(), measured_slices()[0][np.triu_indices(490, 1)]
    assert int(graph.stubs.sum()) == 20_402
    modelled = round_trips(graph, 400, seed=0)[np.triu_indices(400, 1)]
    for share, tolerance in ((50, 0.2), (95, 0.2)):
        assert np.percentile(modelled, share) == pytest.approx(np.percentile(measured, share), rel=tolerance)
