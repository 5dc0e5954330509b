"""The sentences say what the numbers say."""

import math
from dataclasses import replace

import pytest

from tests.report.comparisons import comparison, entry, without_events
from topicweave.report import Entry
from topicweave.report.constraints import Constraint
from topicweave.report.findings import findings, kept_to


def said_of(*entries: Entry, events: int = 200) -> dict[str, str]:
    found = findings(comparison(*entries, events=events))
    assert len({finding.about for finding in found}) == len(found)
    return {finding.about: finding.text for finding in found}


def test_the_leanest_of_those_that_deliver_everything_comes_first() -> None:
    said = said_of(
        entry("lean", degree_mean=12.1),
        entry("rich", degree_mean=16.0),
        entry("leaky", degree_mean=9.0, hit_ratio=0.991, partitioned_topics=13.0),
    )
    assert list(said)[:2] == ["Reach", "Missed"]
    assert said["Reach"] == (
        "lean and rich deliver every event to everybody who wants it; "
        "lean does so with the fewest: 12.1 links per node on average."
    )
    assert said["Missed"] == "leaky makes 99.1% of the expected deliveries; it is not ranked below."
    assert (
        said["Topics"]
        == "Topics whose subscribers are not connected through subscribers alone: leaky (13 of 97)."
    )


DEGREE = Constraint("degree_max", "at most", 20.0, "--max-degree 20")


@pytest.mark.parametrize(
    ("most", "said"),
    [
        (
            (29.0, 12.0, 14.0),
            "All systems deliver every event to everybody who wants it; of those that keep to what was asked for, "
            "fit does so with the fewest: 4.0 links per node on average.",
        ),
        (
            (12.0, 12.0, 14.0),
            "All systems deliver every event to everybody who wants it; "
            "hub does so with the fewest: 2.0 links per node on average.",
        ),
        (
            (29.0, 30.0, 31.0),
            "All systems deliver every event to everybody who wants it; none of them keeps to what was asked for.",
        ),
    ],
)
def test_nobody_is_praised_who_breaks_what_was_asked_for(most: tuple[float, ...], said: str) -> None:
    entries = [
        entry(name, degree_mean=mean, degree_max=degree)
        for name, mean, degree in zip(("hub", "fit", "rich"), (2.0, 4.0, 9.0), most, strict=True)
    ]
    first = findings(comparison(*entries, asked=(DEGREE,)))[0].text
    assert first == said


def test_the_only_one_that_delivers_may_break_what_was_asked_for() -> None:
    entries = entry("good", degree_max=29.0), entry("bad", hit_ratio=0.9)
    first = findings(comparison(*entries, asked=(DEGREE,)))[0].text
    assert first.endswith("; it does not keep to what was asked for.")


def test_only_one_delivers_everything() -> None:
    said = said_of(entry("good", degree_mean=8.0), entry("bad", hit_ratio=0.9, degree_mean=9.0))
    assert (
        said["Reach"]
        == "Only good delivers every event to everybody who wants it, with 8.0 links per node on average."
    )
    assert said["Missed"] == "bad makes 90.0% of the expected deliveries; it is not ranked below."


def test_whoever_misses_somebody_is_praised_for_nothing() -> None:
    quick = {
        "latency_p95": 0.01,
        "memory_bytes": 1.0,
        "control_bytes": 1.0,
        "degree_max": 1.0,
        "repair_time": 0.0,
    }
    said = said_of(
        entry("good", latency_p95=0.35),
        entry("better", latency_p95=0.3, memory_bytes=20_000.0),
        entry("random", None, hit_ratio=0.042, **quick),
    )
    assert "random" not in "".join(text for about, text in said.items() if about != "Missed")
    assert said["Speed"] == "better: 95% of the deliveries within 300 ms. Slowest: good (350 ms)."


def test_none_delivers_everything() -> None:
    said = said_of(entry("a", hit_ratio=0.8), entry("b", hit_ratio=0.9, latency_p95=0.1))
    assert "Speed" not in said
    assert "Missed" not in said
    assert said["Reach"].startswith("No system delivers every event to everybody who wants it: b makes 90.0%")


def test_noise_is_told_by_system() -> None:
    assert said_of(entry("a"), entry("b"))["Noise"] == "No node received an event that it did not want."
    said = said_of(entry("a"), entry("b", noise=0.25), entry("c", noise=0.5))
    assert said["Noise"] == "Share of the events received that were not wanted: b 25.0% and c 50.0%."


