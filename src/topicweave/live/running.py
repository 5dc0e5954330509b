"""Nodes run from the command line: until a signal, or for a time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import queue
import random
import signal
import sys
import threading
from collections.abc import Iterable

import msgspec

from topicweave.client.words import Incomplete
from topicweave.errors import BadInput
from topicweave.live.application import GapQueue
from topicweave.live.health import health
from topicweave.live.node import LiveNode, run
from topicweave.live.service import READY, STOPPING, ServiceManager
from topicweave.live.settings import Settings
from topicweave.live.swarm import draw_interests, run_swarm

log = logging.getLogger("topicweave.live")

LAST_WORDS = 2.0
"""Seconds that a node waits in the end for whoever reads its output."""


def stop_on_signals() -> asyncio.Event:
    """Set by Ctrl-C or a polite kill; a second one ends the process at once."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def asked() -> None:
        if stop.is_set():
            sys.exit(130)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked)
    return stop


def run_node(settings: Settings, show_events: bool = False) -> None:
    """One node until a signal. Says where it is, in one line of JSON, when it is up."""

    async def main() -> None:
        stop = stop_on_signals()
        node = LiveNode(settings, keep_events=show_events)
        await node.start()
        manager = ServiceManager()
        loop = asyncio.get_running_loop()
        if hasattr(signal, "SIGHUP"):
            loop.add_signal_handler(signal.SIGHUP, _reload, node, manager)
        where = {"name": node.name, "listen": str(node.address)}
        if node.mqtt is not None:
            where["mqtt"] = str(node.mqtt.address)
        if node.http is not None:
            where["http"] = str(node.http.address)
        print(json.dumps(where), flush=True)
        manager.say(READY)
        telling = asyncio.create_task(manager.keep_telling(lambda: _status(node)))
        printing = asyncio.create_task(_print_events(node)) if show_events else None
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({stopping, printing} if printing else {stopping}, return_when="FIRST_COMPLETED")
        telling.cancel()
        manager.say(STOPPING)
        await node.stop()
        if printing is not None:
            await asyncio.wait({printing}, timeout=LAST_WORDS)
            if not printing.done():
                print("events were left unprinted: nobody reads the output", file=sys.stderr)
            elif error := printing.exception():
                print(f"the output takes no more events: {error}", file=sys.stderr)

    run(main)


def _status(node: LiveNode) -> str:
    state = health(node)
    why = "; ".join(state["reasons"])
    return f"{state['status']}, {state['connected']} nodes connected" + (f": {why}" if why else "")


def _reload(node: LiveNode, manager: ServiceManager) -> None:
    manager.reloading()
    try:
        node.reload_keys()
    except BadInput as error:
        log.error("the keys stay as they were: %s", error)
    manager.say(READY)


