"""Files in every shape that people have: what is understood of each, and one clear line about what is wrong."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import lzma
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topicweave.data.sniffing import MISSING
from topicweave.data.tables import Understood, read_subscriptions, refuse_pointless
from topicweave.data.text_tables import TableOptions
from topicweave.errors import BadInput
from topicweave.model.workload import Workload


def lists(workload: Workload) -> dict[str, list[str]]:
    return {
        name: sorted(workload.topic_names[topic] for topic in workload.interests(index))
        for index, name in enumerate(workload.node_names)
    }


def read(
    folder: Path, content: str | bytes, name: str = "my.csv", **options: Any
) -> tuple[dict[str, list[str]], Understood]:
    data = content.encode() if isinstance(content, str) else content
    (folder / name).write_bytes(data)
    workload, understood = read_subscriptions(folder / name, TableOptions(**options))
    return lists(workload), understood


def said(understood: Understood) -> str:
    return str(understood).split(": ", 1)[1]


HEADERS = [
    ("member_id,group_id\n1,a\n2,a\n3,b\n", "member_id", "group_id"),
    ("User_ID,Game_ID\n1,a\n2,a\n3,b\n", "User_ID", "Game_ID"),
    ("userID,artistID\n1,a\n2,a\n3,b\n", "userID", "artistID"),
    ("customer,product\n1,a\n2,a\n3,b\n", "customer", "product"),
    ("src,dst\n1,a\n2,a\n3,b\n", "src", "dst"),
]


@pytest.mark.parametrize(("text", "node", "topic"), HEADERS)
@pytest.mark.parametrize("name", ["h.csv", "h.txt"])
def test_headers_with_any_names(tmp_path: Path, text: str, node: str, topic: str, name: str) -> None:
    found, understood = read(tmp_path, text, name)
    assert found == {"1": ["a"], "2": ["a"], "3": ["b"]}
    assert said(understood) == (
        f"columns between commas, with a header; nodes from column {node!r}, topics from column {topic!r}, 3 rows"
    )


@pytest.mark.parametrize("text", ["customer,product\nann,x\nbob,x\n", "src,dst\nann,bob\nbob,cid\n"])
def test_headers_above_names(tmp_path: Path, text: str) -> None:
    found, understood = read(tmp_path, text)
    assert len(found) == understood.rows == 2


def test_a_first_line_like_any_other_is_data(tmp_path: Path) -> None:
    found, understood = read(tmp_path, "ann,news\nbob,news\nann,go\n")
    assert found == {"ann": ["go", "news"], "bob": ["news"]}
    assert understood.shape == "columns between commas, without a header"
    assert not understood.notes
    _, unsure = read(tmp_path, "ann,red\nbob,blue\n")
    assert unsure.notes == ("the first line is taken for data; if it names the columns, say --header",)
    assert read(tmp_path, "ann,red\nbob,blue\n", header=True)[0] == {"bob": ["blue"]}
    assert len(read(tmp_path, "member_id,group_id\n1,a\n", header=False)[0]) == 2


def test_a_first_line_that_may_be_names_is_told(tmp_path: Path) -> None:
    _, understood = read(tmp_path, "ann,game\nbob,music\ncid,film\n")
    assert understood.notes == (
        "the first line is taken for the names of the columns; if it is data, say --no-header",
    )
    assert len(read(tmp_path, "ann,game\nbob,music\ncid,film\n", header=False)[0]) == 3
    assert len(read(tmp_path, "NaN,x\n1,x\n2,y\n")[0]) == 2, "a missing name is no column's name"


def test_options_that_say_nothing_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"user": ["a", "b"], "topic": ["x", "x"]}), tmp_path / "my.parquet")
    with pytest.raises(BadInput, match=r"--header says nothing about .parquet; leave it out"):
        read_subscriptions(tmp_path / "my.parquet", TableOptions(header=True))


@pytest.mark.parametrize(
    ("separator", "word"),
    [
        (",", "commas"),
        ("\t", "tabs"),
        (";", "semicolons"),
        ("|", "bars"),
        (":", "colons"),
        (" ", "blanks"),
        ("   ", "blanks"),
        ("::", "double colons"),
    ],
)
@pytest.mark.parametrize("name", ["my.csv", "my.txt", "my.dat", "mine"])
def test_separators(tmp_path: Path, separator: str, word: str, name: str) -> None:
    rows = [("user", "topic", "weight"), ("ann", "x", "1"), ("bob", "x", "2"), ("bob", "y", "3")]
    found, understood = read(tmp_path, "".join(f"{separator.join(row)}\n" for row in rows), name)
    assert found == {"ann": ["x"], "bob": ["x", "y"]}
    assert understood.shape == f"columns between {word}, with a header"


@pytest.mark.parametrize("arrow", ["->", " -> ", " => ", "=>"])
def test_arrows(tmp_path: Path, arrow: str) -> None:
    """Blanks around an arrow separate nothing: `->` is nobody's topic."""
    rows = [("ann", "x"), ("bob", "x"), ("bob", "y"), ("carol", "z")]
    text = "".join(f"{node}{arrow}{topic}\n" for node, topic in rows)
    found, understood = read(tmp_path, text)
    assert found == {"ann": ["x"], "bob": ["x", "y"], "carol": ["z"]}
    assert understood.shape == "columns between arrows, without a header"
    lists = f"ann{arrow}x, y\nbob{arrow}x\ncarol{arrow}y, z\n"
    assert read(tmp_path, lists)[0] == {"ann": ["x", "y"], "bob": ["x"], "carol": ["y", "z"]}
    names = f"c->d,{arrow}\nann,x\nbob,x\n"
    assert read(tmp_path, names, header=True, node="1", topic="2")[0] == {"ann": ["x"], "bob": ["x"]}


