"""A finished comparison as plain data: what the table, the JSON and the page are all made from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import topicweave


@dataclass(frozen=True)
class Entry:
    """One system, as it was set, and what came out."""

    system: str
    parameters: dict[str, Any]
    """Those that were set by hand; a part of a group is named `group.part`."""
    settings: dict[str, Any]
    """All of them, in the same form."""
    result: dict[str, Any]
    """What the experiment gave: measures (numbers) and distributions (lists)."""

    @property
    def label(self) -> str:
        """The system as the command line names it: `spidercast`, or `spidercast:k_greedy=2`."""
        return ":".join(
            [self.system, *(f"{name}={as_text(value)}" for name, value in self.parameters.items())]
        )

    @property
    def measures(self) -> dict[str, float]:
        return {name: value for name, value in self.result.items() if isinstance(value, int | float)}

    def measure(self, name: str) -> float:
        """A measure, nan if it was not taken."""
        value = self.result.get(name)
        return float(value) if isinstance(value, int | float) else math.nan


@dataclass(frozen=True)
class Comparison:
    """Several systems on one workload and the same events."""

    workload: dict[str, Any]
    """Facts: folder, nodes, topics, subscriptions, …"""
    seed: int
    events: int
    membership: str
    settle: float
    entries: tuple[Entry, ...]
    command: str
    """What to type to get the same again."""

    def to_json(self) -> dict[str, Any]:
        """With keys that stay; a measure that has no value (a mean of nothing) is null."""
        return {
            "version": topicweave.__version__,
            "workload": self.workload,
            "seed": self.seed,
            "events": self.events,
            "membership": self.membership,
            "settle": self.settle,
            "systems": [
                {
                    "system": entry.system,
                    "parameters": entry.parameters,
                    "measures": {
                        name: value if math.isfinite(value) else None
                        for name, value in entry.measures.items()
                    },
                }
                for entry in self.entries
            ],
        }


def as_text(value: Any) -> str:
    """A parameter's value as the command line takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
