"""A virtual network for tests of nodes and blocks. The test moves time by hand, and can see, lose or make up
every message.

It is smaller than the simulator: one latency, no workload, no telemetry. Blocks are put into a world with
`use`, whole nodes with `host`.

    net = VirtualNetwork()
    world = net.world(1)
    node = MyNode(world, 1, topics, view, parameters)
    world.host(node)
    node.start([])
    while happening := net.step():
        print(happening)

The same seed gives the same run.
"""

from __future__ import annotations

import heapq
import random
import sys
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, NamedTuple, TypeVar

from topicweave.model.event import Event
from topicweave.model.ids import NodeId
from topicweave.port import Block, EventMessage, InFormat, Message, Node, TimerKey
from topicweave.sim.proofs import SimulatedProofs

M = TypeVar("M", bound=Message)


class Sent(NamedTuple):
    """A message on its way, or one that arrived."""

    time: float
    sender: NodeId
    receiver: NodeId
    message: Message


class Rang(NamedTuple):
    """A timer that ended."""

    time: float
    node: NodeId
    key: TimerKey


Happening = Sent | Rang


class VirtualNetwork:
    """A virtual network: nodes, and the messages under way between them.

    `cut(sender, receiver)` and `lose(sent)` say which messages never arrive. `loss` is the share that is lost
    at random. With `record`, `log` keeps every message that was sent.
    """

    def __init__(self, seed: int = 0, latency: float = 0.01, loss: float = 0.0, record: bool = False) -> None:
        self.now = 0.0
        self.seed = seed
        self.latency = latency
        self.loss = loss
        self.worlds: dict[NodeId, VirtualWorld] = {}
        self.cut: Callable[[NodeId, NodeId], bool] = lambda sender, receiver: False
        self.lose: Callable[[Sent], bool] = lambda sent: False
        self.earlier: set[NodeId] = set()
        """Nodes that speak an earlier wire format: the network tells the others that these nodes know no
        newer message.
        """
        self.proofs: SimulatedProofs | None = None
        """The proofs with which nodes sign what they say; None for none."""
        self.record = record
        self.log: list[Sent] = []
        self.messages = 0
        """How many messages were sent, with those that were lost."""
        self._random = random.Random(f"{seed}/net")
        self._heap: list[tuple[float, int, Callable[[], Happening | None]]] = []
        self._order = count()

    # Nodes.

    def world(self, node: NodeId) -> VirtualWorld:
        """The world of a new node. A second world for the same node is a restart without memory."""
        made = self.worlds[node] = VirtualWorld(self, node)
        return made

    def kill(self, nodes: Iterable[NodeId]) -> None:
        """Stop nodes without a word. Messages under way to them are lost, and their timers never end."""
        for node in nodes:
            del self.worlds[node]

    # Time.

    def step(self) -> Happening | None:
        """Let the next thing happen, whenever that is: a message arrives or a timer ends. Returns None if
        nothing is left to happen.
        """
        while self._heap:
            if (happened := self._next()) is not None:
                return happened
        return None

    def run(self, until: float) -> None:
        """Let everything happen up to this moment."""
        while self._heap and self._heap[0][0] <= until:
            self._next()
        self.now = until

    def run_for(self, seconds: float) -> None:
        self.run(self.now + seconds)

    def at(self, time: float, action: Callable[[], object]) -> None:
        """Do something at a moment."""

        def act() -> None:
            action()

        self._plan(time, act)

    def _next(self) -> Happening | None:
        self.now, _, action = heapq.heappop(self._heap)
        return action()

    def _plan(self, time: float, action: Callable[[], Happening | None]) -> None:
        heapq.heappush(self._heap, (time, next(self._order), action))

    # Messages.

    def send(self, sender: NodeId, receiver: NodeId, message: Message) -> None:
        self.messages += 1
        sent = Sent(self.now, sender, receiver, message)
        if self.record:
            self.log.append(sent)
        if self.cut(sender, receiver) or self.lose(sent):
            return
        if self.loss == 0.0 or self._random.random() >= self.loss:
            self._plan(self.now + self.latency, lambda: self.tell(sender, receiver, message))

    def listen(self) -> None:
        """Empty `log`, and keep in it every message that is sent from now on."""
        self.record = True
        self.log = []

    def tell(self, sender: NodeId, receiver: NodeId, message: Message) -> Sent | None:
        """Let a message arrive now, in the name of any sender. Returns None if there is no such receiver."""
        world = self.worlds.get(receiver)
        if world is None:
            return None
        world.receive(sender, message)
        return Sent(self.now, sender, receiver, message)

    def sent(
        self,
        kind: type[M],
        sender: NodeId | None = None,
        receiver: NodeId | None = None,
        since: float = 0.0,
    ) -> list[M]:
        """The messages of a kind in the log; with `sender` and `receiver`, only theirs."""
        return [
            entry.message
            for entry in self.log
            if isinstance(entry.message, kind)
            and sender in (None, entry.sender)
            and receiver in (None, entry.receiver)
            and entry.time >= since
        ]


