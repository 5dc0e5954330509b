"""Parameters by dotted names, as users write them, and in groups, as systems have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from topicweave.errors import BadInput


def flat(settings: Any, prefix: str = "") -> dict[str, Any]:
    """Parameters by dotted names; those of the system's own before those it shares with others."""
    own = type(settings).__annotations__
    names = [field.name for field in msgspec.structs.fields(type(settings))]
    found: dict[str, Any] = {}
    for name in sorted(names, key=lambda name: name not in own):
        value = getattr(settings, name)
        if isinstance(value, msgspec.Struct):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def put(nested: dict[str, Any], dotted: str, value: Any) -> None:
    """Set a value by its dotted name. Raises `BadInput`."""
    *groups, last = dotted.split(".")
    for group in groups:
        nested = nested.setdefault(group, {})
        if not isinstance(nested, dict):
            raise BadInput(f"{dotted}: {group!r} is a value, not a group of parameters")
    nested[last] = value


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both, and of a group both parts; what is above counts.

    >>> merged({"tree": {"hops": 3, "cache": 9}, "period": 1}, {"tree": {"hops": 5}})
    {'tree': {'hops': 5, 'cache': 9}, 'period': 1}
    """
    result = {**below, **above}
    for name in below.keys() & above.keys():
        if isinstance(below[name], Mapping) and isinstance(above[name], Mapping):
            result[name] = merged(below[name], above[name])
    return result
