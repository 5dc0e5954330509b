"""What a virtual second of each of the five systems costs by messages: while the overlay settles, and after.

With the membership that live nodes have, each system's defaults, 10 of 100 topics per node. docs/upkeep.md
has a profile's top ten.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from benchmarks.measuring import measured
from benchmarks.sheet import Column, Sheet
from topicweave.blocks.membership import DIRECTORY
from topicweave.runs.run import seldom_collected
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system
from topicweave.workloads import generate

SYSTEMS = ("spidercast", "rappel", "vitis", "magnet", "omen")
SIZES, QUICK_SIZES = (300, 3000), (30,)
SETTLED, LAST = 30.0, 40.0


class Costs(NamedTuple):
    """Of all nodes together."""

    settling: float
    """CPU milliseconds per virtual second."""
    at_rest: float
    events: int
    """Per virtual second, at rest."""
    events_per_cpu_second: float


def seconds_of(system: str, nodes: int) -> Costs:
    simulation = Simulation(
        generate(nodes, 100, "rss", 10, 10), find_system(system), seed=1, membership=DIRECTORY
    )
    with seldom_collected():
        start = time.process_time()
        simulation.run(SETTLED)
        settled, before = time.process_time(), simulation.kernel.events
        simulation.run(LAST)
        end, events = time.process_time(), simulation.kernel.events
    rest = LAST - SETTLED
    return Costs(
        1000 * (settled - start) / SETTLED,
        1000 * (end - settled) / rest,
        round((events - before) / rest),
        events / (end - start),
    )


def run(quick: bool) -> list[Sheet]:
    sheet = Sheet(
        "messages",
        f"by messages: a virtual second, settling (to {SETTLED:g} s) and at rest (to {LAST:g} s)",
        2,
        Column("system"),
        Column("nodes", ",d"),
        Column("settling: CPU ms", ",.0f", "less"),
        Column("at rest: CPU ms", ",.0f", "less"),
        Column("events", ",d"),
        Column("events per CPU s", ",.0f", "more"),
    )
    for nodes in QUICK_SIZES if quick else SIZES:
        for system in SYSTEMS:
            sheet.add(system, nodes, *measured(seconds_of, system, nodes).value)
    return [sheet]
