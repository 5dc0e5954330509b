"""The size of functions: what is longer, or asks for more, is two things."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import topicweave

SOURCE = Path(topicweave.__file__).parent
MOST_LINES, MOST_PARAMETERS = 80, 10

KNOWN: frozenset[str] = frozenset(
    {
        "bulk.omen.kernels._select_view",
        "bulk.omen.kernels.gossip",
        "bulk.omen.kernels.shadow_labels",
        "bulk.vitis.gossip._select",
        "bulk.vitis.spreading.spread_events",
        "live.http_requests.openapi",
        "papers.rappel.trees.fig7",
        "papers.rappel.trees.fig7.judge",
        "papers.spidercast.overlays.fig8",
        "pipeline.measure.measure_on_spark",
        "sim.simulation.Simulation.__init__",
    }
)
"""Those that are still to be split; a list that only shrinks."""


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
    new = {name: much for name, much in found().items() if name not in KNOWN}
    assert new == {}


def test_a_long_function_and_a_demanding_one_are_found() -> None:
    source = "class A:\n    def long(self):\n" + "        pass\n" * MOST_LINES
    source += f"def demanding({', '.join(f'p{number}' for number in range(MOST_PARAMETERS + 1))}): pass\n"
    told = {name: too_much(one, command_line=False) for name, one in functions(ast.parse(source), "m")}
    assert told == {"m.A.long": "81 lines", "m.demanding": "11 parameters"}
