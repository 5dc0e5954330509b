"""The synthetic workloads of Vitis §IV-A: lists in buckets."""

from __future__ import annotations

import msgspec

from topicweave.model.workload import Workload
from topicweave.workloads.vitis import generate_correlated


class CorrelatedLists(msgspec.Struct, frozen=True, tag="vitis-lists", forbid_unknown_fields=True):
    """§IV-A: `pattern` is random, low or high; with `alpha` the rates follow a power law (§IV-D)."""

    nodes: int
    topics: int = 5000
    pattern: str = "random"
    per_node: int = 50
    buckets: int = 100
    alpha: float = 0.0
    seed: int = 0

    def load(self) -> Workload:
        return generate_correlated(
            self.nodes, self.topics, self.pattern, self.per_node, self.buckets, self.alpha, self.seed
        )
