"""Our kernel against SimPy's: the same nodes, the same messages, the same timers; only the event queue differs."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any
from unittest.mock import patch

import simpy

from benchmarks.measuring import measured
from benchmarks.sheet import Column, Sheet
from topicweave.sim.kernel import Action, Kernel
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system
from topicweave.workloads import generate


class SimPyCallbacks(Kernel):
    """SimPy at its quickest: a bare timeout with a callback per event, no process."""

    __slots__ = ("environment", "happened")

    def __init__(self) -> None:
        super().__init__()
        self.environment = simpy.Environment()
        self.happened = 0

    def at(self, time: float, action: Action, a: Any = None, b: Any = None) -> None:
        self.after(max(0.0, time - self.now), action, a, b)

    def after(self, delay: float, action: Action, a: Any = None, b: Any = None) -> None:
        self.environment.timeout(delay).callbacks.append(lambda _event: self._happen(action, a, b))

    def _happen(self, action: Action, a: Any, b: Any) -> None:
        self.now = self.environment.now
        self.happened += 1
        action(a, b)

    @property
    def events(self) -> int:
        return self.happened

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


KERNELS: dict[str, type[Kernel]] = {
    "topicweave": Kernel,
    "SimPy, callbacks": SimPyCallbacks,
    "SimPy, processes": SimPyProcesses,
}


def spidercast_events(kernel: str, nodes: int, seconds: float) -> tuple[int, float, float]:
    """(events, CPU seconds, mean degree) of SpiderCast on a kernel."""
    with patch("topicweave.sim.simulation.Kernel", KERNELS[kernel]):
        simulation = Simulation(generate(nodes, 100), find_system("spidercast"), seed=1)
    assert type(simulation.kernel) is KERNELS[kernel]
    start = time.process_time()
    simulation.run(seconds)
    cpu = time.process_time() - start
    degrees = [simulation.node(index).degree for index in simulation.up()]
    return simulation.kernel.events, cpu, sum(degrees) / len(degrees)


def empty_events(kernel: str, chains: int, hops: int) -> tuple[int, float]:
    """(events, CPU seconds) of events that do nothing but schedule the next: the queue alone."""
    queue = KERNELS[kernel]()

    def hop(left: int, delay: float) -> None:
        if left:
            queue.after(delay, hop, left - 1, delay)

    for chain in range(chains):
        queue.after(chain / chains, hop, hops, 1.0 + chain / chains)
    start = time.process_time()
    queue.run(until=3.0 * hops)
    return queue.events, time.process_time() - start


def run(quick: bool) -> list[Sheet]:
    nodes, seconds = (200, 4.0) if quick else (2000, 20.0)
    chains, hops = (1000, 20) if quick else (10_000, 50)
    sheet = Sheet(
        "kernel",
        f"kernel: events per CPU second ({nodes} SpiderCast nodes; {chains} chains of empty events)",
        1,
        Column("kernel"),
        Column("with SpiderCast", ",.0f", "more"),
        Column("ratio", ".2f"),
        Column("empty events", ",.0f", "more"),
        Column("ratio", ".2f"),
        Column("mean degree", ".3f"),
    )
    ours: tuple[float, float] | None = None
    outcomes = set()
    for kernel in KERNELS:
        events, cpu, degree = measured(spidercast_events, kernel, nodes, seconds).value
        outcomes.add((events, degree))
        empty, empty_cpu = measured(empty_events, kernel, chains, hops).value
        rates = (events / cpu, empty / empty_cpu)
        ours = ours or rates
        sheet.add(kernel, rates[0], ours[0] / rates[0], rates[1], ours[1] / rates[1], degree)
    assert len(outcomes) == 1, f"the kernels disagree: {outcomes}"
    return [sheet]
