"""Why Magnet's figures come out as they do: figure 5 between its two cases, and with more knowledge."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import msgspec
import numpy as np

from topicweave.measures.trees import share_uninterested
from topicweave.papers.magnet.runs import ConvergedTrees
from topicweave.papers.magnet.settings import RATE, SEEDS, multi_modal
from topicweave.papers.study import Plan, Results, Row, Scale
from topicweave.runs.run import Result, Run

POINTS: tuple[tuple[int, int, int], ...] = (
    *((1, 10, samples) for samples in (1, 2, 5, 10)),
    *((chosen, 5, 10) for chosen in (1, 2, 3, 4, 5)),
    (5, 5, 100),
)
"""b_p, b_n / b_p, and how many subscribers of a topic a node knows of."""


def why(scale: Scale, seed: int) -> Plan:
    """Figure 5's most popular topics by correlation and by what nodes know; what is saved beside it."""
    first = 100 if scale == "paper" else 30
    runs: dict[Any, Run] = {}
    for chosen, ratio, samples in POINTS:
        workload = multi_modal(scale, chosen, ratio, rate_exponent=RATE)
        for number in range(seed * SEEDS[scale], (seed + 1) * SEEDS[scale]):
            drawn = msgspec.structs.replace(workload, seed=number)
            runs[chosen, ratio, samples, "magnet", number] = ConvergedTrees(
                system="magnet", workload=drawn, seed=number, samples=samples, by_topic=True
            )
            runs[chosen, ratio, samples, "strawman", number] = ConvergedTrees(
                system="strawman", workload=drawn, seed=number, by_topic=True
            )

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for point in POINTS:
            chosen, ratio, samples = point
            found = {
                system: [result for key, result in results.items() if key[:4] == (*point, system)]
                for system in ("magnet", "strawman")
            }
            where = {"b_p": chosen, "b_n": chosen * ratio, "samples": samples, "level": "arrays"}
            share = fmean(_share(one, first) for one in found["magnet"])
            saved = fmean(
                1.0 - mine["relays_by_rate"] / other["relays_by_rate"]
                for mine, other in zip(found["magnet"], found["strawman"], strict=True)
            )
            rows += [
                Row(where, f"share of messages to uninterested nodes, first {first} topics", None, share),
                Row(where, "relays_saved", None, saved),
            ]
        return rows

    return Plan(runs, rows_of)


def _share(result: Result, first: int) -> float:
    relays, wanted, rates = (np.array(result[key]) for key in ("relays", "wanted", "rates"))
    return share_uninterested(relays, wanted, rates, first)
