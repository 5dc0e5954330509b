"""The scenarios of a campaign, seed by seed, on all cores."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from topicweave.blocks.membership import Membership
from topicweave.cli.failures import debugging
from topicweave.runs.processes import each
from topicweave.systems.registry import find_system
from topicweave.testing import Scenario, ScenarioFile, Verdict, draw_scenario, run_scenario


@dataclass(frozen=True)
class Job:
    """What to do with a seed; plain data, so that it can be sent to another process."""

    system: str
    changes: dict[str, Any]
    """Parameters, as `System.settings` takes them."""
    nodes: int | None
    scenario: ScenarioFile | None = None
    """Drawn at random, if there is none."""
    membership: str | None = None
    """That of the scenario, if this says nothing."""

    def __call__(self, seed: int) -> Verdict:
        system = find_system(self.system)
        try:
            return run_scenario(system, self._draw(seed), system.settings(**self.changes))
        except Exception as error:
            # A node that breaks down is a finding like any other; a replay with TOPICWEAVE_DEBUG=1 shows where.
            if debugging():
                raise
            return Verdict(seed, (f"raised {type(error).__name__}: {error}",), events=0, deliveries=0)

    def _draw(self, seed: int) -> Scenario:
        if self.scenario is None:
            return draw_scenario(seed, self.nodes, self.membership)
        drawn = self.scenario.draw(seed, self.nodes)
        return (
            drawn if self.membership is None else replace(drawn, membership=Membership.parse(self.membership))
        )


def run_seeds(job: Job, seeds: Sequence[int], workers: int | None) -> Iterator[Verdict]:
    """Verdicts as they come in."""
    workers = min(workers or os.cpu_count() or 1, len(seeds))
    for _, verdict in each(job, seeds, workers):
        yield verdict
