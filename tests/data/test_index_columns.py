"""A column in front that counts the rows is an index; it holds neither nodes nor topics unless that is said."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.data.test_tables import lists, read
from topicweave.data.tables import subscriptions_in

FOUND = {"ann": ["a"], "bob": ["a"], "cid": ["b"]}


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("index,name,room\n0,ann,a\n1,bob,a\n2,cid,b\n", "column 'index'"),
        ("row,player,zone\n1,ann,a\n2,bob,a\n3,cid,b\n", "column 'row'"),
        ("id,customer_email,segment\n1,ann,a\n2,bob,a\n3,cid,b\n", "column 'id'"),
        ("0,ann,a,3.5\n1,bob,a,2.5\n2,cid,b,2.5\n", "column 1"),
        ("0 ann a\n1 bob a\n2 cid b\n", "column 1"),
    ],
)
def test_an_index_is_skipped_and_said(tmp_path: Path, text: str, index: str) -> None:
    found, understood = read(tmp_path, text)
    assert found == FOUND
    assert (
        f"{index} counts the rows and is skipped; say --node 1 or --topic 1 if it is meant"
        in understood.notes
    )
    assert set(read(tmp_path, text, node="1")[0]) < {"0", "1", "2", "3"}


@pytest.mark.parametrize(
    "text",
    [
        "0,a\n1,a\n2,b\n",
        "1 2\n2 3\n3 1\n",
        "0,a,3.5\n1,a,2.5\n2,b,2.5\n",
        "0,a,2020-01-01\n1,a,2020-01-02\n2,b,2020-01-03\n",
        "user_id,alpha,beta\n1,a,x\n2,a,y\n3,b,z\n",
        "5,a,x\n6,a,y\n7,b,z\n",
        "index,topic,weight\n0,a,0.5\n1,a,1.5\n2,b,0.5\n",
    ],
)
def test_nodes_may_be_numbers(tmp_path: Path, text: str) -> None:
    """Two columns, nothing else to be a node, a name that tells, another start."""
    found, understood = read(tmp_path, text)
    assert {"1", "2"} <= set(found) or {"6", "7"} <= set(found)
    assert not any("counts the rows" in note for note in understood.notes)


def test_tables_in_memory_are_read_alike() -> None:
    columns = {"nr": [0, 1, 2], "name": ["ann", "bob", "cid"], "room": ["a", "a", "b"]}
    workload, understood = subscriptions_in("my", pa.table(columns))
    assert lists(workload) == FOUND
    assert "column 'nr' counts the rows and is skipped" in understood.notes[0]
