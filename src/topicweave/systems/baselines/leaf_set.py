"""A node's leaf set: the nearest identifiers on either side of its own, as in Pastry.

Rules kept
----------
1. The leaves are the nearest of all whom the node has heard of. Two neighbours tell each other their leaves
   now and then.
2. A node calls a peer that is named to it and would be a leaf. The peer becomes a leaf only when it speaks
   itself: names of the dead go no further. A peer of which nothing else is heard stays for `SPOKEN_FOR` seconds
   after its last word; in the second half of them the node asks it for another word.
3. A node that is told of leaves, and knows some that the teller lacks, answers with its own. So two neighbours
   find each other through those around them, whomever they heard of at first.
4. A peer that fell silent or left does not count by hearsay for `SILENT_FOR` seconds: for so long gossip goes on
   naming it. Its own word ends that.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar

from topicweave.blocks.small_world import ring_sides
from topicweave.model.ids import RING_SIZE, NodeId, clockwise
from topicweave.port import Message, Receivers, Timers, World

SILENT_FOR = 60.0
SPOKEN_FOR = 30.0
MOST_NAMED = 128
MOST_CALLED = 128
"""Within `SILENT_FOR / 4` seconds, whoever names whom."""


class Beside(Message, frozen=True, array_like=True, tag="scribe-beside"):
    """These are my leaves."""

    wire: ClassVar[int] = 7

    leaves: tuple[NodeId, ...]
    answer: bool = False

    def introduces(self) -> Iterable[NodeId]:
        return self.leaves


class LeafSet:
    """`count` leaves on either side; `ask` asks a peer for a sign of life. It has no timer: the node calls
    `tell` now and then, and `heard` with every message, and looks `changed` up before it relies on the
    leaves.
    """

    def __init__(self, world: World, node_id: NodeId, count: int, ask: Callable[[NodeId], None]) -> None:
        self._world = world
        self._id = node_id
        self._count = count
        self._ask = ask
        self.ring: list[NodeId] = [node_id]
        """In the order of the ring; the node itself is in their middle, or anywhere if these are all there are."""
        self.changed = True
        """Whether somebody spoke, or fell silent, who is to be counted in or out."""
        # Leaves of which only their own word is known, and when that was.
        self._spoke: dict[NodeId, float] = {}
        self._silent: dict[NodeId, float] = {}  # until when
        self._called: dict[NodeId, float] = {}

    def receivers(self) -> Receivers:
        return {Beside: self._receive_beside}

    def timers(self) -> Timers:
        return {}

    @property
    def everybody(self) -> bool:
        """Whether these are all that the node knows of."""
        return len(self.ring) <= 2 * self._count

    def __iter__(self) -> Iterator[NodeId]:
        return (peer for peer in self.ring if peer != self._id)

    def neighbours(self) -> list[NodeId]:
        """The next on either side."""
        return ring_sides(self._id, sorted(self.ring), 1)

    def arrange(self, heard_of: Iterable[NodeId]) -> list[NodeId]:
        """Choose the leaves anew; returns all who count, in growing order."""
        now, count = self._world.now, self._count
        self._silent = {peer: until for peer, until in self._silent.items() if until > now}
        self._spoke = {peer: when for peer, when in self._spoke.items() if now - when < SPOKEN_FOR}
        known = sorted({*heard_of, *self._spoke} - self._silent.keys() - {self._id})
        if len(known) <= 2 * count:
            self.ring = sorted({*known, self._id})
        else:
            place = bisect_left(known, self._id)
            around = [known[(place + step) % len(known)] for step in range(-count, count)]
            self.ring = [*around[:count], self._id, *around[count:]]
        self._spoke = {peer: when for peer, when in self._spoke.items() if peer in self.ring}
        self.changed = False
        return known

    def tell(self) -> None:
        """Neighbours, of the leaves."""
        now = self._world.now
        self._called = {peer: when for peer, when in self._called.items() if now - when < SILENT_FOR / 4}
        if any(until <= now for until in self._silent.values()):
            self.changed = True
        if any(now - when >= SPOKEN_FOR for when in self._spoke.values()):
            self.changed = True
        message = self._message()
        for peer in self.neighbours():
            if self._world.understands(peer, Beside):
                self._world.send(peer, message)
            else:
                self._ask(peer)

    def unheard(self) -> list[NodeId]:
        """Leaves that should speak again."""
        return [peer for peer, when in self._spoke.items() if 2 * (self._world.now - when) >= SPOKEN_FOR]

    def heard(self, peer: NodeId) -> None:
        """Somebody spoke."""
        if peer in self._spoke:
            self._spoke[peer] = self._world.now
        elif self._called.pop(peer, None) is not None and self._belongs(peer):
            self._take(peer)
        if self._silent.pop(peer, None) is not None:
            self.changed = True

    def lost(self, peer: NodeId) -> None:
        self._silent[peer] = self._world.now + SILENT_FOR
        self._spoke.pop(peer, None)
        self.changed = True

    def _message(self, answer: bool = False) -> Beside:
        return Beside(tuple(peer for peer in self.ring if peer != self._id), answer)

    def _receive_beside(self, sender: NodeId, message: Beside) -> None:
        if len(message.leaves) > MOST_NAMED or not all(0 <= peer < RING_SIZE for peer in message.leaves):
            return
        if self._belongs(sender):
            self._take(sender)
        now = self._world.now
        for peer in message.leaves:
            if len(self._called) >= MOST_CALLED:
                break
            if self._belongs(peer) and peer not in self._silent and peer not in self._called:
                self._called[peer] = now
                self._ask(peer)
        if not message.answer:
            lacks = ring_sides(sender, sorted({*self.ring, sender}), self._count)
            if not set(lacks) <= set(message.leaves):
                self._world.send(sender, self._message(answer=True))

    def _take(self, peer: NodeId) -> None:
        self._spoke[peer] = self._world.now
        self.changed = True

    def _belongs(self, peer: NodeId) -> bool:
        """Whether one that is no leaf should be."""
        if peer in self.ring:
            return False
        return self.everybody or clockwise(self.ring[0], peer) <= clockwise(self.ring[0], self.ring[-1])
