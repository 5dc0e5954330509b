"""How much of a comparison fits into a budget of time: how many nodes, and how many seeds.

Pilots tell: every system on two small samples, with a clock beside it. From the two times follows how fast
its cost grows with the nodes, which differs from system to system and from workload to workload. What is left
after the first seed decides how many more there are.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from topicweave.errors import BadInput
from topicweave.runs import Run, carry_out
from topicweave.runs.processes import each
from topicweave.runs.run import Result

PILOT_NODES = (50, 100)
WORTH_A_PILOT = 4 * PILOT_NODES[-1]
"""Smaller workloads are run whole."""
GROWTH = (1.15, 2.0)
"""Cost ~ nodes ** growth, within these: two short runs may by chance seem to say more, or less."""
CAREFUL = 0.6
"""The share of the budget that is planned with: a guess from small samples is not to be trusted with all of it."""
MOST_NODES = 10_000
"""Of a run on one machine, whatever the budget; on a cluster the budget alone decides."""
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def parse_budget(text: str) -> float | None:
    """Seconds from `90s`, `5m` or `1.5h`; None, without limit, from `none`.

    >>> parse_budget("5m"), parse_budget("none")
    (300.0, None)
    """
    if text.strip() == "none":
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text.strip())
    if not found or float(found[1]) <= 0:
        raise BadInput(
            f"--budget {text!r}: say seconds, minutes or hours as in '90s', '5m' or '1h', or 'none'"
        )
    return float(found[1]) * _UNITS[found[2]]


@dataclass(frozen=True)
class Cost:
    """Seconds that one system takes, by the number of nodes."""

    seconds: float
    """With the larger pilot's nodes."""
    growth: float

    @classmethod
    def of(cls, small: float, large: float) -> Cost:
        """From the times of both pilots.

        >>> Cost.of(1.0, 4.0)
        Cost(seconds=4.0, growth=2.0)
        """
        low, high = GROWTH
        if small <= 0 or large <= 0:
            return cls(large, low)
        measured = math.log(large / small) / math.log(PILOT_NODES[1] / PILOT_NODES[0])
        return cls(large, min(max(measured, low), high))

    def with_nodes(self, nodes: int) -> float:
        return self.seconds * math.pow(nodes / PILOT_NODES[1], self.growth)


@dataclass(frozen=True)
class RunPlan:
    """What will be run."""

    nodes: int
    seeds: int


def seconds_for(costs: Sequence[Cost], nodes: int, workers: int, seeds: int = 1) -> float:
    """So many run at once, and the longest run is the least that it takes.

    >>> seconds_for([Cost(1.0, 1.15), Cost(4.0, 1.15)], nodes=100, workers=2)
    4.0
    """
    each = [cost.with_nodes(nodes) for cost in costs]
    return max(sum(each) * seeds / max(1, workers), *each)


def plan(
    costs: Sequence[Cost], nodes: int, seeds: int, budget: float, workers: int, most: int = MOST_NODES
) -> RunPlan:
    """The most nodes, then the most seeds, that fit; no more than `most` nodes.

    Rather all nodes with one seed than a few with many: what overlays cost depends on their size.

    >>> plan([Cost(1.0, 1.15)] * 10, nodes=400, seeds=3, budget=3600, workers=2)
    RunPlan(nodes=400, seeds=3)
    >>> plan([Cost(1.0, 1.15)] * 10, nodes=10_000, seeds=3, budget=60, workers=2).seeds
    1
    """
    planned = CAREFUL * max(0.0, budget)
    fewest, most = min(PILOT_NODES[-1], nodes), min(nodes, most)
    while fewest < most:
        middle = (fewest + most + 1) // 2
        if seconds_for(costs, middle, workers) <= planned:
            fewest = middle
        else:
            most = middle - 1
    taken = next(
        (many for many in range(seeds, 1, -1) if seconds_for(costs, fewest, workers, many) <= planned), 1
    )
    return RunPlan(fewest, taken)


def costs_of(seconds: Sequence[float]) -> list[Cost]:
    """What each system costs, from the times of its two pilots: first the small ones of all, then the large ones.

    >>> costs_of([1.0, 2.0, 4.0, 4.6])
    [Cost(seconds=4.0, growth=2.0), Cost(seconds=4.6, growth=1.2016338611696504)]
    """
    systems = len(seconds) // 2
    return [Cost.of(small, large) for small, large in zip(seconds[:systems], seconds[systems:], strict=True)]


def time_here(runs: Sequence[Run], workers: int | None, keep: Callable[[Run, Result, float], None]) -> None:
    """Run each in a process of this machine; what comes out is kept, and how many seconds it took."""
    at_once = min(workers or os.cpu_count() or 1, len(runs))
    for run, (result, took) in each(_timed, runs, at_once):
        keep(run, result, took)


def _timed(run: Run) -> tuple[Result, float]:
    started = time.perf_counter()
    result = carry_out(run)
    return result, time.perf_counter() - started
