"""A study in the terminal."""

import io

from rich.console import Console
from rich.table import Table

from topicweave.cli.tables import study_table
from topicweave.papers import Row, StudyResult


def printed(table: Table, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(table)
    return out.getvalue()


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