def test_other_signs_can_be_given(tmp_path: Path) -> None:
    assert read(tmp_path, "ann~x\nbob~x\n", delimiter="~")[0] == {"ann": ["x"], "bob": ["x"]}
    assert read(tmp_path, "a b,x\nc d,x\n", delimiter="comma")[0] == {"a b": ["x"], "c d": ["x"]}
    assert read(tmp_path, "a:b c:d\ne:f c:d\n", delimiter="whitespace")[0] == {"a:b": ["c:d"], "e:f": ["c:d"]}


def test_columns_can_be_given_by_name_or_number(tmp_path: Path) -> None:
    text = "a,b,c\n1,x,ann\n2,x,bob\n"
    assert read(tmp_path, text, node="c", topic="B")[0] == {"ann": ["x"], "bob": ["x"]}
    assert read(tmp_path, text, node="3", topic="2")[0] == {"ann": ["x"], "bob": ["x"]}
    with pytest.raises(BadInput, match="no column 'd' for --node; it has a, b, c"):
        read(tmp_path, text, node="d")
    with pytest.raises(BadInput, match="column 'a' for both"):
        read(tmp_path, text, node="a", topic="1")


def test_quotes(tmp_path: Path) -> None:
    text = 'user,topic\n"ann, the 2nd","say ""hi"""\n"bob",x\n'
    assert read(tmp_path, text)[0] == {"ann, the 2nd": ['say "hi"'], "bob": ["x"]}
    assert read(tmp_path, "user,topic\n'ann, b','x'\n'bob','x'\n")[0] == {"ann, b": ["x"], "bob": ["x"]}
    assert read(tmp_path, 'user,topic\nann,5" disk\nbob,5" disk\n')[0]["ann"] == ['5" disk']


