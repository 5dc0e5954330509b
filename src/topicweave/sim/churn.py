"""Who comes and goes, and when: a list of changes in time order, from a trace or from a model."""

from __future__ import annotations

import math
import random
from typing import NamedTuple

from topicweave.errors import BadInput
from topicweave.model.validation import UP
from topicweave.model.workload import Workload

CONTACTS = 5
"""How many live nodes a joining node is told of: what a bootstrap list gives it in practice."""


class Change(NamedTuple):
    """One node comes (up) or goes."""

    time: float
    node: int
    up: bool


class Churn(NamedTuple):
    """Which nodes are up at time 0, and what changes afterwards, in time order."""

    up_at_start: frozenset[int]
    changes: tuple[Change, ...]
    start_window: float = 0.0
    """Those that are up at first start within so many seconds."""


def always_up(nodes: int) -> Churn:
    return Churn(frozenset(range(nodes)), ())


def exponential(nodes: int, mean_up: float, mean_down: float, duration: float, seed: int) -> Churn:
    """Each node alternates between up and down for exponentially distributed times (SpiderCast §3.8).

    The start is drawn from the stationary state, so the expected number of nodes up is the same at all times.
    """
    if not (0 < mean_up < math.inf and 0 < mean_down < math.inf and 0 <= duration < math.inf):
        raise BadInput(
            "churn: need positive mean times and a finite duration, "
            f"got {mean_up} s up, {mean_down} s down, {duration} s"
        )
    rng = random.Random(f"churn/{seed}")
    up_at_start, changes = set(), []
    for node in range(nodes):
        up = rng.random() < mean_up / (mean_up + mean_down)
        if up:
            up_at_start.add(node)
        time = 0.0
        while True:
            time += rng.expovariate(1.0 / (mean_up if up else mean_down))
            if time >= duration:
                break
            up = not up
            changes.append(Change(time, node, up))
    return Churn(frozenset(up_at_start), tuple(sorted(changes)))


def from_workload(workload: Workload) -> Churn:
    """The churn of a workload's trace; nodes start in the state opposite to their first change."""
    up_at_start = frozenset(workload.initially_up().nonzero()[0].tolist())
    changes = (Change(time, node, change == UP) for time, node, change in workload.churn.tolist())
    return Churn(up_at_start, tuple(changes))