def test_extremes_name_all_that_look_alike_and_are_left_out_where_nobody_differs() -> None:
    said = said_of(
        entry("a", latency_p95=0.35, memory_bytes=20_000.0),
        entry("b", latency_p95=0.65, degree_max=40.0),
        entry("c", latency_p95=0.3501),
    )
    assert said["Speed"] == "a and c: 95% of the deliveries within 350 ms. Slowest: b (650 ms)."
    assert said["Memory"] == "Least: a, 20 kB per node. Most: b and c (30 kB)."
    assert said["Busiest node"] == "The node with the most links has 19 with a and c, and 40 with b."
    assert "Control traffic" not in said


def test_repair_is_told_by_how_it_went() -> None:
    said = said_of(
        entry("calm", repair_time=0.0), entry("slow", repair_time=7.5), entry("dead", repair_time=math.inf)
    )
    assert said["Repair"] == (
        "When 10% of the nodes crash: no gap with calm; until all are served again: slow 7.5 s; "
        "not repaired while it was watched: dead."
    )
    assert (
        "no gap with any system"
        in said_of(entry("a", repair_time=0.0), entry("b", repair_time=0.0))["Repair"]
    )


def test_a_comparison_without_events_speaks_of_links_only() -> None:
    said = said_of(without_events("a", degree_mean=3.0), without_events("b"), events=0)
    assert said == {
        "Links": "Fewest: a, 3.0 links per node on average.",
        "Topics": "No topic falls apart: the subscribers of each are connected through subscribers alone.",
    }


def test_without_nodes_nothing_is_said_of_links() -> None:
    assert "Links" not in said_of(without_events("a", degree_mean=math.nan), events=0)


def test_one_system_alone_is_not_compared_with_anybody() -> None:
    said = said_of(entry("a"))
    assert (
        said["Reach"]
        == "a delivers every event to everybody who wants it, with 12.0 links per node on average."
    )
    assert said.keys() == {"Reach", "Topics", "Noise", "Repair"}


@pytest.mark.parametrize(
    ("nodes", "crash", "words"),
    [
        (300, 0.1, "10% of the nodes crash"),
        (100, 0.07, "7% of the nodes crash"),
        (8, 0.125, "12.5% of the nodes crash"),
        (1000, 0.001, "0.1% of the nodes crash"),
        (3, 1 / 3, "1 of 3 nodes crashes"),
        (4, 0.1, "1 of 4 nodes crashes"),
        (24, 0.004, "1 of 24 nodes crashes"),
        (25, 0.1, "2 of 25 nodes crash"),
    ],
)
def test_so_many_crash_as_is_said(nodes: int, crash: float, words: str) -> None:
    whole = comparison(entry("a"))
    setting = replace(whole.setting, crash=crash)
    assert replace(whole, workload={**whole.workload, "nodes": nodes}, setting=setting).crashing == words


def test_who_keeps_to_what_was_asked_for() -> None:
    entries = [entry("lean", degree_max=15.0), entry("rich", degree_max=35.0)]
    at_most = Constraint("degree_max", "at most", 20.0, "--max-degree 20")
    assert kept_to(entries, []) == []
    assert kept_to(entries, [at_most]) == [
        "Keep to --max-degree 20: lean.",
        "✗ rich: links max 35, at most 20 asked for.",
    ]
    assert kept_to(entries[1:], [at_most])[0] == "No system keeps to --max-degree 20."


def test_who_was_not_measured_keeps_to_nothing() -> None:
    at_most = Constraint("latency_p95", "at most", 0.1, "--max-latency 100")
    assert kept_to([without_events("a")], [at_most]) == [
        "No system keeps to --max-latency 100.",
        "✗ a: latency p95 ms not measured, at most 100 asked for.",
    ]
    assert not without_events("a").reaches_everybody


def test_an_unknown_reach_is_no_miss() -> None:
    said = said_of(entry("good"), entry("unknown", hit_ratio=math.nan), entry("bad", hit_ratio=0.5))
    assert said["Missed"] == "bad makes 50.0% of the expected deliveries; it is not ranked below."


def test_a_hub_is_not_hidden_by_the_average() -> None:
    star = entry("star", degree_mean=2.0, degree_max=150.0)
    assert (
        "2.0 links per node on average, but 150 at one node"
        in findings(comparison(star, entry("mesh")))[0].text
    )


def test_an_overlay_that_was_still_changing_is_named() -> None:
    said = said_of(entry("a"), entry("restless", settled_after=math.inf, settle_seconds=1200.0))
    assert said["Settling"].startswith(
        "Did not settle with every seed, in up to 1,200 virtual seconds: restless;"
    )