def test_an_index_column_and_extra_columns(tmp_path: Path) -> None:
    found, understood = read(tmp_path, ",who,what,weight\n0,ann,x,0.5\n1,bob,x,1.5\n2,bob,y,2.5\n")
    assert found == {"ann": ["x"], "bob": ["x", "y"]}
    assert "nodes from column 'who', topics from column 'what'" in str(understood)
    found, understood = read(tmp_path, ",alpha,score,beta\n0,ann,0.5,x\n1,bob,1.5,x\n2,bob,2.5,y\n")
    assert found == {"ann": ["x"], "bob": ["x", "y"]}
    assert understood.notes == (
        "of 4 columns (column 1, alpha, score, beta); say --node and --topic if others are meant",
    )


@pytest.mark.parametrize(
    ("encoding", "note"),
    [
        ("utf-8", ()),
        ("utf-8-sig", ()),
        ("utf-16", ("it is in UTF-16",)),
        ("cp1252", ("it is not in UTF-8; read as Windows-1252",)),
    ],
)
def test_encodings(tmp_path: Path, encoding: str, note: tuple[str, ...]) -> None:
    found, understood = read(tmp_path, "user,topic\r\nJürgen,café\r\nAnn,café\r\n".encode(encoding))
    assert found == {"Jürgen": ["café"], "Ann": ["café"]}
    assert understood.notes == note


def test_comments_may_name_the_columns(tmp_path: Path) -> None:
    text = "# Directed graph\n# Nodes: 3\n# FromNodeId\tToNodeId\n0\t4\n1\t4\n"
    found, understood = read(tmp_path, text, "graph.txt")
    assert found == {"0": ["4"], "1": ["4"]}
    assert "nodes from column 'FromNodeId', topics from column 'ToNodeId', 2 rows" in str(understood)
    hashed = "".join(f"#tag{number % 3},user{number}\n" for number in range(12))
    assert len(read(tmp_path, hashed)[0]) == 3, "where most lines start with # it starts names"


@pytest.mark.parametrize(
    "text",
    [
        "u1 a b c\nu2 a\nu3 b d a e\nu4 c\n",
        "u1\ta,b,c\nu2\ta\nu3\tb,d,a,e\nu4\tc\n",
        "u1,a,b,c\nu2,a\nu3,b,d,a,e\nu4,c\n",
    ],
)
def test_a_node_and_its_topics_per_line(tmp_path: Path, text: str) -> None:
    found, understood = read(tmp_path, text, "lists.dat")
    assert found == {"u1": ["a", "b", "c"], "u2": ["a"], "u3": ["a", "b", "d", "e"], "u4": ["c"]}
    assert "nodes from the first name of a line, topics from the others, 9 rows" in str(understood)


@pytest.mark.parametrize(
    "text",
    [
        "user topics\n1 a b c\n2 a\n3 b d a e\n4 c\n",
        "user\ttopics\n1\ta,b,c\n2\ta\n3\tb,d,a,e\n4\tc\n",
        "who,friends\n1,a,b,c\n2,a\n3,b,d,a,e\n4,c\n",
        "# of last year\nuser topics\r\n1 a b c\r\n2 a\r\n3 b d a e\r\n4 c\r\n",
    ],
)
def test_a_header_above_lists_is_nobody(tmp_path: Path, text: str) -> None:
    found, understood = read(tmp_path, text, "lists.dat")
    assert found == {"1": ["a", "b", "c"], "2": ["a"], "3": ["a", "b", "d", "e"], "4": ["c"]}
    assert "with a header" in str(understood)
    assert read(tmp_path, text, "lists.dat", header=True)[0] == found
    assert len(read(tmp_path, text, "lists.dat", header=False)[0]) == 5


def test_a_topic_may_be_called_as_its_column(tmp_path: Path) -> None:
    found, understood = read(tmp_path, "user,topic\n0,0\n:,topic\n")
    assert found == {"0": ["0"], ":": ["topic"]}
    assert "if it is data, say --no-header" in understood.notes[0]


