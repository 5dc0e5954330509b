"""Latency of one's own, in every form: places found, times right, nonsense refused with its place."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from topicweave.data.own_latency import Unit, read_network, typical_rtt
from topicweave.errors import BadInput
from topicweave.model.workload import Workload
from topicweave.sim.latency_choice import STORED, Distances, parse_latency

TWO = Workload.from_lists({"a": ["x"], "b": ["x"]})


def read(folder: Path, text: str, name: str = "own.csv", unit: Unit | None = None) -> Distances:
    (folder / name).write_text(text)
    return read_network(folder / name, unit)


def one_way(network: Distances, workload: Workload = TWO) -> float:
    return network.latency(workload).delay(0, 1, 0.0)


@pytest.mark.parametrize(
    "text",
    [
        "0,80\n80,0\n",
        "0 80\n80 0\n",
        "0\t80\n80\t0\n",
        "a,b\n0,80\n80,0\n",
        "place,a,b\na,0,80\nb,80,0\n",
        "a,0,80\nb,80,0\n",
        "from,to,rtt\na,b,80\n",
        "a b 80\nb a 80\nb c 100\nc b 100\na c 60\n",
        "node,x,y\na,0,0\nb,24,32\n",
        "a 0 0\nb 24 32\n",
        "a 0 0 h 5\nb 18 24 h 5\n",
        "node,x,y,height\na,0,0,5\nb,18,24,5\n",
    ],
)
def test_every_form_says_the_same(tmp_path: Path, text: str) -> None:
    assert one_way(read(tmp_path, text)) == pytest.approx(0.040)


def test_of_several_times_of_a_pair_the_median_counts_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "pings.csv").write_text(
        "from,to,rtt\n" + "a,b,80\n" * 3 + "b,a,20\na,b,9000\na,c,40\nb,c,60\n"
    )
    notes: list[str] = []
    network = read_network(tmp_path / "pings.csv", note=notes.append)
    assert network.rtt_ms is not None
    assert network.rtt_ms[0].tolist() == [[0, 80, 40], [20, 0, 60], [40, 60, 0]]
    assert notes == [
        f"{tmp_path / 'pings.csv'}: pairs with several times (7 rows in all): the median of each counts"
    ]


def test_units(tmp_path: Path) -> None:
    assert one_way(read(tmp_path, "0,0.08\n0.08,0\n", unit="s")) == pytest.approx(0.040)
    assert one_way(read(tmp_path, "0,80000\n80000,0\n", unit="us")) == pytest.approx(0.040)
    with pytest.raises(
        BadInput, match=r"the median round trip is 0.008 ms, .* say the unit: --latency-unit s"
    ):
        read(tmp_path, "0,0.008\n0.008,0\n")
    with pytest.raises(BadInput, match=r"the median round trip is 8e\+04 ms, .* --latency-unit us"):
        read(tmp_path, "0,80000\n80000,0\n")
    assert typical_rtt(read(tmp_path, "0,0.008\n0.008,0\n", unit="ms")) == 0.008


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("0,nan\n80,0\n", "line 1, column 2: 'nan' is not a time"),
        ("0,80\n80,what\n", "line 2, column 2: 'what' is not a time"),
        ("0,-1\n80,0\n", "line 1, column 2: a time of -1; give 0 or more"),
        ("from,to,rtt\na,b,80\nb,c,20\na,c,-50\n", "line 4, column 3: a time of -50; give 0 or more"),
        ("0,80,3,5\n80,0,3,5\n", "2 rows of 4 columns; give a square matrix"),
        ("from,to,rtt\na,b,80\nb,c,20\n", "no time between 'a' and 'c'; give one for every pair"),
        ("from,to,rtt\na,b,80\nc,d,20\n", "between 'a' and 'c', nor for 3 more pairs; give"),
        ("node,x,y\na,0,0\na,1,1\n", "place 'a' is there twice"),
        ("node,x,y\na,0,0\nb,1,inf\n", "line 3, column 3: 'inf' is not a time"),
    ],
)
def test_nonsense_is_refused_with_its_place(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(BadInput) as error:
        read(tmp_path, text)
    assert complaint in str(error.value)
    assert str(tmp_path) in str(error.value)


def test_imported_folders(tmp_path: Path) -> None:
    rtt = tmp_path / "rtt"
    rtt.mkdir()
    rows = [(s, a, b, 0.0 if a == b else 0.080 + s) for s in (0, 1) for a in "ab" for b in "ab"]
    columns = dict(zip(("slice", "node", "peer", "rtt"), zip(*rows, strict=True), strict=True))
    pq.write_table(pa.table({name: list(cells) for name, cells in columns.items()}), rtt / "rtt.parquet")
    network = read_network(rtt)
    assert network.rtt_ms is not None
    assert network.rtt_ms.shape == (2, 2, 2)
    assert one_way(network) == pytest.approx(0.040)
    places = tmp_path / "places"
    places.mkdir()
    hosts = pa.table({"node": ["a", "b"], "x": [0.0, 18.0], "y": [0.0, 24.0], "height": [5.0, 5.0]})
    pq.write_table(hosts, places / "hosts.parquet")
    assert one_way(read_network(places)) == pytest.approx(0.040)
    with pytest.raises(BadInput, match="neither round-trip times nor places"):
        read_network(tmp_path)
    with pytest.raises(BadInput, match="neither known nor a file"):
        read_network(tmp_path / "none")


def test_the_known_data_sets(miniature: Path) -> None:
    slices = read_network(miniature / "latency" / "planetlab490_rtt_18slices.tar.xz")
    assert slices.rtt_ms is not None
    assert slices.rtt_ms.shape == (18, 24, 24)
    king = read_network(miniature / "latency" / "vivaldi_median_p2psim.syscoord.xz")
    assert (len(king.names), king.heights is not None) == (40, True)
    assert len(read_network(miniature / "latency" / "oversim_2d_coords.csv.xz").names) == 50


def test_nodes_go_to_places_of_their_names_or_in_order(tmp_path: Path) -> None:
    network = read(tmp_path, "from,to,rtt\nb,a,80\nc,a,60\nc,b,100\n")
    named = Workload.from_lists({"c": ["x"], "a": ["x"]})
    assert network.by_name(named)
    assert [network.names[place] for place in network.places(named)] == list(named.node_names)
    others = Workload.from_lists({f"n{number}": ["x"] for number in range(5)})
    assert network.places(others) == [0, 1, 2, 0, 1]


def test_what_is_stored_is_what_was_read(tmp_path: Path) -> None:
    network = read(tmp_path, "a 0 0 h 5\nb 18 24 h 5\n")
    path = tmp_path / f"one{STORED}"
    network.save(path)
    assert parse_latency(str(path), TWO, 0).delay(0, 1, 0.0) == pytest.approx(0.040)
    again = Distances.load(path)
    assert again.names == network.names
    assert again.points is not None
    assert network.points is not None
    assert np.array_equal(again.points, network.points)
    assert math.isclose(one_way(again), one_way(network))
    path.write_bytes(b"no")
    with pytest.raises(BadInput, match="not a stored latency"):
        parse_latency(str(path), TWO, 0)
