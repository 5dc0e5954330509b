"""What a user will not go beyond, and whether a system keeps to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from topicweave.report.columns import COLUMNS, Column
from topicweave.report.comparison import Entry

ROUNDING = 1e-9
"""A latency is the difference of two moments: how far it is off depends on when it was measured."""

_COLUMNS = {column.measure: column for column in COLUMNS}


@dataclass(frozen=True)
class Constraint:
    """A measure that must be at most, or at least, some value."""

    measure: str
    kind: Literal["at most", "at least"]
    bound: float
    option: str
    """How the user said it: `--max-degree 20`."""

    @property
    def column(self) -> Column:
        return _COLUMNS[self.measure]

    def excess(self, entry: Entry) -> float:
        """By how much the system breaks it, in units of the measure; 0 if it keeps to it.

        Judged by the worst of the replications: a bound that holds on average does not hold. Infinite where one
        was not measured: what is not known is not shown to hold.
        """
        beyond = self._beyond(self.worst(entry))
        return math.inf if math.isnan(beyond) else 0.0 if beyond <= ROUNDING else beyond

    def worst(self, entry: Entry) -> float:
        """The replication that is furthest from keeping to it; nan if none breaks it and one was not measured."""
        values = entry.replications(self.measure)
        known = [value for value in values if not math.isnan(value)]
        furthest = (max if self.kind == "at most" else min)(known, default=math.nan)
        return furthest if len(known) == len(values) or self._beyond(furthest) > ROUNDING else math.nan

    def _beyond(self, value: float) -> float:
        return value - self.bound if self.kind == "at most" else self.bound - value

    def relative(self, entry: Entry) -> float:
        """The excess in proportion to the bound (not 0), so that links and milliseconds can be compared."""
        return self.excess(entry) / abs(self.bound)

    def complaint(self, entry: Entry) -> str:
        """What is wrong, in a few words."""
        name = f"{self.column.group.removesuffix('-')}{'' if self.column.group.endswith('-') else ' '}{self.column.title}"
        worst = self.worst(entry)
        cell = self.column.cell
        found = self.column.exact(worst) if cell(worst) == cell(self.bound) else cell(worst)
        if math.isnan(worst):
            values = entry.replications(self.measure)
            missing = sum(map(math.isnan, values))
            found = "not measured" + (
                f" with {missing} of {len(values)} seeds" if missing < len(values) else ""
            )
        return f"{name.strip()} {found}, {self.kind} {self.column.exact(self.bound)} asked for"


def complaints(entry: Entry, constraints: Sequence[Constraint]) -> list[str]:
    """What a system breaks; empty if it fits."""
    return [constraint.complaint(entry) for constraint in constraints if constraint.excess(entry) > 0]


def fits(entry: Entry, constraints: Sequence[Constraint]) -> bool:
    return all(constraint.excess(entry) == 0 for constraint in constraints)