@pytest.mark.parametrize(
    "text",
    [
        'user,topics\nu1,"x,y"\nu2,x\nu3,"y,z"\n',
        'user,topics\nu1,"x, y"\nu2,x\nu3,"y, z"\n',
        "user,topics\nu1,x;y\nu2,x\nu3,y;z\n",
        "user|feeds\nu1|x,y\nu2|x\nu3|y,z\n",
        "u1,x;y\nu2,x\nu3,y;z\n",
        "u1;x|y\nu2;x\nu3;y|z\n",
        "u1: x, y\nu2: x\nu3: y, z\n",
    ],
)
def test_lists_in_cells(tmp_path: Path, text: str) -> None:
    found, understood = read(tmp_path, text)
    assert found == {"u1": ["x", "y"], "u2": ["x"], "u3": ["y", "z"]}
    assert understood.shape.startswith("a node and its topics per line")


@pytest.mark.parametrize(
    "text",
    [
        "user;rating\nu1;3,5\nu2;4\nu3;4,5\n",
        "u1;3,5\nu2;4\nu3;4,5\n",
        'user,headline\nu1,"rain, then sun"\nu2,"sun, all day"\nu3,fog\n',
        "user,topics\nu1,a;b\nu1,c\nu2,d;e\n",
    ],
)
def test_no_lists(tmp_path: Path, text: str) -> None:
    """Decimal numbers, sentences, several lines for one node."""
    assert read(tmp_path, text)[1].shape.startswith("columns between")


@pytest.mark.parametrize(
    ("text", "cell", "apart"),
    [
        ("user,topics\nu1,t1 t8\nu2,t1 t3\nu3,t8\n", "t1 t8", "t1|t8"),
        ("user|topics\nu1|t1 t8\nu2|t1\n", "t1 t8", "t1|t8"),
    ],
)
def test_cells_that_may_be_lists_are_told(tmp_path: Path, text: str, cell: str, apart: str) -> None:
    found, understood = read(tmp_path, text)
    assert found["u1"] == [cell]
    assert understood.notes == (
        f"cells of column 'topics' are taken whole: {cell!r} is one topic; if it is several, write {apart!r} and say --lists",
    )
    assert not read(tmp_path, text, lists=False)[1].notes


@pytest.mark.parametrize(
    "text",
    [
        "user,topic\nu1,t1 t8\nu2,t1 t3\n",
        "user,movies\nu1,The Birds\nu1,Taxi Driver\n",
        "user,topics\nu1,t1\nu2,t2\n",
    ],
)
def test_cells_that_are_names_need_no_note(tmp_path: Path, text: str) -> None:
    assert not read(tmp_path, text)[1].notes


def test_what_the_note_about_cells_says_works(tmp_path: Path) -> None:
    text = "user,topics\nu1,t1|t8\nu2,t1|t3\nu3,t8\n"
    lists = {"u1": ["t1", "t8"], "u2": ["t1", "t3"], "u3": ["t8"]}
    assert read(tmp_path, text, lists=True)[0] == lists
    assert read(tmp_path, text.replace(",", "|"), lists=True)[0] == lists
    pq.write_table(pa.table({"user": ["a", "b"], "topics": ["x y", "y"]}), tmp_path / "my.parquet")
    (note,) = read_subscriptions(tmp_path / "my.parquet")[1].notes
    assert note.endswith("'x y' is one topic; if it is several, give a list, ['x', 'y']")


