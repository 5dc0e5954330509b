"""The examples in docstrings are true, the names in them lead somewhere, and their lists are lists."""

from __future__ import annotations

import ast
import doctest
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import topicweave

SOURCE = Path(topicweave.__file__).parent
PACKAGES = ("blocks", "measures", "model", "sim", "systems", "telemetry", "testing", "workloads")


def with_examples() -> list[str]:
    return [
        ".".join(("topicweave", *file.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        for package in PACKAGES
        for file in sorted((SOURCE / package).rglob("*.py"))
        if ">>> " in file.read_text()
    ]


@pytest.mark.parametrize("module", with_examples())
def test_they_are_true(module: str) -> None:
    outcome = doctest.testmod(import_module(module))
    assert outcome.attempted
    assert outcome.failed == 0


@cache
def trees() -> dict[Path, ast.Module]:
    return {file: ast.parse(file.read_text(encoding="utf-8")) for file in SOURCE.rglob("*.py")}


GAP = re.compile(r"(?<=\S) {3,}(?=\S)")
"""Between a term and its text."""


def docstrings(tree: ast.Module) -> list[ast.Constant]:
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]


def glued(text: str) -> list[str]:
    """Lines of two terms or more, unless they are rows of a table: its columns are those of other lines, too."""
    lines = text.splitlines()
    columns = [{gap.end() for gap in GAP.finditer(line)} for line in lines]
    return [
        line
        for line, ends in zip(lines, columns, strict=True)
        if len(ends) > 1 and not all(sum(end in others for others in columns) > 1 for end in ends)
    ]


def test_glued_lists_are_found() -> None:
    assert glued("seed     the first    events          how many\nmore   text") != []
    assert glued("a.parquet    node      required\nb.parquet    topic     may be left out") == []


def test_no_list_is_glued() -> None:
    found = {
        f"{file.relative_to(SOURCE)}: {line.strip()}"
        for file, tree in trees().items()
        for text in docstrings(tree)
        for line in glued(str(text.value))
    }
    assert found == set()


NAMED = re.compile(r"`([a-z]{2,}(?:_[a-z]+)+)(?:\(\))?`")
"""A module, a function, a field, … as it looks in prose: `a_b`, but not the `p_i` of a formula."""


def words(tree: ast.Module) -> set[str]:
    """Everything that code names, also in text: columns, keys."""
    texts = {id(text) for text in docstrings(tree)}
    values = (
        value
        for node in ast.walk(tree)
        if id(node) not in texts
        for _, value in ast.iter_fields(node)
        if isinstance(value, str)
    )
    return set(re.findall(r"\w+", " ".join(values)))


def lost_names(forest: dict[Path, ast.Module]) -> set[str]:
    known = {file.stem for file in forest}.union(*map(words, forest.values()))
    return {
        f"{file.name}: {name}"
        for file, tree in forest.items()
        for text in docstrings(tree)
        for name in NAMED.findall(str(text.value))
        if name not in known
    }


def test_a_lost_name_is_found() -> None:
    code = '''"""As `no_such_thing`, `given_name` and `of_tables()`."""\ndef of_tables(given_name): ...'''
    assert lost_names({Path("one.py"): ast.parse(code)}) == {"one.py: no_such_thing"}


def test_names_in_docstrings_are_names_in_the_code() -> None:
    assert lost_names(trees()) == set()
