"""A run: one system on one workload, in virtual time, from one seed.

Everything random comes from generators seeded with (seed, what for), so that a change in one part does not
shift the numbers another part draws: each node, the network's faults and the run itself have streams of their
own.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterable, Sequence

from topicweave.blocks.membership import FULL, Membership
from topicweave.blocks.views import Directory, InterestView
from topicweave.errors import BadInput
from topicweave.model.event import Event
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.model.workload import Workload
from topicweave.port import EventMessage, Node, Published
from topicweave.sim.churn import CONTACTS, Change, Churn, always_up
from topicweave.sim.faults import Crash, Fault, Loss, Partition, SlowNode
from topicweave.sim.host import Host
from topicweave.sim.kernel import Kernel
from topicweave.sim.latency import Constant, Latency
from topicweave.sim.network import Network
from topicweave.sim.proofs import SimulatedProofs
from topicweave.systems.system import System
from topicweave.telemetry.writer import Telemetry

InterestOfLife = Callable[[int, int], Interest]
"""What node `index` wants in its life number `life` (0 for the first)."""


class Simulation:
    """A simulation: it runs the nodes of a system on a workload.

    Churn and faults happen as planned. `publish` publishes events, at once or at a given time.
    `snapshot` writes the links and the control traffic to the telemetry.
    """

    def __init__(
        self,
        workload: Workload,
        system: System,
        parameters: object = None,
        *,
        seed: int = 0,
        membership: Membership = FULL,
        latency: Latency | None = None,
        churn: Churn | None = None,
        faults: Iterable[Fault] = (),
        telemetry: Telemetry | None = None,
        interest_of_life: InterestOfLife | None = None,
    ) -> None:
        self.workload = workload
        self.system = system
        self.parameters = system.settings() if parameters is None else parameters
        self.seed = seed
        latency = latency or Constant()
        self.kernel = Kernel()
        self.telemetry = telemetry
        self.directory = Directory(seed)
        self._membership = membership
        self._random = random.Random(f"run/{seed}")
        self._network = Network(self.kernel, latency, random.Random(f"faults/{seed}"), telemetry)
        self._interest_of_life = interest_of_life or self._workload_interest
        self.seeds: Sequence[int] = ()
        """The contacts that newcomers get. If empty, a newcomer gets a few random nodes."""
        self._views: dict[int, InterestView] = {}
        self._lives = [0] * workload.nodes
        # Who is to come back from which crash.
        self._crashed: dict[int, Crash] = {}
        self._changes = 0
        topic_ids = workload.topic_ids
        self._topic_ids = topic_ids
        self.hosts = [
            Host(self._network, index, node_id, random.Random(f"node/{seed}/{node_id}"))
            for index, node_id in enumerate(workload.node_ids)
        ]
        self._network.hosts.update((host.name, host) for host in self.hosts)
        self._up: dict[int, None] = {}
        churn = self.churn = churn or always_up(workload.nodes)
        self._refuse_unknown("churn", {*churn.up_at_start, *(change.node for change in churn.changes)})
        self._first = sorted(churn.up_at_start)
        for index in self._first:
            self.kernel.at(self._random.random() * churn.start_window, self._join, index)
        self._still = False
        self._schedule(churn.changes)
        for fault in faults:
            self._plan(fault)

    # What an experiment does.

    def run(self, until: float) -> None:
        """Let virtual time pass up to `until`."""
        if self.telemetry is not None and self.telemetry.keeps_rates:
            for second in range(math.floor(self.now) + 1, math.ceil(until)):
                self.kernel.run(float(second))
                self.flush_control()
        self.kernel.run(until)

    @property
    def now(self) -> float:
        return self.kernel.now

    @property
    def churn_operations(self) -> int:
        """Joins and leaves after the start."""
        return self._changes

    def up(self) -> list[int]:
        """Indexes of the nodes that are up, in the order in which they came up."""
        return list(self._up)

    def node(self, index: int) -> Node:
        node = self.hosts[index].node
        if node is None:
            raise BadInput(f"node {self.workload.node_names[index]!r} is down at {self.now:g} s")
        return node

    def at(self, time: float, action: Callable[[int, int], object], index: int, topic: int) -> None:
        """At a given moment call `publish`, `subscribe` or `unsubscribe`, if the node is up then."""

        def act(index: int, topic: int) -> None:
            if self.hosts[index].node is not None:
                action(index, topic)

        self.kernel.at(time, act, index, topic)

    def subscribe(self, index: int, topic: int) -> None:
        """Let a node want a topic (both by their index in the workload) from now on."""
        self.node(index).subscribe(self._topic_ids[topic])
        self._note_interest(index, [self._topic_ids[topic]], True)

    def unsubscribe(self, index: int, topic: int) -> None:
        self.node(index).unsubscribe(self._topic_ids[topic])
        self._note_interest(index, [self._topic_ids[topic]], False)

    def _note_interest(self, index: int, topics: Iterable[TopicId], wanted: bool) -> None:
        if self.telemetry is not None and self.telemetry.keeps_interests:
            self.telemetry.wants(self.now, self.hosts[index].name, topics, wanted)

    def publish(self, index: int, topic: int, payload: bytes = b"") -> Published:
        """Let a node publish on a topic, now."""
        host = self.hosts[index]
        receipt = self.node(index).publish(self._topic_ids[topic], payload)
        self._network.published(host, receipt.event)
        return receipt

    def on_delivery(self, observer: Callable[[Host, Event], None]) -> None:
        """Call a function with every event that an application gets."""
        self._network.observers.append(observer)

    def on_reception(self, observer: Callable[[Host, NodeId, EventMessage], None]) -> None:
        """Call a function with every message that carries an event and arrives, wanted or not, first or again."""
        self._network.reception_observers.append(observer)

    def plan(self, changes: Sequence[Change]) -> None:
        """Plan further joins and leaves, besides those of the churn."""
        self._refuse_unknown("churn", {change.node for change in changes})
        self.churn = Churn(self.churn.up_at_start, (*self.churn.changes, *changes))
        self._schedule(changes)

    def end_churn(self) -> None:
        """End the churn: from now on no planned join or leave happens."""
        self._still = True

    def use_proofs(self, proofs: SimulatedProofs) -> None:
        """Let nodes sign what they say, as nodes with keys do. Call it before the first node starts."""
        self._network.proofs = proofs

    def snapshot(self) -> None:
        """Write the links of all nodes that are up, and the control traffic since the last snapshot."""
        if self.telemetry is not None:
            for index in sorted(self._up):
                host = self.hosts[index]
                if host.node is not None:
                    self.telemetry.links(self.now, host.name, host.node.links())
        self.flush_control()

    def flush_control(self) -> None:
        """Write the control traffic since the last call."""
        self._network.flush_control()

    def gauges(self) -> dict[str, float]:
        """The systems' own figures, as means over the nodes that are up; and the peers with whom membership
        itself keeps in touch.
        """
        sums: dict[str, float] = {}
        if self._membership.directory and self._up and self.system.needs != "nothing":
            contacts = [len(self._views[index].contacts()) for index in self._up]
            sums["membership_contacts"] = float(sum(contacts))
        for index in self._up:
            for name, value in self.node(index).gauges().items():
                sums[name] = sums.get(name, 0.0) + value
        return {name: total / len(self._up) for name, total in sums.items()}

    @property
    def membership_kinds(self) -> frozenset[str]:
        """The kinds of messages by which nodes learn of each other, if they leave that to the membership service."""
        if self.system.needs == "nothing":
            return frozenset()
        types = {kind for view in self._views.values() for kind in view.receivers()}
        return frozenset(str(kind.__struct_config__.tag) for kind in types)

    # Comings and goings.

    def _workload_interest(self, index: int, _life: int) -> Interest:
        return frozenset(self._topic_ids[topic] for topic in self.workload.interests(index).tolist())

    def _contacts(self, newcomer: int) -> list[NodeId]:
        if self.seeds:
            return [self.hosts[index].name for index in self.seeds if index != newcomer]
        # Those who are there from the start find each other although they start one after another.
        up = self._first if self.now <= self.churn.start_window else self.up()
        # One more than needed: the newcomer may be among them, and is of no use to itself.
        chosen = self._random.sample(up, min(CONTACTS + 1, len(up)))
        return [self.hosts[index].name for index in chosen if index != newcomer][:CONTACTS]

    def _make_node(self, host: Host) -> Node:
        interest = self._interest_of_life(host.index, self._lives[host.index])
        self._lives[host.index] += 1
        view = self._membership.view(host, host.name, interest, self.directory, self.system.needs)
        self._views[host.index] = view
        return self.system.build(host, host.name, interest, view, self.parameters)

    def _join(self, index: int, node: Node | None) -> None:
        """Start a node: a new one, or one that kept its memory."""
        host = self.hosts[index]
        if host.node is not None:
            return
        contacts = self._contacts(index)
        node = node or self._make_node(host)
        host.power_on(node)
        self._up[index] = None
        self._note_interest(index, sorted(node.subscriptions), True)
        node.start(contacts)

    def _schedule(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self.kernel.at(change.time, self._change, change)

    def _change(self, change: Change, _unused: None) -> None:
        if self._still:
            return
        self._crashed.pop(change.node, None)
        if change.up == (self.hosts[change.node].node is not None):
            return
        self._changes += 1
        if change.up:
            self._join(change.node, None)
        else:
            self.stop(change.node, orderly=True)

    def stop(self, index: int, orderly: bool) -> Node | None:
        """Stop a node; an orderly one says goodbye first. Returns its memory."""
        host = self.hosts[index]
        if host.node is None:
            return None
        if orderly:
            host.node.leave()
        self._up.pop(index, None)
        self.directory.discard(host.name)
        if self.telemetry is not None and self.telemetry.keeps_interests:
            self.telemetry.wants_nothing(self.now, host.name)
        return host.power_off()

    # Faults.

    def _plan(self, fault: Fault) -> None:
        if isinstance(fault, Crash | SlowNode):
            self._refuse_unknown(f"fault {fault}", {fault.node})
        elif isinstance(fault, Partition):
            self._refuse_unknown("fault Partition", fault.island)
        elif isinstance(fault, Loss):
            self._refuse_unknown("fault Loss", fault.nodes)
        if isinstance(fault, Crash):
            self.kernel.at(fault.start, self._crash, fault)
        else:
            links = self._network.faults
            self.kernel.at(fault.start, lambda fault, _: links.begin(fault), fault)
            self.kernel.at(fault.end, lambda fault, _: links.end(fault), fault)

    def _crash(self, fault: Crash, _unused: None) -> None:
        memory = self.stop(fault.node, orderly=False)
        if memory is not None:
            self._crashed[fault.node] = fault
            self.kernel.at(fault.end, self._come_back, fault, memory if fault.keeps_memory else None)

    def _come_back(self, fault: Crash, memory: Node | None) -> None:
        if self._crashed.get(fault.node) is fault:
            del self._crashed[fault.node]
            self._join(fault.node, memory)

    def _refuse_unknown(self, what: str, nodes: Collection[int]) -> None:
        """Refuse a plan that was made for another workload."""
        unknown = [node for node in nodes if not 0 <= node < self.workload.nodes]
        if unknown:
            raise BadInput(
                f"{what}: there is no node number {min(unknown)}; the workload has 0 to {self.workload.nodes - 1}"
            )
