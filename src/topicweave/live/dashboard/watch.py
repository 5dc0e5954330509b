"""Looks at one live node and tells what it sees, in ticks. Bounded, whatever the node does."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from topicweave.live.dashboard.words import COUNTED, Hop, NodeTick, SentEvent
from topicweave.model.event import EventId
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import EventMessage, Link

if TYPE_CHECKING:
    from topicweave.live.node import LiveNode

TICK = 0.2
"""Seconds between two of them."""
SIGN_OF_LIFE = 0.6
"""Seconds after which a node tells that it is there, if nothing is new."""
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
        self._topics: set[TopicId] | None = None
        self._links: frozenset[Link] | None = None
        self._told = 0.0
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

    def tick(self) -> NodeTick | None:
        """What is new since the last one; if nothing is, nothing, but a sign of life now and then."""
        node = self._node
        now = node.clock.now
        changed = [name for name in COUNTED if self._counts.get(name) != getattr(node.counters, name)]
        links = frozenset(node.node.links())
        topics = node.node.subscriptions
        same = links == self._links and topics == self._topics and not changed
        if same and not self._hops and not self._sent and now < self._told + SIGN_OF_LIFE:
            return None
        self._told = now
        tick = NodeTick(key_of(node.id), node.name, now)
        if topics != self._topics:
            self._topics = set(topics)
            tick.topics = node.subscriptions[:MOST_TOPICS_TOLD]
        if links != self._links:
            self._links = links
            tick.links = sorted((key_of(link.peer), link.kind) for link in links)
            told = ((key_of(link.peer), node.name_of_node(link.peer)) for link in links)
            tick.names = {key: name for key, name in told if name != key}
        tick.counts = {name: getattr(node.counters, name) for name in changed}
        self._counts.update(tick.counts)
        before, self._control = self._control, self._tallied()
        tick.control = (self._control[0] - before[0], self._control[1] - before[1])
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