def test_columns_named_alike_are_told(tmp_path: Path) -> None:
    text = "user_name,user_id,topic_id,topic_name\nann,1,7,news\nbob,2,7,news\n"
    found, understood = read(tmp_path, text)
    assert found == {"ann": ["7"], "bob": ["7"]}
    assert understood.notes == (
        "nodes from column 'user_name', not from 'user_id'; say --node 'user_id' if it is meant",
        "topics from column 'topic_id', not from 'topic_name'; say --topic 'topic_name' if it is meant",
    )
    found, understood = read(tmp_path, text, node="user_id", topic="topic_name")
    assert found == {"1": ["news"], "2": ["news"]}
    assert not understood.notes


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("user\ttopic\n0\ta,b\n1\tc,d\n", {"0": ["a,b"], "1": ["c,d"]}),
        ("user\ttopic\n0\t0\n1\t,\n", {"0": ["0"], "1": [","]}),
        ("user\ttopic\n0\t0\n,\t,\n", {"0": ["0"], ",": [","]}),
        ("user\ttopic\n0\t,\n,\t,\n", {"0": [","], ",": [","]}),
    ],
)
def test_commas_in_names_between_tabs(tmp_path: Path, text: str, found: dict[str, list[str]]) -> None:
    assert read(tmp_path, text)[0] == found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("my.json", json.dumps({"ann": ["x", 7], "bob": ["x"], "idle": []})),
        (
            "my.json",
            json.dumps(
                [
                    {"user": "ann", "items": ["x", 7]},
                    {"user": "bob", "items": ["x"]},
                    {"user": "idle", "items": []},
                ]
            ),
        ),
        ("my.jsonl", '{"ann": ["x", 7]}\n{"bob": ["x"]}\n{"idle": []}\n'),
        (
            "my.ndjson",
            '{"user": "ann", "topic": "x"}\n{"user": "ann", "topic": 7}\n{"user": "bob", "topic": "x"}\n{"user": "idle", "topic": null}\n',
        ),
    ],
)
def test_json(tmp_path: Path, name: str, value: str) -> None:
    assert read(tmp_path, value, name)[0] == {"ann": ["7", "x"], "bob": ["x"], "idle": []}


@pytest.mark.parametrize(
    ("node", "topic"),
    [
        (pa.array([1, 2, 2]), pa.array(["7", "7", "8"])),
        (pa.array([1.0, 2.0, 2.0]), pa.array([7, 7, 8], pa.uint8())),
        (pa.array(["1", "2", "2"]).dictionary_encode(), pa.array([b"7", b"7", b"8"])),
        (pa.array(["1", "2", "2"], pa.large_string()), pa.array(["7", "7", "8"], pa.string_view())),
    ],
)
def test_parquet_of_other_types(tmp_path: Path, node: Any, topic: Any) -> None:
    pq.write_table(pa.table({"when": [0.5, 1.5, 2.5], "u": node, "t": topic}), tmp_path / "my.parquet")
    workload, understood = read_subscriptions(tmp_path / "my.parquet")
    assert lists(workload) == {"1": ["7"], "2": ["7", "8"]}
    assert (understood.node, understood.topic) == ("column 'u'", "column 't'")


def test_parquet_of_lists(tmp_path: Path) -> None:
    pq.write_table(pa.table({"user": ["a", "b"], "topics": [["x", "y"], []]}), tmp_path / "my.parquet")
    assert lists(read_subscriptions(tmp_path / "my.parquet")[0]) == {"a": ["x", "y"], "b": []}


def test_packed_files(tmp_path: Path) -> None:
    text = b"user,topic\nann,x\nbob,x\n"
    with zipfile.ZipFile(tmp_path / "one.zip", "w") as archive:
        archive.writestr("folder/my.csv", text)
    with pa.output_stream(tmp_path / "my.csv.zst", compression="zstd") as stream:
        stream.write(text)
    (tmp_path / "my.csv.gz").write_bytes(gzip.compress(text))
    (tmp_path / "my.csv.xz").write_bytes(lzma.compress(text))
    (tmp_path / "my.csv.bz2").write_bytes(bz2.compress(text))
    for name in ("one.zip", "my.csv.zst", "my.csv.gz", "my.csv.xz", "my.csv.bz2"):
        assert lists(read_subscriptions(tmp_path / name)[0]) == {"ann": ["x"], "bob": ["x"]}, name
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.csv", text)
        archive.writestr("b.csv", text)
    with pytest.raises(BadInput, match="holds 2 files, not one"):
        read_subscriptions(tmp_path / "two.zip")


