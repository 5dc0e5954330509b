"""Lines of equal length: a node and all its topics where names recur in any place, else columns, or as is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.data.test_tables import read
from topicweave.choose.question import ask
from topicweave.choose.sources import read_workload
from topicweave.errors import BadInput

EQUAL = "".join(f"u{number},t{number},t{number + 1},t{number + 2}\n" for number in range(20))
TOLD = "lines of equal length are read as a node and all its topics; if they are columns, say --columns"
HINT = "if a line is a node and all its topics, say --lists"


@pytest.mark.parametrize("sign", [",", "\t", " ", ";"])
def test_lists_of_equal_length(tmp_path: Path, sign: str) -> None:
    found, understood = read(tmp_path, EQUAL.replace(",", sign))
    assert (len(found), understood.rows) == (20, 60)
    assert found["u3"] == ["t3", "t4", "t5"]
    assert understood.notes == (TOLD,)


def test_lists_of_numbers_and_padded_ones(tmp_path: Path) -> None:
    assert read(tmp_path, "7 1 2 3\n9 2 3 1\n4 3 1 2\n")[0]["9"] == ["1", "2", "3"]
    assert read(tmp_path, "u1,a,b,c\nu2,b,a,\nu3,c,b,a\n")[0]["u2"] == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    [
        "1 1193 5 978300760\n1 661 3 978302109\n2 914 3 978301968\n",
        "ann,news,red\nbob,news,blue\ncid,go,red\n",
        "ann,yes,no,yes\nbob,no,no,yes\ncid,yes,yes,no\n",
        "0,ann,bob\n1,bob,cid\n2,cid,ann\n",
        "ann,x,y\nann,y,x\nbob,x,y\n",
        "1,2,5\n2,3,4\n3,4,5\n",
        "user,first,second\nann,x,y\nbob,y,z\ncid,z,x\n",
    ],
)
def test_columns(tmp_path: Path, text: str) -> None:
    """Ratings, a property, answers, an index, several lines of one node, weights, a header."""
    understood = read(tmp_path, text)[1]
    assert understood.shape.startswith("columns between")
    assert (HINT in understood.notes) == ("without a header" in understood.shape)


def test_what_is_said_goes_before_what_is_guessed(tmp_path: Path) -> None:
    found, understood = read(tmp_path, EQUAL, lists=False)
    assert understood.rows == 20
    assert found["u3"] == ["t3"]
    assert not {TOLD, HINT} & set(understood.notes)
    found, understood = read(tmp_path, "ann,news,red\nbob,news,blue\ncid,go,red\n", lists=True)
    assert found == {"ann": ["news", "red"], "bob": ["blue", "news"], "cid": ["go", "red"]}
    assert not understood.notes
    named = "user,first,second\nann,x,y\nbob,z,z\n"
    assert read(tmp_path, named, lists=True)[0] == {"ann": ["x", "y"], "bob": ["z"]}
    assert read(tmp_path, "u1,x;y\nu1,z\n", lists=True)[0] == {"u1": ["x", "y", "z"]}
    assert read(tmp_path, "u1,x\nu2,y\n", lists=True)[0] == {"u1": ["x"], "u2": ["y"]}
    assert read(tmp_path, "ann go news\nbob news\n", lists=True)[0] == {
        "ann": ["go", "news"],
        "bob": ["news"],
    }
    assert read(tmp_path, "user,topics\nu0,\"['a', 'b']\"\nu1,[]\n", lists=False)[0]["u0"] == ["['a', 'b']"]
    assert read(tmp_path, "user,topics\nu0,\"['a', 'b']\"\nu1,[]\n", lists=True)[0]["u0"] == ["a", "b"]
    assert read(tmp_path, "u1: x, y\nu2: x\nu3: y, z\n", lists=False)[0]["u1"] == ["x, y"]


def test_two_lines_of_lists(tmp_path: Path) -> None:
    assert read(tmp_path, "ann: go, news\nbob: news\n")[0] == {"ann": ["go", "news"], "bob": ["news"]}
    assert read(tmp_path, "ann -> go, news\nbob -> news\n")[0] == {"ann": ["go", "news"], "bob": ["news"]}


def test_two_names_above_lists_of_equal_length(tmp_path: Path) -> None:
    text = "user topics\nann go news\nbob film red\ncid tea rice\n"
    assert read(tmp_path, text)[0] == {"ann": ["go", "news"], "bob": ["film", "red"], "cid": ["rice", "tea"]}


def test_a_wrong_line_names_the_option(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="mend them, or say --delimiter or --lists"):
        read(tmp_path, "ann go news\nbob news\n")


def test_json_rows(tmp_path: Path) -> None:
    rows = json.dumps([["ann", "news", 5], ["bob", "news", 3], ["cid", "go", 4]])
    with pytest.raises(BadInput, match="rows of 3: a node and its topics, or columns"):
        read(tmp_path, rows, "my.json")
    assert read(tmp_path, rows, "my.json", lists=True)[0]["ann"] == ["5", "news"]
    found, understood = read(tmp_path, rows, "my.json", lists=False)
    assert found == {"ann": ["news"], "bob": ["news"], "cid": ["go"]}
    assert (understood.shape, understood.topic) == ("JSON columns", "column 2")
    with pytest.raises(BadInput, match="rows of different length are no columns; leave --columns out"):
        read(tmp_path, '[["a", "x"], ["b"]]', "my.json", lists=False)


def test_the_option_is_part_of_the_question(tmp_path: Path) -> None:
    for lists, word in ((True, "--lists"), (False, "--columns")):
        assert f" {word} " in ask(["weave"], {"lists": lists}).command("my.csv")
    (tmp_path / "my.csv").write_text(EQUAL)
    assert len(read_workload(tmp_path / "my.csv", lists=False).topic_names) == 20
