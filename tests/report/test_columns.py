"""Formats and marks."""

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
    assert column_marks(column("degree_mean"), entries) == ["best", "worst", ""]
    assert column_marks(column("hit_ratio"), entries) == ["worst", "best", ""]


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
