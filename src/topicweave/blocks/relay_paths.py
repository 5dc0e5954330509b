"""Relay paths: from nodes that ask for a topic, by greedy lookups, to the topic's rendezvous; together they are its tree.

As Scribe does it (Castro, Druschel, Kermarrec, Rowstron 2002), and Vitis §III-B and §III-D.

Rules kept
----------
1. A node that wants a path sends a request to the next hop of a lookup for the topic. Whoever gets one keeps the
   sender as a child of the topic and, if it has no path itself yet, sends a request on. Where the lookup
   ends is the rendezvous.
2. All of it is soft state. Whoever wants a path or has children asks again every `refresh` seconds, over the links it
   has then; what is not asked for again is forgotten after `expire` seconds, at both ends. So a path that
   moves works at its old place until it works at the new one.
3. Each hop is strictly nearer to the topic than the one before, so paths have no loops, whatever the links.
4. A parent found dead is replaced at once. Requests for many topics that go the same way share one message.
5. Whatever peers ask for, at most `most_children` entries are kept, and no message holds more than `MOST_TOPICS`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import msgspec

from topicweave.blocks.small_world import Router
from topicweave.model.ids import RING_SIZE, NodeId, TopicId
from topicweave.port import Message, Receivers, TimerKey, Timers, World

TIMER = "relay"
MOST_TOPICS = 16_384


class RelayRequest(Message, frozen=True, array_like=True, tag="relay-request"):
    """Relay these topics for me."""

    topics: tuple[TopicId, ...]


class RelayParameters(msgspec.Struct, frozen=True):
    """Seconds. A path survives two lost requests if `expire` is more than thrice `refresh`."""

    refresh: float = 2.0
    expire: float = 7.0
    most_children: int = 200_000

    def __post_init__(self) -> None:
        if not 0 < self.refresh < self.expire:
            raise ValueError(f"need 0 < refresh < expire, got {self}")


class RelayPaths:
    """One node's part in the relay paths of all topics.

    `router()` routes over the links of the moment; `wanted()` names the topics that the node itself wants a path for.
    """

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        router: Callable[[], Router],
        wanted: Callable[[], Collection[TopicId]],
        parameters: RelayParameters | None = None,
    ) -> None:
        self._world = world
        self._id = node_id
        self._router = router
        self._wanted = wanted
        self._parameters = parameters or RelayParameters()
        self._children: dict[TopicId, dict[NodeId, float]] = {}  # until when
        self._parents: dict[TopicId, tuple[NodeId, float]] = {}  # until when; no entry at the rendezvous
        self._entries = 0

    def start(self) -> None:
        self._world.set_timer((TIMER,), self._world.random.uniform(0.0, self._parameters.refresh))

    def receivers(self) -> Receivers:
        return {RelayRequest: self._receive_request}

    def timers(self) -> Timers:
        return {TIMER: self._refresh}

    # What a node asks.

    def neighbours(self, topic: TopicId) -> list[NodeId]:
        """Up and down the tree of a topic from here."""
        now = self._world.now
        peers = [peer for peer, until in self._children.get(topic, {}).items() if until > now]
        parent = self._parents.get(topic)
        if parent is not None and parent[1] > now and parent[0] not in peers:
            peers.append(parent[0])
        return peers

    def relays(self, topic: TopicId) -> bool:
        """Whether some path of the topic leads through or up to this node."""
        return topic in self._children or topic in self._parents

    @property
    def topics(self) -> int:
        """How many topics this node has children for."""
        return len(self._children)

    def parent(self, topic: TopicId) -> NodeId | None:
        parent = self._parents.get(topic)
        return parent[0] if parent is not None else None

    def known_peers(self) -> set[NodeId]:
        peers = {peer for peer, _ in self._parents.values()}
        return peers.union(*self._children.values())

    # What a node tells.

    def request(self, topics: Collection[TopicId]) -> None:
        """Ask for paths at once."""
        if not topics:
            return
        asked = list(topics)
        until = self._world.now + self._parameters.expire
        hops = self._router().next_hops(asked)
        by_hop: dict[NodeId, list[TopicId]] = {}
        for topic, hop in zip(asked, hops, strict=True):
            if hop == self._id:
                self._parents.pop(topic, None)
            else:
                self._parents[topic] = (hop, until)
                by_hop.setdefault(hop, []).append(topic)
        for hop, together in by_hop.items():
            for start in range(0, len(together), MOST_TOPICS):
                self._world.send(hop, RelayRequest(tuple(together[start : start + MOST_TOPICS])))

    def lost(self, peer: NodeId) -> None:
        """A peer is dead: nobody's child any more, and replaced where it was the parent."""
        for topic in [topic for topic, children in self._children.items() if peer in children]:
            self._forget_child(topic, peer)
        orphaned = [topic for topic, (parent, _) in self._parents.items() if parent == peer]
        for topic in orphaned:
            del self._parents[topic]
        wanted = self._wanted()
        self.request([topic for topic in orphaned if topic in self._children or topic in wanted])

    def _refresh(self, _key: TimerKey) -> None:
        self._world.set_timer((TIMER,), self._parameters.refresh)
        now = self._world.now
        self._expire(now)
        self.request(list(dict.fromkeys([*self._wanted(), *self._children])))

    def _expire(self, now: float) -> None:
        over = [
            (topic, child)
            for topic, children in self._children.items()
            for child, until in children.items()
            if until <= now
        ]
        for topic, child in over:
            self._forget_child(topic, child)
        for topic in [topic for topic, (_, until) in self._parents.items() if until <= now]:
            del self._parents[topic]

    def _forget_child(self, topic: TopicId, child: NodeId) -> None:
        children = self._children[topic]
        del children[child]
        self._entries -= 1
        if not children:
            del self._children[topic]

    def _receive_request(self, sender: NodeId, message: RelayRequest) -> None:
        if sender == self._id:
            return
        now = self._world.now
        until = now + self._parameters.expire
        new = []
        for topic in _believable(message.topics):
            children = self._children.get(topic)
            if children is not None and sender in children:
                children[sender] = until
                continue
            if self._entries >= self._parameters.most_children:
                continue
            self._entries += 1
            if children is None:
                self._children[topic] = {sender: until}
            else:
                children[sender] = until
            parent = self._parents.get(topic)
            if children is None and (parent is None or parent[1] <= now):
                new.append(topic)
        self.request(new)


def _believable(topics: tuple[TopicId, ...]) -> Iterable[TopicId]:
    return (topic for topic in topics[:MOST_TOPICS] if 0 <= topic < RING_SIZE)
