"""The figures' data."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.comparisons import comparison, entry, without_events
from topicweave.report.figures import (
    COLOURS,
    KINDS_SHOWN,
    ccdf,
    control_by_kind,
    figures,
    hops_cdf,
    latency_cdf,
    links_against_hits,
)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40))
def test_ccdf_is_the_share_of_values_not_below(values: list[int]) -> None:
    places, shares = ccdf(values)
    assert places == list(range(max(values) + 2))
    for place, share in zip(places, shares, strict=True):
        assert share == pytest.approx(sum(value >= place for value in values) / len(values))


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
    traces = control_by_kind([entry("a", **kinds), entry("b")]).traces
    assert [trace["name"] for trace in traces][:2] == ["heartbeat", "connect"]
    assert len(traces) == KINDS_SHOWN + 1
    assert traces[-1]["name"] == "all others"
    assert sum(trace["x"][0] for trace in traces) == pytest.approx(300 + sum(range(12)))
    assert sum(trace["x"][1] for trace in traces) == pytest.approx(300)
    assert len({trace["marker"]["color"] for trace in traces}) == len(traces)


def test_when_colours_come_round_again_the_line_differs() -> None:
    entries = [entry(f"s{number}") for number in range(2 * len(COLOURS))]
    looks = {(trace["line"]["color"], trace["line"]["dash"]) for trace in hops_cdf(entries).traces}
    assert len(looks) == len(entries)


def test_without_events_only_the_links_are_drawn() -> None:
    drawn = figures(comparison(without_events("a"), without_events("b"), events=0))
    assert [figure.name for figure in drawn] == ["degrees"]


def test_a_name_cannot_break_out_of_a_hover_text() -> None:
    [trace] = links_against_hits([entry("a", {"note": "<b>%{x}"})]).traces
    assert "<b>" not in trace["hovertemplate"]
    assert "%{x}" not in trace["hovertemplate"]


def test_plotly_accepts_every_figure() -> None:
    graph_objects = pytest.importorskip("plotly.graph_objects")
    drawn = figures(comparison(entry("a"), entry("b", hit_ratio=0.5)))
    assert len(drawn) == 5
    for figure in drawn:
        json.dumps([figure.traces, figure.layout], allow_nan=False)
        graph_objects.Figure(data=figure.traces, layout=figure.layout)  # It raises on what it does not know.
