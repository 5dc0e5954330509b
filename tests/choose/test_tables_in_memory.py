"""Tables and dicts of Python: names of several types are text, and what holds no names gets one clear line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.choose.test_sources import lists
from topicweave.choose.sources import read_workload
from topicweave.errors import BadInput


@pytest.mark.parametrize(
    ("user", "topic"),
    [
        (["a", 2, 2.0], ["x", "x", "y"]),
        (["a", 2, np.int64(2)], ["x", "x", "y"]),
        (["a", 2, 2], ["x", b"x", "y"]),
    ],
)
def test_names_of_several_types_are_text(user: list[Any], topic: list[Any]) -> None:
    assert lists(read_workload(pd.DataFrame({"user": user, "topic": topic}))) == {"a": ["x"], "2": ["x", "y"]}


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_what_is_missing_among_them_is_no_name(missing: Any) -> None:
    frame = pd.DataFrame(
        {"user": ["a", 2, missing], "topic": ["x", "x", "y"], "day": pd.to_datetime([0, 1, 2])}
    )
    assert lists(read_workload(frame)) == {"a": ["x"], "2": ["x"]}


def test_no_lists_at_all_are_said_to_be_empty() -> None:
    with pytest.raises(BadInput, match="subscriptions: empty; need a node with its topics"):
        read_workload({})


@pytest.mark.parametrize(
    "given",
    [
        {" ann ": [" news", "news", "go"], "bob": ["news", None]},
        {"ann": ["go", "news"], "": ["go"], "bob": ["news", ""], "cid": []},
        {"ann": ["news"], " ann": ["go"], "bob": ["news", 5, 2.0, "NaN"]},
        {"ann": ["news", None], None: ["go"]},
    ],
)
def test_lists_are_read_as_those_of_a_json_file_are(tmp_path: Path, given: dict[Any, list[Any]]) -> None:
    (tmp_path / "my.json").write_text(json.dumps({node or "": topics for node, topics in given.items()}))
    told: list[list[str]] = [[], []]
    found = read_workload(given, note=told[0].append)
    assert found == read_workload(tmp_path / "my.json", note=told[1].append)
    assert [note.split(": ", 1)[1] for note in told[0]] == [note.split(": ", 1)[1] for note in told[1][1:]]


def test_lists_may_be_anything_that_is_gone_through_once() -> None:
    given = {"ann": (name for name in ("x", "y")), "bob": {"x"}, "cid": pd.Series(["y", float("nan")])}
    assert lists(read_workload(given)) == {"ann": ["x", "y"], "bob": ["x"], "cid": ["y"]}


def test_a_crosstab_is_not_taken_for_topics() -> None:
    frame = pd.DataFrame({"user": ["a", "b", "b"], "topic": ["x", "x", "y"]})
    with pytest.raises(BadInput, match=r"a column per topic \(x, y\), with 0 and 1"):
        read_workload(pd.crosstab(frame["user"], frame["topic"]))


def test_lists_of_several_types() -> None:
    frame = pd.DataFrame({"user": ["a", "b", "c"], "topics": [["x", 3], "x", None]})
    assert lists(read_workload(frame)) == {"a": ["3", "x"], "b": ["x"], "c": []}


def twice(names: list[str]) -> pa.Table:
    return pa.Table.from_arrays([pa.array(["a", "b"])] * 3, names=names)


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        (
            pd.DataFrame({"user": ["a", 2, "2"], "topic": ["x", "x", "y"]}),
            "column 'user': 2 and '2' would be one name",
        ),
        (pd.DataFrame([["a", "x", "b"]], columns=["user", "topic", "user"]), "two columns are called 'user'"),
        (twice(["user", "topic", "topic"]), "two columns are called 'topic'"),
        (pd.DataFrame({"user": ["a", 2], "topics": [{"x": 1}, ["y"]]}), "column 'topics' holds objects"),
        (
            pd.DataFrame({"user": ["a", 2], "topics": [[["x"]], ["y"]]}),
            "column 'topics' holds lists of objects",
        ),
        ({"ann": None}, "node 'ann': None is no list; give a list of topics, [] for none"),
        ({"ann": 5}, "node 'ann': 5 is no list"),
        ({"ann": b"xy"}, "node 'ann': b'xy' is one name; give a list of topics"),
        ({"ann": {"news": False}}, "node 'ann': {'news': False} is no list"),
    ],
)
def test_what_holds_no_names_is_said_in_a_line(source: Any, complaint: str) -> None:
    with pytest.raises(BadInput) as error:
        read_workload(source)
    assert str(error.value).startswith(f"subscriptions: {complaint}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"user": [["a"], ["b"]], "topic": ["x", "y"]}, "column 'user' holds lists; need a name in each row"),
        ({"user": [{"a": 1}], "topic": ["x"]}, "column 'user' holds objects; need a name in each row"),
        ({"user": ["a"], "topics": [[["x"]]]}, "column 'topics' holds lists of lists; need lists of names"),
        (
            {"user": ["a"], "topics": [[{"x": 1}]]},
            "column 'topics' holds lists of objects; need lists of names",
        ),
    ],
)
def test_parquet_that_holds_no_names(tmp_path: Path, columns: dict[str, Any], complaint: str) -> None:
    pq.write_table(pa.table(columns), tmp_path / "my.parquet")
    with pytest.raises(BadInput, match=complaint):
        read_workload(tmp_path / "my.parquet")


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.large_list(pa.float64()), pa.list_(pa.int64(), 2)])
def test_parquet_of_lists_of_numbers(tmp_path: Path, kind: Any) -> None:
    table = pa.table({"user": ["a", "b"], "topics": pa.array([[1, 2], [2, 3]], kind)})
    pq.write_table(table, tmp_path / "my.parquet")
    assert lists(read_workload(tmp_path / "my.parquet")) == {"a": ["1", "2"], "b": ["2", "3"]}
