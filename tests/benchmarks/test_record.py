"""Results of a version are kept, and a later run says what became worse."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("psutil")

from benchmarks import record
from benchmarks.sheet import Column, Sheet


def sheet(seconds: float, rate: float, title: str = "10 nodes") -> Sheet:
    made = Sheet(
        "one",
        title,
        2,
        Column("what"),
        Column("nodes", "d"),
        Column("s", ".1f", "less"),
        Column("per s", ".0f", "more"),
        Column("degree", ".1f"),
    )
    made.add("a", 10, seconds, rate, 3.0)
    made.add("b", 10, 1.0, None, 3.0)
    return made


def test_above_one_is_worse_whichever_way_a_figure_runs(tmp_path: Path) -> None:
    record.write("1.0", [sheet(2.0, 100.0)], False, tmp_path)
    beside = record.against(record.read("1.0", tmp_path), sheet(3.0, 50.0), False)
    assert beside is not None
    assert beside.rows == [("a", 10, 1.5, 2.0), ("b", 10, 1.0, None)]
    assert record.worse(beside) == ["one: a, 10: s 1.50 times", "one: a, 10: per s 2.00 times"]
    better = record.against(record.read("1.0", tmp_path), sheet(1.0, 200.0), False)
    assert better is not None
    assert record.worse(better) == []


def test_other_sizes_are_not_compared(tmp_path: Path) -> None:
    record.write("1.0", [sheet(2.0, 100.0)], True, tmp_path)
    old = record.read("1.0", tmp_path)
    assert record.against(old, sheet(2.0, 100.0), False) is None
    assert record.against(old, sheet(2.0, 100.0, "20 nodes"), True) is None


def test_a_later_record_keeps_what_it_did_not_measure(tmp_path: Path) -> None:
    record.write("1.0", [sheet(2.0, 100.0)], True, tmp_path)
    record.write("1.0", [sheet(4.0, 100.0)], False, tmp_path)
    assert list(record.read("1.0", tmp_path).sheets) == ["one", "one (quick)"]


def test_a_row_that_is_new_has_nothing_beside_it(tmp_path: Path) -> None:
    record.write("1.0", [sheet(2.0, 100.0)], False, tmp_path)
    now = sheet(2.0, 100.0)
    now.add("c", 10, 9.0, 9.0, 3.0)
    beside = record.against(record.read("1.0", tmp_path), now, False)
    assert beside is not None
    assert beside.rows[-1] == ("c", 10, None, None)


def test_a_version_without_results_is_told_in_one_line(tmp_path: Path) -> None:
    record.write("1.0", [], False, tmp_path)
    with pytest.raises(SystemExit, match=r"no results of version 2.0; there are those of: 1.0"):
        record.read("2.0", tmp_path)


def test_the_kept_results_can_be_read() -> None:
    for file in record.FOLDER.glob("*.json"):
        assert record.read(file.stem).version == file.stem
