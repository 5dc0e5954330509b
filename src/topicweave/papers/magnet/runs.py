"""Magnet's own runs: what the trees of Magnet and its strawman cost at rest, computed as arrays or reached by messages."""

from __future__ import annotations

from typing import Literal

from topicweave.bulk.engine import run_out
from topicweave.bulk.magnet.engine import MagnetEngine
from topicweave.bulk.magnet.plan import Converged
from topicweave.papers.magnet.settled import run_settled
from topicweave.runs.run import Result, Source

Rival = Literal["magnet", "strawman"]


class _Trees(Converged, frozen=True, kw_only=True, forbid_unknown_fields=True):
    system: Rival
    workload: Source
    seed: int = 0

    def __post_init__(self) -> None:
        usual = Converged()
        for name in ("samples", "choices", "weighted", "most_bytes"):
            if self.system == "strawman" and getattr(self, name) != getattr(usual, name):
                raise ValueError(f"{name}: the strawman chooses neither its place nor its fingers")


class ConvergedTrees(_Trees, frozen=True, kw_only=True, tag="magnet-trees"):
    """The converged overlay, computed at once (see `topicweave.bulk.magnet.engine`)."""

    def run(self) -> Result:
        return run_out(MagnetEngine(self.system, self.workload.load(), self, self.seed))


class SettledTrees(_Trees, frozen=True, kw_only=True, tag="magnet-messages"):
    """The same by nodes in the simulator (see `topicweave.papers.magnet.settled`)."""

    arrivals: float = 60.0
    """Nodes come one after another over so many seconds."""
    period: float = 1.0
    """Seconds between two signs of life."""

    def run(self) -> Result:
        return run_settled(self.system, self.workload.load(), self, self.arrivals, self.period, self.seed)
