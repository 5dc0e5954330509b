"""Vitis at scale: what a second of gossip costs, and a static setting from start to the last event (fig. 6's first point)."""

from __future__ import annotations

import time
from typing import Any

from rich.table import Table

from benchmarks.measuring import measured
from topicweave.experiments import Experiment, run_experiment
from topicweave.experiments.dissemination import CorrelatedLists, Dissemination
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system

SETTLE = 40.0


def seconds_of_gossip(system: str, nodes: int, first: float, last: float) -> tuple[int, float]:
    """(kernel events, CPU seconds) between two moments of a network that starts."""
    found = find_system(system)
    simulation = Simulation(_lists(nodes).load(), found, found.settings(**_parameters(system)))
    simulation.run(first)
    events, start = simulation.kernel.events, time.process_time()
    simulation.run(last)
    return simulation.kernel.events - events, time.process_time() - start


def static_setting(system: str, nodes: int) -> Any:
    """Converge, then one event on every topic."""
    return run_experiment(
        Experiment(
            system=system,
            parameters=_parameters(system),
            workload=_lists(nodes),
            settle=SETTLE,
            dissemination=Dissemination(),
        )
    )


def _lists(nodes: int) -> CorrelatedLists:
    """Fifty topics each and a hundred subscribers per topic, as in §IV-A, at any size."""
    return CorrelatedLists(nodes, nodes // 2, "random", 50, max(2, nodes // 100))


def _parameters(system: str) -> dict[str, Any]:
    equal = {"rates": "equal"} if system == "vitis" else {}
    return {"spreading": {"inline": 1}, **equal}


def run(quick: bool) -> Table:
    nodes = 500 if quick else 10_000
    table = Table(title=f"Vitis and RVR, {nodes:,} nodes, 50 of {nodes // 2:,} topics each, one core")
    columns = (
        "system",
        "ms per node and second",
        "static setting, s",
        "peak MiB",
        "events",
        "events/s",
        "hit ratio",
    )
    for column in columns:
        table.add_column(column, justify="left" if column == "system" else "right")
    for system in ("vitis", "rvr"):
        _, cpu = measured(seconds_of_gossip, system, nodes, 4.0, 8.0).value
        whole = measured(static_setting, system, nodes)
        events = whole.value["kernel_events"]
        table.add_row(
            system,
            f"{1000 * cpu / nodes / 4:.2f}",
            f"{whole.seconds:.0f}",
            f"{whole.peak_mib:,.0f}",
            f"{events:,}",
            f"{events / whole.seconds:,.0f}",
            f"{whole.value['hit_ratio']:.6f}",
        )
    return table
