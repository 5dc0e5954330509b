"""The few nodes next to a node on a ring, on either side.

Rules kept
----------
1. A stranger that is nearer than those known takes its place among them.
2. A node may move. Every move has a later stamp, so that old news of where it was does not undo it, also
   where it is not a neighbour any more.
"""

from __future__ import annotations

from collections.abc import Iterator

from topicweave.blocks.growing_ids import RingPlace, inside
from topicweave.blocks.ring.messages import Contact
from topicweave.model.ids import NodeId


class Nearest:
    """`sides` nodes on each side; a move is remembered for `memory` seconds."""

    def __init__(self, sides: int, memory: float) -> None:
        self._sides = sides
        self._memory = memory
        self.contacts: dict[NodeId, Contact] = {}
        self.successor: Contact | None = None
        self.predecessor: Contact | None = None
        # The stamp of the last move, and until when to know it.
        self.moved: dict[NodeId, tuple[int, float]] = {}
        self._outermost: tuple[RingPlace, RingPlace] | None = None

    def __contains__(self, peer: NodeId) -> bool:
        return peer in self.contacts

    def __iter__(self) -> Iterator[Contact]:
        return iter(self.contacts.values())

    def __len__(self) -> int:
        return len(self.contacts)

    def following(self, here: RingPlace) -> list[Contact]:
        """The nodes known next to a place clockwise, nearest first."""
        return self._clockwise(here)[: self._sides]

    def take(self, contact: Contact, linked: bool, now: float) -> bool:
        """Take over news of where somebody is; returns whether anything may have changed. One that is linked
        otherwise is taken in wherever it is: the next `trim` will see.
        """
        peer = contact.id
        moved = self.moved.get(peer)
        if moved is not None and moved[0] > contact.stamp:
            return False  # Somebody has not heard of the move: two such would remind each other for ever.
        known = self.contacts.get(peer)
        if known is not None:
            if known.stamp >= contact.stamp:
                return False
            self.moved[peer] = (contact.stamp, now + self._memory)
        elif not linked and len(self.contacts) >= 2 * self._sides and not self._is_nearer(contact):
            return False
        self.contacts[peer] = contact
        return True

    def _is_nearer(self, contact: Contact) -> bool:
        """Whether a stranger belongs to the near ones: it lies between the outermost of them on our side."""
        return self._outermost is None or inside(contact.place, *self._outermost)

    def trim(self, here: RingPlace) -> list[NodeId]:
        """Keep the nearest on either side; returns who was dropped."""
        ordered, sides = self._clockwise(here), self._sides
        dropped = [contact.id for contact in ordered[sides:-sides]] if len(ordered) > 2 * sides else []
        for peer in dropped:
            del self.contacts[peer]
        full = len(ordered) >= 2 * sides
        self._outermost = (ordered[-sides].place, ordered[sides - 1].place) if full else None
        self.successor = ordered[0] if ordered else None
        self.predecessor = ordered[-1] if ordered else None
        return dropped

    def forget_old_moves(self, now: float) -> None:
        for peer in [peer for peer, (_, until) in self.moved.items() if until <= now]:
            del self.moved[peer]

    def _clockwise(self, here: RingPlace) -> list[Contact]:
        return sorted(self.contacts.values(), key=lambda contact: (contact.place < here, contact.place))
