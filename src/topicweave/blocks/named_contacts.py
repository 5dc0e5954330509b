"""Whom the homes of topics named as subscribers, and for how long that is believed.

Rules kept
----------
1. Nobody proves what a home says. A home that lies can name members that do not want a topic, and each of
   them is called in vain. So each topic has a budget: `AT_ONCE` strangers, and one more every `PAUSE`
   seconds. A contact that was named for the topic already costs nothing.
2. Of a topic at most `AT_ONCE` are held. The one that was named first makes room.
3. A contact is believed for as long as it was said, at most for `MOST_LASTING`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from topicweave.blocks.topic_directory.rules import Bucket
from topicweave.model.ids import NodeId, TopicId

AT_ONCE = 32
PAUSE = 5.0
MOST_LASTING = 3600.0


class _Topic:
    """Who was named for one topic, in that order."""

    __slots__ = ("budget", "peers")

    def __init__(self, now: float) -> None:
        self.budget = Bucket(1.0 / PAUSE, AT_ONCE, now)
        self.peers: dict[NodeId, None] = {}


class NamedContacts:
    """No I/O, no clock."""

    def __init__(self) -> None:
        self._until: dict[NodeId, dict[TopicId, float]] = {}
        self._topics: dict[TopicId, _Topic] = {}

    def __len__(self) -> int:
        return sum(map(len, self._until.values()))

    def topics(self, peer: NodeId) -> Collection[TopicId]:
        """What a peer was named for."""
        return self._until.get(peer, {}).keys()

    def may(self, topic: TopicId, now: float) -> bool:
        """Whether there is budget left for one more call on the word of a topic's home; if so, it is spent."""
        return self._topic(topic, now).budget.take(now)

    def put(
        self, topic: TopicId, peer: NodeId, left: float, now: float, stranger: bool
    ) -> list[NodeId] | None:
        """A home named a peer; `stranger`: nobody else said that it wants the topic. None if there is no
        budget left for it; otherwise those that are held for the topic no more.
        """
        known = self._topic(topic, now)
        gone = []
        if peer not in known.peers:
            if stranger and not known.budget.take(now):
                return None
            if len(known.peers) >= AT_ONCE:
                gone.append(next(iter(known.peers)))
                self.remove(gone[0], (topic,))
            known.peers[peer] = None
        self._until.setdefault(peer, {})[topic] = now + min(left, MOST_LASTING)
        return gone

    def remove(self, peer: NodeId, topics: Iterable[TopicId] | None = None) -> list[TopicId]:
        """A peer is not to be believed to want these topics, or any; returns those that it was named for."""
        named = self._until.get(peer)
        if named is None:
            return []
        removed = [topic for topic in (list(named) if topics is None else topics) if topic in named]
        for topic in removed:
            del named[topic]
            del self._topics[topic].peers[peer]
        if not named:
            del self._until[peer]
        return removed

    def sweep(self, now: float) -> list[NodeId]:
        """Forget what is too old; returns of whom something was forgotten."""
        late: dict[NodeId, list[TopicId]] = {}
        for peer, named in self._until.items():
            for topic, until in named.items():
                if until <= now:
                    late.setdefault(peer, []).append(topic)
        for peer, topics in late.items():
            self.remove(peer, topics)
        for topic in [t for t, known in self._topics.items() if not known.peers and known.budget.full(now)]:
            del self._topics[topic]
        return list(late)

    def _topic(self, topic: TopicId, now: float) -> _Topic:
        known = self._topics.get(topic)
        if known is None:
            known = self._topics[topic] = _Topic(now)
        return known
