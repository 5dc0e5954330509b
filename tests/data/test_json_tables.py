"""JSON: what has one meaning is read, and what has several is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.data.test_tables import read
from topicweave.errors import BadInput

FOUND = {"a": ["x", "y"], "b": ["x", "z"], "c": ["y", "z"]}


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ([["a", "x", "y"], ["b", "x", "z"], ["c", "y", "z"]], "JSON lists"),
        ([["a", ["x", "y"]], ["b", ["x", "z"]], ["c", ["y", "z"]]], "JSON lists"),
        ([[node, topic] for node, topics in FOUND.items() for topic in topics], "JSON pairs"),
        (
            [{"user": node, "topics": topics, "about": {"age": 3}} for node, topics in FOUND.items()],
            "JSON records",
        ),
    ],
)
def test_lists_per_node(tmp_path: Path, value: Any, shape: str) -> None:
    found, understood = read(tmp_path, json.dumps(value), "my.json")
    assert found == FOUND
    assert (understood.shape, understood.rows) == (shape, 6)


def test_lists_of_any_length(tmp_path: Path) -> None:
    assert read(tmp_path, '[["a", "x", 7], ["b", 7], ["c"]]', "my.json")[0] == {
        "a": ["7", "x"],
        "b": ["7"],
        "c": [],
    }


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("name", ["my.json", "my.jsonl"])
def test_byte_order_marks(tmp_path: Path, name: str, encoding: str) -> None:
    text = '{"Jürgen": ["x"]}\n{"ann": ["x"]}\n' if name == "my.jsonl" else '{"Jürgen": ["x"], "ann": ["x"]}'
    assert read(tmp_path, text.encode(encoding), name)[0] == {"Jürgen": ["x"], "ann": ["x"]}


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (
            {"ann": {"news": True, "go": False}},
            'topics of "ann": {"news":true,"go":false} is no name of a topic',
        ),
        ({"ann": ["x", {"name": "y"}]}, 'topics of "ann": {"name":"y"} is no name of a topic'),
        ({"ann": [["x"]]}, 'topics of "ann": ["x"] is no name of a topic'),
        ({"ann": True}, 'topics of "ann": true is no name of a topic'),
        ([["a", {"x": 1}]], 'topics of "a": {"x":1} is no name of a topic'),
        ([["a", "x"], [["b"], "y"]], 'item 2: ["b"] is no name of a node'),
        (
            [{"user": "a", "topics": [{"name": "x"}]}],
            "column 'topics' holds lists of objects; need lists of names",
        ),
        ([{"user": "a", "topics": {"name": "x"}}], "column 'topics' holds objects; need a name in each row"),
        ([{"user": ["a"], "topics": ["x"]}], "column 'user' holds lists; need a name in each row"),
        ([["a", "x"], []], "JSON without subscriptions; give {user: [topics]}"),
    ],
)
def test_objects_are_no_names(tmp_path: Path, value: Any, complaint: str) -> None:
    with pytest.raises(BadInput) as error:
        read(tmp_path, json.dumps(value), "my.json")
    assert f"my.json, {complaint}" in str(error.value) or f"my.json: {complaint}" in str(error.value)


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        BadInput, match=r'my.json: the key "ann" stands twice in an object; put its topics in one list'
    ):
        read(tmp_path, '{"ann": ["x"], "bob": ["x"], "ann": ["y"]}', "my.json")


COLUMNS = {"user": ["a", "a", "b", "b", "c", "c"], "item": ["x", "y", "x", "z", "y", "z"]}


@pytest.mark.parametrize(
    "value", [COLUMNS, {name: dict(enumerate(cells)) for name, cells in COLUMNS.items()}]
)
def test_columns_as_pandas_writes_them(tmp_path: Path, value: Any) -> None:
    """`DataFrame.to_json(orient="list")` and `to_json()`: `user` and `item` are no nodes."""
    found, understood = read(tmp_path, json.dumps(value), "my.json")
    assert found == FOUND
    assert (understood.shape, understood.node, understood.topic) == (
        "JSON columns",
        "column 'user'",
        "column 'item'",
    )


def test_columns_of_any_name_are_said_to_be_columns(tmp_path: Path) -> None:
    text = json.dumps({"left": COLUMNS["user"], "right": COLUMNS["item"]})
    assert read(tmp_path, text, "my.json", lists=False)[0] == FOUND
    assert set(read(tmp_path, text, "my.json")[0]) == {"left", "right"}
    assert set(read(tmp_path, json.dumps(COLUMNS), "my.json", lists=True)[0]) == {"user", "item"}


@pytest.mark.parametrize(
    "value", [{"a": ["x"], "b": ["x", "y"]}, {"a": "x"}, {"a": {"0": "x"}, "b": {"1": "y"}}]
)
def test_what_are_no_columns_is_refused_as_such(tmp_path: Path, value: Any) -> None:
    with pytest.raises(BadInput, match=r"my\.json: .* no columns; leave --columns out"):
        read(tmp_path, json.dumps(value), "my.json", lists=False)
