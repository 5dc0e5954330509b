"""A system that does nothing of its own accord: a test says what its nodes send, and reads what they got.

For tests of worlds: the simulator, its latency and faults, telemetry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from topicweave.blocks.views import InterestView
from topicweave.model.event import Event
from topicweave.model.ids import NodeId, TopicId
from topicweave.model.workload import Workload
from topicweave.port import EventMessage, Link, Message, Node, Published, Receivers, TimerKey, Timers, World
from topicweave.sim.simulation import Simulation
from topicweave.systems.system import System
from topicweave.telemetry.tables import Tables
from topicweave.telemetry.writer import MemoryTelemetry


class Note(Message, frozen=True, array_like=True, tag="toy-note"):
    text: str


class Wave(Message, frozen=True, array_like=True, tag="toy-wave"):
    """Says nothing."""


class Flyer(EventMessage, frozen=True, array_like=True, tag="toy-flyer"):
    """An event."""


class ToyParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class ToyNode(Node):
    """Publishes to whomever `links_to` names, hands over what it gets, and keeps a diary."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        view: InterestView,
        _parameters: ToyParameters,
    ) -> None:
        super().__init__(world, node_id, subscriptions)
        self.view = view
        self.links_to: list[NodeId] = []
        self.diary: list[tuple[float, str, Any]] = []
        self.use(self)

    def receivers(self) -> Receivers:
        return {Note: self._note, Wave: self._note, Flyer: self._flyer}

    def timers(self) -> Timers:
        return {"toy": self._rang}

    def noted(self, what: str) -> list[tuple[float, Any]]:
        """What the diary says of one kind: when, and what."""
        return [(time, about) for time, kind, about in self.diary if kind == what]

    def _write(self, what: str, about: Any = None) -> None:
        self.diary.append((self.world.now, what, about))

    def _note(self, sender: NodeId, message: Note | Wave) -> None:
        self._write("message", (sender, message))

    def _flyer(self, sender: NodeId, message: Flyer) -> None:
        self._write("event", (sender, message.event))
        self.world.deliver(message.event)

    def _rang(self, key: TimerKey) -> None:
        self._write("timer", key)

    def start(self, contacts: Sequence[NodeId]) -> None:
        self._write("start", list(contacts))
        self.view.start(contacts)

    def subscribe(self, topic: TopicId) -> None:
        self.subscriptions.add(topic)

    def unsubscribe(self, topic: TopicId) -> None:
        self.subscriptions.discard(topic)

    def publish(self, topic: TopicId, payload: bytes = b"") -> Published:
        event = Event(self.id, topic, 0, len(self.noted("publish")), payload)
        self._write("publish", event)
        for peer in self.links_to:
            self.world.send(peer, Flyer(event, 1))
        return Published(event, len(self.links_to))

    def peer_lost(self, peer: NodeId) -> None:
        self._write("lost", peer)

    def leave(self) -> None:
        self._write("leave")
        for peer in self.links_to:
            self.world.send(peer, Note("goodbye"))
        self.view.leave()

    def links(self) -> Iterable[Link]:
        return [Link(peer, "toy") for peer in self.links_to]

    def known_peers(self) -> Iterable[NodeId]:
        return self.links_to

    def gauges(self) -> Mapping[str, float]:
        return {"links_to": float(len(self.links_to))}


TOY = System(
    name="toy",
    summary="does nothing; for tests",
    source="none",
    parameters=ToyParameters,
    build=ToyNode,
    connects_topics=False,
)

TOPICS = ("news", "sport")


def toy_workload(nodes: int) -> Workload:
    """Nodes n0, n1, …: the even ones want news, every third wants sport."""
    wants = {
        f"n{node}": [topic for topic, step in zip(TOPICS, (2, 3), strict=True) if node % step == 0]
        for node in range(nodes)
    }
    return Workload.from_lists(wants, rates=dict.fromkeys(TOPICS, 1.0))


class Toys:
    """A simulation of toy nodes, its recorder, and short ways to what tests look at.

    >>> toys = Toys(3, seed=1)
    >>> toys.run(1.0)
    >>> toys.send(2.0, source=0, target=2, message=Note("hello"))
    >>> toys.run(3.0)
    >>> [(time, message.text) for time, (_, message) in toys.node(2).noted("message")]
    [(2.05, 'hello')]
    """

    def __init__(self, nodes: int = 4, record: bool = False, **simulation: Any) -> None:
        workload = toy_workload(nodes)
        self.recorder = recorder(workload) if record else None
        self.simulation = Simulation(workload, TOY, telemetry=self.recorder, **simulation)
        self.hosts = self.simulation.hosts
        self.ids = workload.node_ids
        self.topics = workload.topic_ids

    def node(self, index: int) -> ToyNode:
        node = self.simulation.node(index)
        assert isinstance(node, ToyNode)
        return node

    def run(self, until: float) -> None:
        self.simulation.run(until)

    def send(self, time: float, source: int, target: int, message: Message) -> None:
        """Let a node send at a moment."""
        self.simulation.kernel.at(time, lambda *_: self.hosts[source].send(self.ids[target], message))

    def tables(self) -> Tables:
        assert self.recorder is not None
        return self.recorder.tables()


def recorder(workload: Workload) -> MemoryTelemetry:
    return MemoryTelemetry("run", *workload.names())
