"""Vitis at scale: what a second of gossip costs, and figure 6's first row, each setting from start to the last event."""

from __future__ import annotations

import time
from typing import Any

from rich.table import Table

from benchmarks.measuring import measured
from topicweave.experiments import Experiment, run_experiment
from topicweave.experiments.dissemination import CorrelatedLists, Dissemination
from topicweave.experiments.experiment import seldom_collected
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system

SETTLE = 40.0
ROW = (("vitis", "random"), ("vitis", "low"), ("vitis", "high"), ("rvr", "random"))
FIRST, LAST = 4.0, 8.0
"""The seconds of gossip that are looked at: tables are full, and still change often."""


def seconds_of_gossip(system: str, pattern: str, nodes: int) -> float:
    """CPU seconds that four virtual ones take."""
    found = find_system(system)
    simulation = Simulation(_lists(nodes, pattern).load(), found, found.settings(**_parameters(system)))
    with seldom_collected():
        simulation.run(FIRST)
        start = time.process_time()
        simulation.run(LAST)
        return time.process_time() - start


def static_setting(system: str, pattern: str, nodes: int) -> Any:
    """Converge, then one event on every topic; with the CPU seconds it took."""
    start = time.process_time()
    result = run_experiment(
        Experiment(
            system=system,
            parameters=_parameters(system),
            workload=_lists(nodes, pattern),
            settle=SETTLE,
            dissemination=Dissemination(window=4.0),
        )
    )
    return result, time.process_time() - start


def _lists(nodes: int, pattern: str) -> CorrelatedLists:
    """Fifty topics each and a hundred subscribers per topic, as in §IV-A, at any size."""
    return CorrelatedLists(nodes, nodes // 2, pattern, 50, max(2, nodes // 100))


def _parameters(system: str) -> dict[str, Any]:
    equal = {"rates": "equal"} if system == "vitis" else {}
    return {"spreading": {"inline": 1}, **equal}


def run(quick: bool) -> Table:
    nodes = 500 if quick else 10_000
    table = Table(
        title=f"Vitis and RVR, {nodes:,} nodes, 50 of {nodes // 2:,} topics each, table 15, one core"
    )
    columns = (
        "system",
        "subscriptions",
        "CPU ms per node and second",
        "static setting, s",
        "CPU s",
        "peak MiB",
        "events",
        "events/s",
        "hit ratio",
    )
    for column in columns:
        table.add_column(column, justify="left" if column in columns[:2] else "right")
    for system, pattern in ROW:
        gossip = measured(seconds_of_gossip, system, pattern, nodes).value
        whole = measured(static_setting, system, pattern, nodes)
        result, cpu = whole.value
        events = result["kernel_events"]
        table.add_row(
            system,
            pattern,
            f"{1000 * gossip / nodes / (LAST - FIRST):.2f}",
            f"{whole.seconds:.0f}",
            f"{cpu:.0f}",
            f"{whole.peak_mib:,.0f}",
            f"{events:,}",
            f"{events / whole.seconds:,.0f}",
            f"{result['hit_ratio']:.6f}",
        )
    return table
