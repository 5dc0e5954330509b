"""Rappel's messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from topicweave.blocks.vivaldi import Coordinate
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import EventMessage, Message

UpdateName = tuple[NodeId, int, int]
"""Publisher, epoch, sequence: names an update within its feed."""


# Coordinates.


class Probe(Message, frozen=True, array_like=True, tag="ra-probe"):
    """How far are you? Answered at once."""

    number: int


class ProbeReply(Message, frozen=True, array_like=True, tag="ra-probe-reply"):
    """Where I am; `settled` if that is my place for the rest of the session."""

    number: int
    coordinate: Coordinate
    error: float
    settled: bool


# Liveness and gossip (§3.3, §4.1).


class Lineage(msgspec.Struct, frozen=True, array_like=True):
    """A place in a feed's tree: the ancestors from the parent up to the publisher, and where the publisher is."""

    feed: TopicId
    ancestors: tuple[NodeId, ...]
    publisher: Coordinate


class Ping(Message, frozen=True, array_like=True, tag="ra-ping"):
    """Are you alive? Says what the receiver is to the sender, and brings the sender's friends (a vote for each)."""

    coordinate_version: int
    bloom_version: int
    friend: bool
    friends: tuple[NodeId, ...]
    feeds: tuple[TopicId, ...]
    """In whose trees the receiver is the sender's parent."""

    def introduces(self) -> Iterable[NodeId]:
        return self.friends


class Ack(Message, frozen=True, array_like=True, tag="ra-ack"):
    """Alive; brings the friends, and to children their lineage."""

    coordinate_version: int
    bloom_version: int
    fan: bool
    """Whether the receiver is accepted as a fan."""
    friends: tuple[NodeId, ...]
    lineages: tuple[Lineage, ...]
    strangers: tuple[TopicId, ...]
    """Feeds in whose trees the receiver takes the sender for its parent by mistake."""

    def introduces(self) -> Iterable[NodeId]:
        for lineage in self.lineages:
            yield from lineage.ancestors
        yield from self.friends


class Fetch(Message, frozen=True, array_like=True, tag="ra-fetch"):
    """Tell me your coordinate, your filter, or both."""

    coordinate: bool
    bloom: bool


class Profile(Message, frozen=True, array_like=True, tag="ra-profile"):
    """What was fetched; empty where it was not asked for."""

    coordinate_version: int
    bloom_version: int
    coordinate: Coordinate
    bloom: bytes


# Friends (§3.4).


class FriendRequest(Message, frozen=True, array_like=True, tag="ra-friend"):
    """Be my friend."""


class FriendReply(Message, frozen=True, array_like=True, tag="ra-friend-reply"):
    accepted: bool
    friends: tuple[NodeId, ...]

    def introduces(self) -> Iterable[NodeId]:
        return self.friends


class Unfriend(Message, frozen=True, array_like=True, tag="ra-unfriend"):
    """I have better friends now: your place for a fan is free."""


# Trees (§4.2 to §4.4).


class Join(Message, frozen=True, array_like=True, tag="ra-join"):
    feed: TopicId
    coordinate: Coordinate
    periodic: bool = False
    """A periodic rejoin: for statistics only."""
    as_root: bool = False
    """The sender knows of no root but takes the receiver for the one to be."""


class JoinOK(Message, frozen=True, array_like=True, tag="ra-join-ok"):
    lineage: Lineage
    instead_of: NodeId | None = None
    """Unasked: a leaving parent handed its child over."""

    def introduces(self) -> Iterable[NodeId]:
        return self.lineage.ancestors


class JoinForward(Message, frozen=True, array_like=True, tag="ra-join-forward"):
    feed: TopicId
    to: NodeId

    def introduces(self) -> Iterable[NodeId]:
        return (self.to,)


class JoinDeny(Message, frozen=True, array_like=True, tag="ra-join-deny"):
    """I have no part in this feed: your filter of mine showed what is not there."""

    feed: TopicId


class ChangeParent(Message, frozen=True, array_like=True, tag="ra-change-parent"):
    """I am your parent no more; ask this one."""

    feed: TopicId
    to: NodeId

    def introduces(self) -> Iterable[NodeId]:
        return (self.to,)


class NewLineage(Message, frozen=True, array_like=True, tag="ra-lineage"):
    """To children, at once when the tree got another root or the root another place."""

    lineage: Lineage

    def introduces(self) -> Iterable[NodeId]:
        return self.lineage.ancestors


class Left(Message, frozen=True, array_like=True, tag="ra-left"):
    """To a parent: I am your child no more."""

    feed: TopicId


class Adopt(Message, frozen=True, array_like=True, tag="ra-adopt"):
    """To the parent of a node that leaves: take this child of mine (§4.4)."""

    feed: TopicId
    child: NodeId
    coordinate: Coordinate

    def introduces(self) -> Iterable[NodeId]:
        return (self.child,)


class BetterRoot(Message, frozen=True, array_like=True, tag="ra-better-root"):
    """To a root that subscribers elected: this one comes before you."""

    feed: TopicId
    root: NodeId

    def introduces(self) -> Iterable[NodeId]:
        return (self.root,)


class Heirs(Message, frozen=True, array_like=True, tag="ra-heirs"):
    """From a root that subscribers elected to its children: who they are. If it dies, the first of them leads."""

    wire: ClassVar[int] = 8
    feed: TopicId
    heirs: tuple[NodeId, ...]

    def introduces(self) -> Iterable[NodeId]:
        return self.heirs


class Gone(Message, frozen=True, array_like=True, tag="ra-gone"):
    """I leave the system."""


# Updates (§4.1).


class Update(EventMessage, frozen=True, array_like=True, tag="ra-update"):
    """An update on its way down the tree, or pulled."""

    pulled: bool = False


class Submit(EventMessage, frozen=True, array_like=True, tag="ra-submit"):
    """From a secondary publisher to the feed's master (§2)."""


class Taken(Message, frozen=True, array_like=True, tag="ra-taken"):
    """From the master: your update is on its way."""

    feed: TopicId
    update: UpdateName


class FindRoot(Message, frozen=True, array_like=True, tag="ra-find-root"):
    """From a publisher outside of the tree: who is the master of this feed?"""

    feed: TopicId


class RootIs(Message, frozen=True, array_like=True, tag="ra-root-is"):
    feed: TopicId
    root: NodeId | None

    def introduces(self) -> Iterable[NodeId]:
        return () if self.root is None else (self.root,)


class Pull(Message, frozen=True, array_like=True, tag="ra-pull"):
    """Send me what you have of this feed and I do not."""

    feed: TopicId
    have: tuple[UpdateName, ...]


class Void(Message, frozen=True, array_like=True, tag="ra-void"):
    """An update with only the latest sequence numbers: shows who missed something (§4.1)."""

    feed: TopicId
    latest: tuple[UpdateName, ...]


CONTROL_KINDS = (
    "ra-join",
    "ra-join-ok",
    "ra-join-forward",
    "ra-join-deny",
    "ra-change-parent",
    "ra-left",
    "ra-adopt",
    "ra-heirs",
    "ra-friend",
    "ra-friend-reply",
    "ra-unfriend",
    "ra-gone",
)
