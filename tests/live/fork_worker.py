"""Many processes with a node each, forked from one that has read the code already: light enough for hundreds of them.

`fork_worker.py '{settings}'` reads lines `[{"name": …, "subscribe": […], "join": […]}, …]` and starts a
process for each entry. Each process says in one line of JSON where its node is, and then one line per event
that its application gets. All write to the same pipe; a line is short enough to stay whole.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import signal
import sys

import msgspec

from topicweave.live import LiveNode, Settings
from topicweave.live.node import run


def say(*words: object) -> None:
    os.write(1, (json.dumps(words) + "\n").encode())


async def host(settings: Settings) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    node = LiveNode(settings)
    await node.start()
    assert node.http is not None
    say("up", node.name, os.getpid(), str(node.address), str(node.http.address))

    async def show() -> None:
        async for event in node.events():
            say("got", node.name, event.topic, event.payload.decode())

    showing = asyncio.create_task(show())
    await stop.wait()
    showing.cancel()
    await node.stop()


os.setpgrp()  # So that all of them can be ended together.
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # Nobody reads what two hundred nodes say in passing.
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Nobody asks how they ended.
common = json.loads(sys.argv[1])
# What a node reads when it starts is read once, before there are many.
import topicweave.live.http  # noqa: E402
import topicweave.systems.registry  # noqa: E402, F401

for line in sys.stdin:
    for order in json.loads(line):
        if os.fork() == 0:
            os.close(0)
            run(functools.partial(host, msgspec.convert({**common, **order}, Settings)))
            os._exit(0)
