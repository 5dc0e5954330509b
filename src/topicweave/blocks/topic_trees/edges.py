"""A node's edges in all trees: its parents and its children, by topic and by peer (see `trees`).

This is bookkeeping alone and sends nothing. The two indexes stay in step, and what is remembered of a peer
ends with its last edge. `version` grows with every change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from topicweave.blocks.growing_ids import RingPlace
from topicweave.blocks.topic_trees.messages import TreeAttached, TreeEnds, TreeStill, mark_of
from topicweave.model.ids import NodeId, TopicId


class Parents:
    """Upwards: one parent per topic, the end of the node's own arc there, and former parents that are about
    to be left.
    """

    def __init__(self) -> None:
        self.of: dict[TopicId, NodeId] = {}
        self.end: dict[TopicId, RingPlace] = {}
        self.heard: dict[NodeId, float] = {}
        """When a parent was last heard of."""
        self.ends_heard: dict[NodeId, TreeEnds] = {}
        """The last that it said, so that the same again needs no reading."""
        self.version = 0
        self._topics: dict[NodeId, dict[TopicId, None]] = {}
        self._leaving: dict[NodeId, dict[TopicId, float]] = {}  # since when
        self._pings: dict[NodeId, TreeAttached] = {}
        self._told: dict[NodeId, TreeAttached] = {}
        self._stills: dict[NodeId, tuple[TreeAttached, int, TreeStill]] = {}

    def peers(self) -> set[NodeId]:
        return {*self._topics, *self._leaving, *self.heard}

    def topics(self, parent: NodeId) -> list[TopicId]:
        return list(self._topics.get(parent, ()))

    def all_edges(self) -> list[tuple[NodeId, tuple[TopicId, ...]]]:
        """Those that are about to be left among them."""
        return [
            (parent, (*self._topics.get(parent, ()), *self._leaving.get(parent, ())))
            for parent in {**self._topics, **self._leaving}
        ]

    def add(self, topic: TopicId, parent: NodeId) -> None:
        self.of[topic] = parent
        self._topics.setdefault(parent, {})[topic] = None
        self._pings.pop(parent, None)
        self.stay(topic, parent)

    def set_end(self, topic: TopicId, end: RingPlace) -> bool:
        """Whether that is another one."""
        if self.end.get(topic) == end:
            return False
        self.end[topic] = end
        self.version += 1
        return True

    def remove(self, topic: TopicId) -> NodeId | None:
        parent = self.of.pop(topic, None)
        if parent is None:
            return None
        self.end.pop(topic, None)
        self.version += 1
        topics = self._topics[parent]
        del topics[topic]
        self._pings.pop(parent, None)
        if not topics:
            del self._topics[parent]
            for memory in (self.heard, self.ends_heard, self._told, self._stills):
                memory.pop(parent, None)
        return parent

    def remove_later(self, topic: TopicId, now: float) -> None:
        """The node has no parent from now on, but the one that it had does not know yet."""
        parent = self.remove(topic)
        if parent is not None:
            self._leaving.setdefault(parent, {})[topic] = now

    def to_leave(self, since: float) -> list[tuple[NodeId, tuple[TopicId, ...]]]:
        """Former parents that are to be told; they are former ones no more."""
        due = [
            (parent, tuple(topic for topic, began in topics.items() if began <= since))
            for parent, topics in self._leaving.items()
        ]
        due = [(parent, topics) for parent, topics in due if topics]
        for parent, topics in due:
            for topic in topics:
                self.stay(topic, parent)
        return due

    def stay(self, topic: TopicId, parent: NodeId) -> None:
        """The parent is not left, or has been."""
        topics = self._leaving.get(parent)
        if topics is not None and topics.pop(topic, None) is not None:
            self._pings.pop(parent, None)
            if not topics:
                del self._leaving[parent]

    def pings(self, stills: bool) -> Iterable[tuple[NodeId, TreeAttached | TreeStill]]:
        """What parents are to be told: the trees that have changed, and with `stills` a word where none has."""
        for parent in self._topics:
            ping = self._pings.get(parent)
            if ping is None or self._told.get(parent) is not ping:
                yield parent, self.ping(parent)
            elif stills:
                yield parent, self._still(parent, ping)

    def ping(self, parent: NodeId) -> TreeAttached:
        """All trees in which this is the parent; it is about to be told."""
        ping = self._pings.get(parent)
        if ping is None:
            former = self._leaving.get(parent, ())
            ping = self._pings[parent] = TreeAttached((*self._topics.get(parent, ()), *former))
        self._told[parent] = ping
        return ping

    def _still(self, parent: NodeId, ping: TreeAttached) -> TreeStill:
        kept = self._stills.get(parent)
        if kept is None or kept[0] is not ping or kept[1] != self.version:
            still = TreeStill(len(ping.topics), mark_of(ping.topics, self.end.get))
            self._stills[parent] = kept = (ping, self.version, still)
        return kept[2]

    def forget(self, peer: NodeId) -> None:
        """All about a peer that is nobody's parent any more."""
        for memory in (self.heard, self.ends_heard, self._pings, self._told, self._stills, self._leaving):
            memory.pop(peer, None)


