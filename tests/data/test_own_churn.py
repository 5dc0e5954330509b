"""Comings and goings of one's own: every form says the same, and nodes live the lives of hosts."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from topicweave.data.own_churn import Trace, lived, read_trace
from topicweave.errors import BadInput
from topicweave.model.workload import Workload


def read(folder: Path, text: str, name: str = "own.csv") -> Trace:
    (folder / name).write_text(text)
    return read_trace(folder / name)


def changes(trace: Trace) -> list[tuple[float, str, str]]:
    return sorted((row["time"], row["node"], row["change"]) for row in trace.changes.to_pylist())


EXPECTED = [
    (0.0, "a", "join"),
    (5.0, "b", "join"),
    (9.0, "a", "leave"),
    (12.0, "a", "join"),
    (20.0, "a", "leave"),
]


@pytest.mark.parametrize(
    "text",
    [
        "node,start,end\na,0,4\na,4,9\nb,5,30\na,12,20\nc,3,3\n",
        "a,0,9\nb,5,30\na,12,20\n",
        "a\t3\t0\t4\t4\t9\t12\t20\nb\t1\t5\t30\nc\t0\n",
        "time,host,event\n0,a,up\n5,b,up\n5,b,up\n9,a,down\n12,a,up\n20,a,down\n30,b,down\n",
        "0 a join\n5 b join\n9 a leave\n12 a join\n20 a leave\n30 b leave\n",
    ],
)
def test_every_form_says_the_same(tmp_path: Path, text: str) -> None:
    assert changes(read(tmp_path, text)) == [*EXPECTED, (30.0, "b", "leave")]


def test_folders_and_the_known_traces(tmp_path: Path, miniature: Path) -> None:
    trace = read(tmp_path, "a,0,9\nb,5,30\na,12,20\n")
    folder = tmp_path / "imported"
    folder.mkdir()
    pq.write_table(trace.changes, folder / "churn.parquet")
    pq.write_table(trace.hosts, folder / "hosts.parquet")
    assert changes(read_trace(folder)) == changes(trace)
    assert read_trace(miniature / "churn" / "gnutella_saroiu_intervals.tsv.xz").hosts.num_rows == 120
    assert read_trace(miniature / "churn" / "google2011_machine_events.csv.gz").hosts.num_rows == 150


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("node,start,end\na,9,4\nb,1,2\n", "line 2: a session that ends before it starts"),
        ("node,start,end\na,1,4\nb,-1,2\n", "line 3: '-1' is not a time"),
        ("time,node,change\n1,a,join\n2,a,sleep\n", "line 3: 'sleep' is neither 'join' nor 'leave'"),
        ("node,start,end\na,3,3\nb,4,4\n", "nobody comes or goes"),
        ("one,two\n1,2\n3,4\n", "need node, start and end of each session"),
    ],
)
def test_nonsense_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(BadInput) as error:
        read(tmp_path, text)
    assert complaint in str(error.value)
    with pytest.raises(BadInput, match="neither known nor a file"):
        read_trace(tmp_path / "none")


def test_nodes_live_the_lives_of_hosts_of_their_names_or_of_random_ones(tmp_path: Path) -> None:
    trace = read(tmp_path, "node,start,end\na,0,9\nb,10,30\nc,0,20\n")
    named, whose = lived(Workload.from_lists({"a": ["x"], "b": ["x"]}), trace, speed=10.0)
    assert whose == "each node lives the life of the host of its name"
    assert [(time, named.node_names[node], up) for time, node, up in named.churn.tolist()] == [
        (0.0, "a", 1),
        (0.9, "a", 0),
        (1.0, "b", 1),
        (3.0, "b", 0),
    ]
    others, whose = lived(Workload.from_lists({f"n{number}": ["x"] for number in range(6)}), trace)
    assert whose == "each node lives the life of a random one of 3 hosts"
    assert others.churn.size == 12
    with pytest.raises(BadInput, match="churn speed 0"):
        lived(others, trace, speed=0.0)
