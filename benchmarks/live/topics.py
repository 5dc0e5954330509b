"""Twenty nodes in one process that all want thousands of topics: what it takes them to come up, what they cost at rest, and the same bursts as in `mesh`."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import NamedTuple

from benchmarks.live.figures import Figures, Tally, stamped
from benchmarks.live.mesh import BURST, DUE, NODES, PATIENCE

REST = 10.0


class Cost(NamedTuple):
    up: float
    """Seconds from the first start until an event of every node has reached all."""
    processor: float
    """Share of a core, per node, at rest."""
    bytes: float
    """Sent per second and node at rest."""
    burst: Figures


def many_topics(system: str, topics: int, bursts: int) -> Cost:
    from topicweave.live import LiveNode, Settings
    from topicweave.live.node import run
    from topicweave.live.swarm import run_swarm

    results: list[Cost] = []
    wanted = [f"topic-{number}" for number in range(topics)]
    tally = Tally()
    probes: set[tuple[str, bytes]] = set()

    async def read(node: LiveNode) -> None:
        async for event in node.events():
            if event.payload.startswith(b"probe"):
                probes.add((node.name, event.payload))
            elif event.publisher != node.name:
                tally.add(event.payload)

    async def everybody_reached(nodes: list[LiveNode]) -> bool:
        probes.clear()
        for number, node in enumerate(nodes):
            await node.publish(wanted[0], b"probe %d" % number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5.0):
                while len(probes) < NODES * NODES:
                    await asyncio.sleep(0.01)
        return len(probes) == NODES * NODES

    async def burst(nodes: list[LiveNode]) -> Figures:
        tally.restart()
        for number in range(BURST):
            await nodes[number % NODES].publish(wanted[0], stamped(number))
        deadline = time.monotonic() + PATIENCE
        while len(tally.ages) < DUE and time.monotonic() < deadline:
            await asyncio.sleep(0)
        return tally.figures(DUE)

    async def main() -> None:
        began = time.monotonic()
        settings = Settings(insecure=True, preset="local", system=system)
        async with run_swarm([wanted] * NODES, settings) as nodes:
            readers = [asyncio.create_task(read(node)) for node in nodes]
            while not await everybody_reached(nodes):
                if time.monotonic() > began + 3 * PATIENCE:
                    raise RuntimeError("the mesh did not come up in a minute")
            up = time.monotonic() - began
            await asyncio.sleep(REST)  # Links that are not needed go.
            sent, spent, since = total_sent(nodes), time.process_time(), time.monotonic()
            await asyncio.sleep(REST)
            elapsed = NODES * (time.monotonic() - since)
            processor = (time.process_time() - spent) / elapsed
            sent = total_sent(nodes) - sent
            figures = [await burst(nodes) for _ in range(bursts)]
            best = max(figures, key=lambda one: (one.arrived, one.per_second))
            results.append(Cost(up, processor, sent / elapsed, best))
            for reader in readers:
                reader.cancel()

    def total_sent(nodes: list[LiveNode]) -> int:
        return sum(node.counters.bytes_sent for node in nodes)

    run(main)
    return results[0]
