"""One node of the soak: publishes, reads, and writes down what it was told, in a journal that outlives kill -9.

Lines of the journal: `P epoch sequence accepted`, `D publisher epoch sequence`, `G publisher epoch first
last`. A file `bend` in its folder bends its world: `{"ahead": seconds, "pages": most}` shifts its wall clock
and limits its disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

from topicweave.live import Gap, LiveNode, LogLimits, Settings
from topicweave.live.clock import Clock
from topicweave.live.health import health, view
from topicweave.live.node import run
from topicweave.testing.full_disk import limit_pages

TOPIC = "soak"


class Bends:
    """What is wrong with the world at the moment."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._wall = Clock().wall
        self.told: dict[str, Any] = {}

    def look(self) -> bool:
        """Whether it changed."""
        try:
            told = json.loads(self._file.read_text())
        except (OSError, ValueError):
            return False
        changed, self.told = told != self.told, told
        return bool(changed)

    def wall(self) -> float:
        return self._wall() + float(self.told.get("ahead", 0.0))


async def main(folder: Path, name: str, listen: str, seeds: list[str], rate: float) -> None:
    journal = os.open(folder / "journal", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    bends = Bends(folder / "bend")
    bends.look()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    settings = Settings(
        insecure=True,
        preset="local",
        name=name,
        listen=listen,
        join=tuple(seeds),
        subscribe=(TOPIC,),
        data=str(folder / "data"),
        log=LogLimits(events=20_000),
        delivery="at-least-once",
        redeliver_after=5.0,
    )

    def write(*words: object) -> None:
        os.write(journal, (" ".join(map(str, words)) + "\n").encode())

    def missed(gap: Gap) -> None:
        write("G", gap.publisher, gap.epoch, gap.first, gap.last)

    node = LiveNode(settings, wall=bends.wall)
    node.on_gap(missed)
    await node.start()

    async def read() -> None:
        async for event in node.events():
            write("D", event.publisher, event.epoch, event.sequence)
            await node.acknowledge(event)

    async def publish() -> None:
        rng = random.Random()
        while True:
            await asyncio.sleep(rng.expovariate(rate))
            receipt = await node.publish(TOPIC, rng.randbytes(200), wait_for=1, timeout=2.0)
            write("P", receipt.event.epoch, receipt.event.sequence, receipt.accepted)

    async def bend() -> None:
        while True:
            if bends.look() and node.disk is not None:
                await node.disk.read(limit_pages, node.disk.store, int(bends.told.get("pages", 0)))
            await asyncio.sleep(0.2)

    reading = asyncio.create_task(read())
    bending = asyncio.create_task(bend())
    publishing = asyncio.create_task(publish())
    while not stop.is_set():
        # Told to be quiet, it reads on: what is under way may arrive.
        if bends.told.get("quiet") and not publishing.done():
            publishing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await publishing
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), 0.5)
    bending.cancel()
    print(json.dumps({"view": view(node), "health": health(node)}), file=sys.stderr)
    await node.stop()
    await reading


if __name__ == "__main__":
    where, called, at, join, per_second = sys.argv[1:]
    run(lambda: main(Path(where), called, at, join.split(",") if join else [], float(per_second)))
