"""Magnet's converged state as arrays: right trees, the strawman's cost without views, and what nodes reach by
messages.
"""

from __future__ import annotations

from collections import Counter
from statistics import fmean
from typing import Any

import msgspec
import networkx as nx
import numpy as np
import pytest

from topicweave.bulk.engine import run_out
from topicweave.bulk.magnet.engine import MagnetEngine, build_overlay
from topicweave.bulk.magnet.plan import Converged
from topicweave.bulk.magnet.trees import RingOverlay, Trees, greedy_trees, look_at, owners, spread
from topicweave.errors import BadInput
from topicweave.model.workload import Workload
from topicweave.papers.magnet.runs import ConvergedTrees, Rival
from topicweave.papers.magnet.settled import SettledTrees
from topicweave.runs import carry_out
from topicweave.runs.sources import ModelWorkload
from topicweave.workloads.catalogue import build


def modal(nodes: int = 400, topics: int = 200, size: int = 12, seed: int = 1) -> Workload:
    return build("magnet-multi-modal", seed, nodes=nodes, topics=topics, size=size, chosen=1, categories=8)


def converged(system: str, workload: Workload, spec: Converged, seed: int) -> dict[str, Any]:
    return run_out(MagnetEngine(system, workload, spec, seed))


@pytest.fixture(scope="module")
def made() -> tuple[Workload, RingOverlay, Trees]:
    workload = modal()
    overlay = build_overlay("magnet", workload, Converged(), seed=1)
    return workload, overlay, greedy_trees(workload, overlay)


def test_trees_by_networkx_and_plain_routing(made: tuple[Workload, RingOverlay, Trees]) -> None:
    workload, overlay, trees = made
    nodes = workload.nodes
    place = {int(node): where for where, node in enumerate(overlay.order)}
    ids, topic_ids = workload.node_ids, workload.topic_ids
    relays, reached, wrong = look_at(workload, overlay, trees)
    for topic in range(0, workload.topics, 9):
        mine = trees.topic == topic
        graph = nx.DiGraph(zip(trees.parent[mine].tolist(), trees.child[mine].tolist(), strict=True))
        before = [number for number in ids if number <= topic_ids[topic]]
        home = place[ids.index(max(before or ids))]
        graph.add_node(home)
        assert nx.is_arborescence(graph)
        wanting = {place[int(node)] for node in workload.subscribers(topic)}
        assert wanting <= set(graph)
        assert (len(set(graph) - wanting), len(graph)) == (relays[topic], reached[topic])
        for target in wanting:
            route = [home]
            while route[-1] != target:
                left = (target - route[-1]) % nodes
                step = max(int(far) for far in overlay.tables[route[-1]] if far <= left)
                route.append((route[-1] + step) % nodes)
            assert nx.shortest_path(graph, home, target) == route
    assert not wrong.any()


def test_events_go_down_the_trees_as_a_plain_walk_says(made: tuple[Workload, RingOverlay, Trees]) -> None:
    workload, overlay, trees = made
    place = np.argsort(overlay.order)
    counts, hops = np.zeros((4, workload.nodes), int), Counter[int]()
    homes = place[owners(workload)]
    for topic in range(workload.topics):
        mine = trees.topic == topic
        graph = nx.DiGraph(zip(trees.parent[mine].tolist(), trees.child[mine].tolist(), strict=True))
        graph.add_node(int(homes[topic]))
        wanting = place[workload.subscribers(topic)].tolist()
        first = 0 if wanting[0] == homes[topic] else 1
        for node, depth in nx.shortest_path_length(graph, int(homes[topic])).items():
            if first + depth == 0:
                continue
            counts[2 if node in wanting else 3, node] += 1
            if node != wanting[0]:
                counts[0 if node in wanting else 1, node] += 1
                hops[first + depth] += node in wanting
    traffic = spread(workload, overlay, trees)
    told = (traffic.first_wanted, traffic.first_unwanted, traffic.all_wanted, traffic.all_unwanted)
    assert np.array_equal(counts, told)
    assert {far: count for far, count in enumerate(traffic.hops.tolist()) if count} == +hops
    assert traffic.relays == look_at(workload, overlay, trees).relays.sum() > 0
    assert traffic.topics == workload.topics


def test_below_a_lost_edge_nobody_is_handed_an_event(made: tuple[Workload, RingOverlay, Trees]) -> None:
    workload, overlay, trees = made
    lost = int(np.flatnonzero(trees.topic == 0)[0])
    rest = Trees(*(np.delete(column, lost) for column in (trees.topic, trees.child, trees.parent)))
    below = nx.descendants(
        nx.DiGraph(
            zip(
                trees.parent[trees.topic == 0].tolist(),
                trees.child[trees.topic == 0].tolist(),
                strict=True,
            )
        ),
        int(trees.child[lost]),
    )
    whole, broken = spread(workload, overlay, trees), spread(workload, overlay, rest)
    missing = (whole.all_wanted + whole.all_unwanted) - (broken.all_wanted + broken.all_unwanted)
    assert set(np.flatnonzero(missing).tolist()) == below | {int(trees.child[lost])}


@pytest.mark.parametrize("damage", ["lost", "twice", "elsewhere", "circle"])
def test_the_check_sees_damage(made: tuple[Workload, RingOverlay, Trees], damage: str) -> None:
    workload, overlay, trees = made
    topic, child, parent = trees.topic.copy(), trees.child.copy(), trees.parent.copy()
    # An edge to a subscriber: an edge below which nobody is would not be missed.
    wanting = set(np.argsort(overlay.order)[workload.subscribers(0)].tolist())
    edge = next(i for i in range(len(topic)) if topic[i] == 0 and child[i] in wanting)
    if damage == "lost":
        topic, child, parent = (np.delete(column, edge) for column in (topic, child, parent))
    elif damage == "twice":
        topic, child = np.append(topic, topic[edge]), np.append(child, child[edge])
        parent = np.append(parent, (parent[edge] + 1) % workload.nodes)
    elif damage == "elsewhere":
        parent[edge] = (parent[edge] + 1) % workload.nodes
    else:
        parent[edge] = child[edge]
    assert look_at(workload, overlay, Trees(topic, child, parent)).wrong.tolist() == [True] + [False] * 199


