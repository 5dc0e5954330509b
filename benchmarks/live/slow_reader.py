"""One reader that stalls again and again beside one that reads: what it costs the other one.

Processes of their own, without and with SIGSTOP for 0.95 s of each second, in one run.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import time
from typing import Any, NamedTuple

from benchmarks.live import fan_out

STALL, BREATH = 0.95, 0.05


class Cost(NamedTuple):
    """Events per second at the reader that reads."""

    alone: float
    beside: float

    @property
    def lost(self) -> float:
        return 1.0 - self.beside / self.alone


def slow_reader(seconds: float) -> Cost:
    """Half of the time the other reader stalls, half of it not, in turns."""
    import topicweave as library
    from topicweave.live.node import run

    costs: list[Cost] = []

    async def main() -> None:
        async with library.connect(insecure=True, preset="local", cache=0, name="publisher") as node:
            context = multiprocessing.get_context("spawn")
            # Without a lock: a process that is stopped must not hold one.
            counts = context.RawArray("q", 2)
            processes = [
                context.Process(target=_reader, args=(str(node.address), counts, number), daemon=True)
                for number in range(2)
            ]
            try:
                for process in processes:
                    process.start()
                await _until_ready(node, counts)
                publishing = asyncio.create_task(_publish(node))
                rates: dict[bool, list[float]] = {False: [], True: []}
                for turn in range(4):
                    stalls = bool(turn % 2)
                    rates[stalls].append(await _rate(processes, counts, seconds / 4, stalls))
                publishing.cancel()
                costs.append(Cost(*(sum(rates[stalls]) / len(rates[stalls]) for stalls in (False, True))))
            finally:
                for process in processes:
                    process.kill()
                    process.join()

    run(main)
    return costs[0]


async def _until_ready(node: Any, counts: Any) -> None:
    deadline = time.monotonic() + fan_out.PATIENCE
    while not all(counts) and time.monotonic() < deadline:
        await node.publish("bench", b"probe")
        await asyncio.sleep(0.2)


async def _publish(node: Any) -> None:
    while True:
        await node.publish("bench", fan_out.PAYLOAD)


async def _rate(processes: list[Any], counts: Any, seconds: float, stalls: bool) -> float:
    """What the first reader gets per second; the second one is stopped for most of each second, or not."""
    began, before = time.monotonic(), counts[0]
    while time.monotonic() - began < seconds:
        if stalls:
            os.kill(processes[1].pid, signal.SIGSTOP)
            await asyncio.sleep(STALL)
            os.kill(processes[1].pid, signal.SIGCONT)
            await asyncio.sleep(BREATH)
        else:
            await asyncio.sleep(STALL + BREATH)
    return float((counts[0] - before) / (time.monotonic() - began))


def _reader(join: str, counts: Any, number: int) -> None:
    import topicweave
    from topicweave.live.node import run

    async def main() -> None:
        async with topicweave.connect(
            insecure=True, preset="local", join=(join,), subscribe=("bench",)
        ) as node:
            async for events in node.batches():
                counts[number] += len(events)

    run(main)
