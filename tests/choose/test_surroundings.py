"""What is said of churn and latency of the user's own is what happens in the runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from topicweave.choose.surroundings import own_churn, own_latency
from topicweave.errors import BadInput
from topicweave.model.workload import Workload

NODES = [f"n{number}" for number in range(6)]
WORKLOAD = Workload.from_lists({name: ["news"] for name in NODES})


def told(tmp_path: Path, read: Callable[..., Any], lines: list[str], *given: Any) -> list[str]:
    file = tmp_path / "mine.csv"
    file.write_text("\n".join(lines) + "\n")
    notes: list[str] = []
    read(str(file), *given, notes.append)
    return [note.removeprefix(f"{file}: ") for note in notes]


def churn_notes(tmp_path: Path, lines: list[str], speed: float = 1.0) -> list[str]:
    return told(tmp_path, own_churn, lines, speed, WORKLOAD, 0)


def test_how_much_of_a_trace_is_played_is_said(tmp_path: Path) -> None:
    lines = ["node,start,end", *(f"{name},0,3600" for name in NODES[1:]), "n0,30,90"]
    assert churn_notes(tmp_path, lines)[1:] == [
        "5 of 6 nodes are up at time 0; 1 joins and leaves happen while events go out (60 s)"
    ]
    # An hour passes in a minute.
    assert churn_notes(tmp_path, lines, 60.0)[1:] == [
        "5 of 6 nodes are up at time 0; 7 joins and leaves happen while events go out (60 s)"
    ]
    lines = ["node,start,end", *(f"{name},0,3600" for name in NODES)]
    assert churn_notes(tmp_path, lines)[1:] == [
        "6 of 6 nodes are up at time 0; nobody comes or goes while events go out (60 s): raise --churn-speed"
    ]


def test_a_trace_whose_hosts_come_one_by_one_is_refused(tmp_path: Path) -> None:
    lines = ["time,node,change", *(f"{1_600_000_000 + at},{name},join" for at, name in enumerate(NODES))]
    with pytest.raises(BadInput, match="0 of 6 nodes are up at time 0"):
        churn_notes(tmp_path, lines)


def test_what_is_left_out_of_a_trace_is_said(tmp_path: Path) -> None:
    sessions = [f"n{number},0,20" for number in range(150)]
    wrong = [
        note for note in churn_notes(tmp_path, ["node,start,end", *sessions, "oops,7"]) if "left out" in note
    ]
    assert wrong == ["1 line with a wrong number of columns left out, first line 152"]
    changes = ["time,node,change", *(f"0,{name},join" for name in NODES), "5,n0,join", "9,n0,leave"]
    assert "1 row left out: the host was up, or away, already" in churn_notes(tmp_path, changes)


def test_what_is_left_out_of_latencies_is_said(tmp_path: Path) -> None:
    pairs = [f"n{a},n{b},20" for a in range(20) for b in range(a)]
    notes = told(tmp_path, own_latency, ["from,to,ms", *pairs, "oops,7"], None, WORKLOAD)
    assert [note for note in notes if "left out" in note] == [
        "1 line with a wrong number of columns left out, first line 192"
    ]
