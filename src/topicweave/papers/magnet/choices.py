"""How much Magnet's nodes must know (§3.4, §6), and what rates that do not go by popularity would do (§4.2)."""

from __future__ import annotations

from typing import Any

import msgspec

from topicweave.bulk.magnet.plan import Converged
from topicweave.papers.magnet.rates import OtherRates
from topicweave.papers.magnet.runs import ConvergedTrees
from topicweave.papers.magnet.settings import MODES, RATE, RATIOS, SEEDS, Point, both, multi_modal
from topicweave.papers.study import Plan, Results, Row, Scale
from topicweave.runs.run import Run

SAMPLE_SIZES: dict[Scale, tuple[int, ...]] = {"smoke": (0, 2, 10), "paper": (0, 1, 2, 5, 10, 20, 50, 100)}


def samples(scale: Scale, seed: int) -> Plan:
    """Samples of each topic's subscribers: from none to 100. With none every node stands where its name is
    hashed to.
    """
    workload = multi_modal(scale, 1, 10)
    runs: dict[Any, Run] = {}
    for number in range(seed * SEEDS[scale], (seed + 1) * SEEDS[scale]):
        drawn = msgspec.structs.replace(workload, seed=number)
        strawman = ConvergedTrees(system="strawman", workload=drawn, seed=number)
        for size in SAMPLE_SIZES[scale]:
            runs[size, "strawman", number] = strawman
            runs[size, "magnet", number] = ConvergedTrees(
                system="magnet", workload=drawn, seed=number, samples=size
            )

    def rows_of(results: Results) -> list[Row]:
        return [
            row for size in SAMPLE_SIZES[scale] for row in Point(results, size).rows({"samples": size}, None)
        ]

    return Plan(runs, rows_of)


def rates(scale: Scale, seed: int) -> Plan:
    """Figure 3(b), its ends, with rates that are shuffled over the topics, or highest where fewest want the topic."""
    points: dict[Any, tuple[Any, Converged]] = {
        (order, ratio, chosen): (
            OtherRates(multi_modal(scale, chosen, ratio, rate_exponent=RATE), order),
            Converged(),
        )
        for order in ("shuffled", "least popular first")
        for ratio in RATIOS
        for chosen in (MODES[scale][0], MODES[scale][-1])
    }
    runs = both(points, scale, seed)

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for order, ratio, chosen in points:
            point = Point(results, (order, ratio, chosen), "relays_by_rate")
            where = {"rates": order, "b_p": chosen, "b_p / b_n": 1 / ratio, "level": "arrays"}
            rows.append(Row(where, "relays_saved", None, point.saved, point.spread))
        return rows

    return Plan(runs, rows_of)
