"""Systems as users name them: `spidercast`, or `spidercast:k_greedy=2:tree.announce_period=0.2`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from topicweave.errors import BadInput
from topicweave.systems.parameters import flat, put
from topicweave.systems.presets import PAPER, Times
from topicweave.systems.registry import SYSTEMS, find_system


@dataclass(frozen=True)
class Variant:
    """A system with parameters, checked."""

    system: str
    parameters: dict[str, Any]
    """Those set by hand, by their dotted names."""
    settings: dict[str, Any]
    """All, by their dotted names."""
    changes: dict[str, Any]
    """What `System.settings` takes: a preset's times and those set by hand, groups of parameters as dicts of
    their own.
    """

    @property
    def label(self) -> str:
        """As a user names it."""
        return ":".join([self.system, *(f"{name}={value}" for name, value in self.parameters.items())])


def parse_variant(text: str, preset: Times = PAPER) -> Variant:
    """With a preset's times, where none are set by hand. Raises `UnknownName` or `BadInput`.

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
        put(nested, parameter, value)
        named.append(parameter)
    settings = flat(system.settings(**system.paced(preset, nested)))
    for parameter in named:
        if parameter not in settings:
            raise BadInput(f"{text}: no parameter {parameter!r}; {name} has {', '.join(settings)}")
    parameters = {parameter: settings[parameter] for parameter in named}
    changes: dict[str, Any] = {}
    for parameter, value in parameters.items():
        put(changes, parameter, value)
    return Variant(name, parameters, settings, system.paced(preset, changes))


def parse_variants(texts: Iterable[str], preset: Times = PAPER) -> list[Variant]:
    """From options, or from one text, which may hold several separated by commas; all systems if there is none."""
    options = [texts] if isinstance(texts, str) else [*texts]
    named = [text.strip() for option in options for text in option.split(",") if text.strip()]
    if not named and options != []:
        raise BadInput(f"systems {texts!r}: names none; leave it out for all systems")
    variants = [parse_variant(text, preset) for text in named or SYSTEMS]
    for place, variant in enumerate(variants):
        if variant in variants[:place]:
            raise BadInput(f"{named[place]}: named twice; give each system, with its parameters, once")
    return variants
