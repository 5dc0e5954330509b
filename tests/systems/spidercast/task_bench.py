"""A bench for one maintenance task: the node around it, and what it sends."""

from __future__ import annotations

from collections.abc import Mapping

from tests.systems.spidercast.lab import Lab
from topicweave.blocks.views import FullView
from topicweave.model.ids import NodeId
from topicweave.port import Message
from topicweave.systems.spidercast import rules
from topicweave.systems.spidercast.messages import Connect, ConnectOk, Disconnect, TaskState
from topicweave.systems.spidercast.parameters import LinkParameters
from topicweave.systems.spidercast.selection import CoverageSelection
from topicweave.systems.spidercast.task import MaintenanceTask

ME = 0
P = LinkParameters()


class Bench:
    """Node 0's greedy task, a view, and a basket for what it sends."""

    def __init__(
        self,
        interest: set[int],
        peers: Mapping[NodeId, set[int]] | None = None,
        k: int = 3,
        parameters: LinkParameters = P,
    ) -> None:
        self.lab = Lab()
        self.world = self.lab.world(ME)
        self.view = FullView(self.world, ME, frozenset(interest), self.lab.directory)
        self.interest = frozenset(interest)
        self.version = 7
        self.changed: list[NodeId] = []
        self.unanswered: list[NodeId] = []
        self.peers = {peer: frozenset(topics) for peer, topics in (peers or {}).items()}
        for peer, topics in self.peers.items():
            self.lab.directory.put(peer, topics)
        self.selection = CoverageSelection(k, self.view, rules.most_overlapping)
        self.selection.reset(self.interest)
        self.task = MaintenanceTask(
            self.world,
            ME,
            "greedy",
            self.selection,
            parameters,
            lambda: (self.version, self.interest),
            self.changed.append,
            self.unanswered.append,
        )
        self.task.start()

    def outbox(self) -> list[tuple[NodeId, Message]]:
        """What was sent since the last look."""
        sent = [(entry.receiver, entry.message) for entry in self.lab.log]
        self.lab.log.clear()
        return sent

    def step(self, after: float = 0.0) -> list[tuple[NodeId, Message]]:
        """Let time pass, then one round of the loop."""
        self.lab.now += after
        self.task.step()
        return self.outbox()

    def asked(self, after: float = 0.0) -> list[NodeId]:
        """Whom a step asks to connect."""
        return [peer for peer, message in self.step(after) if isinstance(message, Connect)]

    def offered(self, after: float = 0.0) -> list[NodeId]:
        """Which links a step offers to end."""
        return [peer for peer, message in self.step(after) if isinstance(message, Disconnect)]

    def connect(self, peer: NodeId, topics: set[int], degree: int = 0, target: int = 99) -> list[Message]:
        """A peer asks; the answers to it."""
        self.task.receive_connect(peer, Connect("greedy", degree, target, 0, frozenset(topics)))
        return self.answers(peer)

    def ok(self, peer: NodeId, topics: set[int]) -> list[Message]:
        self.task.receive_connect_ok(peer, ConnectOk("greedy", 0, 99, 0, frozenset(topics)))
        return self.answers(peer)

    def disconnect(self, peer: NodeId) -> list[Message]:
        self.task.receive_disconnect(peer)
        return self.answers(peer)

    def beat(self, peer: NodeId, spare: bool, degree: int = 5, target: int = 5) -> list[Message]:
        """A heartbeat's state arrives."""
        self.task.receive_state(peer, TaskState("greedy", degree, target, spare))
        return self.answers(peer)

    def answers(self, peer: NodeId) -> list[Message]:
        return [message for receiver, message in self.outbox() if receiver == peer]

    @property
    def neighbours(self) -> set[NodeId]:
        return set(self.task.neighbours)
