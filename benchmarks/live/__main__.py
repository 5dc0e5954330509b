"""`python -m benchmarks.live [--quick] [mesh | fan-out | topics …]`: live nodes beside others, in one run."""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.live import fan_out, mesh

LONGEST = 240.0
"""Seconds a contestant may take."""


def _contest(pipe: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    os.setsid()  # A group of its own: whatever it starts ends with it.
    try:
        pipe.send(function(*arguments))
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")


def attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """The contestant's result, or why there is none; in a process of its own that is ended afterwards, since not all end by themselves."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_contest, args=(there, function, arguments))
    process.start()
    result = here.recv() if here.poll(LONGEST) else f"no result in {LONGEST:g} s"
    assert process.pid is not None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.join()
    return result


def meshes(quick: bool) -> Table:
    bursts = 2 if quick else 10
    table = Table(title="20 nodes in one process, bursts of 100 events of 128 bytes, best of " + str(bursts))
    for column in ("mesh", "deliveries/s", "p50 ms", "p99 ms"):
        table.add_column(column, justify="left" if column == "mesh" else "right")
    for name, function, arguments in (
        ("topicweave, unsigned", mesh.topicweave, (False, bursts)),
        ("topicweave, TLS and signed", mesh.topicweave, (True, bursts)),
        ("iroh-gossip 0.35", mesh.iroh, (bursts,)),
    ):
        result = attempt(function, *arguments)
        if isinstance(result, str):
            table.add_row(name, result)
        else:
            table.add_row(
                name, f"{result.per_second:,.0f}", f"{result.p50 * 1e3:.1f}", f"{result.p99 * 1e3:.1f}"
            )
    return table


def fan_outs(quick: bool) -> Table:
    events = 20_000 if quick else 200_000
    table = Table(title=f"one publisher process, {events:,} events of 128 bytes: deliveries/s")
    for column in ("", "1 subscriber", "10 subscribers"):
        table.add_column(column, justify="right" if column else "left")
    for name, function in (
        ("topicweave, unsigned", fan_out.topicweave),
        ("nats-py, nats-server", fan_out.nats),
        ("pyzmq PUB/SUB", fan_out.pyzmq),
    ):
        cells = [attempt(function, subscribers, events) for subscribers in (1, 10)]
        table.add_row(name, *cells)
    return table


def many_topics(quick: bool) -> Table:
    topics, bursts = (500, 2) if quick else (5000, 5)
    table = Table(title=f"20 nodes in one process, {topics:,} topics each: the same burst")
    for column in ("topics per node", "deliveries/s", "p50 ms", "p99 ms"):
        table.add_column(column, justify="right")
    for count in (1, topics):
        result = attempt(mesh.topicweave, False, bursts, count)
        if isinstance(result, str):
            table.add_row(f"{count:,}", result)
        else:
            table.add_row(
                f"{count:,}",
                f"{result.per_second:,.0f}",
                f"{result.p50 * 1e3:.1f}",
                f"{result.p99 * 1e3:.1f}",
            )
    return table


PARTS = {"mesh": meshes, "fan-out": fan_outs, "topics": many_topics}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that they work")
    options = parser.parse_args()
    console = Console()
    for part in options.parts or PARTS:
        console.print(PARTS[part](options.quick))


if __name__ == "__main__":
    main()
