"""Whom a node's two tasks look for: lower ids that cover its topics, and shortcuts."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping

from topicweave.blocks.views import InterestView
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.systems.spidercast.rules import Coverage, most_overlapping
from topicweave.systems.spidercast.selection import Shared
from topicweave.systems.weave import rules
from topicweave.systems.weave.nearness import Nearness

MOST_WAYS_BACK = 32


class LowerSelection:
    """Each topic covered once, by a peer with a lower id. Implements `Selection`.

    While nodes still get to know each other they take what they know of. Later, a node sees whom it would
    take if it chose anew: those are its *aim*, and stay. It asks them one by one. Once such a one is a
    neighbour, those that it does for do not count (they are *replaced*) and can go. Should it go before them,
    they count again.
    """

    def __init__(
        self,
        own: NodeId,
        view: InterestView,
        most: int,
        lean: float,
        refused: Collection[NodeId],
        nearness: Nearness | None = None,
    ) -> None:
        """refused: those that lately sent this node on; they are asked if nobody else would do"""
        self._nearness = nearness
        self._less = nearness.less if nearness is not None else None
        self._id = own
        self._view = view
        self._most = most
        self._lean = lean
        self._refused = refused
        self._interest: Interest = frozenset()
        self._coverage = Coverage(self._interest, 1)
        self._below: dict[NodeId, Shared] = {}
        """Neighbours with a lower id, and what they share."""
        self._replaced: dict[NodeId, NodeId] = {}
        """Those that another does for, and which one."""
        self._aim: list[NodeId] = []
        self._wish: NodeId | None = None
        """One of those that it aims at and is not linked to."""
        self._ways_back: dict[NodeId, tuple[Interest, float]] = {}
        """Who sent the node on to another; what it had been asked for; until when it takes who comes again."""

    def enabled(self) -> bool:
        return True

    def limit(self) -> int:
        return max(self._most, len(self._interest))

    def reset(self, interest: Interest) -> None:
        self._interest = interest
        self._coverage = Coverage(interest, 1)
        self._below.clear()
        self._replaced.clear()
        self._aim, self._wish = [], None

    def added(self, peer: NodeId, shared: Shared) -> None:
        if not self.is_below(peer):
            return
        self._below[peer] = shared
        self._coverage.add(shared)
        if self._wish == peer:
            self._wish = None
            for old in [old for old in self._below if old not in self._aim and old not in self._replaced]:
                if set(self._alone(old)) <= set(shared):
                    self._replaced[old] = peer
                    self._coverage.remove(self._below[old])

    def removed(self, peer: NodeId, shared: Shared) -> None:
        known = self._below.pop(peer, None)
        if known is None:
            return
        if peer in self._aim:
            self._aim.remove(peer)
        if self._replaced.pop(peer, None) is not None:
            return
        self._coverage.remove(known)
        for old in [old for old, new in self._replaced.items() if new == peer]:
            del self._replaced[old]
            self._coverage.add(self._below[old])

    def lacking(self) -> int:
        return self._coverage.lacking + (self._wish is not None)

    def lacking_without(self, peer: NodeId, shared: Shared) -> int:
        counts = peer in self._below and peer not in self._replaced
        return self._coverage.lacking_without(shared) if counts else self._coverage.lacking

    def serves(self, peer: NodeId, shared: Shared) -> bool:
        if peer not in self._below or peer in self._replaced:
            return False
        return peer in self._aim or self._coverage.needs(shared)

    def choose(self, excluded: Collection[NodeId], rng: random.Random) -> NodeId | None:
        peer = None
        if uncovered := self._coverage.uncovered():
            for others in ([*excluded, *self._refused], excluded):
                peer = rules.cover(self._view, self._id, uncovered, others, self._lean, rng, self._less)
                if peer is not None:
                    return peer
            if (peer := self._way_back(uncovered, excluded)) is not None:
                return peer
        if self._wish in excluded:
            self._wish = None
        return self._wish

    def sent_on(self, peer: NodeId, until: float) -> bool:
        """A peer that was asked named another. Should that one be of no help, and nobody else either, the
        peer is asked again: it lives, and it wants what is lacking. The view may have forgotten it by then.

        Whether that may be: once, until then.
        """
        if peer in self._ways_back or len(self._ways_back) >= MOST_WAYS_BACK:
            return False
        asked_for = self._view.interest_of(peer).intersection(self._coverage.uncovered())
        self._ways_back[peer] = (asked_for, until)
        return True

    def _way_back(self, uncovered: Collection[TopicId], excluded: Collection[NodeId]) -> NodeId | None:
        for peer, (topics, until) in self._ways_back.items():
            if peer not in excluded and not topics.isdisjoint(uncovered):
                self._ways_back[peer] = (frozenset(), until)
                return peer
        return None

    def forget_ways_back(self, now: float) -> None:
        """Those that are too old."""
        for peer in [peer for peer, (_, until) in self._ways_back.items() if until <= now]:
            del self._ways_back[peer]

    def lost(self, peer: NodeId) -> None:
        """A peer is gone."""
        self._ways_back.pop(peer, None)

    def known_peers(self) -> Collection[NodeId]:
        """Those who are not neighbours and something is kept of."""
        return self._ways_back.keys()

    def is_of_no_help(self, peer: NodeId) -> bool:
        """Whether it is known that this one wants nothing of what is lacking."""
        interest = self._view.interest_of(peer)
        return bool(interest) and interest.isdisjoint(self._coverage.uncovered())

    def exchange(self, shared: Mapping[NodeId, Shared], excluded: Collection[NodeId]) -> NodeId | None:
        return None

    def look_for_better(self, excluded: Collection[NodeId]) -> bool:
        """Whether it would take somebody else if it chose anew: that one will be asked."""
        if self._wish is not None:
            return False
        self._aim = rules.aim(
            self._view,
            self._id,
            self._interest,
            self._below,
            self._aim or self._below,
            [*excluded, *self._refused],
            self._lean,
            self._less,
        )
        for peer in self._aim:
            if self._replaced.pop(peer, None) is not None:
                self._coverage.add(self._below[peer])
        wishes = [peer for peer in self._aim if peer not in self._below]
        if self._nearness is not None:
            self._nearness.measure(self._aim)
            wishes = [peer for peer in wishes if self._nearness.settled(peer)]
        self._wish = wishes[0] if wishes else None
        return self._wish is not None

    def wishes_for(self, peer: NodeId) -> bool:
        """Whether this one is asked though the node could do without it."""
        return peer == self._wish

    def give_up(self, peer: NodeId) -> None:
        """This one does not want to be linked to."""
        if peer == self._wish:
            self._wish = None

    def covers(self, topic: TopicId) -> bool:
        """Whether some neighbour with a lower id wants a topic."""
        return topic in self._interest and self._coverage.count(topic) > 0

    def uncovered(self) -> list[TopicId]:
        """The topics that no neighbour with a lower id wants."""
        return self._coverage.uncovered()

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
