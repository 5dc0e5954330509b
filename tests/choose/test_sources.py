"""Whatever holds a user's subscriptions becomes a workload, or one clear line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from topicweave.choose.channel import Note
from topicweave.choose.sources import read_workload
from topicweave.errors import BadInput
from topicweave.model.workload import Workload
from topicweave.workloads import generate


def lists(workload: Workload) -> dict[str, list[str]]:
    return {
        name: sorted(workload.topic_names[topic] for topic in workload.interests(index))
        for index, name in enumerate(workload.node_names)
    }


def load_text(
    folder: Path, text: str, name: str = "my.csv", note: Note | None = None
) -> dict[str, list[str]]:
    (folder / name).write_text(text, encoding="utf-8")
    return lists(read_workload(folder / name, note=note))


def test_two_columns_without_names_are_node_and_topic(tmp_path: Path) -> None:
    assert load_text(tmp_path, "ann,news\nbob,news\nann,go\n") == {"ann": ["go", "news"], "bob": ["news"]}


def test_columns_are_found_by_their_names_wherever_they_are(tmp_path: Path) -> None:
    text = "when,Channel,User\n1,news,ann\n2,go,bob\n"
    assert load_text(tmp_path, text) == {"ann": ["news"], "bob": ["go"]}


def test_one_name_that_tells_is_enough(tmp_path: Path) -> None:
    assert load_text(tmp_path, "person,feed\nann,news\n") == {"ann": ["news"]}
    assert load_text(tmp_path, "what,member\nnews,ann\n") == {"ann": ["news"]}


def test_names_may_be_anything(tmp_path: Path) -> None:
    text = 'user,topic\n"eve, the 2nd",good morning\n😀 smile,"say ""hi"""\n007,1e3\n'
    assert load_text(tmp_path, text) == {
        "eve, the 2nd": ["good morning"],
        "😀 smile": ['say "hi"'],
        "007": ["1e3"],
    }


def test_repeated_rows_count_once_and_are_noted(tmp_path: Path) -> None:
    notes: list[str] = []
    assert load_text(tmp_path, "a,x\na,x\nb,x\n", note=notes.append) == {"a": ["x"], "b": ["x"]}
    assert notes[1].endswith("1 row repeated: counted once")


def test_a_node_without_a_topic_is_there_and_wants_nothing(tmp_path: Path) -> None:
    assert load_text(tmp_path, "user,topic\nann,news\nidle,\n") == {"ann": ["news"], "idle": []}


def test_tabs_and_a_byte_order_mark(tmp_path: Path) -> None:
    assert load_text(tmp_path, "\ufeffuser\ttopic\nann\ta, b\n", "my.tsv") == {"ann": ["a, b"]}


def test_parquet_with_numbers(tmp_path: Path) -> None:
    path = tmp_path / "my.parquet"
    pq.write_table(pa.table({"topic": [7, 8], "follower": [1, 2], "more": [0.0, 0.0]}), path)
    assert lists(read_workload(path)) == {"1": ["7"], "2": ["8"]}


def test_a_workloads_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    workload = generate(5, 4, min_size=2, max_size=2)
    workload.save(tmp_path / "w")
    assert read_workload(tmp_path / "w") == workload


def test_a_few_wrong_lines_are_left_out_and_noted(tmp_path: Path) -> None:
    text = "".join(f"n{number},t\n" for number in range(200)) + "only one\n"
    notes: list[str] = []
    assert len(load_text(tmp_path, text, note=notes.append)) == 200
    assert notes[1].endswith("1 line with a wrong number of columns left out, first line 201")


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("my.csv", b"", "empty; need a line for each subscription"),
        ("my.csv", b"one\ntwo\n", "line 1: one column, 'one'; need a node and a topic, with comma, tab,"),
        ("my.csv", b"a,b\nc,d,e\nf,g,h\n", "line 2: 3 columns, not 2"),
        ("my.csv", b"user,topic\n,x\n", "nobody wants anything"),
        ("my.csv", b"user,topic\na,\n", "nobody wants anything"),
        ("my.csv", b"\xff\xfe\x00\x01,\x80\n", "not a text file"),
        ("my.parquet", b"PAR1 not really", "not a Parquet file"),
        ("my.doc", b"PK\x03\x04 and so on", "a zip archive (or an Excel file), not lines of text"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(tmp_path: Path, name: str, content: bytes, complaint: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput) as error:
        read_workload(tmp_path / name)
    assert complaint in str(error.value)
    assert str(tmp_path / name) in str(error.value)


def test_a_missing_file_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file or folder"):
        read_workload(tmp_path / "none.csv")


def test_a_hundred_thousand_topics_and_a_million_rows(tmp_path: Path) -> None:
    import numpy as np

    rng = np.random.default_rng(1)
    node, topic = rng.integers(0, 50_000, 1_000_000), rng.integers(0, 100_000, 1_000_000)
    path = tmp_path / "large.parquet"
    pq.write_table(pa.table({"node": node, "topic": topic}), path)
    workload = read_workload(path)
    assert (workload.nodes, workload.topics) == (50_000, len(np.unique(topic)))
    assert workload.topic_index.size == len(np.unique(node * 100_000 + topic))


def test_columns_may_be_numbers_in_python_too(tmp_path: Path) -> None:
    file = tmp_path / "my.csv"
    file.write_text("x,a\ny,a\nx,b\n")
    assert read_workload(file, node=2, topic=1).node_names == ("a", "b")


def test_lists_of_python_are_read_as_those_of_json() -> None:
    notes: list[str] = []
    workload = read_workload({"a": ["x", "x"], "b": ("x",)}, note=notes.append)
    assert (len(workload.topic_index), notes) == (2, ["subscriptions: 1 row repeated: counted once"])
    with pytest.raises(BadInput, match="subscriptions, row 1: a name of 5,000 bytes"):
        read_workload({"a" * 5000: ["x"]})


@pytest.mark.parametrize("topics", [[["news"]], ["news", {"go": 1}]])
def test_what_is_no_name_in_lists_of_python_is_said_in_a_line(topics: list[Any]) -> None:
    with pytest.raises(BadInput, match="every subscription names a topic"):
        read_workload({"ann": topics})


@pytest.mark.parametrize("asked", [{"delimiter": ";"}, {"header": True}, {"lists": True}, {"node": "a"}])
def test_options_that_say_nothing_are_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=f"--{min(asked)} says nothing about a Workload"):
        read_workload(Workload.from_lists({"a": ["x"]}), **asked)
