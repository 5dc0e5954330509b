"""The figures' data."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.comparisons import NAN, comparison, entry, without_events
from topicweave.report import Entry
from topicweave.report.assets import STYLE
from topicweave.report.bars import KINDS_SHOWN, control, coverage, memory, repair
from topicweave.report.figure import COLOURS, ccdf, histogram_ccdf
from topicweave.report.figures import (
    figures,
    grouped,
    hops_cdf,
    latency_cdf,
    links_against_hits,
    links_by_likeness,
    noise_by_likeness,
    noise_over_nodes,
)
from topicweave.report.over_time import after_crash, links_under_churn, served_under_churn
from topicweave.report.workload_figures import histogram_figures


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40))
def test_ccdf_is_the_share_of_values_not_below(values: list[int]) -> None:
    places, shares = ccdf(values)
    assert places == list(range(max(values) + 2))
    for place, share in zip(places, shares, strict=True):
        assert share == pytest.approx(sum(value >= place for value in values) / len(values))


def test_without_a_hit_ratio_there_is_no_line_of_deliveries() -> None:
    unknown = entry("unknown", hit_ratio=NAN, hops_counts=[0, 2, 2], latency_quantiles=[0.1, 0.2, 0.4])
    for figure in (hops_cdf, latency_cdf):
        assert [trace["name"] for trace in figure([unknown, entry("known")]).traces] == ["known"]


def test_lines_of_deliveries_end_at_the_hit_ratio() -> None:
    leaky = entry("leaky", hit_ratio=0.9, hops_counts=[0, 2, 2], latency_quantiles=[0.1, 0.2, 0.4])
    [hops] = hops_cdf([leaky]).traces
    assert hops["x"] == [0, 1, 2]
    assert hops["y"] == pytest.approx([0.0, 0.45, 0.9])
    [latency] = latency_cdf([leaky]).traces
    assert latency["x"] == pytest.approx([100.0, 200.0, 400.0])
    assert latency["y"] == pytest.approx([0.0, 0.45, 0.9])


def test_control_traffic_is_stacked_to_its_total() -> None:
    kinds: dict[str, Any] = {f"control_bytes.kind{number:02}": float(number) for number in range(12)}
    *traces, total = control([entry("a", **kinds), entry("b")], "").traces
    assert [trace["name"] for trace in traces][:2] == ["heartbeat", "connect"]
    assert len(traces) == KINDS_SHOWN + 1
    assert traces[-1]["name"] == "all others"
    assert sum(trace["x"][0] for trace in traces) == pytest.approx(300 + sum(range(12)))
    assert sum(trace["x"][1] for trace in traces) == pytest.approx(300)
    assert len({trace["marker"]["color"] for trace in traces}) == len(traces)
    assert total["x"] == pytest.approx([300 + sum(range(12)), 300])


def test_when_colours_come_round_again_the_line_differs() -> None:
    entries = [entry(f"s{number}") for number in range(2 * len(COLOURS))]
    looks = {(trace["line"]["color"], trace["line"]["dash"]) for trace in hops_cdf(entries).traces}
    assert len(looks) == len(entries)


@pytest.mark.parametrize("colour", COLOURS)
def test_a_line_is_seen_on_both_papers(colour: str) -> None:
    """WCAG 2.2 asks for a contrast of 3 of what is no text."""

    def luminance(text: str) -> float:
        shares = [int(text[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        red, green, blue = (
            share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    papers = re.findall(r"--paper: (#\w{6})", STYLE)
    assert len(papers) == 2
    for paper in papers:
        darker, lighter = sorted((luminance(colour), luminance(paper)))
        assert (lighter + 0.05) / (darker + 0.05) >= 3


def test_without_events_only_the_links_are_drawn() -> None:
    drawn = figures(comparison(without_events("a"), without_events("b"), events=0))
    assert [figure.name for figure in drawn] == ["degrees", "links"]


def replicated(*results: dict[str, Any]) -> Entry:
    return Entry("alpha", {}, {}, results)


def test_the_curve_after_a_crash_is_the_mean_of_the_seeds_that_have_the_second() -> None:
    twice = replicated(
        {"repair_curve": [[-1, 1.0], [0, 0.5]]}, {"repair_curve": [[-1, 0.8], [0, 0.7], [1, 0.9]]}
    )
    [trace] = after_crash([twice], "a tenth crashes").traces
    assert trace["x"] == [-1, 0, 1]
    assert trace["y"] == pytest.approx([0.9, 0.6, 0.9])


def test_curves_under_churn_are_means_over_seeds_and_leave_out_what_nobody_expected() -> None:
    twice = replicated(
        {"churn_curve": [[0.0, 50, 10.0, 1.0], [5.0, 48, 12.0, None]]},
        {"churn_curve": [[0.0, 52, 14.0, 0.9], [5.0, 51, 14.0, 0.8]]},
    )
    [served] = served_under_churn([twice], "600/60").traces
    assert (served["x"], served["y"]) == ([0.0, 5.0], pytest.approx([0.95, 0.8]))
    [links] = links_under_churn([twice], "600/60").traces
    assert links["y"] == pytest.approx([12.0, 13.0])
    assert served_under_churn([entry("calm")], "").traces == []


def test_whiskers_are_intervals_and_end_where_there_can_be_nothing() -> None:
    twice = replicated({"hit_ratio": 1.0, "degree_mean": 2.0}, {"hit_ratio": 0.9, "degree_mean": 2.1})
    [trace] = links_against_hits([twice]).traces
    assert trace["error_x"]["array"] == trace["error_x"]["arrayminus"] == [pytest.approx(12.7062 * 0.05)]
    assert trace["error_y"]["arrayminus"] == [pytest.approx(12.7062 * 0.05)]
    assert trace["error_y"]["array"] == [pytest.approx(0.05)]  # up to 1 and no further
    [once] = links_against_hits([entry("once")]).traces
    assert once["error_x"]["array"] == [0]


def test_topics_in_one_piece_are_those_that_are_not_partitioned() -> None:
    hits, shared, whole = coverage([entry("a", partitioned_topics=25.0, coverage=0.8)], 100, "").traces
    assert (hits["x"], shared["x"], whole["x"]) == ([1.0], [0.8], [0.75])


def test_a_repair_that_never_came_is_named_and_not_drawn() -> None:
    figure = repair([entry("a"), entry("calm", repair_time=0.0), entry("dead", repair_time=float("inf"))], "")
    [trace] = figure.traces
    assert (trace["y"], trace["text"]) == (["a", "calm"], [" 2.0 s", " no gap"])
    assert "with some seed: dead" in figure.reading


def test_memory_is_in_thousands() -> None:
    [trace] = memory([entry("a")], "").traces
    assert trace["x"] == [30.0]


def test_noise_is_drawn_from_the_least_to_the_most_disturbed_node() -> None:
    [trace] = noise_over_nodes([entry("a", noise_quantiles=[0.0, 0.1, 0.6])]).traces
    assert (trace["x"], trace["y"]) == ([0.0, 0.5, 1.0], [0.0, 0.1, 0.6])


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99)), min_size=1, max_size=60))
def test_groups_are_by_key_and_hold_everybody(rows: list[tuple[int, int]]) -> None:
    keys, values = [key for key, _ in rows], [value for _, value in rows]
    x, y, _ = grouped(keys, values)
    assert 1 <= len(x) <= 5
    assert x == sorted(set(x))
    assert min(keys) <= x[0]
    assert x[-1] <= max(keys)
    assert min(values) <= min(y)
    assert max(y) <= max(values)


def test_cost_against_likeness_is_by_fifths_of_the_nodes() -> None:
    [trace] = links_by_likeness([entry("a")]).traces
    assert trace["x"] == pytest.approx([0.09, 0.29, 0.49, 0.69, 0.89])
    assert trace["y"] == pytest.approx([14.5, 24.5, 34.5, 44.5, 54.5])
    assert noise_by_likeness([entry("a")]).traces == []
    rows = [[0.2, 3, None]] * 9 + [[0.2, 3, 0.5]] * 15 + [[0.9, 4, 0.25]] * 10
    [trace] = noise_by_likeness([entry("a"), entry("b", cost_by_likeness=rows)]).traces
    assert (trace["name"], trace["x"], trace["y"]) == ("b", [0.2, 0.9], [0.5, 0.25])
    # Too few to speak of groups.
    assert links_by_likeness([entry("c", cost_by_likeness=rows[:24])]).traces == []


def test_a_long_label_is_broken_where_its_parameters_begin() -> None:
    axis = memory([entry("a", {"k": 2, "note": "x" * 60})], "").layout["yaxis"]
    assert axis["tickvals"] == [f"a:k=2:note={'x' * 60}"]
    assert axis["ticktext"] == [f"a<br>k=2<br>note={'x' * 18}…"]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60))
def test_a_histogram_gives_the_ccdf_of_its_values(values: list[int]) -> None:
    histogram = [[value, values.count(value)] for value in sorted(set(values))]
    for value, share in histogram_ccdf(histogram):
        assert share == pytest.approx(sum(other >= value for other in values) / len(values))


def test_a_workload_is_drawn_from_its_histograms() -> None:
    sizes, audiences = histogram_figures(comparison().workload)
    assert sizes.traces[0]["x"] == [4, 10, 16]
    assert sizes.traces[0]["y"] == pytest.approx([1.0, 0.75, 0.25])
    assert audiences.traces[0]["x"] == [1, 20, 60, 130]
    # Nobody without topics on a logarithmic scale, and nothing to draw where all are alike.
    [one] = histogram_figures({"list_sizes": [[0, 1], [2, 1], [3, 2]], "audiences": [[5, 9]]})
    assert one.traces[0]["x"] == [2, 3]
    assert one.traces[0]["y"] == pytest.approx([0.75, 0.5])


def test_logarithmic_axes_have_whole_numbers_at_their_ticks() -> None:
    """Without a format plotly writes 5 between 10 and 100, where 50 is meant."""
    drawn = figures(comparison(entry("a"), entry("b"))) + histogram_figures(comparison().workload)
    axes = [figure.layout[axis] for figure in drawn for axis in ("xaxis", "yaxis") if axis in figure.layout]
    logarithmic = [axis for axis in axes if axis.get("type") == "log"]
    assert len(logarithmic) >= 5
    assert all(axis["tickformat"] for axis in logarithmic)


def test_a_name_cannot_break_out_of_a_hover_text() -> None:
    [trace] = links_against_hits([entry("a", {"note": "<b>%{x}"})]).traces
    assert "<b>" not in trace["hovertemplate"]
    assert "%{x}" not in trace["hovertemplate"]


def test_plotly_accepts_every_figure() -> None:
    graph_objects = pytest.importorskip("plotly.graph_objects")
    churned = entry("b", hit_ratio=0.5, churn_curve=[[0.0, 50, 10.0, 1.0], [5.0, 48, 12.0, 0.9]])
    drawn = figures(comparison(entry("a"), churned))
    assert [figure.name for figure in drawn] == [
        *("links-hits", "coverage", "degrees", "links", "noise", "likeness-links", "hops", "latency"),
        *("churn-served", "churn-links", "repair", "repair-time", "control", "memory"),
    ]
    for figure in drawn + histogram_figures(comparison().workload):
        json.dumps([figure.traces, figure.layout], allow_nan=False)
        graph_objects.Figure(data=figure.traces, layout=figure.layout)  # It raises on what it does not know.
