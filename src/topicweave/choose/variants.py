"""Systems as users name them: `spidercast`, or `spidercast:k_greedy=2:tree.announce_period=0.2`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from topicweave.errors import BadInput
from topicweave.systems.registry import SYSTEMS, find_system


@dataclass(frozen=True)
class Variant:
    """A system with parameters, checked."""

    system: str
    parameters: dict[str, Any]
    """Those set by hand, by their dotted names."""
    settings: dict[str, Any]
    """All, by their dotted names."""

    @property
    def label(self) -> str:
        """As a user names it."""
        return ":".join([self.system, *(f"{name}={value}" for name, value in self.parameters.items())])

    @property
    def changes(self) -> dict[str, Any]:
        """What `System.settings` takes: groups of parameters as dicts of their own."""
        nested: dict[str, Any] = {}
        for name, value in self.parameters.items():
            _put(nested, name, value)
        return nested


def parse_variant(text: str) -> Variant:
    """Raises `UnknownName` or `BadInput`.

    >>> parse_variant("spidercast:k_greedy=2").parameters
    {'k_greedy': 2}
    """
    name, *assignments = text.split(":")
    system = find_system(name)
    nested: dict[str, Any] = {}
    named = []
    for assignment in assignments:
        parameter, equals, value = assignment.partition("=")
        if not (parameter and equals and value):
            raise BadInput(f"{text}: {assignment!r} is no setting; write {name}:parameter=value")
        _put(nested, parameter, value)
        named.append(parameter)
    settings = flat(system.settings(**nested))
    for parameter in named:
        if parameter not in settings:
            raise BadInput(f"{text}: no parameter {parameter!r}; {name} has {', '.join(settings)}")
    return Variant(name, {parameter: settings[parameter] for parameter in named}, settings)


def parse_variants(texts: Iterable[str]) -> list[Variant]:
    """From options, each of which may hold several separated by commas; all systems if there is none."""
    named = [text.strip() for option in texts for text in option.split(",") if text.strip()]
    variants = [parse_variant(text) for text in named or SYSTEMS]
    for place, variant in enumerate(variants):
        if variant in variants[:place]:
            raise BadInput(f"{named[place]}: named twice; give each system, with its parameters, once")
    return variants


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


def _put(nested: dict[str, Any], dotted: str, value: Any) -> None:
    *groups, last = dotted.split(".")
    for group in groups:
        nested = nested.setdefault(group, {})
        if not isinstance(nested, dict):
            raise BadInput(f"{dotted}: {group!r} is a value, not a group of parameters")
    nested[last] = value