def test_everybody_has_fingers_and_likes_stand_together(made: tuple[Workload, RingOverlay, Trees]) -> None:
    workload, overlay, _ = made
    links = (overlay.tables < workload.nodes).sum(axis=1) - 2
    assert 8 <= links.min() <= links.max() <= 9
    lists = [set(workload.interests(int(node)).tolist()) for node in overlay.order]
    alike = [len(a & b) > 0 for a, b in zip(lists, lists[1:] + lists[:1], strict=True)]
    assert sum(alike) > 0.85 * len(alike), "by chance it is less than an eighth"


def test_without_views_and_choice_magnet_costs_what_the_strawman_costs() -> None:
    """Within 1 %, with draws of their own for each: the means over ten seeds."""
    workload = modal(nodes=1000, topics=400, size=20)
    blind = Converged(samples=0, choices=1)
    magnet = fmean(converged("magnet", workload, blind, seed)["relays_per_topic"] for seed in range(10))
    strawman = fmean(
        converged("strawman", workload, Converged(), seed)["relays_per_topic"] for seed in range(10, 20)
    )
    assert magnet == pytest.approx(strawman, rel=0.01)


def test_spatial_order_of_arrival_makes_long_identifiers_and_a_bound_is_kept() -> None:
    workload = build("magnet-spatial", 1, nodes=400, average=8)
    bounded = Converged(most_bytes=8)
    overlay = build_overlay("magnet", workload, bounded, seed=2)
    assert overlay.bits <= 64
    free = build_overlay("magnet", workload, Converged(), seed=2)
    # Only the order matters, and respacing keeps it.
    if overlay.respaced:
        assert free.bits > 64
    assert overlay.order.tolist() == free.order.tolist()


def test_weighing_by_rate_helps_the_busy_topics() -> None:
    workload = build(
        "magnet-multi-modal", 3, nodes=600, topics=200, size=15, chosen=3, categories=15, rate_exponent=1.5
    )
    cost = {
        weighted: fmean(
            converged("magnet", workload, Converged(weighted=weighted), seed)["relays_by_rate"]
            for seed in range(3)
        )
        for weighted in (True, False)
    }
    assert cost[True] < cost[False]


def test_the_same_seed_gives_the_same_result() -> None:
    run = ConvergedTrees(
        system="magnet",
        workload=ModelWorkload("magnet-spatial", {"nodes": 200, "average": 8}, seed=5),
        seed=4,
        by_topic=True,
    )
    first = carry_out(run)
    assert first == carry_out(run)
    assert first != carry_out(msgspec.structs.replace(run, seed=5))


@pytest.mark.parametrize("system", ["magnet", "strawman"])
def test_by_messages_the_same_is_reached(system: Rival) -> None:
    """Nodes in the simulator, and arrays: the same cost and hops within what few nodes scatter; every tree right."""
    workload = ModelWorkload(
        "magnet-multi-modal", {"nodes": 80, "topics": 60, "size": 10, "chosen": 1, "categories": 5}, seed=1
    )
    messages = carry_out(SettledTrees(system=system, workload=workload, seed=1, arrivals=80.0))
    arrays = [carry_out(ConvergedTrees(system=system, workload=workload, seed=seed)) for seed in range(4)]
    assert messages["wrong_trees"] == 0
    assert messages["hit_ratio"] == 1.0
    # Those whom events were handed to, and those who stand in the trees, are the same.
    relays = messages["tree_size"] - messages["subscribers_mean"]
    assert messages["relays_per_topic"] == pytest.approx(relays, rel=1e-9)
    for measure, share in (("relays_per_topic", 0.15), ("route_hops", 0.1), ("overlay_degree", 0.05)):
        assert messages[measure] == pytest.approx(fmean(run[measure] for run in arrays), rel=share), measure


def test_what_cannot_be_is_refused_in_words() -> None:
    with pytest.raises(BadInput, match="only magnet and strawman"):
        build_overlay("vitis", modal(50, 40, 5), Converged(), 0)
    with pytest.raises(BadInput, match="too few"):
        build_overlay("magnet", Workload.from_lists({"a": ["x"], "b": ["x"]}), Converged(), 0)


def test_samples_that_lag_behind_cost_relays() -> None:
    """Who came just before is not in anybody's sample yet: newcomers stand next to others who are less alike."""
    workload = ModelWorkload(
        "magnet-multi-modal", {"nodes": 300, "topics": 150, "size": 12, "chosen": 1, "categories": 5}
    )
    relays = {
        lag: sum(
            ConvergedTrees(system="magnet", workload=workload, seed=seed, lag=lag).run()["relays_per_topic"]
            for seed in range(3)
        )
        for lag in (0, 30, 300)
    }
    assert relays[0] < relays[30] < relays[300]
    hashed = ConvergedTrees(system="magnet", workload=workload, seed=0, samples=0).run()["relays_per_topic"]
    last = ConvergedTrees(system="magnet", workload=workload, seed=0, lag=300).run()["relays_per_topic"]
    assert last == pytest.approx(hashed, rel=0.15), (
        "nobody is known: everybody stands where its name is hashed to"
    )
