"""Trials: what a comparison learns of a system in one run."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from topicweave.errors import BadInput
from topicweave.model.workload import Workload
from topicweave.runs import carry_out
from topicweave.runs.likeness import likeness
from topicweave.runs.picture import _explaining
from topicweave.runs.run import recording
from topicweave.runs.sources import GeneratedWorkload, StoredWorkload
from topicweave.runs.trial import Trial, planned_churn, repair_time

SMALL = GeneratedWorkload(nodes=60, topics=12, min_size=4, max_size=4, seed=2)


def trial(system: str, settle: float = 15.0, events: int = 40, **changes: object) -> dict[str, object]:
    plain = {"repair_seconds": 12, **changes}
    return carry_out(
        Trial(system=system, workload=SMALL, settle=settle, events=events, seed=1, **plain)  # type: ignore[arg-type]  # options of the kind
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


def test_what_joining_took_is_told_apart_from_what_the_overlay_takes() -> None:
    soon, late = trial("spidercast", crash=0.0), trial("spidercast", settle=45.0, crash=0.0)
    assert number(late, "joining_messages") > 1.5 * number(soon, "joining_messages")
    assert number(late, "control_messages") == pytest.approx(number(soon, "control_messages"), rel=0.3)


def test_what_finds_others_by_itself_has_no_membership_to_tell_apart() -> None:
    alone = trial("rvr", crash=0.0, membership="directory")
    assert math.isnan(number(alone, "membership_bytes"))
    assert number(alone, "control_bytes") > 0.0
    assert "membership_contacts" not in alone
    assert number(trial("spidercast", crash=0.0, membership="directory"), "membership_bytes") > 0.0


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
        planned_churn(churn, Workload.from_lists({"a": ["x"]}), seed=0)


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


# Settling.


def test_an_overlay_is_waited_for_until_it_has_settled_or_the_limit_is_there() -> None:
    least = 5.0  # Far too short for Rappel, whose nodes look for friends one after another.
    early = trial("rappel", settle=least, crash=0.0)
    late = trial("rappel", settle=least, settle_limit=600.0, crash=0.0)
    assert math.isnan(number(early, "settled_after"))
    assert number(early, "settle_seconds") == least
    assert number(early, "hit_ratio") < 1.0
    assert least < number(late, "settled_after") < number(late, "settle_seconds") < 600.0
    assert number(late, "hit_ratio") == 1.0


def test_one_that_does_not_settle_says_so() -> None:
    result = trial("rappel", settle=5.0, settle_limit=40.0, crash=0.0)
    assert number(result, "settled_after") == math.inf
    assert number(result, "settle_seconds") <= 40.0


def test_one_that_has_settled_by_then_is_not_waited_for() -> None:
    result = trial("spidercast", settle=40.0, settle_limit=400.0, crash=0.0)
    assert number(result, "settle_seconds") == 40.0
    assert number(result, "settled_after") <= 20.0


def test_what_settles_early_is_counted_at_the_same_time_as_others() -> None:
    early = trial("spidercast", settle=20.0, settle_limit=200.0, counted_from=45.0, crash=0.0)
    assert number(early, "settled_after") <= 20.0
    assert number(early, "settle_seconds") == 45.0
    late = trial("rappel", settle=5.0, settle_limit=600.0, counted_from=10.0, crash=0.0)
    assert number(late, "settle_seconds") > 10.0


def test_a_drawn_churn_begins_when_the_overlay_has_settled() -> None:
    result = trial("rappel", settle=5.0, settle_limit=600.0, churn="30/5")
    assert number(result, "settle_seconds") > 5.0
    curve = result["churn_curve"]
    assert isinstance(curve, list)
    assert len({row[1] for row in curve}) > 1, "nodes come and go while events are published"


# Repair where nodes come and go anyway.


def test_whoever_comes_and_goes_after_the_crash_is_not_the_crashs_doing(tmp_path: Path) -> None:
    """Every second somebody leaves and somebody else comes back, to the end of the trial and beyond."""
    names = [f"n{number}" for number in range(60)]
    changes = [
        (float(second), names[(second + 30 * (word == "join")) % 60], word)
        for second in range(30, 300)
        for word in ("leave", "join")
    ]
    lists = {name: [f"t{number % 4}", f"t{4 + number % 3}"] for number, name in enumerate(names)}
    Workload.from_lists(lists, churn=changes).save(tmp_path / "w")
    source = StoredWorkload(str(tmp_path / "w"))
    for system in ("spidercast", "gossipsub"):
        result = Trial(
            system=system, workload=source, settle=15.0, events=20, seed=1, churn="trace", repair_seconds=20
        ).run()
        curve = result["repair_curve"]
        assert isinstance(curve, list)
        assert [share for second, share in curve if second < 0] == [1.0, 1.0, 1.0], system
        assert number(result, "repair_time") < 10, system


def test_sessions_begin_once_the_overlay_has_settled() -> None:
    workload = Workload.from_lists(
        {"a": ["x"], "b": ["x"], "c": ["x"]},
        churn=[(0.0, "a", "join"), (3.0, "a", "leave"), (5.0, "b", "join"), (7.0, "b", "leave")],
    )
    churn = planned_churn("sessions", workload, 0)
    assert churn.up_at_start == {0, 2}, "who comes at the first moment is there while the overlay settles"
    assert churn.changes == ((3.0, 0, False), (5.0, 1, True), (7.0, 1, False))


def test_a_recorded_run_has_its_control_traffic_by_the_second_and_the_same_result() -> None:
    with recording("run") as kept:
        recorded = trial("spidercast")
    assert recorded == trial("spidercast")
    times = {row["time"] for table in kept for row in table.tables().control.to_pylist()}
    assert {float(second) for second in range(2, 30)} <= times
