"""The table in the terminal: whole columns at any width."""

import io
from dataclasses import replace

import pytest
from rich.console import Console
from rich.table import Table

from tests.report.comparisons import comparison, entry, without_events
from topicweave.report.terminal import as_plain_text, comparison_tables

SHOWN = comparison(
    entry("alpha", degree_mean=5.0),
    entry("a-system-with-a-long-name", control_bytes=1_234_567.0),
    entry("leaky", hit_ratio=0.5),
)


def printed(table: Table, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(table)
    return out.getvalue()


def test_one_table_where_there_is_room() -> None:
    [table] = comparison_tables(SHOWN, None)
    text = printed(table, 200)
    assert "▴5.0" in text
    assert "▾1,234,567" in text
    assert "▾50.0%" in text
    assert "▴100%" in text


def test_several_where_there_is_not_and_nothing_is_cut() -> None:
    [whole] = comparison_tables(SHOWN, None)
    tables = comparison_tables(SHOWN, 80)
    assert len(tables) > 1
    assert sum(len(table.columns) - 1 for table in tables) == len(whole.columns) - 1
    together = "".join(printed(table, 80) for table in tables)
    assert "…" not in together
    assert together.count("a-system-with-a-long-name") == len(tables)
    assert "▾1,234,567" in together


@pytest.mark.parametrize(
    ("membership", "oracle"), [("full", True), ("5%", True), ("directory:100", False), ("gossip", False)]
)
def test_a_table_made_with_an_oracle_says_so(membership: str, oracle: bool) -> None:
    shown = replace(SHOWN, setting=replace(SHOWN.setting, membership=membership))
    for width in (None, 80):
        [line] = [line for line in as_plain_text(shown, width).splitlines() if line.startswith("membership ")]
        assert line.startswith(f"membership {membership}: ")
        assert (" oracle;" in line) == oracle


def test_the_legend_says_who_is_marked() -> None:
    """Of deliveries, everybody is; of all else, those that make them all; nobody where none were expected."""
    ranked = "▴ best, ▾ worst of those that reach everybody (hit ratio: of all); links"
    nobody = comparison(entry("a", hit_ratio=0.5, degree_mean=9.0), entry("b", hit_ratio=0.9))
    text = as_plain_text(nobody)
    assert "▾50.0%" in text
    assert text.count("▴") == text.count("▾") == 2, "in the hit ratio and in the legend"
    assert ranked in text
    unknown = comparison(without_events("a"), without_events("b", degree_mean=3.0), events=0)
    text = as_plain_text(unknown)
    assert "▴" not in text
    assert "▾" not in text
    assert "nobody is marked, because no delivery was expected; links" in text


def test_traffic_and_its_two_parts_stand_in_one_table() -> None:
    """Of a system with a name of usual length, in a terminal of usual width."""
    shown = comparison(
        entry("ring-per-topic", control_bytes=3_654.0, membership_bytes=1_402.0), entry("spidercast")
    )
    text = as_plain_text(shown, 80)
    [line] = [line for line in text.splitlines() if line.startswith("ring-per-topic") and "3,654" in line]
    assert line.index("3,654") < line.index("2,252") < line.index("1,402")
