"""What the worlds, the studies and the command line need to know of a system."""

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
    """A way to weave an overlay, and how to make one node of it."""

    name: str
    summary: str
    source: str
    """The paper and section it comes from."""
    parameters: type[msgspec.Struct]
    build: Build
    connects_topics: bool
    """Whether it promises that every event reaches every subscriber once things are quiet."""
    needs: Needs = "subscribers"
    """What it asks of the membership service: who wants which topics; who is there; or nothing, having a membership of its own."""
    degree_limit: Callable[[Node], int] | None = None
    """How many distinct peers a node may ever link to, if the system bounds that."""
    settles_within: float = 30.0
    """Seconds that nodes which start together take, with the default times, until links and routes are in place."""
    paces: Mapping[str, SystemPace] = field(default_factory=dict)
    """Times of its own for live presets (`local`, `lan`, `wan`), where the defaults suit none but the simulator or the paper's network."""
    tuning: tuple[Mapping[str, Any], ...] = ()
    """Settings worth trying besides the defaults, for somebody who looks for the system that fits best."""
    hard_bound: tuple[str, int] | None = None
    """The parameter that bounds how many links a node may have, where there is one, and the least that it may be."""
    control_kinds: tuple[str, ...] = ()
    """Messages that make and break links: what "control messages per join or leave" counts."""
    heals_within: float = 120.0
    """Virtual seconds of quiet after which everything must be healed: a campaign waits so long. Longer for slow timers."""
    noiseless: bool = False
    """Whether it promises that nobody is ever sent what it does not want."""
    always: Callable[[Mapping[NodeId, Node]], Iterable[str]] | None = None
    """What is wrong with the nodes that are up, at any moment: the system's own invariants, checked all along a campaign."""
    at_rest: Callable[[Mapping[NodeId, Node]], Iterable[str]] | None = None
    """The same once everything is healed."""

    def paced(self, preset: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters that differ from the defaults: a preset's times, then what somebody changed. `paper` changes no times."""
        if preset == PAPER:
            return dict(changes)
        has = {field.name for field in msgspec.structs.fields(self.parameters)}
        known = {name: value for name, value in SHARED[preset].items() if name in has}
        own = self.paces[preset].parameters if preset in self.paces else {}
        return merged(merged(known, own), changes)

    def settles(self, preset: str) -> float:
        """As `settles_within`, at a preset's pace."""
        own = self.paces[preset].settles_within if preset in self.paces else None
        return self.settles_within if own is None else own

    def settings(self, **changes: Any) -> Any:
        """The system's parameters with some of them changed; unknown or ill-typed ones are refused.

        Values may be given as text, as the command line has them.
        """
        try:
            return msgspec.convert(changes, self.parameters, strict=False)
        except msgspec.ValidationError as error:
            known = ", ".join(field.name for field in msgspec.structs.fields(self.parameters))
            raise BadInput(f"system {self.name!r}: {error}; its parameters: {known}") from None
