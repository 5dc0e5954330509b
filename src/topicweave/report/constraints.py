"""What a user will not go beyond, and whether a system keeps to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from topicweave.report.columns import COLUMNS, Column
from topicweave.report.comparison import Entry

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

        Judged by the worst of the replications: a bound that holds on average does not hold. A measure that
        was not taken breaks nothing, an infinite one everything.
        """
        values = [value for value in entry.replications(self.measure) if not math.isnan(value)]
        if not values:
            return 0.0
        beyond = max(values) - self.bound if self.kind == "at most" else self.bound - min(values)
        return max(0.0, beyond)

    def worst(self, entry: Entry) -> float:
        """The replication that is furthest from keeping to it."""
        values = [value for value in entry.replications(self.measure) if not math.isnan(value)]
        if not values:
            return math.nan
        return max(values) if self.kind == "at most" else min(values)

    def relative(self, entry: Entry) -> float:
        """The excess in proportion to the bound (not 0), so that links and milliseconds can be compared."""
        return self.excess(entry) / abs(self.bound)

    def complaint(self, entry: Entry) -> str:
        """What is wrong, in a few words."""
        name = f"{self.column.group.removesuffix('-')}{'' if self.column.group.endswith('-') else ' '}{self.column.title}"
        worst = self.column.cell(self.worst(entry))
        return f"{name.strip()} {worst}, {self.kind} {self.column.cell(self.bound)} asked for"


def complaints(entry: Entry, constraints: Sequence[Constraint]) -> list[str]:
    """What a system breaks; empty if it fits."""
    return [constraint.complaint(entry) for constraint in constraints if constraint.excess(entry) > 0]


def fits(entry: Entry, constraints: Sequence[Constraint]) -> bool:
    return all(constraint.excess(entry) == 0 for constraint in constraints)
