"""Edge by edge against the definition, topic-connectivity against NetworkX, and what each design is for."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.designs.instances import (
    degrees,
    disconnected_topics,
    instances,
    instances_with_edges,
    overlay,
)
from topicweave.designs import (
    Instance,
    Problem,
    compiled,
    gm,
    low_oda,
    low_oda_inc,
    low_oda_re,
    min_max_oda,
    reference,
    small,
)
from topicweave.designs.problem import component_labels
from topicweave.workloads import generate

RHOS = st.sampled_from([0.0, 1.5, 2.0, 3.0, math.inf])


def by_every_engine(problem: Problem, rho: float) -> list[list[list[int]]]:
    return [
        reference.design(problem, rho).tolist(),
        small.design(problem, rho).tolist(),
        compiled.design(problem, rho).tolist(),
        compiled.design(problem, rho, dense_nodes=0).tolist(),
    ]


@given(instances_with_edges(), RHOS, st.integers(0, 4))
@settings(max_examples=150)
def test_all_engines_take_the_same_edges_in_the_same_order(
    given_: tuple[Instance, list[tuple[int, int]]], rho: float, ceiling: int
) -> None:
    instance, edges = given_
    expected, *others = by_every_engine(Problem.of(instance, edges, ceiling=ceiling), rho)
    assert others == [expected] * 3


@given(instances(), RHOS, st.data())
@settings(max_examples=80)
def test_labels_and_degrees_from_outside_are_respected(
    instance: Instance, rho: float, data: st.DataObject
) -> None:
    labels = data.draw(
        st.lists(st.integers(-3, 3), min_size=len(instance.topic), max_size=len(instance.topic))
    )
    degree = data.draw(st.lists(st.integers(0, 5), min_size=instance.nodes, max_size=instance.nodes))
    problem = Problem.of(instance, labels=labels, degrees=degree)
    expected, *others = by_every_engine(problem, rho)
    assert others == [expected] * 3


@given(instances_with_edges(), RHOS)
@settings(max_examples=60)
def test_the_result_is_topic_connected_and_no_edge_is_idle(
    given_: tuple[Instance, list[tuple[int, int]]], rho: float
) -> None:
    instance, edges = given_
    new = compiled.design(Problem.of(instance, edges), rho).tolist()
    assert disconnected_topics(instance, overlay(instance, edges, new)) == []
    assert not set(map(tuple, new)) & set(edges)
    # Without its last edge the overlay falls apart: that edge had a weight.
    if new:
        assert disconnected_topics(instance, overlay(instance, edges, new[:-1]))


@given(instances_with_edges())
@settings(max_examples=40)
def test_labels_are_the_components_of_each_topic(given_: tuple[Instance, list[tuple[int, int]]]) -> None:
    instance, edges = given_
    labels = component_labels(instance, np.array(edges, np.int64).reshape(-1, 2))
    graph = overlay(instance, edges)
    for topic in range(instance.topics):
        slots = np.flatnonzero(instance.topic == topic)
        members = instance.node[slots].tolist()
        parts = {frozenset(part) for part in _components(graph, members)}
        ours: dict[int, set[int]] = {}
        for node, label in zip(members, labels[slots].tolist(), strict=True):
            ours.setdefault(label, set()).add(node)
        assert {frozenset(part) for part in ours.values()} == parts


def _components(graph: object, members: list[int]) -> list[set[int]]:
    import networkx as nx

    return list(nx.connected_components(graph.subgraph(members)))  # type: ignore[attr-defined]  # NetworkX gives it no types


def test_the_definition_on_an_example_by_hand() -> None:
    """Node 0 wants all; 1 and 2 want a, b; 3 wants c. GM: (0,1) joins two topics, then (0,2), then (0,3)."""
    instance = Instance.of_lists([[0, 1, 2], [0, 1], [0, 1], [2]])
    assert gm(instance).tolist() == [[0, 1], [0, 2], [0, 3]]
    # Four alike: GM makes a star, MinMaxODA spares whoever has reached the maximum degree.
    wide = Instance.of_lists([[0, 1], [0, 1], [0, 1], [0, 1]])
    assert gm(wide).tolist() == [[0, 1], [0, 2], [0, 3]]
    assert min_max_oda(wide).tolist() == [[0, 1], [2, 3], [0, 2]]


@pytest.mark.parametrize("popularity", ["uniform", "zipf1", "zipf2"])
def test_large_instances_agree_across_engines(popularity: str) -> None:
    """Past the sizes that the definition can do, with and without the matrix."""
    instance = Instance.of_workload(generate(300, 60, popularity, 3, 20, seed=3))
    for rho in (0.0, 2.0, math.inf):
        problem = Problem.of(instance)
        with_matrix = compiled.design(problem, rho)
        assert np.array_equal(with_matrix, compiled.design(problem, rho, dense_nodes=0))
        assert np.array_equal(with_matrix, small.design(problem, rho))
        assert disconnected_topics(instance, overlay(instance, with_matrix.tolist())) == []


def test_each_design_is_low_where_it_promises_to_be() -> None:
    instance = Instance.of_workload(generate(400, 100, "zipf1", 5, 30, seed=1))
    greedy, flat, both = (
        degrees(instance, edges) for edges in (gm(instance), min_max_oda(instance), low_oda(instance))
    )
    assert greedy.mean() < flat.mean()
    assert flat.max() < greedy.max()
    assert both.max() <= 1.5 * flat.max()
    assert both.mean() <= flat.mean()


def test_inc_keeps_the_edges_and_re_does_not() -> None:
    """After a departure, Inc adds to what is left; Re starts anew."""
    full = Instance.of_workload(generate(80, 20, "rss", 2, 8, seed=5))
    before = low_oda(full)
    gone = int(degrees(full, before).argmax())
    stay = [node for node in range(full.nodes) if node != gone]
    number = {node: place for place, node in enumerate(stay)}
    left = [(number[u], number[v]) for u, v in before.tolist() if gone not in (u, v)]
    instance = full.only(stay)
    added = low_oda_inc(instance, left)
    assert 0 < len(added) < len(left)
    assert disconnected_topics(instance, overlay(instance, left, added.tolist())) == []
    assert disconnected_topics(instance, overlay(instance, low_oda_re(instance).tolist())) == []


def test_nothing_to_join() -> None:
    for instance in (Instance.of_lists([]), Instance.of_lists([[]]), Instance.of_lists([[0], [1]], 5)):
        for rho in (0.0, 2.0, math.inf):
            assert [len(edges) for edges in by_every_engine(Problem.of(instance), rho)] == [0] * 4


def test_order_of_nodes_does_not_matter_beyond_ties() -> None:
    """Shuffling the nodes changes which of equal edges is taken, not whether it works."""
    rng = random.Random(2)
    instance = Instance.of_workload(generate(60, 15, "rss", 2, 6, seed=9))
    shuffled = instance.only(rng.sample(range(60), 60))
    assert disconnected_topics(shuffled, overlay(shuffled, low_oda(shuffled).tolist())) == []
