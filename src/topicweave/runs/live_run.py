"""A run of live nodes over real sockets instead of the simulator: the same workload, events and measures.

Virtual seconds become real ones. The simulator's latency model delays what arrives; the nodes start one after another, each knowing a few that
are up. Catching up is off, since the simulator has none.
"""

from __future__ import annotations

import asyncio

import msgspec

from topicweave.live.node import LiveNode, run
from topicweave.live.settings import Settings
from topicweave.live.swarm import run_swarm
from topicweave.measures.summary import measure_run
from topicweave.model.ids import NodeId
from topicweave.model.workload import Workload
from topicweave.port import EventMessage
from topicweave.runs.events import DRAIN, PUBLISHING, drawn_events
from topicweave.runs.run import OnSystem, Result
from topicweave.sim.latency import Constant, Latency
from topicweave.systems.registry import find_system
from topicweave.telemetry.schema import event_key
from topicweave.telemetry.writer import MemoryTelemetry


class LiveRun(OnSystem, frozen=True, kw_only=True, tag="live"):
    """Nobody comes or goes, and all learn of each other by gossip; takes as long as it says."""

    settle: float = 20.0
    """Seconds until the overlay is looked at."""
    events: int = 0

    def run(self) -> Result:
        workload = self.workload.load()
        telemetry = self.telemetry(workload)
        failures: list[str] = []
        lags: list[float] = [0.0]
        run(lambda: self._main(workload, telemetry, failures, lags))
        subscriptions = workload.tables()["subscriptions"]
        result: Result = {
            "nodes": workload.nodes,
            "node_errors": len(failures),
            "loop_lag_max": max(lags),
        }
        return result | measure_run(
            telemetry.tables(), subscriptions, nodes=workload.node_names, window=DRAIN
        )

    def _settings(self, workload: Workload) -> Settings:
        # All of the system's parameters, so that the preset changes none of those that the simulator uses.
        parameters = find_system(self.system).settings(**self.given(workload))
        return Settings(
            insecure=True,
            system=self.system,
            parameters=msgspec.to_builtins(parameters),
            preset="local",
            cache=0,
        )

    async def _main(
        self, workload: Workload, telemetry: MemoryTelemetry, failures: list[str], lags: list[float]
    ) -> None:
        interests = [
            [workload.topic_names[topic] for topic in workload.interests(index).tolist()]
            for index in range(workload.nodes)
        ]
        async with run_swarm(
            interests,
            self._settings(workload),
            names=list(workload.node_names),
            seed=self.seed,
            keep_events=False,
        ) as nodes:
            watching = asyncio.create_task(_watch_the_loop(lags))
            for node in nodes:
                _observe(node, telemetry, Constant(), {n.id: place for place, n in enumerate(nodes)})
                if telemetry.keeps_interests:
                    telemetry.wants(node.clock.now, node.id, sorted(node.node.subscriptions))
            await asyncio.sleep(self.settle)
            now = nodes[0].clock.now
            for node in nodes:
                telemetry.links(now, node.id, node.node.links())
            await self._publish(nodes, workload, telemetry)
            await asyncio.sleep(DRAIN)
            for node in nodes:
                for kind, (messages, size) in (node.world.control or {}).items():
                    telemetry.control(node.clock.now, node.id, kind, messages, size)
            watching.cancel()
            failures.extend(node.world.last_error for node in nodes if node.counters.node_errors)

    async def _publish(self, nodes: list[LiveNode], workload: Workload, telemetry: MemoryTelemetry) -> None:
        for publisher, topic in drawn_events(workload, self.events, self.seed):
            node = nodes[publisher]
            receipt = await node.publish(workload.topic_names[topic], b"")
            event = receipt.event
            telemetry.publish(event_key(event), event.topic, event.publisher, node.clock.now)
            await asyncio.sleep(PUBLISHING / self.events)


async def _watch_the_loop(lags: list[float]) -> None:
    """How late the event loop is: where that comes near the systems' timeouts, the machine was measured, not the system."""
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
    node.transport.delay = lambda sender: latency.delay(places.get(sender, here), here, node.clock.now)
    node.world.observers.append(received)
    node.world.control = {}
