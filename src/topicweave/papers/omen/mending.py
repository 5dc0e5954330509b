"""OMen's own run: rounds of churn on a whole overlay, each handled before the next (§6)."""

from __future__ import annotations

from typing import ClassVar, Literal

from topicweave.bulk.omen.engine import run_mending
from topicweave.bulk.omen.plan import Mending
from topicweave.runs.run import Result, Source

Rival = Literal["omen", "lowoda-inc", "lowoda-re", "spidercast"]


class Mended(Mending, frozen=True, kw_only=True, tag="mending", forbid_unknown_fields=True):
    """One of the rivals of §6, as arrays."""

    by_arrays: ClassVar[bool] = True
    system: Rival
    workload: Source
    seed: int = 0

    def run(self) -> Result:
        return run_mending(self.system, self.workload.load(), self, self.seed)