class _Output:
    """Standard output, written by a thread: a full pipe holds up nobody but whoever waits for it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        # A daemon, and past Python's own buffer with its lock: a thread that hangs in a pipe keeps no process
        # from ending.
        threading.Thread(target=self._work, name="output", daemon=True).start()

    async def write(self, lines: Iterable[object]) -> None:
        """Returns when they are written."""
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        written: asyncio.Future[None] = self._loop.create_future()
        self._lines.put((text.encode(), written))
        await written

    def _work(self) -> None:
        while True:
            left, written = self._lines.get()
            error: OSError | None = None
            try:
                while left:
                    left = left[os.write(sys.stdout.fileno(), left) :]
            except OSError as failure:
                error = failure
            with contextlib.suppress(RuntimeError):  # The event loop may be gone.
                self._loop.call_soon_threadsafe(_settle, written, error)


def _settle(future: asyncio.Future[None], error: OSError | None) -> None:
    if not future.done():
        future.set_result(None) if error is None else future.set_exception(error)


async def _print_events(node: LiveNode) -> None:
    output = _Output()
    gaps = GapQueue()
    node.on_gap(gaps.put)
    lacking: asyncio.Queue[Incomplete] = asyncio.Queue()
    node.on_incomplete(lacking.put_nowait)

    async def print_lacking() -> None:
        while True:
            await output.write([{"incomplete": msgspec.to_builtins(await lacking.get())}])

    async def print_gaps() -> None:
        while True:
            await output.write({"gap": msgspec.to_builtins(gap)} for gap in await gaps.get_all())

    telling = [asyncio.create_task(one()) for one in (print_gaps, print_lacking)]
    try:
        async for events in node.batches():
            await output.write(
                {
                    "topic": event.topic,
                    "publisher": event.publisher,
                    "sequence": event.sequence,
                    "text": event.payload.decode(errors="replace"),
                }
                for event in events
            )
            for event in events:
                await node.acknowledge(event)
    finally:
        for one in telling:
            one.cancel()


def run_shown_swarm(
    settings: Settings,
    nodes: int,
    topics: int,
    topics_per_node: int,
    rate: float,
    seconds: float,
    http: bool,
    seed: int,
) -> None:
    """A swarm on loopback with a table of what it does, or, without a terminal, a line each second."""

    async def main() -> None:
        stop = stop_on_signals()
        interests = draw_interests(nodes, topics, topics_per_node, seed)
        first = msgspec.structs.replace(settings, http="127.0.0.1:0") if http else settings
        async with (
            run_swarm(interests[:1], first, seed=seed, keep_events=False) as seeds,
            run_swarm(
                interests[1:],
                settings,
                join=[str(seeds[0].address)],
                seed=seed + 1,
                keep_events=False,
            ) as others,
        ):
            everybody = [*seeds, *others]
            print("addresses:", " ".join(str(node.address) for node in everybody), flush=True)
            if seeds[0].http is not None:
                print(f"http: {seeds[0].http.address}", flush=True)
            publishing = asyncio.create_task(_publish(everybody, rate, seed))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds or None):
                    await _show(everybody, stop)
            publishing.cancel()
        print("stopped", flush=True)

    run(main)


async def _publish(nodes: list[LiveNode], rate: float, seed: int) -> None:
    rng = random.Random(f"publishing/{seed}")
    while rate > 0:
        await asyncio.sleep(rng.expovariate(rate))
        node = rng.choice(nodes)
        if topics := node.subscriptions:
            await node.publish(rng.choice(topics), b"tick")


def _figures(nodes: list[LiveNode]) -> dict[str, str]:
    degrees = [node.node.degree for node in nodes]
    counts = [node.counters for node in nodes]
    unwanted = sum(count.receptions_unwanted for count in counts)
    receptions = unwanted + sum(count.receptions_wanted for count in counts)
    return {
        "nodes": str(len(nodes)),
        "degree mean": f"{sum(degrees) / len(degrees):.1f}",
        "degree max": str(max(degrees)),
        "membership contacts mean": f"{sum(len(node.world.contacts()) for node in nodes) / len(nodes):.1f}",
        "connections": str(sum(node.transport.connections for node in nodes) // 2),
        "published": str(sum(count.publishes for count in counts)),
        "delivered": str(sum(count.deliveries for count in counts)),
        "noise_all": f"{unwanted / receptions:.1%}" if receptions else "-",
        "events dropped": str(sum(count.events_dropped for count in counts)),
        "node failures": str(sum(count.node_errors for count in counts)),
    }


async def _show(nodes: list[LiveNode], stop: asyncio.Event) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

    def table() -> Table:
        made = Table(box=None)
        figures = _figures(nodes)
        for name in figures:
            made.add_column(name, justify="right")
        made.add_row(*figures.values())
        return made

    console = Console()
    if not console.is_terminal:
        while not stop.is_set():
            print(json.dumps(_figures(nodes)), flush=True)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), 1.0)
        return
    with Live(table(), console=console, auto_refresh=False) as live:
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), 0.5)
            live.update(table(), refresh=True)
