"""`simulate`: one system on one workload in the simulator, controlled by the caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

from topicweave.blocks.membership import Membership
from topicweave.choose.question import checked, membership_of
from topicweave.choose.sources import SubscriptionSource, read_workload
from topicweave.choose.surroundings import own_churn, own_latency
from topicweave.choose.variants import parse_variant
from topicweave.client.words import Payload, as_payload
from topicweave.data.own_latency import Unit
from topicweave.errors import BadInput, UnknownName
from topicweave.measures.summary import measure_run
from topicweave.model.event import Event
from topicweave.model.workload import Workload
from topicweave.runs.trial import planned_churn
from topicweave.sim.faults import lossy, parse_loss
from topicweave.sim.host import Host
from topicweave.sim.latency_choice import parse_latency
from topicweave.sim.simulation import Simulation
from topicweave.systems.presets import DEFAULT, Times
from topicweave.systems.registry import find_system
from topicweave.telemetry.tables import Tables
from topicweave.telemetry.writer import MemoryTelemetry


class Delivery(NamedTuple):
    """An event that reached a subscriber."""

    time: float
    """Virtual seconds since the start."""
    node: str
    topic: str
    payload: bytes
    publisher: str


def simulate(
    subscriptions: SubscriptionSource,
    system: str = "spidercast",
    *,
    seed: int = 0,
    preset: Times = DEFAULT,
    membership: str = "directory",
    latency: str = "50ms",
    latency_unit: Unit | None = None,
    loss: str | float = 0.0,
    churn: str = "",
    churn_speed: float = 1.0,
) -> SimulatedSwarm:
    """Simulate a system on your subscriptions, in virtual time. The same calls and the same seed give the same run.

    subscriptions   as `compare` takes them
    system          a name, with parameters as in 'spidercast:k_greedy=2'
    preset, membership, latency, loss, churn, …   as `compare` takes them; churn begins at once

    >>> swarm = simulate({"ann": ["news", "go"], "bob": ["news"], "eve": ["go", "news"]}, "spidercast", seed=1)
    >>> swarm.on_delivery(lambda got: print(f"{got.time:.2f} s: {got.node} got {got.payload!r} from {got.publisher}"))
    >>> swarm.run(until=5.0)
    >>> swarm.publish("ann", "news", b"hello")
    5.00 s: ann got b'hello' from ann
    2
    >>> swarm.run(until=10.0)
    5.05 s: eve got b'hello' from ann
    5.05 s: bob got b'hello' from ann
    >>> swarm.measures()["hit_ratio"]
    1.0
    """
    checked({"seed": seed, "preset": preset, "latency_unit": latency_unit, "churn_speed": churn_speed})
    variant = parse_variant(system, preset)
    churn, workload = own_churn(churn, churn_speed, read_workload(subscriptions), seed, _ignore)
    network = own_latency(latency, latency_unit, workload, _ignore)
    telemetry = MemoryTelemetry(variant.system, *workload.names())
    found = find_system(variant.system)
    simulation = Simulation(
        workload,
        found,
        found.settings(**variant.changes),
        seed=seed,
        membership=Membership.parse(membership_of(membership, preset)),
        telemetry=telemetry,
        latency=parse_latency(latency, workload, seed) if network is None else network.latency(workload),
        churn=planned_churn(churn, workload, seed),
        faults=lossy(parse_loss(loss)),
    )
    return SimulatedSwarm(simulation, telemetry)


def _ignore(_text: str) -> None:
    pass


class SimulatedSwarm:
    """A simulated swarm. Nodes go by their names. Time passes only in `run`."""

    def __init__(self, simulation: Simulation, telemetry: MemoryTelemetry) -> None:
        self.simulation = simulation
        """The simulation itself, for everything that this class does not offer."""
        self._telemetry = telemetry
        workload = simulation.workload
        self._nodes = {name: index for index, name in enumerate(workload.node_names)}
        self._topics = {name: index for index, name in enumerate(workload.topic_names)}
        self._node_of, self._topic_of = workload.names()
        self._changes: list[tuple[float, str, str]] = []

    @property
    def workload(self) -> Workload:
        return self.simulation.workload

    @property
    def now(self) -> float:
        """Virtual seconds since the start."""
        return self.simulation.now

    @property
    def up(self) -> list[str]:
        """The nodes that are up, in the order in which they started."""
        return [self.workload.node_names[index] for index in self.simulation.up()]

    def run(self, until: float) -> None:
        """Let virtual time pass up to `until`."""
        if until < self.now:
            raise BadInput(f"run until {until:g} s: it is {self.now:g} s already")
        self.simulation.run(until)

    def on_delivery(self, call: Callable[[Delivery], object]) -> None:
        """Call a function with every event that reaches a subscriber, when it does. A publisher's own events
        are among them.
        """

        def delivered(host: Host, event: Event) -> None:
            call(
                Delivery(
                    self.now,
                    self._node_of[host.name],
                    self._topic_of[event.topic],
                    event.payload,
                    self._node_of[event.publisher],
                )
            )

        self.simulation.on_delivery(delivered)

    def publish(self, node: str, topic: str, payload: Payload = b"") -> int:
        """Publish now. Returns how many neighbours the event was sent to at once."""
        return self.simulation.publish(self._node(node), self._topic(topic), as_payload(payload)).sent_to

    def subscribe(self, node: str, topic: str) -> None:
        self.simulation.subscribe(self._node(node), self._topic(topic))

    def unsubscribe(self, node: str, topic: str) -> None:
        self.simulation.unsubscribe(self._node(node), self._topic(topic))

    def crash(self, node: str) -> None:
        """Crash a node: it stops without a word."""
        self._stop(node, orderly=False)

    def leave(self, node: str) -> None:
        """Let a node leave: it says goodbye and stops."""
        self._stop(node, orderly=True)

    def _stop(self, node: str, orderly: bool) -> None:
        if self.simulation.stop(self._node(node), orderly) is not None:
            self._changes.append((self.now, node, "leave"))

    def links(self, node: str) -> list[str]:
        """The neighbours of a node, by name."""
        links = self.simulation.node(self._node(node)).links()
        return sorted({self._node_of[link.peer] for link in links})

    def tables(self) -> Tables:
        """The tables of what happened up to now: links (as they are), publishes, deliveries, control."""
        self.simulation.snapshot()
        return self._telemetry.tables()

    def measures(self) -> dict[str, Any]:
        """Every measure of what happened up to now; see docs/measuring.md.

        Subscriptions are the workload's. A node that was away is not expected to get anything.
        """
        names = self.workload.node_names
        changed = [
            (change.time, names[change.node], "join" if change.up else "leave")
            for change in self.simulation.churn.changes
            if change.time <= self.now
        ]
        times, nodes, changes = (
            zip(*sorted(changed + self._changes), strict=True) if changed or self._changes else ((), (), ())
        )
        churn = pa.table(
            {
                "time": pa.array(times, pa.float64()),
                "node": pa.array(nodes, pa.string()),
                "change": pa.array(changes, pa.string()),
            }
        )
        subscriptions = self.workload.tables()["subscriptions"]
        return measure_run(self.tables(), subscriptions, nodes=names, churn=churn, end=self.now)

    def to_pandas(self) -> Any:
        """A DataFrame of one row (by system and seed) with a column per measure; `pandas.concat` puts those of
        several swarms below each other.
        """
        import pandas as pd

        place = pd.MultiIndex.from_tuples(
            [(self.simulation.system.name, self.simulation.seed)], names=["system", "seed"]
        )
        return pd.DataFrame([self.measures()], index=place)

    def _repr_html_(self) -> str:
        from topicweave.model.notebook import facts_markup

        facts = {
            "system": self.simulation.system.name,
            "nodes up": f"{len(self.up):,} of {self.workload.nodes:,}",
            "topics": f"{self.workload.topics:,}",
            "time": f"{self.now:g} s",
            "links per node": f"{self._links_per_node():.1f}",
        }
        return facts_markup("SimulatedSwarm", facts)

    def _links_per_node(self) -> float:
        """What a node lists itself."""
        up = self.up
        return sum(len(self.links(name)) for name in up) / max(len(up), 1)

    def __repr__(self) -> str:
        name, nodes = self.simulation.system.name, len(self.simulation.up())
        return f"SimulatedSwarm({name}, {nodes:,} of {self.workload.nodes:,} nodes up, at {self.now:g} s)"

    def _node(self, name: str) -> int:
        return _index(self._nodes, "node", name)

    def _topic(self, name: str) -> int:
        return _index(self._topics, "topic", name)


def _index(known: dict[str, int], what: str, name: str) -> int:
    try:
        return known[name]
    except KeyError:
        raise UnknownName(what, name, list(known)[:20]) from None
