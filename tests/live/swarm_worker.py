"""A process that hosts some nodes, for tests that kill it: `swarm_worker.py '{"interests": …, "settings": …, "names": …}'`.

Says where its nodes are in one line of JSON, then one line per event that an application of its nodes gets.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys

import msgspec

from topicweave.live import LiveNode, Settings
from topicweave.live.node import run
from topicweave.live.swarm import run_swarm


async def show(node: LiveNode) -> None:
    async for event in node.events():
        print(json.dumps([node.name, event.topic, event.payload.decode()]), flush=True)


async def main() -> None:
    order = json.loads(sys.argv[1])
    settings = msgspec.convert(order["settings"], Settings)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with run_swarm(order["interests"], settings, names=order["names"], join=order["join"]) as nodes:
        where = {
            "listen": [str(node.address) for node in nodes],
            "http": [str(node.http.address) for node in nodes if node.http is not None],
        }
        print(json.dumps(where), flush=True)
        showing = [asyncio.create_task(show(node)) for node in nodes]
        await stop.wait()
        for task in showing:
            task.cancel()


run(main)
