"""A run of live nodes over real sockets instead of the simulator: the same workload, events and measures.

Virtual seconds become real ones. The simulator's latency model delays what arrives, from the first message
on; the nodes start one after another, each knowing a few that are up. Catching up is off, since the simulator
has none.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import NamedTuple

import msgspec
import pyarrow as pa

from topicweave.live.node import LiveNode, run
from topicweave.live.settings import Settings
from topicweave.live.swarm import CONTACTS, run_swarm
from topicweave.measures.summary import measure_run
from topicweave.model.ids import NodeId
from topicweave.model.workload import Workload
from topicweave.port import EventMessage
from topicweave.runs.events import DRAIN, PUBLISHING, drawn_events
from topicweave.runs.run import OnSystem, Result
from topicweave.sim.latency import Constant, Latency
from topicweave.systems.presets import Preset
from topicweave.systems.registry import find_system
from topicweave.telemetry.schema import event_key
from topicweave.telemetry.writer import MemoryTelemetry


class LiveRun(OnSystem, frozen=True, kw_only=True, tag="live"):
    """Nobody comes or goes, and all learn of each other as live nodes do; takes as long as it says."""

    settle: float = 20.0
    """Seconds until the overlay is looked at, once all nodes are up."""
    events: int = 0
    publishing: float = PUBLISHING
    """Seconds over which they are published."""
    start_window: float = 0.0
    """Seconds over which nodes start, as in the simulator; 0: as fast as they can."""
    processes: int = 1
    """That the nodes are spread over."""
    preset: Preset = "local"
    """How patient connections are. Nodes that are many for their machine answer late, and would be dialled
    again and again.
    """

    def run(self) -> Result:
        workload = self.workload.load()
        telemetry = self.telemetry(workload)
        if self.processes == 1:
            hosted = [
                _host(
                    self, telemetry.run, telemetry.keeps_interests, 0, [], lambda _addresses: time.monotonic()
                )
            ]
        else:
            hosted = _apart(self, telemetry)
        for part in hosted:
            telemetry.merge(part.batches)
        subscriptions = workload.tables()["subscriptions"]
        result: Result = {
            "nodes": workload.nodes,
            "node_errors": sum(len(part.failures) for part in hosted),
            "loop_lag_max": max(part.lag for part in hosted),
        }
        return result | measure_run(
            telemetry.tables(), subscriptions, nodes=workload.node_names, window=DRAIN
        )

    def settings(self, workload: Workload) -> Settings:
        # All of the system's parameters, so that the preset changes none of those that the simulator uses.
        parameters = find_system(self.system).settings(**self.given(workload))
        return Settings(
            insecure=True,
            system=self.system,
            parameters=msgspec.to_builtins(parameters),
            preset=self.preset,
            cache=0,
        )


class Hosted(NamedTuple):
    """What one process saw."""

    batches: Mapping[str, list[pa.RecordBatch]]
    failures: list[str]
    lag: float


def _apart(run_: LiveRun, telemetry: MemoryTelemetry) -> list[Hosted]:
    """The first process begins with a few nodes; the others join those. All of them start nodes, look and
    publish by the same clock.
    """
    context = multiprocessing.get_context("spawn")
    pipes, workers = [], []
    try:
        for part in range(run_.processes):
            ours, theirs = context.Pipe()
            arguments = (run_, telemetry.run, telemetry.keeps_interests, part, theirs)
            workers.append(context.Process(target=_work, args=arguments, daemon=True))
            workers[-1].start()
            theirs.close()
            pipes.append(ours)
        pipes[0].send([])
        seeds = pipes[0].recv()
        for pipe in pipes[1:]:
            pipe.send(seeds)
            pipe.recv()
        for pipe in pipes:
            pipe.send(time.monotonic())
        for pipe in pipes:
            pipe.recv()
        begin = time.monotonic() + 0.5
        for pipe in pipes:
            pipe.send(begin)
        return [pipe.recv() for pipe in pipes]
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()


def _work(run_: LiveRun, name: str, interests: bool, part: int, pipe: Connection) -> None:
    def ready(addresses: list[str]) -> float:
        pipe.send(addresses)
        moment: float = pipe.recv()
        return moment

    pipe.send(_host(run_, name, interests, part, pipe.recv(), ready))


def _host(
    run_: LiveRun,
    name: str,
    interests: bool,
    part: int,
    join: list[str],
    ready: Callable[[list[str]], float],
) -> Hosted:
    """Run this part of the nodes.

    `ready` is called when the first nodes are up (there are some if nobody is to `join`), with their
    addresses, and when all are. It returns from when (by the monotonic clock) all parts start nodes, and from
    when time counts.
    """
    workload = run_.workload.load()
    telemetry = MemoryTelemetry(name, *workload.names())
    telemetry.keeps_interests = interests
    failures: list[str] = []
    lags = [0.0]

    async def main() -> None:
        mine = range(part, workload.nodes, run_.processes)
        wanted = [
            [workload.topic_names[topic] for topic in workload.interests(index).tolist()] for index in mine
        ]
        places = {node_id: place for place, node_id in enumerate(workload.node_ids)}
        seeds = 0 if join else min(CONTACTS, len(mine) - 1)
        made: list[LiveNode] = []
        starting = 0.0

        async def prepare(number: int, node: LiveNode) -> None:
            nonlocal starting
            _observe(node, telemetry, Constant(), places)
            if number == seeds:
                starting = await asyncio.to_thread(ready, [str(one.address) for one in made])
            if number >= seeds:
                await _until(starting + run_.start_window * mine[number] / workload.nodes)
            made.append(node)
            if telemetry.keeps_interests:
                telemetry.wants(node.clock.now, node.id, sorted(node.node.subscriptions))

        async with run_swarm(
            wanted,
            run_.settings(workload),
            names=[workload.node_names[index] for index in mine],
            join=join,
            seed=run_.seed if run_.processes == 1 else run_.seed * 1000 + part,
            keep_events=False,
            before_start=prepare,
        ) as nodes:
            watching = asyncio.create_task(_watch_the_loop(lags))
            begin = await asyncio.to_thread(ready, [])
            await _until(begin + run_.settle)
            for node in nodes:
                # One moment for all processes, so that together they are one snapshot.
                telemetry.links(begin + run_.settle, node.id, node.node.links())
            await _publish(run_, dict(zip(mine, nodes, strict=True)), workload, telemetry, begin)
            await _until(begin + run_.settle + run_.publishing + DRAIN)
            for node in nodes:
                for kind, (messages, size) in (node.world.control or {}).items():
                    telemetry.control(node.clock.now, node.id, kind, messages, size)
            watching.cancel()
            failures.extend(node.world.last_error for node in nodes if node.counters.node_errors)

    run(main)
    return Hosted(telemetry.batches(), failures, max(lags))


async def _until(moment: float) -> None:
    await asyncio.sleep(max(0.0, moment - time.monotonic()))


async def _publish(
    run_: LiveRun,
    nodes: Mapping[int, LiveNode],
    workload: Workload,
    telemetry: MemoryTelemetry,
    begin: float,
) -> None:
    """Events one after the other, each by the process that hosts its publisher."""
    for number, (publisher, topic) in enumerate(drawn_events(workload, run_.events, run_.seed)):
        if publisher in nodes:
            await _until(begin + run_.settle + number * run_.publishing / run_.events)
            node = nodes[publisher]
            receipt = await node.publish(workload.topic_names[topic], b"")
            event = receipt.event
            telemetry.publish(event_key(event), event.topic, event.publisher, node.clock.now)


async def _watch_the_loop(lags: list[float]) -> None:
    """How late the event loop is: where that comes near the systems' timeouts, the machine was measured, not
    the system.
    """
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + 0.1
        await asyncio.sleep(0.1)
        lags.append(loop.time() - due)


def _observe(node: LiveNode, telemetry: MemoryTelemetry, latency: Latency, places: dict[NodeId, int]) -> None:
    """Delay what arrives at a node, and write down what the simulator would."""

    def received(sender: NodeId, message: EventMessage, wanted: bool) -> None:
        key = event_key(message.event.id)
        telemetry.reception(key, node.id, node.clock.now, message.hops, sender, wanted)

    here = places[node.id]
    node.transport.receiver.delay = lambda sender: latency.delay(
        places.get(sender, here), here, node.clock.now
    )
    node.world.observers.append(received)
    node.world.control = {}
