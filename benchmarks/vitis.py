"""Vitis and RVR at scale: what a second of gossip costs, and figure 6's first row, each setting from start to
the last event.

Cycle by cycle, as the studies run it at the paper's size, and by messages. By messages a whole setting of
10,000 nodes takes a quarter of an hour (docs/systems/vitis.md), so only the second of gossip is measured
there; the quick run has 100 nodes and does both.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Literal

from benchmarks.measuring import measured
from benchmarks.sheet import Column, Sheet
from topicweave.bulk.vitis.engine import VitisEngine
from topicweave.papers.vitis.dissemination import Dissemination
from topicweave.papers.vitis.lists import CorrelatedLists
from topicweave.papers.vitis.runs import CycledDissemination
from topicweave.runs import carry_out
from topicweave.runs.run import seldom_collected
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system
from topicweave.systems.vitis.parameters import RendezvousParameters

Level = Literal["cycles", "messages"]

SETTLE: dict[Level, float] = {"cycles": 100.0, "messages": 40.0}
QUICK_SETTLE = 10.0
ROW = (("vitis", "random"), ("vitis", "low"), ("vitis", "high"), ("rvr", "random"))
BY_MESSAGES = (ROW[0], ROW[-1])
FIRST, LAST = 4.0, 8.0
"""The seconds of gossip that are looked at: tables are full, and still change often."""


def seconds_of_gossip(level: Level, system: str, pattern: str, nodes: int) -> float:
    """CPU seconds that four virtual ones take."""
    found = find_system(system)
    workload, parameters = _lists(nodes, pattern).load(), found.settings(**_parameters(system))
    world: Simulation | VitisEngine
    if level == "messages":
        world = Simulation(workload, found, parameters)
    else:
        assert isinstance(parameters, RendezvousParameters)
        world = VitisEngine(parameters, workload, seed=0)
    with seldom_collected():
        world.run(FIRST)
        start = time.process_time()
        world.run(LAST)
        return time.process_time() - start


def static_setting(level: Level, system: str, pattern: str, nodes: int, settle: float) -> Any:
    """Converge, then one event on every topic; with the CPU seconds it took."""
    start = time.process_time()
    kind: Any = partial(Dissemination, window=4.0) if level == "messages" else CycledDissemination
    result = carry_out(
        kind(
            system=system,
            parameters=_parameters(system),
            workload=_lists(nodes, pattern),
            settle=settle,
        )
    )
    return result, time.process_time() - start


def _lists(nodes: int, pattern: str) -> CorrelatedLists:
    """Fifty topics each and a hundred subscribers per topic, as in §IV-A, at any size."""
    return CorrelatedLists(nodes, nodes // 2, pattern, 50, max(2, nodes // 100))


def _parameters(system: str) -> dict[str, Any]:
    equal = {"rates": "equal"} if system == "vitis" else {}
    return {"spreading": {"inline": 1}, **equal}


def run(quick: bool) -> list[Sheet]:
    nodes = 100 if quick else 10_000
    sheet = Sheet(
        "vitis",
        f"Vitis and RVR, {nodes:,} nodes, 50 of {nodes // 2:,} topics each, table 15, one core",
        3,
        Column("level"),
        Column("system"),
        Column("lists"),
        Column("ms per node and second", ".3f", "less"),
        Column("whole, CPU s", ".0f", "less"),
        Column("peak MiB", ",.0f", "less"),
        Column("steps or events", ",d"),
        Column("per CPU s", ",.0f", "more"),
        Column("hit ratio", ".6f"),
        note="ms: CPU that a second of gossip takes; whole: from start to the last event",
    )
    # Compiled once and kept on disk; nobody waits for that a second time.
    measured(static_setting, "cycles", "vitis", "random", 200, QUICK_SETTLE)
    levels: tuple[Level, ...] = ("cycles", "messages")
    for level in levels:
        for system, pattern in ROW[:1] if quick else BY_MESSAGES if level == "messages" else ROW:
            gossip = measured(seconds_of_gossip, level, system, pattern, nodes)
            per_node = 1000 * gossip.value / nodes / (LAST - FIRST)
            if level == "messages" and not quick:
                sheet.add(level, system, pattern, per_node, None, gossip.peak_mib, None, None, None)
                continue
            settle = QUICK_SETTLE if quick else SETTLE[level]
            whole = measured(static_setting, level, system, pattern, nodes, settle)
            result, cpu = whole.value
            events = result["kernel_events"]
            sheet.add(
                *(level, system, pattern, per_node, cpu, whole.peak_mib),
                *(events, events / cpu, result["hit_ratio"]),
            )
    return [sheet]
