"""Near its publisher an event goes over lazy links, too: what copies cost is spent where it shortens most ways."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection

from topicweave.blocks.broadcast_tree.ways import Ways
from topicweave.model.event import EventId
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import EventMessage, World

SPILL_EVERY = 1.0
"""A node spills one event of a topic in so many seconds: of a burst copies would cost too much."""
OTHERS_PER_SPILL = 20
"""A node spills an event to one neighbour for each so many others that want the topic. Of a prepared tree a spill makes
two copies too many: one at the neighbour, one where it meets what comes over the tree. So there is at most one copy
too many for ten deliveries.
"""
MOST_SPILT = 1024


def spilt_to(peers: Collection[NodeId], audience: int | None) -> list[NodeId]:
    """Which of those beside the tree get an event, of a topic that so many others want: the lowest, since they pass it
    on to more others. Nothing bounds copies where the audience is not known (None).

    >>> spilt_to([7, 3, 5], audience=40), spilt_to([7, 3, 5], audience=19), spilt_to([7, 3, 5], audience=None)
    ([3, 5], [], [3, 5, 7])
    """
    ordered = sorted(peers)
    return ordered if audience is None else ordered[: audience // OTHERS_PER_SPILL]


class Spills:
    """What is spilt, and what came so."""

    def __init__(
        self,
        world: World,
        links: Callable[[TopicId], Collection[NodeId]],
        ways: Ways,
    ) -> None:
        self._world = world
        self._links = links
        self._ways = ways
        self.hops = 0
        """For so many links from its publisher on, an event goes over lazy links, too."""
        self.audience: Callable[[TopicId], int | None] = lambda _topic: None
        """How many others want a topic; None if that is not known."""
        self._last: dict[TopicId, float] = {}
        """When an event of the topic was last spilt."""
        self._came: OrderedDict[EventId, None] = OrderedDict()
        """Events that have come as spills only."""

    def peers(self, push: EventMessage, source: NodeId | None) -> tuple[list[NodeId], bool]:
        """To whom an event is sent beside those whom it is pushed to; and whether these are all other neighbours, so
        that nobody has to be told of it.
        """
        topic, now = push.event.topic, self._world.now
        lazy = self._ways.lazy.get(topic) if push.hops <= self.hops else None
        if lazy is None or now - self._last.get(topic, -SPILL_EVERY) < SPILL_EVERY:
            return [], False
        self._last[topic] = now
        beside = [peer for peer in self._links(topic) if peer in lazy and peer != source]
        peers = spilt_to(beside, self.audience(topic))
        return peers, 0 < len(peers) == len(beside)

    def came(self, event: EventId) -> None:
        """An event came as a spill, and for the first time."""
        self._came[event] = None
        if len(self._came) > MOST_SPILT:
            self._came.popitem(last=False)

    def comes_over_tree(self, event: EventId) -> bool:
        """Whether this event, which comes over the tree, has come as a spill only."""
        return self._came.pop(event, self) is None

    def any_of(self, events: Collection[EventId]) -> bool:
        """Whether any of these events came as a spill only."""
        return bool(self._came) and not self._came.keys().isdisjoint(events)

    def forget_topic(self, topic: TopicId) -> None:
        self._last.pop(topic, None)
