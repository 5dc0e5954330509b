"""How much of a comparison fits into a budget of time: how many nodes, and how many seeds.

A pilot tells: every system once on a few nodes, with a clock beside it. The cost of a run grows a little faster than its nodes.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from topicweave.errors import BadInput
from topicweave.runs import Run, carry_out
from topicweave.runs.processes import process_pool

PILOT_NODES = 100
WORTH_A_PILOT = 4 * PILOT_NODES
"""Smaller workloads are run whole."""
GROWTH = 1.15
"""Cost ~ nodes ** GROWTH: views, tables and caches grow with the network."""
MOST_NODES = 10_000
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def parse_budget(text: str) -> float:
    """Seconds from `90s`, `5m` or `1.5h`.

    >>> parse_budget("5m")
    300.0
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text.strip())
    if not found or float(found[1]) <= 0:
        raise BadInput(f"--budget {text!r}: say seconds, minutes or hours as in '90s', '5m' or '1h'")
    return float(found[1]) * _UNITS[found[2]]


@dataclass(frozen=True)
class Plan:
    """What will be run."""

    nodes: int
    seeds: int


def plan(pilot_seconds: Sequence[float], nodes: int, seeds: int, budget: float, workers: int) -> Plan:
    """The most nodes, then the most seeds, that fit.

    Rather all nodes with one seed than a few with many: what overlays cost depends on their size.

    >>> plan([1.0] * 10, nodes=400, seeds=3, budget=3600, workers=2)
    Plan(nodes=400, seeds=3)
    >>> plan([1.0] * 10, nodes=10_000, seeds=3, budget=60, workers=2).seeds
    1
    """
    one_seed = sum(pilot_seconds) / max(1, min(workers, len(pilot_seconds)))
    fitting = PILOT_NODES * (budget / one_seed) ** (1 / GROWTH) if one_seed else nodes
    taken = max(min(PILOT_NODES, nodes), min(nodes, MOST_NODES, int(fitting)))
    cost = one_seed * (taken / PILOT_NODES) ** GROWTH
    return Plan(taken, max(1, min(seeds, int(budget / cost)) if cost else seeds))


def time_pilots(pilots: Sequence[Run], workers: int | None) -> list[float]:
    """Seconds that each takes by itself."""
    if workers == 1 or len(pilots) == 1:
        return [_timed(pilot) for pilot in pilots]
    with process_pool(min(workers or os.cpu_count() or 1, len(pilots))) as pool:
        return list(pool.map(_timed, pilots))


def _timed(pilot: Run) -> float:
    started = time.perf_counter()
    carry_out(pilot)
    return time.perf_counter() - started
