"""The description of a system: what worlds, studies and the command line need to know of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from topicweave.blocks.membership import Needs
from topicweave.blocks.views import InterestView
from topicweave.errors import BadInput
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import Node, World
from topicweave.systems.parameters import merged
from topicweave.systems.presets import PAPER, SHARED, SystemPace

Build = Callable[[World, NodeId, Iterable[TopicId], InterestView, Any], Node]


@dataclass(frozen=True)
class System:
    """One system: a way to link nodes and spread events, and how to make one node of it."""

    name: str
    summary: str
    source: str
    """The paper and section it comes from."""
    parameters: type[msgspec.Struct]
    build: Build
    connects_topics: bool
    """Whether the system promises that every event reaches every subscriber once things are quiet."""
    needs: Needs = "subscribers"
    """What the system asks of the membership service: who wants which topics, or which nodes exist, or
    nothing because it has a membership of its own.
    """
    degree_limit: Callable[[Node], int] | None = None
    """The most peers that a node may link to, if the system bounds that."""
    settles_within: float = 30.0
    """How many seconds nodes that start together need, with the default timers, until links and routes are in place."""
    paces: Mapping[str, SystemPace] = field(default_factory=dict)
    """The system's own timers for live presets (`local`, `lan`, `wan`), if its defaults suit only the
    simulator or the paper's network.
    """
    tuning: tuple[Mapping[str, Any], ...] = ()
    """Settings that `advise` tries besides the defaults."""
    hard_bound: tuple[str, int] | None = None
    """The parameter that bounds how many links a node may have, if there is one, and its least value."""
    control_kinds: tuple[str, ...] = ()
    """Messages that make and break links. "Control messages per join or leave" counts these."""
    heals_within: float = 120.0
    """Virtual seconds of quiet after which all faults must be healed. A campaign waits so long. Slow timers
    need longer.
    """
    noiseless: bool = False
    """Whether the system promises that no node ever gets an event that it does not want."""
    always: Callable[[Mapping[NodeId, Node]], Iterable[str]] | None = None
    """The system's own invariants: returns what is wrong with the nodes that are up. A campaign checks them
    at all times.
    """
    at_rest: Callable[[Mapping[NodeId, Node]], Iterable[str]] | None = None
    """The same, checked after all faults have healed."""

    def paced(self, preset: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters that differ from the defaults: a preset's timers, then the caller's changes. `paper`
        changes no timers.
        """
        if preset == PAPER:
            return dict(changes)
        has = {field.name for field in msgspec.structs.fields(self.parameters)}
        known = {name: value for name, value in SHARED[preset].items() if name in has}
        own = self.paces[preset].parameters if preset in self.paces else {}
        return merged(merged(known, own), changes)

    def settles(self, preset: str) -> float:
        """As `settles_within`, with a preset's timers."""
        own = self.paces[preset].settles_within if preset in self.paces else None
        return self.settles_within if own is None else own

    def settings(self, **changes: Any) -> Any:
        """The system's parameters with some changes. Unknown or ill-typed ones are refused.

        Values may be given as text, as the command line has them.
        """
        try:
            return msgspec.convert(changes, self.parameters, strict=False)
        except msgspec.ValidationError as error:
            known = ", ".join(field.name for field in msgspec.structs.fields(self.parameters))
            raise BadInput(f"system {self.name!r}: {error}; its parameters: {known}") from None
