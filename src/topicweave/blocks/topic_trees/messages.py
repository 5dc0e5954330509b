"""What the nodes of topic trees say to each other (see `trees`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from zlib import crc32

import msgspec

from topicweave.blocks.growing_ids import RingPlace
from topicweave.blocks.ring.messages import Contact
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import Message


class TreeJoin(Message, frozen=True, array_like=True, tag="tree-join"):
    """Somebody wants to be in these trees; to be passed up them, or (`climb` is false) to their homes."""

    topics: tuple[TopicId, ...]
    subscriber: Contact
    climb: bool
    hops: int = 0

    def introduces(self) -> Iterable[NodeId]:
        return (self.subscriber.id,)


class TreeGraft(Message, frozen=True, array_like=True, tag="multicast-graft"):
    """You are my child in these trees, with these ends, on the way to the subscriber."""

    topics: tuple[TopicId, ...]
    ends: tuple[RingPlace, ...]
    subscriber: Contact
    hops: int

    def introduces(self) -> Iterable[NodeId]:
        return (self.subscriber.id,)


class TreeAttached(Message, frozen=True, array_like=True, tag="tree-attached"):
    """You are my parent in these trees (the heartbeat)."""

    topics: tuple[TopicId, ...]


class TreeStill(Message, frozen=True, array_like=True, tag="tree-still"):
    """You are still my parent: in so many trees, and these and my arcs' ends there have this mark."""

    trees: int
    mark: int


class TreeTell(Message, frozen=True, array_like=True, tag="tree-tell"):
    """I know that otherwise: in which trees am I your parent?"""


class TreeEnds(Message, frozen=True, array_like=True, tag="tree-ends"):
    """I am, and these are your arcs' ends (the answer to it)."""

    topics: tuple[TopicId, ...]
    ends: tuple[RingPlace, ...]


class TreeMisplaced(Message, frozen=True, array_like=True, tag="tree-misplaced"):
    """No route leads from me to you in these trees (any more): ask anew."""

    topics: tuple[TopicId, ...]


class TreeLeft(Message, frozen=True, array_like=True, tag="tree-left"):
    """I am not your child any more in these trees."""

    topics: tuple[TopicId, ...]


def mark_of(topics: Iterable[TopicId], end: Callable[[TopicId], RingPlace | None]) -> int:
    """What `TreeStill` says of some trees: the same at both ends of an edge as long as both know the same."""
    return crc32(msgspec.msgpack.encode([(topic, end(topic)) for topic in sorted(topics)]))


CONTROL_KINDS = ("tree-join", "multicast-graft", "tree-misplaced", "tree-left")
