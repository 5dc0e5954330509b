"""Bursts through a mesh of our own nodes: when it is up, and what a burst brought to whom."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

from benchmarks.live.figures import Figures, Tally, stamped

if TYPE_CHECKING:
    from topicweave.live import LiveNode

NODES = 20
BURST = 100
PATIENCE = 20.0
DUE = BURST * (NODES - 1)


class Mesh:
    """Nodes that all want one topic, and what they received. Made inside of the event loop."""

    def __init__(self, nodes: list[LiveNode], topic: str) -> None:
        self._nodes = nodes
        self._topic = topic
        self._tally = Tally()
        self._probes: set[tuple[str, bytes]] = set()
        self._readers = [asyncio.create_task(self._read(node)) for node in nodes]

    async def up(self) -> None:
        """Wait until an event of every node has reached all."""
        deadline = time.monotonic() + 3 * PATIENCE
        while not await self._everybody_reached():
            if time.monotonic() > deadline:
                raise RuntimeError("the mesh did not come up in a minute")

    async def best_burst(self, bursts: int) -> Figures:
        """By rotating publishers; so that a hiccup of the machine is nobody's fault, the best of them."""
        figures = [await self._burst() for _ in range(bursts)]
        return max(figures, key=lambda one: (one.arrived, one.per_second))

    def close(self) -> None:
        for reader in self._readers:
            reader.cancel()

    async def _read(self, node: LiveNode) -> None:
        async for event in node.events():
            if event.payload.startswith(b"probe"):
                self._probes.add((node.name, event.payload))
            elif event.publisher != node.name:
                self._tally.add(event.payload)

    async def _everybody_reached(self) -> bool:
        self._probes.clear()
        for number, node in enumerate(self._nodes):
            await node.publish(self._topic, b"probe %d" % number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5.0):
                while len(self._probes) < NODES * NODES:
                    await asyncio.sleep(0.01)
        return len(self._probes) == NODES * NODES

    async def _burst(self) -> Figures:
        self._tally.restart()
        for number in range(BURST):
            await self._nodes[number % NODES].publish(self._topic, stamped(number))
        deadline = time.monotonic() + PATIENCE
        while len(self._tally.ages) < DUE and time.monotonic() < deadline:
            await asyncio.sleep(0)
        return self._tally.figures(DUE)
