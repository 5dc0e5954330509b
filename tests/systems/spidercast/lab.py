"""A handful of SpiderCast nodes on a bench: every message can be read, lost or made up, and time is turned by hand."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Collection
from itertools import count
from typing import NamedTuple, TypeVar

from topicweave.blocks.views import Directory, FullView
from topicweave.model.event import Event
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import EventMessage, Message, TimerKey
from topicweave.systems.spidercast import SpiderCastNode, SpiderCastParameters

M = TypeVar("M", bound=Message)

LATENCY = 0.05


def calc_k_uncovered(interest: Interest, neighbours: Collection[Interest], k: int) -> int:
    """CALCKUNCOVERED, Figure 3, as printed."""
    return sum(1 for topic in interest if sum(topic in other for other in neighbours) < k)


class Sent(NamedTuple):
    time: float
    sender: NodeId
    receiver: NodeId
    message: Message


class BenchWorld:
    """The world of one node, which may have several lives."""

    def __init__(self, lab: Lab, node: NodeId) -> None:
        self.lab = lab
        self.node_id = node
        self.random = random.Random(f"{lab.seed}/{node}")
        self.timers: dict[TimerKey, int] = {}
        self.delivered: list[Event] = []

    @property
    def now(self) -> float:
        return self.lab.now

    def send(self, peer: NodeId, message: Message) -> None:
        self.lab.carry(self.node_id, peer, message)

    def set_timer(self, key: TimerKey, delay: float) -> None:
        number = self.timers[key] = next(self.lab.order)
        self.lab.at(self.now + delay, lambda: self._fire(key, number))

    def cancel_timer(self, key: TimerKey) -> None:
        self.timers.pop(key, None)

    def deliver(self, event: Event) -> None:
        self.delivered.append(event)

    def _fire(self, key: TimerKey, number: int) -> None:
        if self.timers.get(key) == number:
            del self.timers[key]
            self.lab.nodes[self.node_id].timer(key)


class Lab:
    """All nodes see each other in one directory. `lost` decides which messages never arrive."""

    def __init__(self, seed: int = 0, **parameters: float) -> None:
        self.seed = seed
        self.now = 0.0
        self.order = count()
        self.parameters = SpiderCastParameters(**{"bridges": 0, **parameters})  # type: ignore[arg-type]
        self.directory = Directory(seed)
        self.nodes: dict[NodeId, SpiderCastNode] = {}
        self.worlds: dict[NodeId, BenchWorld] = {}
        self.log: list[Sent] = []
        self.noise: list[Sent] = []
        self.lost: Callable[[Sent], bool] = lambda sent: False
        self._heap: list[tuple[float, int, Callable[[], None]]] = []

    # Nodes come and go.

    def add(self, node: NodeId, *topics: TopicId) -> SpiderCastNode:
        """A new node, started; in place of one that crashed it is a restart without memory."""
        world = self.worlds[node] = BenchWorld(self, node)
        view = FullView(world, node, frozenset(topics), self.directory)
        made = self.nodes[node] = SpiderCastNode(world, node, topics, view, self.parameters)
        made.start([])
        return made

    def crash(self, node: NodeId) -> SpiderCastNode:
        """Stops without a word; returns what it knew."""
        self.worlds[node].timers.clear()
        self.directory.discard(node)
        return self.nodes.pop(node)

    def restart(self, memory: SpiderCastNode) -> None:
        self.nodes[memory.id] = memory
        memory.start([])

    def leave(self, node: NodeId) -> None:
        self.nodes[node].leave()
        self.crash(node)

    # Time and messages.

    def at(self, time: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (time, next(self.order), action))

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self._heap and self._heap[0][0] <= until:
            self.now, _, action = heapq.heappop(self._heap)
            action()
        self.now = until

    def carry(self, sender: NodeId, receiver: NodeId, message: Message) -> None:
        sent = Sent(self.now, sender, receiver, message)
        self.log.append(sent)
        if not self.lost(sent):
            self.at(self.now + LATENCY, lambda: self.tell(sender, receiver, message))

    def tell(self, sender: NodeId, receiver: NodeId, message: Message) -> None:
        """A message arrives, whoever sent it."""
        if receiver in self.nodes:
            node = self.nodes[receiver]
            if isinstance(message, EventMessage) and message.event.topic not in node.subscriptions:
                self.noise.append(Sent(self.now, sender, receiver, message))
            node.receive(sender, message)

    # What is looked at.

    def sent(
        self,
        kind: type[M],
        sender: NodeId | None = None,
        receiver: NodeId | None = None,
        since: float = 0.0,
    ) -> list[M]:
        return [
            entry.message
            for entry in self.log
            if isinstance(entry.message, kind)
            and sender in (None, entry.sender)
            and receiver in (None, entry.receiver)
            and entry.time >= since
        ]

    def linked(self, a: NodeId, b: NodeId, task: str = "greedy") -> tuple[bool, bool]:
        """Whether a counts b as a neighbour, and b counts a."""
        ends = ((a, b), (b, a))
        one, other = (
            end in self.nodes and peer in self.nodes[end].tasks[task].neighbours for end, peer in ends
        )
        return one, other
