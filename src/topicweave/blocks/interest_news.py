"""What neighbours are told when a node wants something else: the difference, or all of it where that is shorter.

Rules kept
----------
1. A change goes to every neighbour at once, as the topics that came and went between two versions. A neighbour
   with an earlier wire format gets the whole interest.
2. Whoever has another version, or gets another interest out of the change than its sender has (`mark`), asks for
   the whole. It asks one peer no more than once per `ASK_AGAIN`, whatever the peer sends.
3. Between two whole ones an interest grows by no more than as much again, and `MORE` topics: only of whole ones
   do worlds count how much memory they take, and do they check that it has no more topics than a peer may want.
4. Setting up a link is no matter of this block: both ends tell all of their interests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from topicweave.model.ids import RING_SIZE, Interest, NodeId
from topicweave.port import Message, Receivers, Timers, World

ASK_AGAIN = 1.0
"""Seconds."""
MORE = 1024
MARKS = 1 << 32


class InterestChange(Message, frozen=True, array_like=True, tag="interest-change"):
    """What I want since this version, and want no more."""

    wire: ClassVar[int] = 8

    since: int
    version: int
    added: Interest
    removed: Interest
    mark: int
    """The sum of all topics that I want now, in 32 bits."""


def mark_of(interest: Interest) -> int:
    return sum(interest) % MARKS


def mark_after(mark: int, added: Interest, removed: Interest) -> int:
    """The mark of an interest to which topics came and from which topics went, from the one that it had."""
    return (mark + sum(added) - sum(removed)) % MARKS


def change_between(
    before: Interest, after: Interest, version: int, mark: int | None = None
) -> InterestChange | None:
    """What made one interest the other; None if the other is no longer than that. `mark`: that of `before`, if it
    is known.

    >>> change = change_between(frozenset({1, 2, 3, 4}), frozenset({1, 2, 4, 5}), 7)
    >>> change.since, change.version, set(change.added), set(change.removed), change.mark
    (6, 7, {5}, {3}, 12)
    >>> change_between(frozenset({1, 2}), frozenset({3}), 7)
    """
    added, removed = after - before, before - after
    if len(added) + len(removed) >= len(after):
        return None
    return InterestChange(
        version - 1,
        version,
        added,
        removed,
        mark_of(after) if mark is None else mark_after(mark, added, removed),
    )


def _known_mark(marked: tuple[Interest, int] | None, interest: Interest) -> int | None:
    """The mark of an interest, if it is the one that was marked last: the same object, so nothing is compared."""
    return marked[1] if marked is not None and marked[0] is interest else None


class InterestNews:
    """`own()` returns the node's interest and its version, which grows by one with each change. `known(peer)` returns
    what a neighbour wants and in which version, None for others; `learn(peer, version, interest)` hears of
    news. `update` makes the system's message with a whole interest, `query` asks for one.
    """

    def __init__(
        self,
        world: World,
        own: Callable[[], tuple[int, Interest]],
        known: Callable[[NodeId], tuple[int, Interest] | None],
        learn: Callable[[NodeId, int, Interest], None],
        update: Callable[[int, Interest], Message],
        query: Message,
    ) -> None:
        self._world = world
        self._own = own
        self._known = known
        self._learn = learn
        self._update = update
        self._query = query
        self._asked: dict[NodeId, float] = {}
        self._grown: dict[NodeId, int] = {}  # by how many topics since the last whole interest
        # Of the last interests, so that a change of a long one does not need all of it: the node's, and of neighbours.
        self._own_mark: tuple[Interest, int] | None = None
        self._marks: dict[NodeId, tuple[Interest, int]] = {}

    def receivers(self) -> Receivers:
        return {InterestChange: self._receive}

    def timers(self) -> Timers:
        return {}

    def known_peers(self) -> set[NodeId]:
        return {*self._asked, *self._grown}

    def tell(self, peers: Iterable[NodeId], before: Interest) -> None:
        """The interest is another than `before` now, for the first time."""
        peers = list(peers)
        if not peers:
            return
        version, interest = self._own()
        change = change_between(before, interest, version, _known_mark(self._own_mark, before))
        self._own_mark = (interest, change.mark) if change is not None else None
        whole = self._update(version, interest)
        for peer in peers:
            short = change is not None and self._world.understands(peer, InterestChange)
            self._world.send(peer, change if short and change is not None else whole)

    def tell_all(self, peer: NodeId) -> None:
        """A peer asked."""
        self._world.send(peer, self._update(*self._own()))

    def heard_all(self, peer: NodeId) -> None:
        """A whole interest came, or the peer is no neighbour any more."""
        self._asked.pop(peer, None)
        self._grown.pop(peer, None)
        self._marks.pop(peer, None)

    def _receive(self, sender: NodeId, message: InterestChange) -> None:
        known = self._known(sender)
        if known is None or message.version <= known[0]:
            return  # Late, or twice; heartbeats tell if that is wrong.
        interest = self._changed(sender, *known, message)
        if interest is None:
            self._ask(sender)
        else:
            self._learn(sender, message.version, interest)

    def _changed(
        self, sender: NodeId, version: int, before: Interest, message: InterestChange
    ) -> Interest | None:
        """What a neighbour wants now; None if that does not follow from its message."""
        if message.since != version or not all(0 <= topic < RING_SIZE for topic in message.added):
            return None
        after = (before - message.removed) | message.added
        grown = self._grown.get(sender, 0) + len(after) - len(before)
        known = _known_mark(self._marks.get(sender), before)
        mark = mark_of(after) if known is None else mark_after(known, after - before, before - after)
        too_many = len(after) > self._world.most_topics  # The whole one makes the world end the link.
        if too_many or mark != message.mark or grown > MORE + len(after) - grown:
            return None
        self._grown[sender], self._marks[sender] = max(0, grown), (after, mark)
        return after

    def _ask(self, peer: NodeId) -> None:
        now = self._world.now
        if now - self._asked.get(peer, -ASK_AGAIN) >= ASK_AGAIN:
            self._asked[peer] = now
            self._world.send(peer, self._query)
