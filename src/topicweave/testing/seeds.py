"""Campaigns: a scenario per seed, one after another or on several cores, and what all of them came to.

A node that breaks down is a finding like any other: its seed gets a verdict that says what was raised.
"""

from __future__ import annotations

import os
import pickle
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from topicweave.blocks.membership import Membership
from topicweave.errors import BadInput
from topicweave.systems.system import System
from topicweave.testing.campaign import Scenario, Verdict, draw_scenario, run_scenario
from topicweave.testing.scenario_files import ScenarioFile, read_scenario


@dataclass(frozen=True)
class _Job:
    """What to do with a seed; plain data, so that it can be sent to another process."""

    system: System
    parameters: Any
    nodes: int | None
    membership: str | None
    scenario: ScenarioFile | None
    raising: bool

    def __call__(self, seed: int) -> Verdict:
        scenario = self._draw(seed)
        try:
            return run_scenario(self.system, scenario, self.parameters)
        except Exception as error:
            if self.raising:
                raise
            return Verdict(seed, (f"raised {type(error).__name__}: {error}",), events=0, deliveries=0)

    def _draw(self, seed: int) -> Scenario:
        if self.scenario is None:
            return draw_scenario(seed, self.nodes, self.membership)
        drawn = self.scenario.draw(seed, self.nodes)
        return (
            drawn if self.membership is None else replace(drawn, membership=Membership.parse(self.membership))
        )


def run_campaign(
    system: System,
    seeds: Iterable[int],
    nodes: int | None = None,
    parameters: Any = None,
    membership: str | None = None,
    *,
    scenario: ScenarioFile | str | Path | None = None,
    workers: int | None = 1,
    raising: bool = False,
) -> Iterator[Verdict]:
    """A verdict for each seed, as they come in.

    nodes       of each run; if not given, by the seed, or what the scenario says
    parameters  as `system.settings` makes them; the defaults if not given
    membership  how nodes find each other; if not given, by the seed, or what the scenario says
    scenario    the faults of a file, or of one that comes with the package (`partition`), instead of random ones
    workers     how many processes; 1 is this process, which takes one seed after another; None: one per core
    raising     whether the error of a node that breaks down is raised, with its traceback, and ends the campaign
    """
    if membership is not None:
        Membership.parse(membership)
    if isinstance(scenario, str | Path):
        scenario = read_scenario(scenario)
    job = _Job(system, parameters, nodes, membership, scenario, raising)
    workers = (os.cpu_count() or 1) if workers is None else workers
    if workers < 1:
        raise BadInput(f"a campaign with {workers} workers: ask for at least 1")
    if isinstance(seeds, Sized):
        workers = max(1, min(workers, len(seeds)))
    return map(job, seeds) if workers == 1 else _in_processes(_sendable(job), seeds, workers)


def _in_processes(job: _Job, seeds: Iterable[int], workers: int) -> Iterator[Verdict]:
    from topicweave.runs.processes import each

    for _, verdict in each(job, seeds, workers):
        yield verdict


def _sendable(job: _Job) -> _Job:
    """A worker imports what it is sent by name: it cannot see the main script, or a function within another."""
    try:
        found = b"__main__" not in pickle.dumps(job)
    except (pickle.PicklingError, AttributeError, TypeError):
        found = False
    if not found:
        raise BadInput(
            f"system {job.system.name!r}: other processes cannot import it; "
            "move it to a module of its own, or use one worker"
        )
    return job


def campaign_summary(
    verdicts: Sequence[Verdict], system: str, conditions: Mapping[str, Any]
) -> dict[str, Any]:
    """What a campaign came to, as plain data; failures are in the order of seeds, whatever order they came in.

    system, conditions  as `replay_command` takes them
    """
    return {
        "done": len(verdicts),
        "passed": sum(verdict.passed for verdict in verdicts),
        "deliveries": sum(verdict.deliveries for verdict in verdicts),
        "failures": [
            {
                "seed": verdict.seed,
                "violations": list(verdict.violations),
                "replay": replay_command(system, verdict.seed, conditions),
            }
            for verdict in sorted(verdicts, key=lambda verdict: verdict.seed)
            if not verdict.passed
        ],
    }


def replay_command(system: str, seed: int, conditions: Mapping[str, Any]) -> str:
    """What to type to see one seed again.

    system      as the command line names it, with its parameters
    conditions  options of the command, and what was given; None if nothing was

    >>> replay_command("spidercast:k_greedy=2", 17, {"nodes": 30, "scenario": None})
    'topicweave campaign spidercast:k_greedy=2 --first 17 --seeds 1 --nodes 30'
    """
    given = [
        part for name, value in conditions.items() if value is not None for part in (f"--{name}", str(value))
    ]
    return shlex.join(["topicweave", "campaign", system, "--first", str(seed), "--seeds", "1", *given])
