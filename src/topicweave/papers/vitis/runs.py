"""Vitis' own run: static settings cycle by cycle instead of by messages."""

from __future__ import annotations

from typing import ClassVar, Literal

from topicweave.bulk.vitis.engine import run_cycled
from topicweave.runs.run import OnSystem, Result


class CycledDissemination(OnSystem, frozen=True, kw_only=True, tag="vitis-cycles"):
    """What `topicweave.runs.dissemination` does by messages, with all nodes as arrays, cycle by cycle."""

    by_arrays: ClassVar[bool] = True
    system: Literal["vitis", "rvr"]
    settle: float = 20.0
    events: int | None = None
    """So many by the topics' rates; None: one on every topic that somebody wants."""
    distribution: bool = False
    """Keep the overhead's distribution over nodes, and every node's degree."""
    watch_every: float = 5.0
    """Seconds between two looks at the ring and the relay paths while the overlay settles."""

    def run(self) -> Result:
        workload = self.workload.load()
        return run_cycled(
            self.system,
            self.given(workload),
            workload,
            settle=self.settle,
            events=self.events,
            watch_every=self.watch_every,
            distribution=self.distribution,
            seed=self.seed,
        )
