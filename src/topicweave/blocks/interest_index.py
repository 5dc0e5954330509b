"""Who wants what, turned round: per topic the peers that want it, for selection rules over large views.

Rules kept
----------
1. Every known peer has a slot, a small integer. A question about topics is answered for all slots at once, as an
   array, so that a greedy rule is a few NumPy lines.
2. Per topic there is a list of slots that only grows. A peer that leaves or changes its interest leaves a dead
   slot behind (a new interest gets a new slot), masked out of every answer.
3. When more slots are dead than alive, all is renumbered. So slots are good until the next `put` or `discard`
   and are not to be kept; `generation` tells whether numbers changed, `version` whether anything did, for caches.
4. The order of slots depends on the calls made and on nothing else.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from topicweave.model.ids import Interest, NodeId, TopicId

Slots = NDArray[np.intp]

_FEW = 64  # dead slots not worth renumbering for
_NOTHING: Interest = frozenset()
_NOBODY = np.empty(0, dtype=np.uint64)


class InterestIndex:
    """An inverted index from topics to peers.

    >>> index = InterestIndex()
    >>> index.put(7, frozenset({1, 2})); index.put(9, frozenset({2, 3}))
    >>> counts = index.overlap_counts([2, 3])
    >>> [(index.peer_at(slot), int(counts[slot])) for slot in index.alive_slots()]
    [(7, 1), (9, 2)]
    """

    def __init__(self) -> None:
        self.generation = 0
        self.version = 0
        self._clear()

    def _clear(self) -> None:
        # Arrays of the standard library, because they append fast; NumPy reads them in place. An array cannot grow
        # while somebody holds such a reading, so none may leave this class.
        self._slots_of: dict[TopicId, array[int]] = {}
        self._peers = array("Q")
        self._alive = bytearray()
        self._slot: dict[NodeId, int] = {}
        self._interest: dict[NodeId, Interest] = {}
        # Answers, until somebody who wants the topic comes or goes; the lowest one until that one goes.
        self._wanting: dict[TopicId, NDArray[np.uint64]] = {}
        self._lowest: dict[TopicId, NodeId] = {}
        self._gone: dict[TopicId, int] = {}  # how many of a topic's slots are dead

    def put(self, peer: NodeId, interest: Interest) -> None:
        """Add a peer, or replace what it wants."""
        if peer in self._slot:
            if self._interest[peer] == interest:
                return
            self.discard(peer)
        self.version += 1
        slot = len(self._peers)
        self._peers.append(peer)
        self._alive.append(1)
        self._slot[peer] = slot
        self._interest[peer] = interest
        self._outdate(interest)
        for topic in self._lowest.keys() & interest:
            self._lowest[topic] = min(self._lowest[topic], peer)
        slots_of = self._slots_of
        for topic in interest:
            slots = slots_of.get(topic)
            if slots is None:
                slots_of[topic] = array("q", (slot,))
            else:
                slots.append(slot)

    def discard(self, peer: NodeId) -> None:
        """Forget a peer; nothing happens if it is not known."""
        slot = self._slot.pop(peer, None)
        if slot is None:
            return
        self.version += 1
        self._alive[slot] = 0
        interest, gone = self._interest.pop(peer), self._gone
        self._outdate(interest)
        for topic in self._lowest.keys() & interest:
            if peer == self._lowest[topic]:
                del self._lowest[topic]
        for topic in interest:
            gone[topic] = gone.get(topic, 0) + 1
        alive = len(self._slot)
        if self.slot_count - alive > alive + _FEW:
            self._renumber()

    def _outdate(self, interest: Interest) -> None:
        for topic in self._wanting.keys() & interest:
            del self._wanting[topic]

    def _renumber(self) -> None:
        known = list(self._interest.items())  # in the order of their slots
        self._clear()
        self.generation += 1
        for peer, interest in known:
            self.put(peer, interest)

    @property
    def slot_count(self) -> int:
        """How many slots there are, dead ones included: the length of every answer."""
        return len(self._peers)

    def overlap_counts(self, topics: Iterable[TopicId]) -> Slots:
        """Per slot, how many of these (different) topics its peer wants. The array is the caller's to change."""
        wanting = [
            np.frombuffer(slots, dtype=np.int64)
            for slots in (self._slots_of.get(topic) for topic in topics)
            if slots is not None
        ]
        if not wanting:
            return np.zeros(self.slot_count, dtype=np.intp)
        counts: Slots = np.bincount(np.concatenate(wanting), minlength=self.slot_count)
        if len(self._slot) < self.slot_count:
            counts *= np.frombuffer(self._alive, dtype=np.uint8)
        return counts

    def count(self, topic: TopicId) -> int:
        """How many known peers want a topic."""
        return len(self._slots_of.get(topic, ())) - self._gone.get(topic, 0)

    def lowest(self, topic: TopicId) -> NodeId | None:
        """The lowest of them."""
        lowest = self._lowest.get(topic)
        if lowest is None and len(wanting := self.wanting(topic)):
            lowest = self._lowest[topic] = int(wanting.min())
        return lowest

    def wanting(self, topic: TopicId) -> NDArray[np.uint64]:
        """The known peers that want a topic, in the order of their slots: the same array, not to be changed,
        as long as they are the same.
        """
        wanting = self._wanting.get(topic)
        if wanting is None:
            slots = self._slots_of.get(topic)
            if slots is None:
                return _NOBODY
            places = np.frombuffer(slots, dtype=np.int64)
            if topic in self._gone:
                places = places[np.frombuffer(self._alive, dtype=np.bool_)[places]]
            wanting = self.peers_at(places)
            wanting.flags.writeable = False
            self._wanting[topic] = wanting
        return wanting

    def alive_slots(self) -> Slots:
        return np.flatnonzero(np.frombuffer(self._alive, dtype=np.uint8))

    def slots(self, peers: Iterable[NodeId]) -> Slots:
        """The slots of those peers that are known, in the order given."""
        slot = self._slot
        return np.array([slot[peer] for peer in peers if peer in slot], dtype=np.intp)

    def peer_at(self, slot: int | np.integer) -> NodeId:
        return self._peers[slot]

    def peers_at(self, slots: Slots) -> NDArray[np.uint64]:
        """The peers of several slots."""
        return np.frombuffer(self._peers, dtype=np.uint64)[slots]

    def peers_from(self, slot: int) -> NDArray[np.uint64]:
        """The peers of this and all later slots, dead ones included."""
        return np.array(self._peers[slot:], dtype=np.uint64)

    def interest_of(self, peer: NodeId) -> Interest:
        """What a peer wants; nothing, if it is not known."""
        return self._interest.get(peer, _NOTHING)

    def peers(self) -> list[NodeId]:
        return list(self._slot)

    def __len__(self) -> int:
        return len(self._slot)

    def __contains__(self, peer: NodeId) -> bool:
        return peer in self._slot