class Children:
    """Downwards: the children in each tree, since when; and those that are told to go elsewhere and served
    until they have.
    """

    def __init__(self, most: int) -> None:
        self.of: dict[TopicId, dict[NodeId, float]] = {}
        self.fading: dict[TopicId, dict[NodeId, float]] = {}
        """Until when they are served."""
        self.heard: dict[NodeId, float] = {}
        """When a child was last heard of."""
        self.version = 0
        self._topics: dict[NodeId, dict[TopicId, None]] = {}
        self._most = most
        self._count = 0
        self._pinged: dict[NodeId, TreeAttached] = {}
        self.told: dict[NodeId, TreeEnds] = {}
        """The ends that a child was told last."""
        self._marks: dict[NodeId, tuple[int, int]] = {}

    def peers(self) -> set[NodeId]:
        return {*self._topics, *self.heard}.union(*self.fading.values())

    def topics(self, child: NodeId) -> list[TopicId]:
        return list(self._topics.get(child, ()))

    def all_edges(self) -> list[tuple[NodeId, tuple[TopicId, ...]]]:
        return [(child, tuple(topics)) for child, topics in self._topics.items()]

    def with_topics(self) -> list[NodeId]:
        return list(self._topics)

    def served(self, topic: TopicId) -> list[NodeId]:
        children = list(self.of.get(topic, ()))
        if topic in self.fading:
            children += [peer for peer in self.fading[topic] if peer not in children]
        return children

    def serves(self, topic: TopicId) -> bool:
        return topic in self.of or topic in self.fading

    def add(self, topic: TopicId, child: NodeId, now: float) -> bool:
        """Whether it is a child now: there is a limit to how many can be."""
        children = self.of.get(topic)
        if children is not None and child in children:
            return True
        if self._count >= self._most:
            return False
        self._count += 1
        self.of.setdefault(topic, {})[child] = now
        self._topics.setdefault(child, {})[topic] = None
        self.heard.setdefault(child, now)
        self.version += 1
        self.stop_fading(topic, child)
        return True

    def remove(self, topic: TopicId, child: NodeId) -> None:
        children = self.of[topic]
        del children[child]
        self._count -= 1
        self.version += 1
        if not children:
            del self.of[topic]
        topics = self._topics[child]
        del topics[topic]
        if not topics:
            del self._topics[child]
            self.heard.pop(child, None)
            for memory in (self._pinged, self.told, self._marks):
                memory.pop(child, None)

    def fade(self, topic: TopicId, child: NodeId, until: float) -> None:
        self.fading.setdefault(topic, {})[child] = until

    def stop_fading(self, topic: TopicId, child: NodeId) -> None:
        peers = self.fading.get(topic)
        if peers is not None and peers.pop(child, None) is not None and not peers:
            del self.fading[topic]

    def faded(self, now: float) -> list[tuple[TopicId, NodeId]]:
        return [
            (topic, peer)
            for topic, peers in self.fading.items()
            for peer, until in peers.items()
            if until <= now
        ]

    def unmentioned(self, child: NodeId, ping: TreeAttached, most_topics: int) -> Collection[TopicId] | None:
        """The topics that a child does not count among its parent's; None for a ping that names too many. The
        same ping again is not read again.
        """
        if self._pinged.get(child) is ping:
            return ()
        if len(ping.topics) > most_topics:
            return None
        if child in self._topics:
            self._pinged[child] = ping
        told = set(ping.topics)
        return [topic for topic in self._topics.get(child, ()) if topic not in told]

    def mark(self, child: NodeId, version: int, end: Callable[[TopicId], RingPlace | None]) -> int:
        """What a child's `TreeStill` should say; worked out again when the version is another one."""
        kept = self._marks.get(child)
        if kept is None or kept[0] != version:
            self._marks[child] = kept = (version, mark_of(self._topics.get(child, ()), end))
        return kept[1]

    def forget(self, peer: NodeId) -> None:
        """All about a peer that is nobody's child any more."""
        for memory in (self.heard, self._pinged, self.told, self._marks):
            memory.pop(peer, None)
