"""Vitis' own run: static settings cycle by cycle instead of by messages."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from topicweave.bulk.vitis.engine import VitisEngine, measured
from topicweave.errors import BadInput
from topicweave.measures.traffic import noise_by_node
from topicweave.papers.vitis.published import histogram, planned_events, subscription_statistics
from topicweave.runs.run import OnSystem, Result
from topicweave.systems.registry import find_system
from topicweave.systems.vitis.parameters import RendezvousParameters


class CycledDissemination(OnSystem, frozen=True, kw_only=True, tag="vitis-cycles"):
    """Settle, look at the links, publish, measure: what `topicweave.papers.vitis.dissemination` does by
    messages, with all nodes as arrays, cycle by cycle.
    """

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
        if self.system not in ("vitis", "rvr"):
            raise BadInput(f"system {self.system!r}: only vitis and rvr run cycle by cycle")
        parameters = find_system(self.system).settings(**self.given(workload))
        assert isinstance(parameters, RendezvousParameters)
        engine = VitisEngine(parameters, workload, self.seed)
        settling = []
        for look in range(1, math.floor(self.settle / self.watch_every) + 1):
            engine.run(look * self.watch_every)
            settling.append((engine.now, engine.ring_is_right(), engine.paths_per_node()))
        engine.run(self.settle)
        published = planned_events(workload, self.events, self.seed)
        spread = engine.spread(published)
        result: Result = {
            "workload": subscription_statistics(workload),
            "settling": settling,
            "events": len(published),
            **measured(spread, published, workload),
            **engine.observe(),
        }
        if self.distribution:
            result["overhead_by_node"] = histogram(noise_by_node(spread.traffic))
            result["overhead_by_node_all"] = histogram(noise_by_node(spread.traffic, repetitions=True))
            result["degrees"] = sorted(engine.overlay().graph.degrees.tolist())
        return result
