"""Lists that programs write into cells: `['a', 'b']` is two topics, and what is no list of names is refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.data.test_tables import lists, read
from topicweave.choose.sources import read_workload
from topicweave.data.bracketed import items_of
from topicweave.errors import BadInput

FOUND = {"u0": ["t0"], "u1": ["t,2", "t1"], "u2": []}


@pytest.mark.parametrize(
    "text",
    [
        "user,topics\nu0,\"['t0']\"\nu1,\"['t1', 't,2']\"\nu2,[]\n",
        'user,topics\nu0,"[""t0""]"\nu1,"[""t1"", ""t,2""]"\nu2,[]\n',
        'user\ttopics\nu0\t["t0"]\nu1\t["t1", "t,2"]\nu2\t[]\n',
        "user,topics\nu0,\"('t0',)\"\nu1,\"('t1', 't,2')\"\nu2,()\n",
        "user,topics\nu0,\"{'t0'}\"\nu1,\"{'t1', 't,2'}\"\nu2,set()\n",
        'user,topics\nu0,{t0}\nu1,"{t1,""t,2""}"\nu2,\n',
        "user,topics\nu0,['t0']\nu1,\"['t1' 't,2']\"\nu2,[]\n",
        ",user,age,topics\n0,u0,20,\"['t0']\"\n1,u1,30,\"['t1', 't,2']\"\n2,u2,40,[]\n",
        "user,topics\nu0,['t0']\nu1,['t1', 't,2']\nu2,[]\n",
        "u0 ['t0']\nu1 ['t1', 't,2']\nu2 []\n",
        "u0: ['t0']\nu1: ['t1', 't,2']\nu2: []\n",
    ],
)
def test_each_item_is_a_topic(tmp_path: Path, text: str) -> None:
    found, understood = read(tmp_path, text)
    assert found == FOUND
    assert any(note.startswith("lists in brackets in ") for note in understood.notes)


def test_tables_in_memory_are_read_alike() -> None:
    table = pa.table({"user": ["u0", "u1", "u2"], "topics": ["['t0']", "['t1', 't,2']", "[]"]})
    notes: list[str] = []
    assert lists(read_workload(table, note=notes.append)) == FOUND
    assert "lists in brackets in column 'topics': each of their items is a topic" in notes[1]


@pytest.mark.parametrize(
    ("cell", "items"),
    [
        ("[1, 2]", ["1", "2"]),
        ("[1 2.5]", ["1", "2.5"]),
        ("[New York, Rome]", ["New York", "Rome"]),
        (r"""['it\'s', "it's", "say \"hi\""]""", ["it's", "it's", 'say "hi"']),
        ("[ ]", []),
        ("frozenset()", []),
        ("[['a'], ['b']]", None),
        ('[{"name": "x"}]', None),
        ("{'a': 1}", None),
        ("{a: 1}", None),
        ("[a; b]", None),
        ("[1 2 ... 9]", None),
        ("['a' b]", None),
    ],
)
def test_items(cell: str, items: list[str] | None) -> None:
    assert items_of(cell) == items


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('user,topics\nu0,"[""a""]"\nu1,"[""b"", ""c"""\n', "line 3: '[\"b\", \"c\"' in column 'topics'"),
        (
            'user,topics\nu0,"[{""name"": ""x""}]"\nu1,[]\n',
            "line 2: '[{\"name\": \"x\"}]' in column 'topics'",
        ),
        ("user,topics\nu0,\"{'x': 1}\"\nu1,\"{'y': 2}\"\n", "line 2: \"{'x': 1}\" in column 'topics'"),
    ],
)
def test_what_is_no_list_of_names_is_refused(tmp_path: Path, text: str, where: str) -> None:
    with pytest.raises(BadInput) as error:
        read(tmp_path, text)
    assert f"{where} is not a list of names; write ['a', 'b']" in str(error.value)


def test_names_may_have_brackets(tmp_path: Path) -> None:
    text = "user,topic\nu0,[deleted]\nu1,[deleted]\nu2,(none)\nu3,[\nu4,]\n"
    found, understood = read(tmp_path, text)
    assert found == {"u0": ["[deleted]"], "u1": ["[deleted]"], "u2": ["(none)"], "u3": ["["], "u4": ["]"]}
    assert not understood.notes
