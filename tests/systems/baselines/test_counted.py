"""similarity(x, y) and random(y): how many links, and to whom (§3.9.1)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.systems.overlays import asymmetric, graph_of, mean_degree, parted_topics, settle
from topicweave.systems.baselines.counted import CountSelection
from topicweave.workloads import generate

WORKLOAD = generate(150, 60, min_size=8, max_size=8, seed=3)


@pytest.mark.parametrize(
    ("system", "parameters", "links"),
    [
        ("similarity", {"similar": 10}, 10),
        ("similarity", {"similar": 4}, 4),
        ("similarity", {"similar": 7, "random": 3}, 10),
        ("random", {}, 10),
        ("random", {"random": 6}, 6),
    ],
)
def test_nodes_keep_about_as_many_links_as_they_are_asked_to(
    system: str, parameters: dict[str, Any], links: int
) -> None:
    """Table 12: 10.08 to 10.8 for 10. Nobody is left with less, and nobody exceeds the margin of each task."""
    simulation = settle(system, WORKLOAD, **parameters)
    assert links * 0.97 <= mean_degree(simulation) <= links * 1.08
    graph = graph_of(simulation)
    assert asymmetric(graph) == []
    kinds = [kind for kind in ("similar", "random") if graph_of(simulation, kind).number_of_edges()]
    for kind in kinds:
        most = max(degree for _, degree in graph_of(simulation, kind).out_degree())
        assert most <= links + 5


def test_by_default_nothing_is_mended() -> None:
    """Mending adds links wherever a topic is parted, and here nearly all are: 18 links instead of 10."""
    simulation = settle("random", WORKLOAD, until=30.0)
    assert mean_degree(simulation) < 11
    assert parted_topics(simulation)
    assert {link.kind for node in simulation.up() for link in simulation.node(node).links()} == {"random"}


def shared_topics(system: str) -> float:
    """How many topics the ends of a link have in common, on average."""
    simulation = settle(system, WORKLOAD)
    wants = {node: simulation.node(node).subscriptions for node in simulation.up()}
    edges = list(graph_of(simulation).edges)
    return sum(len(wants[a] & wants[b]) for a, b in edges) / len(edges)


def test_similar_nodes_have_more_in_common_than_random_ones() -> None:
    assert shared_topics("similarity") > 1.5 * shared_topics("random")


def test_what_a_count_lacks() -> None:
    selection = CountSelection(2, lambda interest, excluded, rng: 5 if 5 not in excluded else None)
    assert selection.enabled()
    assert not CountSelection(0, lambda *_: None).enabled()
    assert (selection.limit(), selection.lacking()) == (2, 2)
    selection.added(1, ())
    assert (selection.lacking(), selection.lacking_without(1, ()), selection.serves(1, ())) == (1, 2, True)
    selection.added(2, ())
    assert (selection.lacking(), selection.lacking_without(1, ()), selection.serves(1, ())) == (0, 1, True)
    selection.added(3, ())
    assert (selection.lacking(), selection.lacking_without(1, ()), selection.serves(1, ())) == (0, 0, False)
    assert selection.lacking_without(9, ()) == 0
    selection.removed(3, ())
    selection.removed(9, ())
    assert selection.serves(1, ())
    assert selection.choose([], random.Random(0)) == 5
    assert selection.choose([5], random.Random(0)) is None
    selection.reset(frozenset())
    assert selection.lacking() == 2
