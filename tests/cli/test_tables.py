"""The table in the terminal: whole columns at any width."""

import io

from rich.console import Console
from rich.table import Table

from tests.report.comparisons import comparison, entry
from topicweave.cli.tables import comparison_tables, study_table
from topicweave.papers import Row, StudyResult

SHOWN = comparison(
    entry("alpha", degree_mean=5.0),
    entry("a-system-with-a-long-name", control_bytes=1_234_567.0, hit_ratio=0.5),
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


def test_a_study_shows_what_holds_what_does_not_and_what_is_only_reported() -> None:
    rows = [
        Row({"nodes": 100, "system": "x"}, "degree_mean", 12.0, 11.98765, True, "within 15%"),
        Row({"nodes": 100}, "hops_max", "below 6", 9.0, False, "as claimed"),
        Row({}, "tdi_20", None, 0.5, None, "reported"),
    ]
    lines = printed(study_table(StudyResult("s", "smoke", 0, rows)), 200).splitlines()
    assert [word in lines[2] for word in ("nodes=100, system=x", "11.99", "within 15%", "✓")] == [True] * 4
    assert [word in lines[3] for word in ("below 6", "9", "✗")] == [True] * 3
    assert lines[4].rstrip().endswith("–")
