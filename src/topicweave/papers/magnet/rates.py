"""Publication rates that do not go by popularity: §4.2 does not say which topic gets which rate."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import msgspec
import numpy as np

from topicweave.model.workload import Workload
from topicweave.runs.sources import ModelWorkload


class OtherRates(msgspec.Struct, frozen=True, tag="other-rates", forbid_unknown_fields=True):
    """The same lists and the same rates, given to the topics in another order."""

    lists: ModelWorkload
    order: Literal["shuffled", "least popular first"]
    seed: int = 0

    @property
    def nodes(self) -> int:
        return self.lists.nodes

    def load(self) -> Workload:
        workload = msgspec.structs.replace(self.lists, seed=self.seed).load()
        falling = np.sort(workload.rates)[::-1]
        if self.order == "shuffled":
            return replace(
                workload, rates=np.random.default_rng([self.seed, 0x72617465]).permutation(falling)
            )
        wanted = np.bincount(workload.topic_index, minlength=workload.topics)
        rates = np.empty_like(falling)
        rates[np.argsort(wanted, kind="stable")] = falling
        return replace(workload, rates=rates)
