"""Names the code that a run can reach, so that results of other code are not reused.

From the modules of the run's kind, of its workload source and of the system that it runs, all imports are
followed, also those inside functions. A kind that computes a system as arrays (`by_arrays`) runs none of its
nodes: their code does not count. Of each module its syntax tree counts, without comments, docstrings and the
order of its functions and classes; not its own name. So new words, a renamed module, another system or
another paper cost no rerun. Libraries are not looked into: only the packages that the kind, the source and
the system are of.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, NamedTuple

import msgspec

from topicweave.errors import TopicweaveError
from topicweave.runs.run import Run
from topicweave.systems.registry import GROUP, find_system

_REGISTRIES = frozenset({"topicweave", "topicweave.systems.registry", "topicweave.runs.registry"})
"""They lead to everything: what a run uses of it is found in other ways."""


class _Import(NamedTuple):
    module: str
    name: str
    """What is taken from it; nothing if the module itself is."""
    known_as: str


class _Module(NamedTuple):
    code: str
    """A digest of all but imports."""
    imports: tuple[_Import, ...]


def fingerprint(run: Run) -> str:
    """The same as long as nothing has changed that this run can reach."""
    return _of_roots(frozenset(_roots(run)))


def fingerprint_of_all(runs: Iterable[Run]) -> str:
    """One name for the code of many runs."""
    return _digest(*sorted({fingerprint(run) for run in runs}))


def _roots(value: Any) -> Iterator[str]:
    """The modules of a run's own structs, and of the system that it names."""
    if isinstance(value, msgspec.Struct):
        yield type(value).__module__
        for name in value.__struct_fields__:
            yield from _roots(getattr(value, name))
        if isinstance(value, Run) and not getattr(value, "by_arrays", False):
            yield from _modules_of_system(getattr(value, "system", ""))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _roots(one)


@cache
def _modules_of_system(name: str) -> tuple[str, ...]:
    """Where a system is made and described. Not every rival in a paper is a system that can be run."""
    try:
        system = find_system(name)
    except TopicweaveError:
        return ()
    ours = (one.module for one in _imports(find_system.__module__, frozenset({"topicweave"})))
    describing = [
        module
        for module in ours
        if module in sys.modules and any(value is system for value in vars(sys.modules[module]).values())
    ]
    theirs = [entry.module for entry in entry_points(group=GROUP) if entry.name == name]
    return (system.build.__module__, system.parameters.__module__, *describing, *theirs)


@cache
def _of_roots(roots: frozenset[str]) -> str:
    ours = _packages(roots)
    return _digest(*sorted(_with_imports(module, ours) for module in _reachable(roots)))


@cache
def _reachable(roots: frozenset[str]) -> set[str]:
    ours = _packages(roots)
    found: set[str] = set()
    ahead = [root for root in roots if root not in _REGISTRIES]
    while ahead:
        module = ahead.pop()
        if module not in found:
            found.add(module)
            ahead += [one.module for one in _imports(module, ours) if _followed(one.module, ours)]
    return found


def _packages(roots: frozenset[str]) -> frozenset[str]:
    """Whose modules are looked into."""
    return frozenset({"topicweave", *(root.split(".")[0] for root in roots)})


def _followed(module: str, ours: frozenset[str]) -> bool:
    return module.split(".", maxsplit=1)[0] in ours and module not in _REGISTRIES


@cache
def _imports(module: str, ours: frozenset[str]) -> tuple[_Import, ...]:
    return tuple(dict.fromkeys(_resolved(one, ours) for one in _read(module).imports))


@cache
def _with_imports(module: str, ours: frozenset[str]) -> str:
    """A digest of a module and of what it imports, each by its code: names of modules do not count, but
    another import does.
    """
    imports = [
        _digest(
            _read(one.module).code if _followed(one.module, ours) else one.module,
            one.name,
            one.known_as,
        )
        for one in _imports(module, ours)
    ]
    return _digest(_read(module).code, *sorted(imports))


@cache
def _read(module: str) -> _Module:
    source = _source(module)
    if source is None:
        # Typed into a notebook, say: nobody can tell whether it has changed since.
        return _Module(os.urandom(16).hex(), ())
    tree = ast.parse(source.text)
    stripped = _Stripped(module if source.is_package else module.rpartition(".")[0])
    stripped.visit(tree)
    definitions: list[str] = []
    rest: list[str] = []
    for statement in tree.body:
        is_definition = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        (definitions if is_definition else rest).append(ast.dump(statement))
    return _Module(_digest(*sorted(definitions), "", *rest), tuple(dict.fromkeys(stripped.imports)))


class _Stripped(ast.NodeTransformer):
    """Takes docstrings, imports and what only type checkers read out of a tree; keeps the imports."""

    def __init__(self, package: str) -> None:
        self._package = package
        self.imports: list[_Import] = []

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else self.generic_visit(node)

    def visit_If(self, node: ast.If) -> Any:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            rest = ast.Module(node.orelse, [])
            self.visit(rest)
            return rest.body or None
        return self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        self.imports += [_Import(alias.name, "", alias.asname or "") for alias in node.names]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        parts = self._package.split(".")
        above = parts[: len(parts) - node.level + 1] if node.level else []
        module = ".".join([*above, *([node.module] if node.module else [])])
        self.imports += [_Import(module, alias.name, alias.asname or alias.name) for alias in node.names]


def _resolved(one: _Import, ours: frozenset[str]) -> _Import:
    """The module that a name truly comes from: a module of its own, or behind a package that only passes it on."""
    passed: set[tuple[str, str]] = set()
    module, name = one.module, one.name
    while name and (module, name) not in passed and _followed(module, ours):
        passed.add((module, name))
        if _source(f"{module}.{name}"):
            return _Import(f"{module}.{name}", "", one.known_as)
        source = _source(module)
        if source is not None and source.is_package:
            behind = (other for other in _read(module).imports if other.known_as == name)
            module, name = next(((other.module, other.name) for other in behind), (module, name))
    return _Import(module, name, one.known_as)


class _Source(NamedTuple):
    text: bytes
    is_package: bool


@cache
def _source(module: str) -> _Source | None:
    """Also of a package in a zip; None where there is none (a built-in, what is typed in)."""
    top, *rest = module.split(".")
    try:
        package = import_module(top)
    except ImportError:
        return None
    file, read = getattr(package, "__file__", None), getattr(package.__loader__, "get_data", None)
    if not file or read is None:
        return None
    base = os.path.join(os.path.dirname(file), *rest)
    for path in [f"{base}.py", os.path.join(base, "__init__.py")] if rest else [file]:
        try:
            return _Source(read(path), path.endswith("__init__.py"))
        except OSError:
            continue
    return None


def _digest(*parts: str) -> str:
    digest = hashlib.sha1(usedforsecurity=False)
    for part in parts:
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()
