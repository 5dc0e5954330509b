"""OMen's own run: rounds of churn on a whole overlay, each handled before the next (§6)."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from topicweave.bulk.omen.engine import run_mending
from topicweave.bulk.omen.plan import Mending
from topicweave.runs.run import Result, Source

Rival = Literal["omen", "lowoda-inc", "lowoda-re", "spidercast"]

ALL_USE = {"rounds", "churn", "concurrent", "looks", "rho", "diameters"}
GOSSIP = {"candidates", "samples", "warm_up", "gossip_every"}
"""What a global view takes the place of."""
COVERING = {"k_greedy", "k_random", "start"}
USES: dict[Rival, set[str]] = {
    "omen": {*Mending.__struct_fields__} - COVERING,
    "lowoda-inc": {*ALL_USE, "resilience", "labels"},
    "lowoda-re": ALL_USE,
    "spidercast": {*ALL_USE, *COVERING},
}
"""The fields of a plan that reach the result."""


class Mended(Mending, frozen=True, kw_only=True, tag="mending", forbid_unknown_fields=True):
    """One of the rivals of §6, as arrays."""

    by_arrays: ClassVar[bool] = True
    system: Rival
    workload: Source
    seed: int = 0

    def __post_init__(self) -> None:
        uses = USES[self.system] - (GOSSIP if self.global_view else set())
        name = f"{self.system} with a global view" if self.global_view else self.system
        for field in msgspec.structs.fields(Mending):
            if field.name not in uses and getattr(self, field.name) != field.default:
                raise ValueError(
                    f"{field.name}: {name} makes no use of it; it uses {', '.join(sorted(uses))}"
                )

    def run(self) -> Result:
        return run_mending(self.system, self.workload.load(), self, self.seed)
