"""Twenty nodes in one process that all want thousands of topics: what it takes them to come up, what they
cost at rest, and the same bursts as in `mesh`.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from benchmarks.live.bursts import NODES, Mesh
from benchmarks.live.figures import Figures

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

    async def main() -> None:
        began = time.monotonic()
        settings = Settings(insecure=True, preset="local", system=system)
        async with run_swarm([wanted] * NODES, settings) as nodes:
            mesh = Mesh(nodes, wanted[0])
            await mesh.up()
            up = time.monotonic() - began
            await asyncio.sleep(REST)  # Links that are not needed go.
            sent, spent, since = total_sent(nodes), time.process_time(), time.monotonic()
            await asyncio.sleep(REST)
            elapsed = NODES * (time.monotonic() - since)
            processor = (time.process_time() - spent) / elapsed
            sent = total_sent(nodes) - sent
            results.append(Cost(up, processor, sent / elapsed, await mesh.best_burst(bursts)))
            mesh.close()

    def total_sent(nodes: list[LiveNode]) -> int:
        return sum(node.counters.bytes_sent for node in nodes)

    run(main)
    return results[0]
