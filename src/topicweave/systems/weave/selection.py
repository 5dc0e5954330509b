"""Whom a node's two tasks look for: lower ids that cover its topics, and shortcuts."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping

from topicweave.blocks.views import InterestView
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.systems.spidercast.rules import Coverage, most_overlapping
from topicweave.systems.spidercast.selection import Shared
from topicweave.systems.weave import rules


class LowerSelection:
    """Each topic covered once, by a peer with a lower id. Implements `Selection`.

    While nodes still get to know each other they take what they know of. Later, one peer may do for two: it is asked, and once it is a neighbour, those two
    do not count (they are *replaced*) and can go. Should it go before them, they count again.
    """

    def __init__(self, own: NodeId, view: InterestView, most: int, tie: int) -> None:
        self._id = own
        self._view = view
        self._most = most
        self._tie = tie
        self._interest: Interest = frozenset()
        self._coverage = Coverage(self._interest, 1)
        self._below: dict[NodeId, Shared] = {}
        """Neighbours with a lower id, and what they share."""
        self._replaced: dict[NodeId, NodeId] = {}
        """Those that another does for, and which one."""
        self._wish: tuple[NodeId, list[NodeId]] | None = None

    def enabled(self) -> bool:
        return True

    def limit(self) -> int:
        return max(self._most, len(self._interest))

    def reset(self, interest: Interest) -> None:
        self._interest = interest
        self._coverage = Coverage(interest, 1)
        self._below.clear()
        self._replaced.clear()
        self._wish = None

    def added(self, peer: NodeId, shared: Shared) -> None:
        if not self.is_below(peer):
            return
        self._below[peer] = shared
        self._coverage.add(shared)
        if self._wish is not None and self._wish[0] == peer:
            for old in self._wish[1]:
                if old in self._below and old not in self._replaced and set(self._alone(old)) <= set(shared):
                    self._replaced[old] = peer
                    self._coverage.remove(self._below[old])
            self._wish = None

    def removed(self, peer: NodeId, shared: Shared) -> None:
        if self._below.pop(peer, None) is None:
            return
        if self._replaced.pop(peer, None) is not None:
            return
        self._coverage.remove(shared)
        for old in [old for old, new in self._replaced.items() if new == peer]:
            del self._replaced[old]
            self._coverage.add(self._below[old])

    def lacking(self) -> int:
        return self._coverage.lacking + (self._wish is not None)

    def lacking_without(self, peer: NodeId, shared: Shared) -> int:
        counts = peer in self._below and peer not in self._replaced
        return self._coverage.lacking_without(shared) if counts else self._coverage.lacking

    def serves(self, peer: NodeId, shared: Shared) -> bool:
        return peer in self._below and peer not in self._replaced and self._coverage.needs(shared)

    def choose(self, excluded: Collection[NodeId], rng: random.Random) -> NodeId | None:
        uncovered = self._coverage.uncovered()
        peer = rules.cover(self._view, self._id, uncovered, excluded, self._tie, rng) if uncovered else None
        if peer is None and self._wish is not None:
            if self._wish[0] not in excluded:
                return self._wish[0]
            self._wish = None
        return peer

    def exchange(self, shared: Mapping[NodeId, Shared], excluded: Collection[NodeId]) -> NodeId | None:
        return None

    def look_for_better(self, excluded: Collection[NodeId]) -> bool:
        """Whether one peer that is not a neighbour would do for two that are: it will be asked."""
        if self._wish is not None:
            return False
        alone = {peer: self._alone(peer) for peer in self._below if peer not in self._replaced}
        self._wish = rules.replacement(self._view, self._id, alone, excluded)
        return self._wish is not None

    def covers(self, topic: TopicId) -> bool:
        """Whether some neighbour with a lower id wants a topic."""
        return topic in self._interest and self._coverage.count(topic) > 0

    def is_below(self, peer: NodeId) -> bool:
        return peer < self._id

    def _alone(self, peer: NodeId) -> list[TopicId]:
        """The topics that this neighbour alone covers."""
        return [topic for topic in self._below[peer] if self._coverage.count(topic) == 1]


class ShortcutSelection:
    """So many links in all, the others counted: to those that a node shares most with. Implements `Selection`."""

    def __init__(
        self, links: int, view: InterestView, others: Callable[[], Collection[NodeId] | None]
    ) -> None:
        """others: the neighbours that the node has anyway; None while it still looks for those"""
        self._links = links
        self._view = view
        self._others = others
        self._interest: Interest = frozenset()
        self._own: dict[NodeId, None] = {}

    def enabled(self) -> bool:
        return self._links > 0

    def limit(self) -> int:
        return self._links

    def reset(self, interest: Interest) -> None:
        self._interest = interest
        self._own.clear()

    def added(self, peer: NodeId, shared: Shared) -> None:
        self._own[peer] = None

    def removed(self, peer: NodeId, shared: Shared) -> None:
        self._own.pop(peer, None)

    def lacking(self) -> int:
        others = self._others()
        return 0 if others is None else max(0, self._links - len({*others, *self._own}))

    def lacking_without(self, peer: NodeId, shared: Shared) -> int:
        return self.lacking() + self.serves(peer, shared)

    def serves(self, peer: NodeId, shared: Shared) -> bool:
        others = self._others()
        if others is None:
            return True
        return bool(shared) and peer not in others and len({*others, *self._own}) <= self._links

    def choose(self, excluded: Collection[NodeId], rng: random.Random) -> NodeId | None:
        return most_overlapping(self._view, self._interest, [*excluded, *(self._others() or ())], rng)

    def exchange(self, shared: Mapping[NodeId, Shared], excluded: Collection[NodeId]) -> NodeId | None:
        return None
