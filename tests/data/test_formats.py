"""Formats of traces: quotes, headers, and options that mean nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from topicweave.data.formats import FORMATS, LineOptions
from topicweave.data.reading import read_rows
from topicweave.errors import BadInput


def pairs(tmp_path: Path, format_name: str, text: str, **options: Any) -> list[tuple[str, str | None]]:
    file = tmp_path / "my.txt"
    file.write_text(text)
    rows = read_rows(format_name, file, LineOptions(**options)).rows.to_pylist()
    return [(row["node"], row["topic"]) for row in rows]


FOUND = [("a", "x, y"), ("b", "x")]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('"user","topic"\n"a","x, y"\n"b","x"\n', {"header": True}),
        ('"topic","user"\n"x, y",a\nx,"b"\n', {"header": True, "node": "user", "topic": "topic"}),
        ('topic,user\n"x, y",a\nx,"b"\n', {"header": True, "node": "2", "topic": "1"}),
    ],
)
def test_cells_may_stand_between_quotes(tmp_path: Path, text: str, options: dict[str, Any]) -> None:
    assert pairs(tmp_path, "pairs", text, **options) == FOUND


def test_quotes_that_are_not_around_a_cell_belong_to_the_name(tmp_path: Path) -> None:
    text = 'ann\t"Weird Al" Yankovic\nbob\t5" disk\n'
    found = pairs(tmp_path, "pairs", text, delimiter="tab")
    assert found == [("ann", '"Weird Al" Yankovic'), ("bob", '5" disk')]


@pytest.mark.parametrize(
    ("format_name", "text", "options", "said"),
    [
        ("pairs", "user,topic\nann,x\n", {}, "user,topic"),
        ("pairs", '\ufeff"user","topic"\nann,x\n', {}, '"user","topic"'),
        ("edges", "follower followed\nann bob\n", {}, "follower followed"),
        ("edges", "source;target\nann;bob\n", {"delimiter": "semicolon"}, "source;target"),
        ("pairs", "user,topic\nann,x\n", {"header": True}, ""),
        ("pairs", "ann,x\nbob,x\n", {}, ""),
        ("edges", "# from to\n1 2\n", {}, ""),
        ("pairs", "user;topic\nann;x\n", {}, ""),
        ("pairs", b"J\xf6rg,topic\n", {}, ""),
        ("pairs", "", {}, ""),
    ],
)
def test_a_first_line_that_looks_like_names_of_columns(
    tmp_path: Path, format_name: str, text: str | bytes, options: dict[str, Any], said: str
) -> None:
    file = tmp_path / "my.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert FORMATS[format_name].taken_for_data(LineOptions(**options), file) == said


def test_adjacency_lists_may_have_a_header(tmp_path: Path) -> None:
    text = "user\tfriends\na\tb,c\n"
    assert pairs(tmp_path, "adjacency", text, header=True) == [("a", "b"), ("a", "c")]


@pytest.mark.parametrize(
    ("format_name", "options", "said"),
    [
        ("edges", {"node": "1"}, "--node says nothing about the format 'edges'"),
        ("pairs", {"direction": "both"}, "--direction says nothing about the format 'pairs'"),
        ("pairs", {"time": "when"}, "--time says nothing about the format 'pairs'"),
        ("adjacency", {"columns": ("a", "b")}, "--columns says nothing about the format 'adjacency'"),
        ("pairs", {"columns": ("a", "b"), "node": "b", "topic": "b"}, "are one column, 'b'; name two"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    tmp_path: Path, format_name: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        pairs(tmp_path, format_name, "a,b\n", **options)


def test_a_name_that_is_too_long_makes_a_line_wrong(tmp_path: Path) -> None:
    file = tmp_path / "my.csv"
    file.write_text("a,x\n" * 200 + "b" * 5000 + ",x\n")
    assert [wrong.reason for wrong in read_rows("pairs", file).wrong] == ["a name of more than 4,096 bytes"]