class VirtualWorld:
    """What one node sees of the network. It implements `port.World`."""

    def __init__(self, net: VirtualNetwork, node_id: NodeId) -> None:
        self.net = net
        self.id = node_id
        self.random = random.Random(f"{net.seed}/{node_id}")
        self.receivers: dict[type[Message], Callable[[NodeId, Any], None]] = {}
        self.timers: dict[str, Callable[[TimerKey], None]] = {}
        self.pending: dict[TimerKey, int] = {}
        """The timers that are set."""
        self.delivered: list[Event] = []
        """The events that the application got."""
        self.unwanted: list[Sent] = []
        """The events that a hosted node got and did not want."""
        self._node: Node | None = None
        self._timer = count()

    def use(self, block: Block) -> None:
        """Let a block handle its messages and timers."""
        self.receivers.update(block.receivers())
        self.timers.update(block.timers())

    def host(self, node: Node) -> None:
        """Let a whole node handle everything."""
        self._node = node

    # The world's side of the port.

    @property
    def now(self) -> float:
        return self.net.now

    def send(self, peer: NodeId, message: Message) -> None:
        self.net.send(self.id, peer, message)

    def set_timer(self, key: TimerKey, delay: float) -> None:
        timer = self.pending[key] = next(self._timer)
        self.net._plan(self.now + delay, lambda: self._end(key, timer))

    def understands(self, peer: NodeId, kind: type[InFormat]) -> bool:
        return not kind.wire or peer not in self.net.earlier

    def cancel_timer(self, key: TimerKey) -> None:
        self.pending.pop(key, None)

    def deliver(self, event: Event) -> None:
        self.delivered.append(event)

    @property
    def most_topics(self) -> int:
        return sys.maxsize

    @property
    def vouches_by(self) -> bytes:
        return self.net.proofs.key_of(self.id) if self.net.proofs is not None else b""

    def vouch(self, statement: bytes) -> bytes:
        return self.net.proofs.make(self.id, statement, self.now) if self.net.proofs is not None else b""

    def vouched(self, by: NodeId, statement: bytes, proof: bytes) -> bool:
        return self.net.proofs is None or self.net.proofs.holds(by, statement, proof, self.now)

    # The network's side.

    def receive(self, sender: NodeId, message: Message) -> None:
        if self._node is None:
            self.receivers[type(message)](sender, message)
            return
        if isinstance(message, EventMessage) and message.event.topic not in self._node.subscriptions:
            self.unwanted.append(Sent(self.now, sender, self.id, message))
        self._node.receive(sender, message)

    def _end(self, key: TimerKey, timer: int) -> Rang | None:
        # A cancelled or moved timer, or one of an earlier life, does not match.
        if self.net.worlds.get(self.id) is not self or self.pending.get(key) != timer:
            return None
        del self.pending[key]
        if self._node is None:
            self.timers[key[0]](key)
        else:
            self._node.timer(key)
        return Rang(self.now, self.id, key)
