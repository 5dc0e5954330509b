"""Our kernel against SimPy's: the same nodes, the same messages, the same timers; only the event queue differs."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any
from unittest.mock import patch

import simpy
from rich.table import Table

from benchmarks.measuring import measured
from topicweave.sim.kernel import Action, Kernel
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system
from topicweave.workloads import generate


class SimPyCallbacks(Kernel):
    """SimPy at its quickest: a bare timeout with a callback per event, no process."""

    __slots__ = ("environment",)

    def __init__(self) -> None:
        super().__init__()
        self.environment = simpy.Environment()

    def at(self, time: float, action: Action, a: Any = None, b: Any = None) -> None:
        self.after(max(0.0, time - self.now), action, a, b)

    def after(self, delay: float, action: Action, a: Any = None, b: Any = None) -> None:
        self.environment.timeout(delay).callbacks.append(lambda _event: self._happen(action, a, b))

    def _happen(self, action: Action, a: Any, b: Any) -> None:
        self.now = self.environment.now
        self.events += 1
        action(a, b)

    def run(self, until: float) -> None:
        self.environment.run(until)
        self.now = until


class SimPyProcesses(SimPyCallbacks):
    """SimPy as its manual teaches: a process per message or timer, which waits and then acts."""

    __slots__ = ()

    def after(self, delay: float, action: Action, a: Any = None, b: Any = None) -> None:
        self.environment.process(self._wait(delay, action, a, b))

    def _wait(self, delay: float, action: Action, a: Any, b: Any) -> Generator[simpy.Event, Any, None]:
        yield self.environment.timeout(delay)
        self._happen(action, a, b)


KERNELS: dict[str, Callable[[], Kernel]] = {
    "topicweave": Kernel,
    "SimPy, callbacks": SimPyCallbacks,
    "SimPy, processes": SimPyProcesses,
}


def spidercast_events(kernel: str, nodes: int, seconds: float) -> tuple[int, float, float]:
    """(events, wall seconds, mean degree) of SpiderCast on a kernel."""
    with patch("topicweave.sim.simulation.Kernel", KERNELS[kernel]):
        simulation = Simulation(generate(nodes, 100), find_system("spidercast"), seed=1)
        start = time.perf_counter()
        simulation.run(seconds)
        wall = time.perf_counter() - start
    degrees = [simulation.node(index).degree for index in simulation.up()]
    return simulation.kernel.events, wall, sum(degrees) / len(degrees)


def empty_events(kernel: str, chains: int, hops: int) -> tuple[int, float]:
    """(events, wall seconds) of events that do nothing but schedule the next: the queue alone."""
    queue = KERNELS[kernel]()

    def hop(left: int, delay: float) -> None:
        if left:
            queue.after(delay, hop, left - 1, delay)

    for chain in range(chains):
        queue.after(chain / chains, hop, hops, 1.0 + chain / chains)
    start = time.perf_counter()
    queue.run(until=3.0 * hops)
    return queue.events, time.perf_counter() - start


def run(quick: bool) -> Table:
    nodes, seconds = (500, 10.0) if quick else (2000, 20.0)
    chains, hops = (1000, 50) if quick else (10_000, 50)
    table = Table(
        title=f"kernel: events per second ({nodes} SpiderCast nodes; {chains} chains of empty events)"
    )
    for column in ("kernel", "with SpiderCast", "ratio", "empty events", "ratio", "mean degree"):
        table.add_column(column, justify="right" if column != "kernel" else "left")
    ours: tuple[float, float] | None = None
    for kernel in KERNELS:
        events, wall, degree = measured(spidercast_events, kernel, nodes, seconds).value
        empty, empty_wall = measured(empty_events, kernel, chains, hops).value
        rates = (events / wall, empty / empty_wall)
        ours = ours or rates
        table.add_row(
            kernel,
            f"{rates[0]:,.0f}",
            f"{ours[0] / rates[0]:.2f}x",
            f"{rates[1]:,.0f}",
            f"{ours[1] / rates[1]:.2f}x",
            f"{degree:.3f}",
        )
    return table
