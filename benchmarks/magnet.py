"""Magnet at scale: one 10,000-node setting of §4.2, with its strawman, as arrays and by messages.

As arrays is what the studies run. By messages every node joins, samples, walks and builds its trees in the simulator; the two systems
run one after the other here, and would run side by side on two cores.
"""

from __future__ import annotations

from typing import Any, Literal

from rich.table import Table

from benchmarks.measuring import measured
from topicweave.bulk.magnet.plan import Converged
from topicweave.runs import Experiment, run_experiment
from topicweave.runs.model_workload import ModelWorkload


def setting(system: str, level: Literal["arrays", "messages"], nodes: int) -> Any:
    """§4.2: fifty of 1,000 topics each, from one mode of ten."""
    workload = ModelWorkload("magnet-multi-modal", {"nodes": nodes})
    # A beat in five seconds: nobody fails here, and what is measured is where everything comes to rest.
    spec = Converged(level=level, arrivals=100.0, period=5.0)
    return run_experiment(Experiment(system=system, workload=workload, seed=1, converged=spec))


def run(quick: bool) -> Table:
    nodes = 1000 if quick else 10_000
    by_messages = 200 if quick else 10_000
    table = Table(title="Magnet and its strawman, 50 of 1,000 topics per node, one core per run")
    for column in (
        "level",
        "nodes",
        "system",
        "seconds",
        "peak MiB",
        "relays per topic",
        "messages and timers",
    ):
        table.add_column(column, justify="left" if column in ("level", "system") else "right")
    for level, size in (("arrays", nodes), ("messages", by_messages)):
        for system in ("magnet", "strawman"):
            run = measured(setting, system, level, size)
            events = run.value.get("kernel_events")
            table.add_row(
                level,
                f"{size:,}",
                system,
                f"{run.seconds:.0f}",
                f"{run.peak_mib:,.0f}",
                f"{run.value['relays_per_topic']:.1f}",
                f"{events:,}" if events else "–",
            )
    return table
