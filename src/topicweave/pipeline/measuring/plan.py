"""What every task of a measurement knows, and the rounds in which it goes on."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from topicweave.measures.summary import Scope
from topicweave.model.arrays import IntArray
from topicweave.pipeline.rounds import Letter, mixed

RECEPTIONS, NODES, OFFERS, EDGES, TOPICS, LAST, DRIVER = range(7)
"""The rounds: receptions meet their events; nodes their rows; links their other ends; edges their nodes;
topics all that concerns them; nodes their sums. What is for DRIVER is told to the driver.
"""
LATER = 7
"""What stays where it is: latencies, for a second look."""


class MeasuredRun(NamedTuple):
    """What is known of a run before its deliveries are looked at."""

    name: str
    end: float
    """Of what is measured: as given, or the time of the run's last row."""
    moment: float
    """At which the overlay is looked at."""


class MeasuringPlan(NamedTuple):
    tasks: int
    scope: Scope
    runs: Mapping[int, MeasuredRun]
    """By the hash of the name."""
    churned: bool
    """Whether there is a churn table."""
    given_nodes: bool
    """Whether somebody said which nodes there are."""
    link_kinds: Collection[int] | None
    """Hashes."""
    keys: IntArray | None
    """Of all events, growing: None if there are too many to tell everybody."""
    places: Any
    """The task of each."""

    def mine(self, run: IntArray) -> Any:
        """Which rows are of runs that are measured."""
        return np.isin(run, np.fromiter(self.runs, np.int64, len(self.runs)))

    def tell(self, run: int, **amounts: Any) -> Letter:
        """Amounts of a run to the driver, which adds them up (names with `_max`: takes the largest)."""
        return Letter(
            DRIVER,
            0,
            "told",
            {"run": np.array([run], np.int64), "amounts": pa.array([json.dumps(amounts)], pa.string())},
        )


class SharedPlan(Protocol):
    """A plan that every task can see: a broadcast of Spark's, or `PlanHere`."""

    @property
    def value(self) -> MeasuringPlan: ...


class PlanHere(NamedTuple):
    value: MeasuringPlan


def event_keys(run: IntArray, event: IntArray) -> IntArray:
    """Events of different runs may have equal numbers. Among ten million events any two share a key with
    chance 3e-6.
    """
    return mixed(run, event)


def added_up(messages: Iterable[Letter]) -> dict[int, defaultdict[str, Any]]:
    """What was told of each run."""
    sums: dict[int, defaultdict[str, Any]] = {}
    for message in messages:
        if message.kind != "told":
            continue
        for run, amounts in zip(
            message.columns["run"].tolist(), message.columns["amounts"].to_pylist(), strict=True
        ):
            of_run = sums.setdefault(run, defaultdict(int))
            for name, amount in json.loads(amounts).items():
                if "_max" in name:
                    of_run[name] = max(of_run[name], amount) if name in of_run else amount
                else:
                    of_run[name] += amount
    return sums
