"""A workload of any of the papers' models, named by its parameters."""

from __future__ import annotations

from typing import Any

import msgspec

from topicweave.model.workload import Workload
from topicweave.workloads.catalogue import build


class ModelWorkload(msgspec.Struct, frozen=True, tag="model"):
    """See `topicweave.workloads.catalogue` for the models and their parameters."""

    model: str
    parameters: dict[str, Any] = {}
    seed: int = 0

    @property
    def nodes(self) -> int:
        return int(self.parameters.get("nodes", 0))

    def load(self) -> Workload:
        return build(self.model, self.seed, **self.parameters)
