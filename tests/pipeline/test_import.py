"""Traces of every format into tables; wrong lines are set aside, and too many of them stop the import."""

import gzip
import io
import lzma
import tarfile
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.cli.commands import call
from tests.pipeline.folders import pairs, rows
from topicweave.data.formats import LineOptions
from topicweave.errors import BadInput, UnknownName
from topicweave.model.workload import Workload
from topicweave.pipeline import lines
from topicweave.pipeline.importing import Imported, import_trace


@pytest.fixture
def bring(spark: SparkSession, tmp_path: Path) -> "Bring":
    return Bring(spark, tmp_path)


class Bring:
    """Imports a text as a file."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.out = folder / "out"

    def __call__(
        self, format_name: str, data: str | bytes, name: str = "trace.txt", **options: Any
    ) -> Imported:
        path = self.folder / name
        raw = data.encode() if isinstance(data, str) else data
        if path.suffix == ".gz":
            raw = gzip.compress(raw)
        elif path.suffix == ".xz":
            raw = lzma.compress(raw)
        path.write_bytes(raw)
        return import_trace(self.spark, format_name, path, self.out, LineOptions(**options))


def test_an_edge_list_makes_every_user_a_node_and_a_topic(bring: Bring) -> None:
    counts = bring("edges", "# from to\n1 2\n1\t3\n\n3 1\n3 3\n1 2\n", name="trace.txt.gz")
    assert counts == {
        "lines": 5,
        "rejects": 0,
        "subscriptions": 3,
        "duplicates": 1,
        "self_follows": 1,
        "nodes": 3,
        "topics": 3,
        "links": 5,
    }
    assert pairs(bring.out) == [("1", "2"), ("1", "3"), ("3", "1")]
    workload = Workload.load(bring.out)
    assert workload.node_names == workload.topic_names == ("1", "2", "3")


def test_direction_is_the_users_choice(bring: Bring) -> None:
    bring("edges", "a,b\n", delimiter=",", direction="followed")
    assert pairs(bring.out) == [("b", "a")]


def test_adjacency_lists_may_be_empty_and_go_both_ways(bring: Bring) -> None:
    counts = bring("adjacency", "0\t1,2\n1\t\n2\t0\n", name="trace.txt.xz", direction="both")
    assert (counts["lines"], counts["links"], counts["nodes"]) == (3, 3, 3)
    assert pairs(bring.out) == [("0", "1"), ("0", "2"), ("1", "0"), ("2", "0")]


def test_pairs_have_named_columns_and_any_delimiter(bring: Bring) -> None:
    counts = bring(
        "pairs",
        "when::who::what\n1::ann::x\n2::bob::x\n",
        delimiter="::",
        header=True,
        node="who",
        topic="what",
    )
    assert (counts["nodes"], counts["topics"]) == (2, 1)
    assert pairs(bring.out) == [("ann", "x"), ("bob", "x")]


@pytest.mark.usefixtures("spark")
def test_a_header_that_nobody_spoke_of_is_pointed_at(tmp_path: Path) -> None:
    (tmp_path / "my.csv").write_text("user,topic\nann,x\nbob,x\n")
    words = ["workload", "import", "pairs", tmp_path / "my.csv"]
    unsaid = call(*words, "--out", tmp_path / "unsaid")
    assert "the first line, 'user,topic', is taken for data" in unsaid.stderr
    assert "say --header" in unsaid.stderr
    said = call(*words, "--header", "--out", tmp_path / "said")
    assert "taken for data" not in said.stderr


def test_an_edit_log_gives_rates(bring: Bring) -> None:
    counts = bring("edits", "1 p 0\n1 p 5\n2 q 10\n")
    assert (counts["edits"], counts["subscriptions"]) == (3, 2)
    assert {row["topic"]: row["rate"] for row in rows(bring.out, "topics")} == {"p": 0.2, "q": 0.1}


def test_machine_events_become_joins_and_leaves(bring: Bring) -> None:
    good = "".join(f"0,{machine},0,p,0.5,0.5\n" for machine in range(200))
    counts = bring(
        "machine-events", good + "2000000,7,1,,,\n3000000,7,2,p,1,1\n4000000,9,0,p,1,1\n5000000,300,1,,,\n"
    )
    assert (counts["joins"], counts["leaves"], counts["updates"], counts["nodes"]) == (200, 1, 1, 201)
    assert (counts["lines"], counts["rejects"]) == (202, 2)
    assert [(row["line"], row["reason"]) for row in rows(bring.out, "rejects")] == [
        (203, "the machine is already in this state: join"),
        (204, "removes a machine that was never added"),
    ]
    leave = [row for row in rows(bring.out, "churn") if row["change"] == "leave"]
    assert leave == [{"time": 2.0, "node": "7", "change": "leave"}]


def test_sessions_that_touch_become_one_but_are_counted(bring: Bring) -> None:
    counts = bring("availability", "a\t2\t1\t5\t5\t9\nb\t0\nc\t1\t3\t3\n")
    assert (counts["sessions"], counts["nodes"], counts["never_up"], counts["changes"]) == (3, 3, 1, 2)
    assert [(row["time"], row["change"]) for row in rows(bring.out, "churn")] == [
        (1.0, "join"),
        (9.0, "leave"),
    ]


def test_round_trips_come_slice_by_slice_from_an_archive(bring: Bring) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as archive:
        for number in (10, 2):  # by number, not by name: 2 comes first
            data = f"0\t{number}\n{number}\t0\n".encode()
            entry = tarfile.TarInfo(f"slices/rtt_{number}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    path = bring.folder / "rtt.tar.xz"
    path.write_bytes(buffer.getvalue())
    counts = import_trace(bring.spark, "rtt", path, bring.out)
    assert (counts["slices"], counts["nodes"], counts["rtts"]) == (2, 2, 8)
    found = {(row["slice"], row["node"], row["peer"]): row["rtt"] for row in rows(bring.out, "rtt")}
    assert (found[0, "0", "1"], found[1, "0", "1"]) == (0.002, 0.010)


def test_coordinates_with_and_without_height(bring: Bring) -> None:
    bring("coordinates", "# king\n0 1.5 -2 h 0.7\n")
    assert rows(bring.out, "hosts") == [{"node": "0", "x": 1.5, "y": -2.0, "height": 0.7}]


def test_as_relations_tell_stubs_from_transit(bring: Bring) -> None:
    counts = bring("as-graph", "1|2|-1\n2|1|1\n1|3|0\n3|1|0\n", delimiter="|")
    assert (counts["links"], counts["ases"], counts["neighbouring"], counts["stubs"]) == (4, 3, 2, 2)


def test_an_opml_folder_has_a_reader_per_file(bring: Bring) -> None:
    folder = bring.folder / "readers"
    (folder / "deep").mkdir(parents=True)
    feed = '<opml><body><outline text="news"><outline xmlUrl="http://a"/><outline xmlUrl="http://b"/></outline></body></opml>'
    (folder / "ann.opml").write_text(feed)
    (folder / "deep" / "bob.opml").write_text('<opml><body><outline xmlUrl="http://a"/></body></opml>')
    (folder / "broken.opml").write_text("<opml>\n<body>")
    counts = import_trace(bring.spark, "opml", folder, bring.out, LineOptions(max_rejects=0.5))
    assert (counts["lines"], counts["rejects"], counts["topics"]) == (2, 1, 2)
    assert pairs(bring.out) == [("ann", "http://a"), ("ann", "http://b"), ("deep/bob", "http://a")]
    (broken,) = rows(bring.out, "rejects")
    assert broken["file"].endswith("broken.opml")
    assert broken["line"] == 2
    assert broken["reason"].startswith("not XML")


def test_wrong_lines_are_set_aside_with_place_and_reason(bring: Bring) -> None:
    good = "".join(f"{number} {number + 1}\n" for number in range(300))
    counts = bring("edges", good.encode() + b"1 2 3\n\xff\xfe \x00\n")
    assert (counts["lines"], counts["rejects"]) == (300, 2)
    assert [(row["line"], row["reason"], row["text"]) for row in rows(bring.out, "rejects")] == [
        (301, "3 fields between white space, not 2", "1 2 3"),
        (302, "not UTF-8 text", "\\xff\\xfe \\x00"),
    ]


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (
            "1 2\n3 4\n",
            {"delimiter": ","},
            r"2 of 2 lines .* line 1 of .*trace.txt, '1 2': 1 fields between ','",
        ),
        ("", {}, "nothing in it but blank lines and comments"),
        ("# nothing\n", {}, "nothing in it but blank lines and comments"),
        (bytes(range(256)) * 50, {}, "do not fit the format 'edges'"),
    ],
    ids=["wrong delimiter", "empty", "comments", "rubbish"],
)
def test_bad_input_is_told_in_a_line_and_leaves_nothing(
    bring: Bring, data: str | bytes, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadInput, match=words) as error:
        bring("edges", data, **options)
    assert "\n" not in str(error.value)
    assert not bring.out.exists()


def test_a_file_that_is_not_what_its_name_says(bring: Bring) -> None:
    (bring.folder / "trace.xz").write_bytes(b"plain text")
    with pytest.raises(BadInput, match=r"trace.xz: cannot be read .* named for its compression"):
        import_trace(bring.spark, "edges", bring.folder / "trace.xz", bring.out)


def test_what_can_be_known_at_once(bring: Bring) -> None:
    with pytest.raises(BadInput, match="nowhere: no such file"):
        import_trace(bring.spark, "edges", bring.folder / "nowhere", bring.out)
    with pytest.raises(UnknownName, match="machine-events"):
        bring("csv", "a,b\n")
    with pytest.raises(BadInput, match="no column 'who'; it has a, b"):
        bring("pairs", "a,b\n1,2\n", header=True, node="who")


def test_a_large_plain_file_is_read_in_pieces_and_lines_keep_their_numbers(
    bring: Bring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "PIECE_BYTES", 1000)
    text = "".join(f"{number} {number + 1}\n" for number in range(1000))
    counts = bring("edges", text.replace("500 501\n", "500\n") + "last line", max_rejects=0.1)
    assert (counts["lines"], counts["rejects"]) == (1000, 1)
    assert rows(bring.out, "rejects")[0]["line"] == 501
    assert ("last", "line") in pairs(bring.out)
