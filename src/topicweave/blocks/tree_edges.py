"""A node's edges in all trees: its parents and its children, by topic and by peer (see `topic_trees`).

Bookkeeping alone: both ways of asking stay in step, what is remembered of a peer ends with its last edge, and nothing here sends anything. `version` grows
with every change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from topicweave.blocks.growing_ids import Place
from topicweave.blocks.tree_messages import TreeAttached, TreeEnds
from topicweave.model.ids import NodeId, TopicId


class Parents:
    """Upwards: one parent per topic, the end of the node's own arc there, and former parents that are about to be left."""

    def __init__(self) -> None:
        self.of: dict[TopicId, NodeId] = {}
        self.end: dict[TopicId, Place] = {}
        self.heard: dict[NodeId, float] = {}
        """When a parent was last heard of."""
        self.ends_heard: dict[NodeId, TreeEnds] = {}
        """The last that it said, so that the same again needs no reading."""
        self.version = 0
        self._topics: dict[NodeId, dict[TopicId, None]] = {}
        self._leaving: dict[NodeId, dict[TopicId, float]] = {}  # since when
        self._pings: dict[NodeId, TreeAttached] = {}

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

    def set_end(self, topic: TopicId, end: Place) -> bool:
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
            self.heard.pop(parent, None)
            self.ends_heard.pop(parent, None)
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

    def pings(self) -> Iterable[tuple[NodeId, TreeAttached]]:
        """What each parent is told every period: the same object while nothing changes."""
        for parent, topics in self._topics.items():
            ping = self._pings.get(parent)
            if ping is None:
                former = self._leaving.get(parent, ())
                ping = self._pings[parent] = TreeAttached((*topics, *former))
            yield parent, ping

    def forget(self, peer: NodeId) -> None:
        """All about a peer that is nobody's parent any more."""
        for memory in (self.heard, self.ends_heard, self._pings, self._leaving):
            memory.pop(peer, None)


class Children:
    """Downwards: the children in each tree, since when; and those that are told to go elsewhere and served until they have."""

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
        self._answers: dict[NodeId, tuple[TreeAttached, int, TreeEnds]] = {}

    def peers(self) -> set[NodeId]:
        return {*self._topics, *self.heard}.union(*self.fading.values())

    def topics(self, child: NodeId) -> list[TopicId]:
        return list(self._topics.get(child, ()))

    def all_edges(self) -> list[tuple[NodeId, tuple[TopicId, ...]]]:
        return [(child, tuple(topics)) for child, topics in self._topics.items()]

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
            self._pinged.pop(child, None)
            self._answers.pop(child, None)

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
        """The topics that a child does not count among its parent's; None for a ping that names too many. The same ping again is not read again."""
        if self._pinged.get(child) is ping:
            return ()
        if len(ping.topics) > most_topics:
            return None
        if child in self._topics:
            self._pinged[child] = ping
        told = set(ping.topics)
        return [topic for topic in self._topics.get(child, ()) if topic not in told]

    def kept_answer(self, child: NodeId, ping: TreeAttached, version: int) -> TreeEnds | None:
        """What the same ping was answered with, if nothing has changed since."""
        kept = self._answers.get(child)
        return kept[2] if kept is not None and kept[0] is ping and kept[1] == version else None

    def keep_answer(self, child: NodeId, ping: TreeAttached, version: int, answer: TreeEnds) -> None:
        self._answers[child] = (ping, version, answer)

    def forget(self, peer: NodeId) -> None:
        """All about a peer that is nobody's child any more."""
        for memory in (self.heard, self._pinged, self._answers):
            memory.pop(peer, None)