def test_missing_names_are_counted_and_said(tmp_path: Path) -> None:
    found, understood = read(tmp_path, "user,topic\nann,x\nbob,NaN\n,x\nnull,x\ncid,\ncid,x\n")
    assert found == {"ann": ["x"], "bob": [], "cid": ["x"]}
    assert understood.rows == 6
    assert understood.notes == (
        "2 rows without a node (empty, NaN, null, …) left out",
        "2 rows without a topic (empty, NaN, null, …): the node is there, without a subscription",
    )


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("my.csv", 'user,topic\nann,"x\nbob,x\neve,y\n', "line 2: a quote that is not closed: 'ann,\"x'"),
        ("my.csv", '# so\nuser,topic\nann,x\nbob,"x\ncid,"y\n', "line 4: a quote that is not closed"),
        ("my.csv", "<!DOCTYPE html>\n<html><body>a, b</body></html>\n", "an HTML page, not a table"),
        ("my.dot", "digraph {\n a -> b;\n b -> c;\n}\n", "a drawing (DOT), not a table"),
        (
            "my.md",
            "# Weave\n\nIt is one overlay for all topics, woven by\nits nodes. Nobody is in charge.\nIt mends itself\n",
            "sentences, not a table",
        ),
        ("my.csv", f"user,topic\nann,{'x' * 5_000_000}\nbob,y\n", "line 2: a name of 5,000,000 bytes"),
        ("my.csv", f'user,topic\nann,"{"x y " * 5000}"\nbob,y\n', "line 2: a name of 19,999 bytes"),
        ("my.csv", "", "empty; need a line for each subscription"),
        ("my.csv", "a\nb\nc\n", "line 1: one column, 'a'; need a node and a topic"),
        (
            "my.csv",
            "a,b\nc;d\ne|f\ng\th\ni j\nk:l\n",
            "no separator that most lines have; need a node and a topic",
        ),
        ("my.csv", "# so\nuser,topic\nann\nbob\n", "line 3: one column, 'ann'; need a node and a topic"),
        ("my.csv", "user,topic\na,x\nb,y,z\nc,x\n", "line 3: 3 columns, not 2; 1 line wrong"),
        ("my.json", '{"ann": ["x"', "line 1: Input data was truncated"),
        ("my.json", "[1, 2]", "JSON without subscriptions"),
        ("my.jsonl", '{"user": "a", "topic": "x"}\nno\n', "line 2: not JSON"),
        ("my.csv", b"\x1f\x8b\x08 rest", "packed by gzip, not lines of text"),
        ("my.csv.gz", b"user,topic\n", "cannot be read (Not a gzipped file"),
        ("my.txt", b"a\0b\n", "not a text file"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    tmp_path: Path, name: str, content: str | bytes, complaint: str
) -> None:
    with pytest.raises(BadInput) as error:
        read(tmp_path, content, name)
    assert complaint in str(error.value)
    assert str(tmp_path / name) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("user,news,sport\nann,1,0\nbob,0,1\n", "with 0 and 1 in it"),
        ("id,news,sport,go\n7,True,False,\n8,False,True,True\n", "with false and true in it"),
        (",user,news,sport\n0,ann,yes,no\n1,bob,no,yes\n", "(news, sport), with no and yes in it"),
    ],
)
def test_a_column_per_topic_is_not_taken_for_topics(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(BadInput, match="a column per topic") as error:
        read(tmp_path, text)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("user,topic,active\nann,0,1\nbob,1,0\n", {}),
        ("user,news,sport\nann,1,0\nbob,0,1\n", {"topic": "news"}),
        ("user,zone,floor\nann,0,1\nbob,1,2\n", {}),
        ("9,0,1\n8,1,0\n", {}),
    ],
)
def test_topics_may_be_called_0_and_1(tmp_path: Path, text: str, options: dict[str, Any]) -> None:
    found, _ = read(tmp_path, text, **options)
    assert {topic for topics in found.values() for topic in topics} == {"0", "1"}


