"""Formats and marks."""

import math
from dataclasses import replace

import pytest

from tests.report.comparisons import NAN, entry
from topicweave.report.columns import COLUMNS, Column, column_marks, percent


def column(measure: str) -> Column:
    return next(column for column in COLUMNS if column.measure == measure)


@pytest.mark.parametrize(
    ("share", "text"),
    [(1.0, "100%"), (0.0, "0%"), (0.99999, "99.9%"), (0.00001, "0.1%"), (0.9136, "91.4%")],
)
def test_all_and_none_are_never_rounded_to(share: float, text: str) -> None:
    assert percent(share) == text


def test_fewer_links_are_better_and_more_deliveries_are_better() -> None:
    entries = [
        entry("a", degree_mean=5.0, hit_ratio=0.5),
        entry("b", degree_mean=9.0, hit_ratio=1.0),
        entry("c", degree_mean=7.0, hit_ratio=0.7),
    ]
    assert column_marks(column("hit_ratio"), entries) == ["worst", "best", ""]
    everybody = [entry("a", degree_mean=5.0), entry("b", degree_mean=9.0), entry("c", degree_mean=7.0)]
    assert column_marks(column("degree_mean"), everybody) == ["best", "worst", ""]


def test_only_those_who_reach_everybody_are_ranked_in_anything_but_reach() -> None:
    entries = [
        entry("idle", degree_mean=1.0, hit_ratio=0.04),
        entry("lean", degree_mean=5.0),
        entry("rich", degree_mean=9.0),
        entry("lost", degree_mean=90.0, hit_ratio=0.999),
    ]
    assert column_marks(column("degree_mean"), entries) == ["", "best", "worst", ""]
    assert column_marks(column("hit_ratio"), entries) == ["worst", "best", "best", ""]
    assert column_marks(column("degree_mean"), entries[::3]) == ["", ""]


def test_one_seed_that_misses_somebody_is_enough() -> None:
    mostly = replace(entry("mostly"), results=({"hit_ratio": 1.0}, {"hit_ratio": 0.9999}))
    assert not mostly.reaches_everybody
    assert entry("a").reaches_everybody
    assert not entry("a", hit_ratio=NAN).reaches_everybody, "nothing was expected, nothing is known"
    once = replace(entry("once"), results=({"hit_ratio": 1.0}, {"hit_ratio": NAN}))
    assert once.reaches_everybody, "whatever was expected"


def test_those_that_look_alike_are_marked_alike() -> None:
    entries = [entry("a", noise=0.2), entry("b", noise=0.20001), entry("c", noise=0.4)]
    assert column_marks(column("noise"), entries) == ["best", "best", "worst"]


def test_nobody_is_marked_where_all_are_alike_or_alone() -> None:
    assert column_marks(column("noise"), [entry("a"), entry("b")]) == ["", ""]
    assert column_marks(column("noise"), [entry("a", noise=0.3), entry("b", noise=NAN)]) == ["", ""]


def test_what_was_not_measured_is_neither_best_nor_worst() -> None:
    entries = [entry("a", noise=NAN), entry("b", noise=0.1), entry("c", noise=0.3)]
    assert column_marks(column("noise"), entries) == ["", "best", "worst"]
    assert column("noise").cell(NAN) == "–"


def test_a_share_is_known_no_better_than_its_deliveries_allow() -> None:
    few = replace(entry("few"), results=({"hit_ratio": 1.0, "deliveries_expected": 24},))
    many = replace(entry("many"), results=({"hit_ratio": 1.0, "deliveries_expected": 5000},) * 3)
    shown = column("hit_ratio")
    assert shown.spread(few.interval("hit_ratio")) == "±13.8%"
    assert shown.spread(many.interval("hit_ratio")) == ""
    assert (few.deliveries, many.deliveries) == (24, 15_000)


def test_an_overlay_that_does_not_settle_is_said_never_to() -> None:
    assert column("settled_after").cell(float("inf")) == "never"


def test_the_systems_own_traffic_stands_beside_that_of_membership() -> None:
    """Of each seed, so that the interval is that of the difference."""
    given = entry("alpha", control_bytes=1_000.0, membership_bytes=400.0)
    other = entry("alpha", control_bytes=1_200.0, membership_bytes=300.0)
    both = replace(given, results=(*given.results, *other.results))
    assert both.replications("own_bytes") == [600.0, 900.0]
    assert both.measures["own_bytes"] == 750.0
    measures = [one.measure for one in COLUMNS]
    place = measures.index("control_bytes")
    assert measures[place : place + 3] == ["control_bytes", "own_bytes", "membership_bytes"]
    assert column("own_bytes").cell(both.measure("own_bytes")) == "750"
    silent = entry("alpha", control_bytes=0.3, membership_bytes=0.1 + 0.2)
    assert silent.measure("own_bytes") == 0.0
    earlier = replace(given, results=({"control_bytes": 5.0},))
    assert "own_bytes" not in earlier.measures


def test_a_system_without_a_membership_of_its_own_is_not_the_cheapest_in_it() -> None:
    alone = entry("alone", control_bytes=1_000.0, membership_bytes=math.nan)
    assert alone.measure("own_bytes") == 1_000.0
    membership = column("membership_bytes")
    assert membership.cell(alone.measure("membership_bytes")) == "–"
    assert column_marks(membership, [alone, entry("few"), entry("many", membership_bytes=900.0)])[0] == ""
