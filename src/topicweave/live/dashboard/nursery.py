"""Where the processes of a supervised swarm are born: one process that has read the code, and forks a node
for each line it is given.

`python -m topicweave.live.dashboard.nursery SOCKET`, a line of settings, then a line per node with what
differs. Each node connects to the supervisor's socket, tells what it sees in ticks, and does what it is told.
When the supervisor is gone, all of them are.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import signal
import sys
import traceback

import msgspec

from topicweave.live.dashboard.watch import TICK, Watch, key_of
from topicweave.live.node import LiveNode, run
from topicweave.live.settings import Settings
from topicweave.model.ids import NodeId

MOST_UNTOLD = 1 << 20
"""Bytes that wait for a supervisor that does not read; beyond that no ticks are told."""


class Seedling(msgspec.Struct, frozen=True):
    """What is different about one node."""

    name: str
    subscribe: tuple[str, ...]
    join: tuple[str, ...]


class ChildOrder(msgspec.Struct, omit_defaults=True):
    """What the supervisor tells a node: to publish on a topic, or behind which peers' backs there is a
    firewall from now on.
    """

    publish: str = ""
    wall: list[str] | None = None


async def grow(settings: Settings, path: str) -> None:
    """One node, for as long as the supervisor is there."""
    reader, writer = await asyncio.open_unix_connection(path)
    node = LiveNode(settings, keep_events=False)
    await node.start()
    watch = Watch(node)
    telling = asyncio.create_task(_keep_telling(node, watch, writer))
    decode = msgspec.json.Decoder(ChildOrder).decode
    with contextlib.suppress(ConnectionError):
        while line := await reader.readline():
            told = decode(line)
            if told.wall is not None:
                node.transport.blocked = (
                    functools.partial(_is_behind, frozenset(told.wall)) if told.wall else None
                )
            if told.publish:
                time = node.clock.now
                receipt = await node.publish(told.publish, b"tick")
                watch.published(receipt.event, time)
    telling.cancel()


def _is_behind(wall: frozenset[str], peer: NodeId) -> bool:
    return key_of(peer) in wall


async def _keep_telling(node: LiveNode, watch: Watch, writer: asyncio.StreamWriter) -> None:
    encode = msgspec.json.Encoder().encode
    pid, listen = os.getpid(), str(node.address)
    while True:
        room = writer.transport.get_write_buffer_size() < MOST_UNTOLD
        if room and (tick := watch.tick()) is not None:
            tick.pid, tick.listen = pid, listen
            pid, listen = 0, ""  # It was told.
            writer.write(encode(tick) + b"\n")
        await asyncio.sleep(TICK)


def main(path: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Nobody asks how they ended.
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # A Ctrl-C is the supervisor's affair.
    logging.disable(logging.WARNING)  # Fifty nodes say much in passing; the page tells what counts.
    import topicweave.systems.registry  # noqa: F401  # read once, before there are many

    common = msgspec.json.decode(sys.stdin.readline(), type=Settings)
    decode = msgspec.json.Decoder(Seedling).decode
    for line in sys.stdin:
        own = decode(line)
        if os.fork() == 0:
            os.close(0)
            settings = msgspec.structs.replace(common, name=own.name, subscribe=own.subscribe, join=own.join)
            try:
                run(functools.partial(grow, settings, path))
            except BaseException:
                traceback.print_exc()
            os._exit(0)
    os.killpg(0, signal.SIGKILL)  # Those that stand still, too.


if __name__ == "__main__":
    main(sys.argv[1])
