"""The smallest world that blocks can be tested in: a heap of messages and timers, one latency, loss, cuts, death."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from topicweave.model.event import Event
from topicweave.model.ids import NodeId
from topicweave.port import Block, Message, TimerKey


class TinyNet:
    """All nodes and what is under way between them."""

    def __init__(self, seed: int = 0, latency: float = 0.01, loss: float = 0.0) -> None:
        self.now = 0.0
        self.seed = seed
        self.latency = latency
        self.loss = loss
        self.worlds: dict[NodeId, TinyWorld] = {}
        self.cut: Callable[[NodeId, NodeId], bool] = lambda sender, peer: False
        self.sent = 0
        self.overheard: list[tuple[NodeId, Any]] | None = (
            None  # to whom, what; a test that wants it puts a list
        )
        self._random = random.Random(f"{seed}/net")
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()

    def world(self, node: NodeId) -> TinyWorld:
        """A new node's world; a second one for the same node is the node restarted without memory."""
        self.worlds[node] = TinyWorld(self, node)
        return self.worlds[node]

    def kill(self, nodes: Iterable[NodeId]) -> None:
        for node in nodes:
            del self.worlds[node]

    def at(self, time: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (time, next(self._order), action))

    def send(self, sender: NodeId, peer: NodeId, message: Message) -> None:
        self.sent += 1
        if self.overheard is not None:
            self.overheard.append((peer, message))
        if not self.cut(sender, peer) and (self.loss == 0.0 or self._random.random() >= self.loss):
            self.at(self.now + self.latency, lambda: self._arrive(sender, peer, message))

    def _arrive(self, sender: NodeId, peer: NodeId, message: Message) -> None:
        world = self.worlds.get(peer)
        if world is not None:
            world.receivers[type(message)](sender, message)

    def run(self, until: float) -> None:
        while self._heap and self._heap[0][0] <= until:
            self.now, _, action = heapq.heappop(self._heap)
            action()
        self.now = until


class TinyWorld:
    """What one node sees of it."""

    def __init__(self, net: TinyNet, node: NodeId) -> None:
        self.net = net
        self.node = node
        self.random = random.Random(f"{net.seed}/{node}")
        self.receivers: dict[type[Message], Callable[[NodeId, Any], None]] = {}
        self.timers: dict[str, Callable[[TimerKey], None]] = {}
        self.pending: dict[TimerKey, int] = {}
        self._timer = count()

    def use(self, block: Block) -> None:
        self.receivers.update(block.receivers())
        self.timers.update(block.timers())

    @property
    def now(self) -> float:
        return self.net.now

    def send(self, peer: NodeId, message: Message) -> None:
        self.net.send(self.node, peer, message)

    def set_timer(self, key: TimerKey, delay: float) -> None:
        timer = self.pending[key] = next(self._timer)
        self.net.at(self.now + delay, lambda: self._fire(key, timer))

    def cancel_timer(self, key: TimerKey) -> None:
        self.pending.pop(key, None)

    def _fire(self, key: TimerKey, timer: int) -> None:
        if self.net.worlds.get(self.node) is self and self.pending.get(key) == timer:
            del self.pending[key]
            self.timers[key[0]](key)

    def deliver(self, event: Event) -> None:
        raise AssertionError("blocks under test here have no events")
