"""Magnet at scale: one 10,000-node setting of §4.2, with its strawman, as arrays and by messages.

As arrays is what the studies run. By messages every node joins, samples, walks and builds its trees in the
simulator; the two systems run one after the other here, and would run side by side on two cores.
"""

from __future__ import annotations

from typing import Any

from benchmarks.measuring import measured
from benchmarks.sheet import Column, Sheet
from topicweave.papers.magnet.runs import ConvergedTrees, Rival
from topicweave.papers.magnet.settled import SettledTrees
from topicweave.runs import carry_out
from topicweave.runs.sources import ModelWorkload


def setting(system: Rival, level: Any, nodes: int) -> Any:
    """§4.2: fifty of 1,000 topics each, from one mode of ten."""
    workload = ModelWorkload("magnet-multi-modal", {"nodes": nodes})
    if level == "arrays":
        return carry_out(ConvergedTrees(system=system, workload=workload, seed=1))
    # A beat in five seconds: nobody fails here, and what is measured is where everything comes to rest.
    return carry_out(SettledTrees(system=system, workload=workload, seed=1, arrivals=100.0, period=5.0))


def run(quick: bool) -> list[Sheet]:
    sizes = {"arrays": 1000, "messages": 30} if quick else {"arrays": 10_000, "messages": 10_000}
    sheet = Sheet(
        "magnet",
        "Magnet and its strawman, 50 of 1,000 topics per node, one core per run",
        3,
        Column("level"),
        Column("nodes", ",d"),
        Column("system"),
        Column("CPU s", ".1f", "less"),
        Column("peak MiB", ",.0f", "less"),
        Column("relays per topic", ".1f"),
        Column("messages and timers", ",d"),
    )
    for level, nodes in sizes.items():
        for system in ("magnet", "strawman"):
            run = measured(setting, system, level, nodes)
            result = run.value
            sheet.add(
                level,
                nodes,
                system,
                run.cpu,
                run.peak_mib,
                result["relays_per_topic"],
                result.get("kernel_events"),
            )
    return [sheet]
