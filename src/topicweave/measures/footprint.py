"""How much memory an object keeps, with all that hangs on it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import msgspec
import numpy as np

_NO_ATTRIBUTES = sys.getsizeof({})
_ATTRIBUTE = 8
"""Bytes that an object takes for its attributes, and for each of them. Python's own figure counts room for
more, which depends on how many objects of the class this process ever made: a node would be larger in a
process that ran one simulation than in one that ran two.
"""
_SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType)


def deep_size(root: object, shared: tuple[type, ...] = ()) -> int:
    """Bytes of an object and everything it refers to, each counted once.

    Code, and objects of the types in `shared` (what belongs to all, or to the world around), are left out, and so
    is what can only be reached through them.

    >>> deep_size([]) < deep_size(["a" * 100]) < deep_size(["a" * 100, "b" * 100])
    True
    """
    left_out = (*_SHARED, *shared)
    seen: set[int] = set()
    total = 0
    # Objects made while looking (keys views, method wrappers) are kept alive, or their identities would come again.
    todo: list[object] = [root]
    kept: list[object] = []
    while todo:
        thing = todo.pop()
        if id(thing) in seen or isinstance(thing, left_out):
            continue
        seen.add(id(thing))
        kept.append(thing)
        total += sys.getsizeof(thing)
        if hasattr(thing, "__dict__"):
            total += _NO_ATTRIBUTES + _ATTRIBUTE * len(thing.__dict__)
        if isinstance(thing, np.ndarray):
            # An array that looks into another one owns nothing.
            if thing.base is not None:
                todo.append(thing.base)
        else:
            todo.extend(_parts(thing))
    return total


def _parts(thing: Any) -> Iterable[object]:
    if isinstance(thing, str | bytes | int | float | complex | None.__class__):
        return ()
    if isinstance(thing, dict):
        parts = [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset):
        parts = list(thing)
    elif isinstance(thing, msgspec.Struct):
        return [getattr(thing, name) for name in thing.__struct_fields__]
    else:
        parts = _iterated(thing)
    if hasattr(thing, "__self__"):  # a bound method
        parts.append(thing.__self__)
    if hasattr(thing, "__dict__"):
        parts += [*thing.__dict__.keys(), *thing.__dict__.values()]
    for kind in type(thing).__mro__:
        for name in getattr(kind, "__slots__", ()):
            if name not in ("__dict__", "__weakref__") and hasattr(thing, name):
                parts.append(getattr(thing, name))
    return parts


def _iterated(thing: Any) -> list[object]:
    from collections import deque

    return list(thing) if isinstance(thing, deque) else []
