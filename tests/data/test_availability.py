"""Lives of hosts: sessions read, machine events put in order, churn dealt out."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from topicweave.data.availability import alternating, host_sessions, with_churn
from topicweave.data.reading import read_rows
from topicweave.model.workload import Workload


def test_hosts_keep_their_order_and_sessions_that_touch_are_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import lzma

    file = tmp_path / "churn" / "gnutella_saroiu_intervals.tsv.xz"
    file.parent.mkdir()
    file.write_bytes(lzma.compress(b"b\t2\t1\t5\t5\t9\na\t0\nc\t1\t3\t3\nd\t2\t0\t1\t4\t6\n"))
    monkeypatch.setenv("TOPICWEAVE_DATASETS", str(tmp_path))
    assert host_sessions() == (((1.0, 9.0),), (), (), ((0.0, 1.0), (4.0, 6.0)))


def test_machine_events_alternate(tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    rows = ["0,a,0", "0,b,0", "5,c,1", "7,a,0", "9,a,1", "9,a,0", "9,b,1", "11,b,2", "12,b,1"]
    file.write_text("".join(f"{row},p,,\n" for row in rows))
    kept = alternating(read_rows("machine-events", file).rows)
    assert [(row["time"], row["node"], row["change"]) for row in kept.to_pylist()] == [
        (0.0, "a", "join"),
        (0.0, "b", "join"),
        (9e-6, "b", "leave"),
    ]


def test_nodes_live_the_lives_of_hosts() -> None:
    workload = Workload.from_lists({f"n{number}": ["t"] for number in range(7)})
    changes = pa.table(
        {"time": [10.0, 100.0, 50.0], "node": ["a", "a", "b"], "change": ["join", "leave", "join"]}
    )
    hosts = pa.table({"node": ["a", "b", "c"], "sessions": [1, 1, 0]})
    lived = with_churn(workload, changes, hosts, seconds=20.0)
    lives: dict[int, list[tuple[float, int]]] = {}
    for time, node, change in lived.churn.tolist():
        lives.setdefault(node, []).append((time, change))
    # Host c was never up: its nodes join when the trace ends.
    kinds = [[(2.0, 1), (20.0, 0)], [(10.0, 1)], [(20.0, 1)]]
    assert len(lives) == 7
    assert sorted(list(lives.values()).count(kind) for kind in kinds) == [2, 2, 3]