def test_a_file_of_holes_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "huge.txt").open("wb") as file:
        file.truncate(3 << 30)
    with pytest.raises(
        BadInput, match="more than 512 MiB, too large to be read at once; make a workload of it"
    ):
        read_subscriptions(tmp_path / "huge.txt")


def test_what_cannot_be_compared() -> None:
    with pytest.raises(BadInput, match=r"one node \('ann'\); need at least two"):
        refuse_pointless("my.csv", Workload.from_lists({"ann": ["x", "y"]}))
    with pytest.raises(BadInput, match="none of the 2 topics has more than one subscriber"):
        refuse_pointless("my.csv", Workload.from_lists({"ann": ["x"], "bob": ["y"]}))
    refuse_pointless("my.csv", Workload.from_lists({"ann": ["x"], "bob": ["x"]}))


SHARED = {
    "facebook_combined.txt.gz": "columns between blanks, without a header; nodes from column 1, topics from column 2",
    "ego-twitter_undirected.csv.xz": "columns between commas, without a header; nodes from column 1, topics from column 2",
    "twitter_followers_100users.csv.xz": "columns between commas, with a header; nodes from column 'follower', topics from column 'followed'",
    "soc-Epinions1.txt.xz": "columns between tabs, without a header; nodes from column 'FromNodeId', topics from column 'ToNodeId'",
    "soc-LiveJournal1Adj.txt.xz": "a node and its topics per line, between commas; nodes from the first name of a line, topics from the others",
    "wikipedia_edits_jodie.txt.xz": "columns between blanks, without a header; nodes from column 1, topics from column 2",
    "youtube_groupmemberships.tsv.xz": "columns between tabs, without a header; nodes from column 1, topics from column 2",
    "github_watch_2009.txt.xz": "columns between colons, without a header; nodes from column 1, topics from column 2",
}


@pytest.mark.parametrize("name", SHARED)
def test_the_known_data_sets(miniature: Path, name: str) -> None:
    assert said(read_subscriptions(miniature / "subscriptions" / name)[1]).startswith(SHARED[name])


@pytest.mark.real_data
@pytest.mark.parametrize("name", SHARED)
def test_the_real_data_sets(real_data: Path, name: str) -> None:
    assert said(read_subscriptions(real_data / "subscriptions" / name)[1]).startswith(SHARED[name])


def test_a_lone_apostrophe_is_a_name(tmp_path: Path) -> None:
    path = tmp_path / "my.csv"
    path.write_text("user,topic\n00,0\n0,'\n0,0'\n")
    assert lists(read_subscriptions(path)[0]) == {"00": ["0"], "0": ["'", "0'"]}


def test_apostrophes_around_names_are_quotes(tmp_path: Path) -> None:
    path = tmp_path / "my.csv"
    path.write_text("user,topic\n'ann','a,b'\n'bob','c'\n")
    assert lists(read_subscriptions(path)[0]) == {"ann": ["a,b"], "bob": ["c"]}


NAMES = (
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), min_size=1, max_size=12)
    .map(str.strip)
    .filter(lambda name: name not in MISSING and not name.startswith(("#", "%")))
)


@settings(max_examples=60)
@given(
    wanted=st.dictionaries(NAMES, st.sets(NAMES, min_size=1, max_size=4), min_size=2, max_size=8),
    delimiter=st.sampled_from([",", "\t", ";", "|"]),
    quote_all=st.booleans(),
)
def test_what_the_csv_module_writes_is_read_back(
    wanted: dict[str, set[str]], delimiter: str, quote_all: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "my.csv")
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(
                file, delimiter=delimiter, quoting=csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
            )
            writer.writerow(["user", "topic"])
            writer.writerows([node, topic] for node, topics in wanted.items() for topic in sorted(topics))
        found, understood = read_subscriptions(path)
    assert lists(found) == {node: sorted(topics) for node, topics in wanted.items()}
    assert understood.shape.endswith("with a header")
