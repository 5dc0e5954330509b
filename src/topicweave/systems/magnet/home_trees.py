"""A node of a system with one tree per topic from the topic's home: what Magnet and the strawman have in common.

Everything periodic happens at one beat, in which each block has its turn: rings, fingers, trees, events. A system says
which rings there are, which of them the trees run over, and where on it a node goes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from topicweave.blocks.home_publishing import HomePublishing
from topicweave.blocks.interest_node import InterestNode
from topicweave.blocks.ring.ring import Ring
from topicweave.blocks.topic_trees import messages as tree_messages
from topicweave.blocks.topic_trees.trees import TopicTrees
from topicweave.model.event import Event
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import Link, Message, Node, Receivers, TimerKey, Timers, World
from topicweave.systems.magnet.parameters import HomeTreeParameters

TIMER = "beat"


class Gone(Message, frozen=True, array_like=True, tag="magnet-gone"):
    """I leave."""


CONTROL_KINDS = (
    "magnet-gone",
    "ring-hold",
    "ring-release",
    "ring-decline",
    "ring-introduce",
    "ring-ask-place",
    "ring-given-place",
    *tree_messages.CONTROL_KINDS,
)
"""Messages that make and break links and tree edges."""


class ByRing:
    """Blocks of the same kind on several rings: messages go to the one whose ring they name."""

    def __init__(self, blocks: Sequence[Any]) -> None:
        self._blocks = blocks

    def receivers(self) -> Receivers:
        kinds = {kind: None for block in self._blocks if block is not None for kind in block.receivers()}
        return {kind: self._dispatch(kind) for kind in kinds}

    def timers(self) -> Timers:
        return {}

    def _dispatch(self, kind: type[Message]) -> Callable[[NodeId, Any], None]:
        handlers = [None if block is None else block.receivers().get(kind) for block in self._blocks]
        known = {number: handler for number, handler in enumerate(handlers) if handler is not None}

        def receive(sender: NodeId, message: Any) -> None:
            handler = known.get(message.ring)
            if handler is not None:
                handler(sender, message)

        return receive


class HomeTreeNode(InterestNode):
    """Rings, trees and events; see the module."""

    control: Ring
    """On which topics have their homes."""
    overlay: Ring
    """Over which the trees run."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        parameters: HomeTreeParameters,
        rings: int,
        most_bytes: int,
    ) -> None:
        super().__init__(world, node_id, subscriptions)
        self.parameters = parameters
        self._spoken: dict[NodeId, float] = {}  # when it said something to whom
        told = (parameters.ring, self.peer_lost, self._table_changed, most_bytes, self._spoken)
        self.rings = [Ring(world, node_id, number, *told) for number in range(rings)]
        self.control, self.overlay = self.rings[0], self.rings[-1]
        self.trees = TopicTrees(
            world,
            self.control,
            self.overlay,
            self.subscriptions,
            self._guides,
            parameters.ring.period,
            parameters.trees,
        )
        self.events = HomePublishing(
            world, self.control, self.trees.is_home, self.trees.targets, self._hand_over
        )
        self.use(ByRing(self.rings))
        for block in (self.trees, self.events):
            self._receivers.update(block.receivers())
        self.use(self)

    def receivers(self) -> Receivers:
        return {Gone: self._receive_gone}

    def timers(self) -> Timers:
        return {TIMER: self._beat}

    # What a system fills in.

    def _guides(self, topics: Collection[TopicId]) -> Mapping[NodeId, list[TopicId]]:
        """Who may be in which trees already; without views, nobody is known to be."""
        return {}

    def _blocks(self) -> Iterable[Any]:
        """Further blocks with `lost` and `known_peers`."""
        return ()

    @abstractmethod
    def _begin(self, contacts: Sequence[NodeId]) -> None:
        """Take the places on the rings."""

    def _beat_more(self) -> None:
        """After the rings, before the trees."""

    # What the node is told.

    def receive(self, sender: NodeId, message: Message) -> None:
        for ring in self.rings:
            ring.met(sender)
        super().receive(sender, message)

    def start(self, contacts: Sequence[NodeId]) -> None:
        super().start(contacts)
        for ring in self.rings:
            ring.restart()
        self.trees.restart()
        self._begin(contacts)
        self.world.set_timer((TIMER,), self.world.random.uniform(0.2, 1.0) * self.parameters.ring.period)

    def _interest_changed(self, before: Interest) -> None:
        if self._interest - before:
            self.trees.join()
        for topic in sorted(before - self._interest):
            self.trees.unwanted(topic)

    def _spread(self, event: Event) -> int:
        return self.events.publish(event)

    def _reached_nobody(self, topic: TopicId) -> str:
        if len(self.control.table) < 2:
            return "this node has no neighbours yet"
        return "the topic's home is this node, and nobody else has asked for it yet"

    def peer_lost(self, peer: NodeId) -> None:
        self._remove(peer, departed=False)

    def leave(self) -> None:
        self.trees.leave()
        for peer in dict.fromkeys(peer for ring in self.rings for peer in ring.known_peers()):
            self.world.send(peer, Gone())

    def links(self) -> Iterator[Link]:
        yield from self.overlay.links()
        if self.control is not self.overlay:
            for link in self.control.links():
                yield Link(link.peer, f"control-{link.kind}")

    def known_peers(self) -> set[NodeId]:
        blocks = (*self.rings, self.trees, self.events, *self._blocks())
        return set().union(*(block.known_peers() for block in blocks))

    def gauges(self) -> Mapping[str, float]:
        return {
            "overlay_degree": float(len({link.peer for link in self.overlay.links()})),
            "overlay_fans": float(len(self.overlay.long.fans)),
            "relayed_topics": float(self.trees.topics),
            "unattached_topics": float(self.trees.unattached),
        }

    # The node's own.

    def _beat(self, _key: TimerKey) -> None:
        self.world.set_timer((TIMER,), self.parameters.ring.period)
        for ring in self.rings:
            ring.beat()
        self._beat_more()
        self.trees.beat()
        self.events.beat()
        for ring in self.rings:
            ring.give_signs()
        unlinked = self._spoken.keys() - set().union(*(ring.watched for ring in self.rings))
        for peer in unlinked:
            del self._spoken[peer]

    def _table_changed(self) -> None:
        self.trees.table_changed()

    def _remove(self, peer: NodeId, departed: bool) -> None:
        for ring in self.rings:
            ring.remove(peer, departed)
        for block in (self.trees, self.events, *self._blocks()):
            block.lost(peer)

    def _receive_gone(self, sender: NodeId, _message: Gone) -> None:
        self._remove(sender, departed=True)


def degree_limit(node: Node) -> int:
    """Ring neighbours, fingers and as many fans as are borne, on each ring."""
    assert isinstance(node, HomeTreeNode)
    parameters = node.parameters
    fingers = int(parameters.oscar.fingers) + 1
    own = 2 + fingers + parameters.ring.most_fans
    more = getattr(parameters, "control_fingers", 0)
    return own + (2 + more + parameters.ring.most_fans if node.control is not node.overlay else 0)
