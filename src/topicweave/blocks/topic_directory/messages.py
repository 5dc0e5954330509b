"""The messages of the topic directory.

What has to reach a home or a node by way of the ring travels in `Carry`, which holds all that goes to the
same next hop. None of it carries an event. Where nodes have keys, proofs travel beside it, in a
`ProvenCarry`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar

import msgspec

from topicweave.blocks.name_messages import RingParcel, introduced_by
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import Message

WANTS_CONTACTS, WITHDRAWS, SEEKS, LEADS, PROOFS, CALL_ME = 1, 2, 4, 8, 16, 32
"""What the flags of an announced topic say: tell me of others; I want it no more; I do not want it but
publish on it; my part of it is named after me; tell me of others with their proofs; I could not reach one that
was named, so tell those whom you name now of me. Homes of earlier versions read over the last one.
"""
SLICES = 16
"""A home's records are compared with those of its keepers in so many slices."""
MOST_TOGETHER = 8
"""Topics that one proof speaks of."""


class Beat(Message, frozen=True, array_like=True, tag="dir-beat"):
    """I am here, and these are next to me; without them: the same as before."""

    near: tuple[NodeId, ...] | None
    finger: bool = False
    """The receiver is a finger of the sender's, not its neighbour."""
    answer: bool = False
    asks: bool = False
    """Nothing came from you for a while: are you there?"""

    def introduces(self) -> Iterable[NodeId]:
        return self.near or ()


class Look(Message, frozen=True, array_like=True, tag="dir-look"):
    """Who is next to this point? A node's own identifier is the point where it belongs."""

    origin: NodeId
    point: int
    hops: int = 0

    def introduces(self) -> Iterable[NodeId]:
        return (self.origin,)


class Found(Message, frozen=True, array_like=True, tag="dir-found"):
    """I am, and these are next to me."""

    point: int
    near: tuple[NodeId, ...]
    full: bool = False
    """I am nobody's finger any more: take one of these."""

    def introduces(self) -> Iterable[NodeId]:
        return self.near


class Release(Message, frozen=True, array_like=True, tag="dir-release"):
    """You are my finger no more, or I will not be yours."""


class Announcement(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one subscriber says of some of its topics, each by its place in `topics`."""

    subscriber: NodeId
    epoch: int
    """Grows with each life of the subscriber."""
    term: float
    """Seconds for which this is good."""
    topics: tuple[TopicId, ...]
    flags: bytes
    leaders: tuple[NodeId, ...] = ()
    labels: bytes = b""
    """Per topic which of the leaders names its part, counted from 1; 0: none is known. Empty: none of any."""
    attempt: int = 0
    """How many askings went unanswered before this one."""


class TopicContact(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A subscriber of a topic, and the leader of its part if it has said so."""

    id: NodeId
    label: NodeId | None = None
    left: int = 0
    """Seconds for which this is good: what is left of the subscriber's own term."""


class Told(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a home has to say to a node."""

    to: NodeId
    topic: TopicId
    contacts: tuple[TopicContact, ...]
    audience: int
    """How many others want the topic, as far as the home knows."""
    again: float = 0.0
    """Seconds after which it is time to announce again; 0 says nothing about that."""
    parted: bool = False
    """The contacts are in another part of the topic than the receiver."""


class Unanswered(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A contact that did not answer."""

    topic: TopicId
    peer: NodeId


class Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One subscriber of a topic as its home knows it, for those who keep records with it."""

    topic: TopicId
    subscriber: NodeId
    epoch: int
    left: float
    label: NodeId | None
    led: float
    """For how long it has led its part; negative: it does not."""
    term: int = 0
    """Seconds for which the subscriber's last word was good; 0: that is not told. Nodes of earlier wire formats
    read over it.
    """


class Renewal(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A subscriber announced these topics again and said nothing new; for those who keep records with a home."""

    subscriber: NodeId
    epoch: int
    left: float
    topics: tuple[TopicId, ...]


class Carry(Message, frozen=True, array_like=True, tag="dir-carry"):
    """All that goes to one next hop."""

    number: int
    announcements: tuple[Announcement, ...] = ()
    told: tuple[Told, ...] = ()
    reports: tuple[Unanswered, ...] = ()
    records: tuple[Record, ...] = ()
    renewals: tuple[Renewal, ...] = ()
    parcels: tuple[RingParcel, ...] = ()
    """Of other blocks that use the ring."""

    def introduces(self) -> Iterator[NodeId]:
        for answer in self.told:
            for contact in answer.contacts:
                yield contact.id
                if contact.label is not None:
                    yield contact.label
        for announcement in self.announcements:
            yield announcement.subscriber
        for record in self.records:
            yield record.subscriber
        for renewal in self.renewals:
            yield renewal.subscriber
        for parcel in self.parcels:
            yield from introduced_by(parcel)


class CarriedParcels:
    """The parcels of a `Carry`: nodes of earlier wire formats read over these."""

    wire: ClassVar[int] = 6


class Proof(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """That a node said itself that it wants some topics, or wants them no more. One proof speaks of several:
    so proofs are few, and quickly checked.
    """

    subscriber: NodeId
    epoch: int
    topics: Annotated[tuple[TopicId, ...], msgspec.Meta(max_length=MOST_TOGETHER)]
    seal: Annotated[bytes, msgspec.Meta(max_length=128)]
    """What the subscriber's world made (`World.vouch`)."""
    withdraws: bool = False


class Lacking(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A home cannot take a node for a subscriber of these topics: it has no proof."""

    to: NodeId
    topics: tuple[TopicId, ...]


class ProvenCarry(Carry, frozen=True, array_like=True, tag="dir-proven"):
    """A `Carry` with the proofs for what it says. Nodes of earlier wire formats get it without."""

    proofs: tuple[Proof, ...] = ()
    lacking: tuple[Lacking, ...] = ()

    wire: ClassVar[int] = 7

    def vouchers(self) -> Iterator[tuple[NodeId, bytes]]:
        for proof in self.proofs:
            yield proof.subscriber, proof.seal


class Got(Message, frozen=True, array_like=True, tag="dir-got"):
    """A `Carry` arrived."""

    number: int


class SlowCarry(Message, frozen=True, array_like=True, tag="dir-slow"):
    """What nobody waits for, on its way to one next hop, and which messages of this kind arrived from there."""

    number: int
    """0: there is nothing to acknowledge."""
    got: tuple[int, ...] = ()
    announcements: tuple[Announcement, ...] = ()
    told: tuple[Told, ...] = ()

    wire: ClassVar[int] = 9

    def introduces(self) -> Iterator[NodeId]:
        return Carry(0, self.announcements, self.told).introduces()


class SameRecords(Message, frozen=True, array_like=True, tag="dir-same"):
    """From a home to one that keeps its records: in each slice of them I have these."""

    start: int
    """I am home to what lies after it, up to me."""
    marks: Annotated[bytes, msgspec.Meta(max_length=4 * SLICES)]

    wire: ClassVar[int] = 9


class OtherRecords(Message, frozen=True, array_like=True, tag="dir-other"):
    """I have others in these slices."""

    slices: Annotated[bytes, msgspec.Meta(max_length=SLICES)]

    wire: ClassVar[int] = 9


class WantRecords(Message, frozen=True, array_like=True, tag="dir-want"):
    """From now on I am the home of what lies after `start` and up to me: what do you know of it?"""

    start: int


KINDS = (
    "dir-beat",
    "dir-look",
    "dir-found",
    "dir-release",
    "dir-carry",
    "dir-proven",
    "dir-got",
    "dir-slow",
    "dir-same",
    "dir-other",
    "dir-want",
)
