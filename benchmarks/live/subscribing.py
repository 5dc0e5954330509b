"""10,000 topics at once: what subscribing costs, by system."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Generator
from typing import Any, NamedTuple

from topicweave.live import LiveNode, Settings
from topicweave.live.node import run
from topicweave.live.swarm import run_swarm

TOPICS = 10_000
PATIENCE = 20.0


class Cost(NamedTuple):
    """Seconds of CPU: all in all, and the longest stretch in which the event loop could do nothing else."""

    total: float
    longest: float


class _Timed:
    """Awaits a coroutine and adds up the CPU time of its own steps."""

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self._work = work
        self.steps: list[float] = []

    def __await__(self) -> Generator[Any, Any, None]:
        steps = self._work.__await__()
        while True:
            began = time.process_time()
            try:
                waited_for = next(steps)
            except StopIteration:
                return
            finally:
                self.steps.append(time.process_time() - began)
            yield waited_for


async def _settled(nodes: list[LiveNode]) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and not all(any(True for _ in node.node.links()) for node in nodes):
        await asyncio.sleep(0.05)


def subscribing(system: str) -> Cost:
    """One of two nodes that are linked subscribes."""
    costs: list[Cost] = []

    async def main() -> None:
        settings = Settings(insecure=True, preset="local", system=system)
        async with run_swarm([["a"]] * 2, settings) as nodes:
            await _settled(nodes)
            timed = _Timed(nodes[0].subscribe([f"topic {number}" for number in range(TOPICS)]))
            await timed
            costs.append(Cost(sum(timed.steps), max(timed.steps)))

    run(main)
    return costs[0]
