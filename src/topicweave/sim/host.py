"""A host: the world of one simulated node."""

from __future__ import annotations

import random
import sys

from topicweave.model.event import Event
from topicweave.model.ids import NodeId
from topicweave.port import EventMessage, InFormat, Message, Node, TimerKey
from topicweave.sim.network import Network


class Host:
    """Implements `port.World` on the kernel and the network.

    A host outlives its node: the node may crash, leave, and come back as a new object. Timers belong to a life
    of the node and die with it; messages on their way arrive at whoever lives here then.
    """

    __slots__ = (
        "_kernel",
        "_network",
        "_timer_order",
        "_timers",
        "index",
        "name",
        "node",
        "random",
        "up_since",
    )

    def __init__(self, network: Network, index: int, node_id: NodeId, rng: random.Random) -> None:
        self._network = network
        self._kernel = network.kernel
        self.index = index
        self.name = node_id
        self.random = rng
        self.node: Node | None = None
        self.up_since = 0.0
        self._timers: dict[TimerKey, int] = {}
        self._timer_order = 0

    # The world's side of the port.

    @property
    def now(self) -> float:
        return self._kernel.now

    def send(self, peer: NodeId, message: Message) -> None:
        self._network.send(self, peer, message)

    def set_timer(self, key: TimerKey, delay: float) -> None:
        self._timer_order = order = self._timer_order + 1
        self._timers[key] = order
        kernel = self._kernel
        kernel.at(kernel.now + delay, self._fire, key, order)

    def understands(self, _peer: NodeId, _kind: type[InFormat]) -> bool:
        return True

    def cancel_timer(self, key: TimerKey) -> None:
        self._timers.pop(key, None)

    def deliver(self, event: Event) -> None:
        self._network.delivered(self, event)

    @property
    def most_topics(self) -> int:
        return sys.maxsize

    @property
    def vouches_by(self) -> bytes:
        proofs = self._network.proofs
        return proofs.key_of(self.name) if proofs is not None else b""

    def vouch(self, statement: bytes) -> bytes:
        proofs = self._network.proofs
        return proofs.make(self.name, statement, self.now) if proofs is not None else b""

    def vouched(self, by: NodeId, statement: bytes, proof: bytes) -> bool:
        proofs = self._network.proofs
        return proofs is None or proofs.holds(by, statement, proof, self.now)

    # The simulator's side.

    @property
    def pending_timers(self) -> list[TimerKey]:
        return list(self._timers)

    def power_on(self, node: Node) -> None:
        # An observer may stop a node while it is at work: what it set after that is not the next one's.
        self._timers.clear()
        self.node = node
        self.up_since = self.now

    def power_off(self) -> Node | None:
        """The node stops at once; its timers never fire."""
        node, self.node = self.node, None
        self._timers.clear()
        return node

    def arrive(self, sender: NodeId, message: Message) -> None:
        node = self.node
        if node is None:
            return
        if message.carries_event:
            assert isinstance(message, EventMessage)
            self._network.received(self, sender, message)
        node.receive(sender, message)

    def _fire(self, key: TimerKey, order: int) -> None:
        # A cancelled or moved timer, or one of an earlier life, no longer matches its order number.
        if self._timers.get(key) == order:
            del self._timers[key]
            if self.node is not None:
                self.node.timer(key)
