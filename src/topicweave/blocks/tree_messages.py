"""What the nodes of topic trees say to each other (see `topic_trees`)."""

from __future__ import annotations

from collections.abc import Iterable

from topicweave.blocks.growing_ids import Place
from topicweave.blocks.ring_messages import Contact
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
    ends: tuple[Place, ...]
    subscriber: Contact
    hops: int

    def introduces(self) -> Iterable[NodeId]:
        return (self.subscriber.id,)


class TreeAttached(Message, frozen=True, array_like=True, tag="tree-attached"):
    """You are my parent in these trees (the heartbeat)."""

    topics: tuple[TopicId, ...]


class TreeEnds(Message, frozen=True, array_like=True, tag="tree-ends"):
    """I am, and these are your arcs' ends (the answer to it)."""

    topics: tuple[TopicId, ...]
    ends: tuple[Place, ...]


class TreeMisplaced(Message, frozen=True, array_like=True, tag="tree-misplaced"):
    """No route leads from me to you in these trees (any more): ask anew."""

    topics: tuple[TopicId, ...]


class TreeLeft(Message, frozen=True, array_like=True, tag="tree-left"):
    """I am not your child any more in these trees."""

    topics: tuple[TopicId, ...]


CONTROL_KINDS = ("tree-join", "multicast-graft", "tree-misplaced", "tree-left")
