"""Trials: what a comparison learns of a system in one run."""

from __future__ import annotations

import math

import pytest

from topicweave.errors import BadInput
from topicweave.model.workload import Workload
from topicweave.runs import carry_out
from topicweave.runs.likeness import likeness
from topicweave.runs.picture import _explaining
from topicweave.runs.sources import GeneratedWorkload, StoredWorkload
from topicweave.runs.trial import Trial, planned_churn, repair_time

SMALL = GeneratedWorkload(nodes=60, topics=12, min_size=4, max_size=4, seed=2)


def trial(system: str, settle: float = 15.0, events: int = 40, **changes: object) -> dict[str, object]:
    plain = {"repair_seconds": 12, **changes}
    return carry_out(
        Trial(system=system, workload=SMALL, settle=settle, events=events, seed=1, **plain)  # type: ignore[arg-type]
    )


def number(result: dict[str, object], name: str) -> float:
    value = result[name]
    assert isinstance(value, int | float)
    return float(value)


def test_repair_is_over_when_every_later_probe_reaches_what_was_reached_before() -> None:
    assert repair_time([(-2, 1.0), (-1, 1.0), (0, 0.5), (1, 1.0), (2, 0.9), (3, 1.0)]) == 3.0
    assert repair_time([(-1, 1.0), (0, 1.0), (1, 1.0)]) == 0.0
    assert repair_time([(-1, 0.5), (0, 0.5), (1, 0.6)]) == 0.0  # no worse than it was
    assert repair_time([(-1, 1.0), (0, 1.0), (1, 0.9)]) == math.inf
    assert math.isnan(repair_time([]))


def test_a_star_loses_its_broker_and_finds_another() -> None:
    result = trial("broker")
    curve = result["repair_curve"]
    assert isinstance(curve, list)
    shares = dict(curve)
    assert [shares[second] for second in (-3, -2, -1)] == [1.0, 1.0, 1.0]
    assert min(shares.values()) < 0.9  # the best connected node was the broker
    assert 0 < number(result, "repair_time") < 12
    assert number(result, "hit_ratio") == 1.0  # measured before the crash


def test_redundant_links_carry_on() -> None:
    assert number(trial("gossipsub"), "repair_time") < number(trial("broker"), "repair_time")


def test_probes_are_not_counted_among_the_events() -> None:
    with_crash, without = trial("spidercast"), trial("spidercast", crash=0.0)
    assert "repair_time" not in without
    for name in ("hit_ratio", "hops_mean", "control_bytes", "duplicates", "degree_mean"):
        assert with_crash[name] == without[name], name


def test_a_node_that_knows_more_weighs_more() -> None:
    assert number(trial("broker", events=0), "memory_bytes") < number(trial("omen", events=0), "memory_bytes")


def test_latency_is_the_one_asked_for() -> None:
    quick, slow = trial("broker", latency="10ms"), trial("broker", latency="100ms")
    assert number(quick, "latency_max") == pytest.approx(0.02)
    assert number(slow, "latency_max") == pytest.approx(0.2)


def test_under_churn_only_those_who_stay_are_counted() -> None:
    result = trial("spidercast", churn="30/5", settle=20.0)
    assert number(result, "hit_ratio") > 0.95
    assert number(result, "nodes") < 60
    curve = result["churn_curve"]
    assert isinstance(curve, list)
    assert [row[0] for row in curve] == pytest.approx([5.0 * part for part in range(12)])
    assert len({row[1] for row in curve}) > 1, "nodes come and go"
    assert all(0 < row[2] < 60 and 0.8 < row[3] <= 1 for row in curve)
    assert "churn_curve" not in trial("spidercast")


def test_the_picture_is_a_connected_part_of_the_overlay() -> None:
    import networkx as nx

    picture = trial("vitis", crash=0.0)["picture"]
    assert isinstance(picture, dict)
    graph = nx.Graph(map(tuple, picture["links"]))
    assert set(graph.nodes) == set(range(len(picture["nodes"])))
    assert nx.is_connected(graph)
    assert any(node["relay"] for node in picture["nodes"])
    assert len(picture["topics"]) <= 7
    assert {node["group"] for node in picture["nodes"]} <= set(range(-1, len(picture["topics"])))


def test_the_picture_of_a_star_is_not_only_a_corner_of_it() -> None:
    picture = trial("broker", crash=0.0)["picture"]
    assert isinstance(picture, dict)
    assert len(picture["nodes"]) == 60


def test_each_topic_of_a_picture_explains_links_that_those_before_it_do_not() -> None:
    assert _explaining([{1, 2}, {1, 2}, {1}, {3}, set()]) == [1, 3]


def test_nodes_are_told_apart_by_how_like_others_they_are() -> None:
    lists = {"a": ["x", "y"], "b": ["x", "y", "z"], "c": ["y", "u"], "d": ["v"]}
    workload = Workload.from_lists(lists)
    by_name = {name: likeness(workload, index, 2) for index, name in enumerate(workload.node_names)}
    assert by_name == pytest.approx(
        {"a": (2 + 1) / 2 / 2, "b": (2 + 1) / 2 / 3, "c": (1 + 1) / 2 / 2, "d": 0.0}
    )
    rows = trial("spidercast", crash=0.0)["cost_by_likeness"]
    assert isinstance(rows, list)
    assert len(rows) == 60
    assert all(0 <= alike <= 1 and links > 0 and noise == 0 for alike, links, noise in rows)


@pytest.mark.parametrize(
    ("churn", "complaint"),
    [
        ("often", "say 'trace', or seconds"),
        ("10/x", "say 'trace', or seconds"),
        ("trace", "has no table of joins"),
    ],
)
def test_a_churn_that_makes_no_sense_is_refused(churn: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        planned_churn(churn, Workload.from_lists({"a": ["x"]}), 10.0, seed=0)


@pytest.mark.parametrize("lists", [{"alone": ["x"]}, {"a": ["x"], "b": ["y"]}, {"a": [], "b": ["x"]}])
def test_workloads_with_nothing_to_deliver_have_no_ratio(
    lists: dict[str, list[str]], tmp_path: object
) -> None:
    from topicweave.systems.registry import SYSTEMS

    Workload.from_lists(lists).save(str(tmp_path))
    for system in SYSTEMS:
        stored = StoredWorkload(str(tmp_path))
        result = carry_out(Trial(system=system, workload=stored, settle=5.0, events=3, repair_seconds=3))
        assert math.isnan(result["hit_ratio"]), system
