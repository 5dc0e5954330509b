"""What must hold in every run of every system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId
from topicweave.port import EventMessage, Node
from topicweave.sim.host import Host
from topicweave.sim.simulation import Simulation


class DeliveryLog:
    """Watches what applications are handed: at most once per life of a node, and only what is wanted."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._got: dict[EventId, set[int]] = {}
        # A node that lost its memory is another node object: what its predecessor got does not count against it.
        self._handed_over: set[tuple[Node, EventId]] = set()
        self.violations: list[str] = []
        self.deliveries = 0
        simulation.on_delivery(self._delivered)

    def _delivered(self, host: Host, event: Event) -> None:
        self.deliveries += 1
        node = host.node
        assert node is not None
        name = self._simulation.workload.node_names[host.index]
        if event.topic not in node.subscriptions:
            self.violations.append(f"{name} was handed {event.id}, which it does not want")
        if (node, event.id) in self._handed_over:
            self.violations.append(f"{name} was handed {event.id} twice")
        self._handed_over.add((node, event.id))
        self._got.setdefault(event.id, set()).add(host.index)

    @property
    def events(self) -> int:
        return len(self._got)

    def missed(self, expected: Mapping[EventId, set[int]]) -> list[str]:
        """Who did not get an event it should have got."""
        names, topics = self._simulation.workload.node_names, self._simulation.workload.topic_names
        topic_of = dict(zip(self._simulation.workload.topic_ids, topics, strict=True))
        return [
            f"{names[index]} missed the event on {topic_of[event_id.topic]}"
            for event_id, subscribers in expected.items()
            for index in sorted(subscribers - self._got.get(event_id, set()))
        ]


class NoiseLog:
    """Watches what nodes of a noiseless system are sent.

    What was under way when a node gave a topic up is no noise, so receptions of a topic that the node wanted
    at some time are excused, until `nobody_excused` says that all of that has arrived.
    """

    def __init__(self, simulation: Simulation, ever_wanted: set[tuple[int, int]]) -> None:
        self._workload = simulation.workload
        self._topic_of = {topic_id: topic for topic, topic_id in enumerate(simulation.workload.topic_ids)}
        self._excused = ever_wanted
        self.violations: list[str] = []
        simulation.on_reception(self._received)

    def nobody_excused(self) -> None:
        self._excused = set()

    def _received(self, host: Host, sender: NodeId, message: EventMessage) -> None:
        topic_id = message.event.topic
        topic = self._topic_of[topic_id]
        wanted = host.node is not None and topic_id in host.node.subscriptions
        if not wanted and (host.index, topic) not in self._excused:
            names, topics = self._workload.node_names, self._workload.topic_names
            self.violations.append(f"{names[host.index]} was sent an event on {topics[topic]}: noise")


def nodes_up(simulation: Simulation) -> dict[NodeId, Node]:
    return {simulation.hosts[index].name: simulation.node(index) for index in simulation.up()}


def check_at_rest(simulation: Simulation) -> Iterator[str]:
    """Invariants of the nodes themselves, once everything is quiet: bounded degree, no link to the departed,
    and the system's own.
    """
    if simulation.system.at_rest is not None:
        yield from simulation.system.at_rest(nodes_up(simulation))
    alive = {simulation.hosts[index].name for index in simulation.up()}
    everyone = {host.name for host in simulation.hosts}
    limit_of = simulation.system.degree_limit
    for index in simulation.up():
        node, name = simulation.node(index), simulation.workload.node_names[index]
        degree = len({link.peer for link in node.links()})
        if limit_of is not None and degree > limit_of(node):
            yield f"{name} has {degree} links, more than its limit of {limit_of(node)}"
        for link in node.links():
            if link.peer not in alive:
                yield f"{name} keeps a {link.kind} link to a node that is gone"
        for key in simulation.hosts[index].pending_timers:
            if any(part in everyone and part not in alive for part in key if isinstance(part, int)):
                yield f"{name} still has a timer {key[0]!r} for a departed peer"


def kept_for_the_departed(simulation: Simulation) -> Iterator[str]:
    """Nodes that still hold something of peers that are gone."""
    alive = {simulation.hosts[index].name for index in simulation.up()}
    for index in simulation.up():
        if ghosts := set(simulation.node(index).known_peers()) - alive:
            yield f"{simulation.workload.node_names[index]} still keeps state for {len(ghosts)} departed peers"
