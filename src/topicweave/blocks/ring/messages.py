"""What nodes on a ring say to each other."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from topicweave.blocks.growing_ids import Position, RingPlace, is_position
from topicweave.model.ids import RING_SIZE, NodeId
from topicweave.port import Message

MOST_CONTACTS = 64
MOST_HOPS = 4096
"""A ring of which nobody knows more than its successor still routes, if slowly."""


class Contact(msgspec.Struct, frozen=True, array_like=True):
    """Where a node is."""

    id: NodeId
    position: Position
    stamp: int

    @property
    def place(self) -> RingPlace:
        return self.position, self.id

    def believable(self, most_bytes: int) -> bool:
        """Whether there can be such a contact: peers may say anything."""
        return (
            0 <= self.id < RING_SIZE and is_position(self.position, most_bytes) and 0 <= self.stamp < 1 << 63
        )


class RingMessage(Message, frozen=True, array_like=True):
    """`ring` tells apart the rings that a node is on."""

    ring: int


class Near(RingMessage, frozen=True, array_like=True, tag="ring-near"):
    """I am here, and these are next to me."""

    own: Contact
    others: tuple[Contact, ...]
    answer: bool = False
    """To one who took the sender for a neighbour and may be told of nearer ones; not to be answered again."""
    version: int = 0
    """Grows with every change of all this, from one life of the sender to the next, too."""

    def introduces(self) -> Iterable[NodeId]:
        return [contact.id for contact in self.others]


class Still(RingMessage, frozen=True, array_like=True, tag="ring-still"):
    """I am still here, and who is next to me is still what I said in this version."""

    version: int
    ask: bool = False
    """And you? I have not heard of you for a while."""


class Tell(RingMessage, frozen=True, array_like=True, tag="ring-tell"):
    """That version I do not have: who is next to you?"""


class Introduce(RingMessage, frozen=True, array_like=True, tag="ring-introduce"):
    """Somebody belongs somewhere: pass it on until it is there."""

    contact: Contact
    hops: int = 0

    def introduces(self) -> Iterable[NodeId]:
        return (self.contact.id,)


class Hold(RingMessage, frozen=True, array_like=True, tag="ring-hold"):
    """You are my finger."""

    own: Contact
    ask: bool = False
    """And you? I have not heard of you for a while."""


class Held(RingMessage, frozen=True, array_like=True, tag="ring-held"):
    """I am, and I am here."""

    own: Contact
    ask: bool = False
    """And you? I have not heard of you for a while."""


class Release(RingMessage, frozen=True, array_like=True, tag="ring-release"):
    """You are my finger no more."""


class Decline(RingMessage, frozen=True, array_like=True, tag="ring-decline"):
    """I will not be your finger."""
