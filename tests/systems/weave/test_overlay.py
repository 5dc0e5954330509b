"""Weave as a whole, in the simulator."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

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
from topicweave.systems.weave import WeaveNode
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


def test_first_events_are_copied_less_because_nobody_passes_down_what_came_from_below(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workload = generate(120, 40, "rss", min_size=8, max_size=8, seed=4)

    def pushes() -> int:
        simulation = settle("weave", workload, 4, telemetry=True, until=30.0, prepare=False, spill=0)
        expected, got = publish_everywhere(simulation)
        assert got == expected
        assert isinstance(simulation.telemetry, MemoryTelemetry)
        return len(simulation.telemetry.tables().deliveries["event"])

    fewer = pushes()
    monkeypatch.setattr(WeaveNode, "_elsewhere", lambda node, topic, source: ())
    assert fewer < 0.9 * pushes()


def test_who_is_linked_by_a_bridge_may_be_in_another_part() -> None:
    workload = generate(60, 10, "rss", min_size=4, max_size=4, seed=5)
    simulation = settle("weave", workload, 5, until=30.0)
    nodes = [node for index in simulation.up() if isinstance(node := simulation.node(index), WeaveNode)]
    node, topic, lower = next(
        (node, topic, lower)
        for node in nodes
        for topic in sorted(node._interest)
        if len(lower := [peer for peer in node._links_of_topic(topic) if peer < node.id]) > 1
    )
    first, second, *others = lower
    assert set(node._elsewhere(topic, first)) == {second, *others}
    node.tasks["bridge"].neighbours[second] = node.tasks["cover"].neighbours[second]
    assert set(node._elsewhere(topic, first)) == set(others)
    assert node._elsewhere(topic, second) == ()


def test_the_dial_adds_links() -> None:
    workload = generate(80, 40, "rss", min_size=6, max_size=6, seed=2)
    few, many = (mean_degree(settle("weave", workload, 2, links=links)) for links in (0, 10))
    assert few < many


def test_nobody_gets_far_beyond_busy() -> None:
    """One topic that everybody wants: the lowest would be a neighbour of all."""
    workload = generate(100, 1, "uniform", min_size=1, max_size=1, seed=3)
    simulation = settle("weave", workload, 3, until=40.0, busy=8, hubs=0.0, links=2)
    assert parted_topics(simulation) == []
    assert max(simulation.node(node).degree for node in simulation.up()) <= 16


def pushes(simulation: Simulation) -> tuple[int, int]:
    """An event of each topic: how many deliveries there should be, and how many copies came."""
    expected, got = publish_everywhere(simulation)
    assert got == expected
    assert isinstance(simulation.telemetry, MemoryTelemetry)
    publishers = len(members(simulation))
    return expected.total() - publishers, len(simulation.telemetry.tables().deliveries["event"])


@pytest.mark.parametrize(("seed", "popularity"), [(1, "rss"), (2, "zipf1"), (3, "uniform")])
def test_a_topics_first_event_goes_over_a_tree(seed: int, popularity: str) -> None:
    workload = generate(120, 40, popularity, min_size=8, max_size=8, seed=seed)
    simulation = settle(
        "weave", workload, seed, telemetry=True, until=60.0, bridges=0, spill=0, improve=False
    )
    due, copies = pushes(simulation)
    assert copies == due


def test_near_the_publisher_copies_are_spent_on_shorter_ways() -> None:
    workload = generate(120, 40, "zipf1", min_size=8, max_size=8, seed=1)

    def measured(**parameters: Any) -> tuple[float, float]:
        simulation = settle("weave", workload, 1, telemetry=True, until=60.0, **parameters)
        due, copies = pushes(simulation)
        assert isinstance(simulation.telemetry, MemoryTelemetry)
        hops: dict[tuple[Any, Any], int] = {}
        for row in simulation.telemetry.tables().deliveries.to_pylist():
            hops.setdefault((row["node"], row["event"]), row["hops"])
        return copies / due, sum(hops.values()) / len(hops)

    over_tree, spilt = measured(spill=0), measured(spill=1)
    assert over_tree[0] <= spilt[0] < 1.2
    assert spilt[1] < over_tree[1]


def test_where_topics_are_rare_copies_are_at_most_a_tenth_of_deliveries() -> None:
    """Four nodes for each topic: a link serves few topics, and many links are beside trees."""
    workload = generate(40, 200, "uniform", min_size=20, max_size=20, seed=1)
    simulation = settle("weave", workload, 1, membership="directory", telemetry=True, until=60.0)
    due, copies = pushes(simulation)
    assert due <= copies <= 1.1 * due


def test_links_that_change_are_prepared_with_the_next_heartbeat() -> None:
    workload = generate(60, 30, "rss", min_size=8, max_size=8, seed=1)
    simulation = settle("weave", workload, 1, until=60.0)
    nodes = [node for index in simulation.up() if isinstance(node := simulation.node(index), WeaveNode)]
    assert not any(node._unprepared for node in nodes)
    for node in nodes:
        node._unprepared.update(dict.fromkeys(sorted(node._interest)))
    simulation.run(simulation.now + 1.01 * nodes[0].parameters.heartbeat_period)
    assert not any(node._unprepared for node in nodes)


def test_when_a_tenth_is_gone_all_others_are_reached() -> None:
    """Who loses a parent is pushed to by others, and asks for what is announced."""
    workload = generate(120, 30, "rss", min_size=8, max_size=8, seed=6)
    simulation = settle("weave", workload, 6, membership="directory", until=60.0)
    gone = random.Random(6).sample(simulation.up(), 12)
    for node in gone:
        simulation.stop(node, orderly=False)
    simulation.run(simulation.now + 2.0)
    got: Counter[Any] = Counter()
    simulation.on_delivery(lambda host, event: got.update([(host.index, event.id)]))
    topics = {topic_id: topic for topic, topic_id in enumerate(simulation.workload.topic_ids)}
    expected: Counter[Any] = Counter()
    for topic_id, wanting in members(simulation).items():
        event = simulation.publish(wanting[0], topics[topic_id]).event
        expected.update((node, event.id) for node in wanting)
    simulation.run(simulation.now + 20.0)
    assert got == expected


def test_many_topics_cost_bounded_memory() -> None:
    """Three nodes for each topic, and thousands of topics a node."""
    workload = generate(12, 4000, "uniform", min_size=1000, max_size=1000, seed=1)
    simulation = settle("weave", workload, 1, until=60.0)
    for index in simulation.up():
        node = simulation.node(index)
        assert isinstance(node, WeaveNode)
        assert not node._unprepared
        assert len(node._tree._ways.parents) <= 1000
        assert node._tree._ways.count_lazy() <= sum(
            topic in node._interests[peer] for peer in node._interests for topic in node.subscriptions
        )
