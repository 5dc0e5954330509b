"""What the tests of live nodes share: waiting for conditions, never for time; swarms; real processes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import topicweave
from topicweave.live import LiveNode, Settings
from topicweave.live import node as live_node
from topicweave.live.clock import Clock

PATIENCE = 30.0
"""Seconds after which a condition is taken for one that never comes; far beyond what any takes."""
PROCESS_PATIENCE = 300.0
"""The same for what another process does. On a busy machine it may take long to start or to end."""
LOOK_EVERY = 0.01
MOST_PROBES = 30
MOST_PER_TURN = 0.05
"""Seconds that one turn of the event loop counts at most: while others have the processor, the nodes get
nowhere, and nobody loses patience.
"""


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run a test on the event loop that nodes run on; pytest ends what hangs."""
    live_node.run(test)


async def eventually(condition: Callable[[], object], what: str = "", patience: float = PATIENCE) -> None:
    """Return as soon as the condition holds."""
    waited, last = 0.0, time.monotonic()
    while not condition():
        assert waited < patience, f"did not come to pass in {patience:g} s: {what or condition}"
        await asyncio.sleep(LOOK_EVERY)
        now = time.monotonic()
        waited, last = waited + min(now - last, MOST_PER_TURN), now


def local(**changes: Any) -> Settings:
    return Settings(**{"insecure": True, "preset": "local", **changes})


def secure(keys: Path | str, **changes: Any) -> Settings:
    return Settings(**{"keys": str(keys), "preset": "local", **changes})


wall = Clock().wall
"""The wall clock, to be bent."""


@contextlib.contextmanager
def kept_port(host: str = "127.0.0.1") -> Iterator[str]:
    """An address that nobody else gets for the length of a block. Nodes may listen there one after another;
    in between nobody answers.
    """
    with socket.socket() as place:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind((host, 0))
        port = place.getsockname()[1]
        if sys.platform != "linux":
            place.close()  # Elsewhere nobody may listen beside it.
        yield f"{host}:{port}"


def linked(*nodes: LiveNode) -> bool:
    """Whether every node has a link in the overlay to one of the others at least."""
    ids = {node.id for node in nodes}
    assert len(ids) > 1, "one alone has nobody to be linked to: look at its degree"
    return all({link.peer for link in node.node.links()} & ids for node in nodes)


def taken(node: LiveNode, after: int = 0) -> list[tuple[str, bytes]]:
    """What the application has been handed so far, and has not read; `after` so many."""
    assert node.feed is not None
    return [(event.topic, event.payload) for event in itertools.islice(node.feed._queue, after, None)]


async def until_served(nodes: Sequence[LiveNode], *topics: str) -> None:
    """Return when a probe of each node, on each topic, has reached all of them: from then on what is
    published finds its way.
    """
    for number in itertools.count():
        probes = {
            (topic, b"probe %d %d" % (number, place)) for topic in topics for place in range(len(nodes))
        }
        for topic in topics:
            for place, node in enumerate(nodes):
                await node.publish(topic, b"probe %d %d" % (number, place))
        with contextlib.suppress(AssertionError):
            await eventually(lambda: all(probes <= set(taken(node)) for node in nodes), patience=2.0)  # noqa: B023
            return
        assert number < MOST_PROBES, f"no round of probes out of {MOST_PROBES} reached everybody"


def total(nodes: list[LiveNode], counter: str) -> int:
    return sum(node.counters.as_dict()[counter] for node in nodes)


class Process:
    """A real node in a process of its own."""

    def __init__(self, *arguments: str, script: Path | None = None, prefix: Sequence[str] = ()) -> None:
        command = (
            [sys.executable, str(script)] if script else [sys.executable, "-m", "topicweave.cli", "node"]
        )
        environment = {**os.environ, "PYTHONPATH": str(Path(topicweave.__file__).parents[1])}
        self.process = subprocess.Popen(
            [*prefix, *command, *arguments],
            stdin=subprocess.PIPE if script else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def where(self) -> Any:
        """The line in which it says where it is."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            assert self.process.stderr is not None
            raise AssertionError(f"the node ended: {self.process.stderr.read()}")
        return json.loads(line)

    def line(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PROCESS_PATIENCE)


@contextlib.contextmanager
def processes() -> Iterator[Callable[..., Process]]:
    """Start processes; whatever happens, none is left."""
    started: list[Process] = []

    def start(*arguments: str, script: Path | None = None, prefix: Sequence[str] = ()) -> Process:
        started.append(Process(*arguments, script=script, prefix=prefix))
        return started[-1]

    try:
        yield start
    finally:
        for one in started:
            if one.process.poll() is None:
                one.kill()
            for stream in (one.process.stdin, one.process.stdout, one.process.stderr):
                if stream is not None:
                    stream.close()
