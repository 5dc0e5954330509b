"""What the studies of Magnet share: both systems on the same workload with several seeds, and a point of a figure."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean, stdev
from typing import Any

import msgspec

from topicweave.bulk.magnet.plan import Converged
from topicweave.measures.columns import percentile
from topicweave.model.arrays import IntArray
from topicweave.papers.magnet.rates import OtherRates
from topicweave.papers.magnet.runs import ConvergedTrees, Rival
from topicweave.papers.magnet.workloads import TopicSample
from topicweave.papers.study import Results, Row, Scale
from topicweave.runs.run import Run
from topicweave.runs.sources import ModelWorkload

SYSTEMS: tuple[Rival, ...] = ("magnet", "strawman")
SEEDS: dict[Scale, int] = {"smoke": 2, "paper": 3}
RATE = 0.75
"""The exponent of skewed publication rates (§4.2)."""
FINGERS_12 = 5.0
MODES: dict[Scale, tuple[int, ...]] = {"smoke": (1, 3), "paper": (1, 2, 3, 4, 5)}
RATIOS = (5, 10)
"""b_n / b_p."""


def multi_modal(scale: Scale, chosen: int, ratio: int, **changes: Any) -> ModelWorkload:
    """§4.2's defaults: 10,000 nodes, 50 of 1,000 topics each; or a small likeness."""
    size = {"nodes": 10_000, "topics": 1000, "size": 50}
    if scale == "smoke":
        size = {"nodes": 600, "topics": 300, "size": 15}
    parameters = {**size, "chosen": chosen, "categories": chosen * ratio, **changes}
    return ModelWorkload("magnet-multi-modal", parameters)


def both(
    points: Mapping[Any, tuple[ModelWorkload | TopicSample | OtherRates, Converged]], scale: Scale, seed: int
) -> dict[Any, Run]:
    """Magnet and the strawman at every point, for several seeds: (point, system, seed) -> run."""
    runs: dict[Any, Run] = {}
    for point, (workload, spec) in points.items():
        for number in range(seed * SEEDS[scale], (seed + 1) * SEEDS[scale]):
            drawn = msgspec.structs.replace(workload, seed=number)
            for system in SYSTEMS:
                runs[point, system, number] = ConvergedTrees(
                    system=system, workload=drawn, seed=number, **msgspec.structs.asdict(spec)
                )
    return runs


def degree_quantiles(degrees: IntArray) -> dict[str, float]:
    """Figure 2's curve in five numbers, as `degree_measures` reads percentiles."""
    return {
        name: percentile(degrees, percent)
        for name, percent in (("least", 0), ("5 %", 5), ("median", 50), ("95 %", 95), ("most", 100))
    }


class Point:
    """Both systems at one point, over the seeds."""

    def __init__(self, results: Results, point: Any, measure: str = "relays_per_topic") -> None:
        runs = {
            system: [result for (at, name, _), result in results.items() if at == point and name == system]
            for system in SYSTEMS
        }
        self.cost = {system: fmean(run[measure] for run in runs[system]) for system in SYSTEMS}
        shares = [
            1.0 - mine[measure] / other[measure] if other[measure] else 0.0
            for mine, other in zip(runs["magnet"], runs["strawman"], strict=True)
        ]
        self.saved = fmean(shares)
        self.spread = stdev(shares) if len(shares) > 1 else 0.0
        self.wrong = sum(run["wrong_trees"] for system in SYSTEMS for run in runs[system])
        self.runs = runs

    def rows(self, where: Mapping[str, Any], paper: float | str | None) -> list[Row]:
        """Both costs, what is saved, and that all trees are right."""
        level = {**where, "level": "arrays"}
        cost = ", ".join(f"{system} {self.cost[system]:.1f}" for system in SYSTEMS)
        return [
            Row(level, "relays_per_topic", None, cost),
            Row(level, "overlay_degree", None, fmean(run["overlay_degree"] for run in self.runs["magnet"])),
            Row(level, "relays_saved", paper or "fewer than the strawman", self.saved, self.spread),
            Row(level, "trees that do not span, cycle or leave a greedy route", None, self.wrong),
        ]
