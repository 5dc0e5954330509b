"""What a node takes: memory, traffic and processor by the number of nodes and of topics each wants; docs/sizing.md.

Simulated: the systems with the membership that live nodes have, at rest and with their default parameters.
Live: nodes in one process over loopback, with the `lan` preset, at rest.
"""

from __future__ import annotations

import asyncio
import os
import random
import time

import psutil

from benchmarks.measuring import measured
from benchmarks.sheet import Column, Sheet

SYSTEMS = ("spidercast", "rappel", "magnet", "vitis", "omen", "weave", "gossipsub")
SETTLED, END = 20.0, 40.0
REST = 8.0
SIMULATED = ((100, 10), (100, 50), (300, 10))
LIVE = ((10, 10), (10, 100), (30, 10))


def simulated(
    system: str, nodes: int, topics: int, settled: float, end: float
) -> tuple[float, float, float, float]:
    """Per node: links, KiB of memory, bytes of control traffic and CPU milliseconds per second."""
    import topicweave
    from topicweave.blocks.views import Directory
    from topicweave.measures.footprint import deep_size
    from topicweave.sim.host import Host

    workload = topicweave.generate_workload(nodes, 10 * topics, "zipf1", topics, topics)
    swarm = topicweave.simulate(workload, system)
    swarm.run(settled)
    before = swarm.measures()["control_bytes"] * settled
    start = time.process_time()
    swarm.run(end)
    cpu = time.process_time() - start
    after = swarm.measures()
    simulation = swarm.simulation
    left_out = (Host, Directory, random.Random, type(simulation.parameters))
    weighed = simulation.up()[:: max(1, nodes // 20)]
    memory = sum(deep_size(simulation.node(index), left_out) for index in weighed) / len(weighed)
    seconds = end - settled
    return (
        after["degree_mean"],
        memory / 1024,
        (after["control_bytes"] * end - before) / seconds,
        1000 * cpu / nodes / seconds,
    )


def live(system: str, nodes: int, topics: int, rest: float) -> tuple[float, float, float]:
    """Per node: KiB of memory, bytes sent per second, CPU milliseconds per second; the bare process apart."""
    from topicweave.live import LiveNode, Settings
    from topicweave.live.node import run
    from topicweave.live.swarm import draw_interests, run_swarm

    results = []
    process = psutil.Process(os.getpid())

    async def main() -> None:
        bare = process.memory_info().rss
        settings = Settings(insecure=True, preset="lan", system=system)
        async with run_swarm(draw_interests(nodes, 10 * topics, topics), settings, seed=1) as swarm:
            await asyncio.sleep(rest)  # Links that are not needed go.
            sent, cpu, since = _sent(swarm), time.process_time(), time.monotonic()
            await asyncio.sleep(rest)
            spent = nodes * (time.monotonic() - since)
            memory = (process.memory_info().rss - bare) / nodes / 1024
            results.append(
                (memory, (_sent(swarm) - sent) / spent, 1000 * (time.process_time() - cpu) / spent)
            )

    def _sent(swarm: list[LiveNode]) -> int:
        return sum(node.counters.bytes_sent for node in swarm)

    run(main)
    return results[0]


def run(quick: bool) -> list[Sheet]:
    in_simulator = Sheet(
        "sizing/simulated",
        "sizing, simulated: a node at rest, by how many there are and how many topics each wants",
        3,
        Column("system"),
        Column("nodes", ",d"),
        Column("topics each", ",d"),
        Column("links", ".1f"),
        Column("memory KiB", ",.0f", "less"),
        Column("traffic bytes/s", ",.0f", "less"),
        Column("CPU ms/s", ".3f", "less"),
    )
    settled, end = (5.0, 10.0) if quick else (SETTLED, END)
    for system in SYSTEMS[:1] if quick else SYSTEMS:
        for nodes, topics in ((50, 10),) if quick else SIMULATED:
            in_simulator.add(
                system, nodes, topics, *measured(simulated, system, nodes, topics, settled, end).value
            )
    over_sockets = Sheet(
        "sizing/live",
        "sizing, live: a node at rest among others in one process, without TLS",
        3,
        Column("system"),
        Column("nodes", ",d"),
        Column("topics each", ",d"),
        Column("memory KiB", ",.0f", "less"),
        Column("traffic bytes/s", ",.0f", "less"),
        Column("CPU ms/s", ".2f", "less"),
    )
    for system in SYSTEMS[:1] if quick else SYSTEMS:
        for nodes, topics in ((5, 10),) if quick else LIVE:
            over_sockets.add(
                system, nodes, topics, *measured(live, system, nodes, topics, 1.0 if quick else REST).value
            )
    return [in_simulator, over_sockets]
