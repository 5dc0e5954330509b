"""Vitis and RVR cycle by cycle: what must hold of any settled overlay, and that nodes that exchange messages
come out alike.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import pytest

from topicweave.bulk.vitis.engine import VitisEngine
from topicweave.errors import BadInput
from topicweave.model.ids import RING_SIZE
from topicweave.model.workload import Workload
from topicweave.papers.vitis.dissemination import Dissemination
from topicweave.papers.vitis.lists import CorrelatedLists
from topicweave.papers.vitis.runs import CycledDissemination
from topicweave.runs import carry_out
from topicweave.systems.baselines.rvr import RVRParameters
from topicweave.systems.vitis import VitisParameters

LISTS = CorrelatedLists(300, 150, "random", 10, 10, seed=1)


def setting(system: str, level: Any, seed: int = 0, lists: CorrelatedLists = LISTS) -> dict[str, Any]:
    equal = {"rates": "equal"} if system == "vitis" else {}
    kind: Any = partial(Dissemination, window=2.0) if level == "messages" else CycledDissemination
    return carry_out(
        kind(
            system=system,
            parameters={"table_size": 8, "spreading": {"inline": 1}, **equal},
            workload=lists,
            seed=seed,
            settle=40.0,
            distribution=True,
        )
    )


@pytest.mark.parametrize("system", ["rvr", pytest.param("vitis", marks=pytest.mark.seeds)])
def test_by_messages_and_by_cycles_overlays_are_alike(system: str) -> None:
    messages = setting(system, "messages")
    cycles = [setting(system, "cycles", seed) for seed in range(3)]

    def mean(measure: str) -> float:
        return float(np.mean([result[measure] for result in cycles]))

    assert messages["hit_ratio"] == 1.0
    assert [result["hit_ratio"] for result in cycles] == [1.0] * 3
    assert [result["settling"][-1][1] for result in cycles] == [1.0] * 3, "the ring is right"
    assert mean("degree_mean") == pytest.approx(messages["degree_mean"], rel=0.04)
    assert mean("hops_mean") == pytest.approx(messages["hops_mean"], rel=0.08)
    for measure in ("noise", "noise_all", "relays_per_topic", "requested_paths"):
        assert mean(measure) == pytest.approx(messages[measure], rel=0.15), measure
    assert messages.keys() - {"relayed_topics"} <= cycles[0].keys()


@pytest.mark.parametrize("system", ["vitis", "rvr"])
def test_a_run_is_a_function_of_its_seed(system: str) -> None:
    lists = CorrelatedLists(60, 40, "high", 4, 4)
    first, again, other = (setting(system, "cycles", seed, lists) for seed in (3, 3, 4))
    assert first == again
    assert first["degrees"] != other["degrees"]


def test_clusters_are_the_components_of_a_topics_subscribers() -> None:
    workload = LISTS.load()
    overlay = VitisEngine(VitisParameters(table_size=4, rates="equal"), workload, seed=2)
    overlay.run(20.0)
    result = carry_out(
        CycledDissemination(
            system="vitis",
            parameters={"table_size": 4, "rates": "equal"},
            workload=LISTS,
            settle=20.0,
            seed=2,
        )
    )
    graph, number = nx.Graph(), overlay.number
    graph.add_nodes_from(range(workload.nodes))
    for node, count in enumerate(overlay.gossip.degree):
        graph.add_edges_from((node, int(peer)) for peer in overlay.gossip.links[node, :count])
    clusters = [
        nx.number_connected_components(graph.subgraph(number[workload.subscribers(topic)].tolist()))
        for topic in range(workload.topics)
    ]
    assert result["clusters_per_topic"] == pytest.approx(sum(clusters) / len(clusters))
    by_name = [
        graph.degree(int(number[workload.node_names.index(name)])) for name in sorted(workload.node_names)
    ]
    assert overlay.overlay().graph.degrees.tolist() == by_name


def test_links_have_two_ends_and_lookups_end_at_the_nearest_node() -> None:
    workload = LISTS.load()
    overlay = VitisEngine(VitisParameters(table_size=8, rates="equal"), workload, seed=2)
    overlay.run(60.0)
    gossip, nodes = overlay.gossip, workload.nodes
    table = {
        (node, int(peer)) for node in range(nodes) for peer in gossip.table[node, : gossip.table_count[node]]
    }
    links = {
        (node, int(gossip.links[node, place])): int(gossip.ends[node, place])
        for node in range(nodes)
        for place in range(gossip.degree[node])
    }
    assert (gossip.table_count == 8).all()
    assert {link for link, ends in links.items() if ends & 1} == table
    assert {(peer, node) for (node, peer), ends in links.items() if ends & 2} == table
    ids = overlay.subscribers.ids.tolist()
    for point in overlay.subscribers.points[:40].tolist():

        def far(node: int, point: int = point) -> tuple[int, int]:
            return min((point - ids[node]) % RING_SIZE, (ids[node] - point) % RING_SIZE), node

        root = min(range(nodes), key=far)
        for start in range(0, nodes, 37):
            here = start
            while True:
                beside = [here, *(peer for (node, peer), ends in links.items() if node == here and ends)]
                nearest = min(beside, key=far)
                if nearest == here:
                    break
                here = nearest
            assert here == root


def test_rates_decide_who_is_a_friend() -> None:
    """Whoever wants the one topic with events is a friend of others that do."""
    lists = {f"n{node}": ["hot" if node < 20 else "cold", f"t{node % 7}"] for node in range(60)}
    workload = Workload.from_lists(lists, rates={"hot": 1.0, "cold": 0.0, **{f"t{n}": 0.0 for n in range(7)}})
    rates = dict(zip(workload.topic_ids, workload.rates.tolist(), strict=True))
    overlay = VitisEngine(VitisParameters(table_size=8, rates="given", topic_rates=rates), workload, seed=0)
    overlay.run(30.0)
    hot = {int(overlay.number[workload.node_names.index(f"n{node}")]) for node in range(20)}
    for node in hot:
        assert set(overlay.gossip.table[node, 3:8].tolist()) <= hot


def test_what_cannot_run_by_cycles_says_so() -> None:
    with pytest.raises(BadInput, match="only vitis and rvr"):
        setting("opt", "cycles")
    churned = Workload.from_lists({"a": ["t"], "b": ["t"]}, churn=[(1.0, "a", "leave")])
    with pytest.raises(BadInput, match="by messages"):
        VitisEngine(RVRParameters(), churned, 0)
    with pytest.raises(BadInput, match="too few"):
        VitisEngine(RVRParameters(), Workload.from_lists({"a": ["t"]}), 0)


@pytest.mark.parametrize("nodes", [2, 3, 7])
def test_few_nodes_are_an_overlay_too(nodes: int) -> None:
    for system in ("vitis", "rvr"):
        result = setting(system, "cycles", lists=CorrelatedLists(nodes, 4, "random", 2, 2))
        assert result["hit_ratio"] == 1.0
        assert result["settling"][-1][1] == 1.0
