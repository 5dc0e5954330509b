"""Looks at one live node and tells what it sees, in ticks. Bounded, whatever the node does."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from topicweave.live.dashboard.words import Hop, NodeTick, SentEvent
from topicweave.model.event import EventId
from topicweave.model.ids import NodeId
from topicweave.port import EventMessage

if TYPE_CHECKING:
    from topicweave.live.node import LiveNode

TICK = 0.2
"""Seconds between two of them."""
MOST_HOPS_TOLD = 200
"""In one tick."""
MOST_TOPICS_TOLD = 200
REMEMBERED = 8192
"""Events by which a first copy is told from a second one."""


def key_of(number: int) -> str:
    return f"{number:016x}"


def event_name(event: EventId) -> str:
    return f"{event.publisher:x}.{event.topic:x}.{event.epoch:x}.{event.sequence:x}"


class Watch:
    """From its making until `stop`."""

    def __init__(self, node: LiveNode) -> None:
        self._node = node
        self._seen: OrderedDict[EventId, None] = OrderedDict()
        self._hops: list[Hop] = []
        self._sent: list[SentEvent] = []
        self._left_out = 0
        self._topics: list[str] | None = None
        self._links: list[tuple[str, str]] | None = None
        self._counts: dict[str, int] = {}
        if node.world.control is None:
            node.world.control = {}
        self._control = self._tallied()
        node.world.observers.append(self._received)

    def stop(self) -> None:
        self._node.world.observers.remove(self._received)

    def published(self, event: EventId, time: float) -> None:
        """Whoever lets the node publish tells."""
        self._sent.append(SentEvent(event_name(event), key_of(event.topic), time))

    def tick(self) -> NodeTick:
        """What is new since the last one."""
        node = self._node
        tick = NodeTick(key_of(node.id), node.name, node.clock.now)
        topics = node.subscriptions[:MOST_TOPICS_TOLD]
        if topics != self._topics:
            tick.topics = self._topics = topics
        links = sorted({(key_of(link.peer), link.kind) for link in node.node.links()})
        if links != self._links:
            tick.links = self._links = links
            peers = {link.peer for link in node.node.links()}
            told = ((key_of(peer), node.name_of_node(peer)) for peer in peers)
            tick.names = {key: name for key, name in told if name != key}
        counts = node.counters.as_dict()
        tick.counts = {name: count for name, count in counts.items() if self._counts.get(name) != count}
        self._counts = counts
        control, tick.control = self._control, self._tallied()
        self._control = tick.control
        tick.control = (tick.control[0] - control[0], tick.control[1] - control[1])
        tick.hops, self._hops = self._hops, []
        tick.sent, self._sent = self._sent, []
        tick.left_out, self._left_out = self._left_out, 0
        return tick

    def _tallied(self) -> tuple[int, int]:
        tallies = (self._node.world.control or {}).values()
        return sum(tally[0] for tally in tallies), sum(tally[1] for tally in tallies)

    def _received(self, sender: NodeId, message: EventMessage, wanted: bool) -> None:
        event = message.event.id
        first = event not in self._seen
        if first:
            self._seen[event] = None
            if len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
        if len(self._hops) >= MOST_HOPS_TOLD:
            self._left_out += 1
            return
        node = self._node
        self._hops.append(
            Hop(
                event_name(event),
                key_of(event.topic),
                key_of(sender),
                key_of(node.id),
                message.hops,
                wanted,
                first,
                node.clock.now,
            )
        )
