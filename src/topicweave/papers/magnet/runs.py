"""Magnet's own runs: what the trees of Magnet and its strawman cost at rest, computed as arrays."""

from __future__ import annotations

from typing import ClassVar, Literal

from topicweave.bulk.engine import run_out
from topicweave.bulk.magnet.engine import MagnetEngine
from topicweave.bulk.magnet.plan import Converged
from topicweave.runs.run import Result, Source

Rival = Literal["magnet", "strawman"]


class TreesRun(Converged, frozen=True, kw_only=True, forbid_unknown_fields=True):
    system: Rival
    workload: Source
    seed: int = 0

    def __post_init__(self) -> None:
        usual = Converged()
        for name in ("samples", "lag", "choices", "weighted", "most_bytes"):
            if self.system == "strawman" and getattr(self, name) != getattr(usual, name):
                raise ValueError(f"{name}: the strawman chooses neither its place nor its fingers")


class ConvergedTrees(TreesRun, frozen=True, kw_only=True, tag="magnet-trees"):
    """The converged overlay, computed at once (see `topicweave.bulk.magnet.engine`)."""

    by_arrays: ClassVar[bool] = True

    def run(self) -> Result:
        return run_out(MagnetEngine(self.system, self.workload.load(), self, self.seed))
