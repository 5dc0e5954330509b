"""Over which links a topic's events are pushed, and over whom they come.

Every link that serves a topic is eager for it or lazy. Only the lazy ones are remembered, so links may come
and go without being registered. The peer over which the events of the publisher with the lowest id come is
the topic's *way*. See `tree` for the rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

from topicweave.blocks.broadcast_tree.messages import EventRun, Graft, Prune
from topicweave.blocks.broadcast_tree.parameters import BroadcastTreeParameters
from topicweave.blocks.broadcast_tree.state import Way
from topicweave.model.event import Event
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import EventMessage, World


class Ways:
    """`before_eager()` is called before a link that was lazy is pushed to again."""

    def __init__(
        self,
        world: World,
        links: Callable[[TopicId], Collection[NodeId]],
        parameters: BroadcastTreeParameters,
        before_eager: Callable[[], None],
    ) -> None:
        self._world = world
        self._links = links
        self._parameters = parameters
        self._before_eager = before_eager
        self.lazy: dict[TopicId, dict[NodeId, float]] = {}
        """Topic -> lazy peer -> when it was last told so (never: minus infinity)."""
        self.of: dict[TopicId, Way] = {}
        self.parents: dict[TopicId, NodeId | None] = {}
        """Of prepared topics: who passes on events from elsewhere; None: nobody, until there is another one."""

    def targets(self, topic: TopicId) -> Collection[NodeId]:
        """Whom an event of this node is pushed to."""
        links = self._links(topic)
        lazy = self.lazy.get(topic)
        return links if lazy is None else [peer for peer in links if peer not in lazy]

    def own(self, event: Event, now: float) -> None:
        """This node publishes."""
        way = self.of.get(event.topic)
        if way is None or event.publisher <= way.publisher:
            self.of[event.topic] = Way(event.publisher, now, None, 0, now)

    def came(self, sender: NodeId, message: EventMessage, now: float) -> None:
        """Something new came over a link: it is not for announcements only, and its sender may be the way to
        the publisher.
        """
        event, hops = message.event, message.hops
        topic, lazy = event.topic, self.lazy.get(event.topic)
        cut = False
        if lazy is not None and sender in lazy:
            # Events that were under way when the link was cut still come, and nothing will follow them.
            cut = now - lazy[sender] < self._parameters.graft_timeout
            if not cut:
                self.make_eager(topic, sender)
        way = self.of.get(topic)
        if way is None or event.publisher < way.publisher:
            self.of[topic] = Way(event.publisher, now, sender, hops, now)
        elif event.publisher == way.publisher:
            way.heard = now
            if sender == way.peer:
                way.hops, way.pushed = hops, now
            elif not cut:
                if self._keeps(way, topic, hops, now):
                    way.rival = sender
                else:
                    self.of[topic] = Way(event.publisher, now, sender, hops, now)

    def _keeps(self, way: Way, topic: TopicId, hops: int, now: float) -> bool:
        """Whether the way stays though another one, of so many links, was ahead: it is as short, and alive."""
        return (
            self._parameters.prefer_short
            and hops >= way.hops
            and now - way.pushed < self._parameters.graft_timeout
            and not self.is_lost(way, topic)
        )

    def is_lost(self, way: Way, topic: TopicId) -> bool:
        """Whether nobody pushes over it any more."""
        return way.peer is not None and (
            way.peer in self.lazy.get(topic, ()) or way.peer not in self._links(topic)
        )

    def known(self, topic: TopicId) -> bool:
        """Whether the topic has had events, or was prepared for them."""
        return topic in self.of or topic in self.parents

    def nothing_comes(self, topic: TopicId) -> bool:
        """Whether nobody is known to push events of a topic to this node, though somebody did or was to."""
        way = self.of.get(topic)
        if way is not None:
            return self.is_lost(way, topic)
        if topic not in self.parents:
            return False
        parent = self.parents[topic]
        return parent is None or parent in self.lazy.get(topic, ())

    def go_by(self, topic: TopicId, peer: NodeId, now: float) -> None:
        """This one is asked to push: events come over it from now on."""
        way = self.of.get(topic)
        if way is not None:
            way.peer, way.pushed = peer, now
        else:
            self.parents[topic] = peer

    def turn_down(self, sender: NodeId, message: EventMessage) -> None:
        """A second copy came: one of the two links is too much."""
        event, now = message.event, self._world.now
        topic = event.topic
        way = self.of.get(topic)
        if way is None:
            way = self.of[topic] = Way(event.publisher, now, None, 0, now)
        elif event.publisher > way.publisher and now - way.heard < self._parameters.graft_timeout:
            return
        same, way.publisher, way.heard = event.publisher == way.publisher, event.publisher, now
        cut: NodeId | None = sender
        if same and sender == way.peer:
            cut, way.rival = way.rival, None
            way.hops, way.pushed = message.hops, now
        elif same and self.is_lost(way, topic):
            self._go_by(sender, message, now)
            return
        elif same and self._parameters.prefer_short:
            if way.peer is not None and message.hops < way.hops and sender in self._links(topic):
                cut = way.peer
                self._go_by(sender, message, now)
            elif message.hops > way.hops + 2 and sender not in self.lazy.get(topic, ()):
                return  # It gets the event from here sooner than it has it from elsewhere, and cuts the longer way itself.
        if cut is not None:
            self._cut(topic, cut, now)

    def _cut(self, topic: TopicId, peer: NodeId, now: float) -> None:
        """One prune for all second copies that are under way."""
        if peer in self._links(topic):
            if now - self.lazy.get(topic, {}).get(peer, -math.inf) < self._parameters.graft_timeout:
                return
            self.cut(topic, peer, now)
        self._world.send(peer, Prune(topic))

    def cut(self, topic: TopicId, peer: NodeId, now: float) -> None:
        """From now on, announce to this peer. It is told to do likewise."""
        self.lazy.setdefault(topic, {})[peer] = now

    def cut_here(self, topic: TopicId) -> list[NodeId]:
        """The lazy links that this end cut."""
        return [peer for peer, told in self.lazy.get(topic, {}).items() if told > -math.inf]

    def count_lazy(self) -> int:
        """Lazy links, one for each topic."""
        return sum(map(len, self.lazy.values()))

    def _go_by(self, sender: NodeId, message: EventMessage, now: float) -> None:
        """From now on, the way to the publisher is over this peer."""
        event, topic = message.event, message.event.topic
        self.of[topic] = Way(event.publisher, now, sender, message.hops, now)
        if sender in self.lazy.get(topic, ()):
            # It was cut a moment ago, for the sake of another way: it shall go on pushing.
            self.make_eager(topic, sender)
            self._world.send(sender, Graft((EventRun.of(event),)))

    def pruned(self, sender: NodeId, topic: TopicId) -> None:
        """A peer wants announcements only."""
        self.lazy.setdefault(topic, {}).setdefault(sender, -math.inf)

    def make_eager(self, topic: TopicId, peer: NodeId) -> None:
        lazy = self.lazy.get(topic)
        if lazy is not None and peer in lazy:
            self._before_eager()
            del lazy[peer]
            if not lazy:
                del self.lazy[topic]

    def all_eager(self, peer: NodeId, but: Collection[TopicId] = ()) -> None:
        """A peer is lazy for no topic but these."""
        for topic in [topic for topic, lazy in self.lazy.items() if peer in lazy and topic not in but]:
            self.make_eager(topic, peer)

    def forget_topic(self, topic: TopicId) -> None:
        self.lazy.pop(topic, None)
        self.of.pop(topic, None)
        self.parents.pop(topic, None)
