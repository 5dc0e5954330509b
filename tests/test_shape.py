"""The size of functions: what is longer, or asks for more, is two things. The names of classes: one means one thing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import topicweave

SOURCE = Path(topicweave.__file__).parent
ROOT = Path(__file__).parent.parent
ROOMS = ("src", "tests", "benchmarks", "examples", "scripts")
MOST_LINES, MOST_PARAMETERS = 80, 10


def functions(tree: ast.AST, within: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in ast.iter_child_nodes(tree):
        name = (
            f"{within}.{node.name}"
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            else within
        )
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield name, node
        yield from functions(node, name)


def too_much(function: ast.FunctionDef | ast.AsyncFunctionDef, *, command_line: bool) -> str:
    """What is too much of a function, or nothing. A command's parameters are its options: they do not count."""
    assert function.end_lineno is not None
    lines = function.end_lineno + 1 - (function.body[0].lineno if command_line else function.lineno)
    asked = [one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    parameters = len(asked) - (asked[:1] in (["self"], ["cls"]))
    if lines > MOST_LINES:
        return f"{lines} lines"
    return f"{parameters} parameters" if parameters > MOST_PARAMETERS and not command_line else ""


def found() -> dict[str, str]:
    said = {}
    for file in sorted(SOURCE.rglob("*.py")):
        where = file.relative_to(SOURCE)
        module = ".".join(where.with_suffix("").parts)
        for name, function in functions(ast.parse(file.read_text(encoding="utf-8")), module):
            if much := too_much(function, command_line=where.parts[0] == "cli"):
                said[name] = much
    return said


def test_no_function_is_too_long_or_asks_for_too_much() -> None:
    assert found() == {}


def test_a_long_function_and_a_demanding_one_are_found() -> None:
    source = "class A:\n    def long(self):\n" + "        pass\n" * MOST_LINES
    source += f"def demanding({', '.join(f'p{number}' for number in range(MOST_PARAMETERS + 1))}): pass\n"
    told = {name: too_much(one, command_line=False) for name, one in functions(ast.parse(source), "m")}
    assert told == {"m.A.long": "81 lines", "m.demanding": "11 parameters"}


def classes() -> Iterator[tuple[str, str, ast.ClassDef]]:
    """Module, name and definition of every public class."""
    for file in sorted(SOURCE.rglob("*.py")):
        module = ".".join(file.relative_to(SOURCE).with_suffix("").parts)
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield module, node.name, node


def is_message(definition: ast.ClassDef) -> bool:
    """Messages are the words of one protocol each, told apart by their tags: two protocols may say `Ping`."""
    return any(ast.unparse(base).endswith("Message") for base in definition.bases)


def ambiguous(found: Iterable[tuple[str, str, ast.ClassDef]]) -> dict[str, list[str]]:
    places: dict[str, list[tuple[str, bool]]] = {}
    for module, name, definition in found:
        places.setdefault(name, []).append((module, is_message(definition)))
    return {
        name: [module for module, _ in where]
        for name, where in places.items()
        if len(where) > 1 and not all(message for _, message in where)
    }


def test_a_public_name_means_one_class() -> None:
    assert ambiguous(classes()) == {}


def test_two_classes_of_one_name_are_found() -> None:
    source = "class Plan: pass\nclass Ping(Message, tag='a'): pass\n"
    both = [
        (module, node.name, node)
        for module in ("one", "other")
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef)
    ]
    assert ambiguous(both) == {"Plan": ["one", "other"]}


def test_no_module_only_forwards() -> None:
    """A package's `__init__` may; a module that holds nothing but imports is one to look through for nothing."""
    only = [
        str(file.relative_to(SOURCE))
        for file in sorted(SOURCE.rglob("*.py"))
        if file.name != "__init__.py"
        and all(
            isinstance(node, ast.Import | ast.ImportFrom | ast.Expr)
            or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
            for node in ast.parse(file.read_text(encoding="utf-8")).body
        )
    ]
    assert only == []


def unexplained(text: str) -> list[str]:
    """Lines that silence the type checker and do not say why."""
    return [line.strip() for line in text.splitlines() if re.search(r"# type: ignore(\[[^]]*\])?\s*$", line)]


def test_who_silences_the_type_checker_says_why() -> None:
    files = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))]
    found = {str(file): lines for file in files if (lines := unexplained(file.read_text(encoding="utf-8")))}
    assert found == {}


def test_a_silenced_line_without_a_reason_is_found() -> None:
    silent = "x = 1  # type: " + "ignore[misc]"
    assert unexplained(f"{silent}\n{silent}  # it is a test\n") == [silent]
