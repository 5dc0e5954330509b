"""What the nodes of a broadcast tree say to each other.

The paper announces and asks for single messages. Here both speak of runs, consecutive events of one stream (a
publisher on a topic): a burst costs as many announcements as a single event.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import EventMessage, Message


class PublisherStream(NamedTuple):
    """The events of one publisher on one topic in one of its lives."""

    publisher: NodeId
    topic: TopicId
    epoch: int


class EventRun(NamedTuple):
    """Consecutive events of a stream."""

    publisher: NodeId
    topic: TopicId
    epoch: int
    first: int
    last: int

    @property
    def stream(self) -> PublisherStream:
        return PublisherStream(self.publisher, self.topic, self.epoch)

    @classmethod
    def of(cls, event: Event | EventId) -> EventRun:
        """A run of a single event."""
        return cls(event.publisher, event.topic, event.epoch, event.sequence, event.sequence)


class Push(EventMessage, frozen=True, array_like=True, tag="tree-push"):
    """The event itself."""


class Spill(EventMessage, frozen=True, array_like=True, tag="tree-spill"):
    """The event itself, and not only over the tree: the first links of its way included one that is lazy."""

    wire: ClassVar[int] = 8


class IHave(Message, frozen=True, array_like=True, tag="tree-ihave"):
    """These events can be had from me; I had them so many seconds ago (`ages`, as many as runs), or just now (none)."""

    runs: tuple[EventRun, ...]
    ages: tuple[float, ...] = ()


class Graft(Message, frozen=True, array_like=True, tag="tree-graft"):
    """Send me these events of a topic, and push to me from now on."""

    runs: tuple[EventRun, ...]


class Prune(Message, frozen=True, array_like=True, tag="tree-prune"):
    """Push me no more events of this topic: announce them."""

    topic: TopicId


class Prepare(Message, frozen=True, array_like=True, tag="tree-prepare"):
    """Before there are events: announce those of the first topics to me, push those of the others."""

    wire: ClassVar[int] = 8

    lazy: tuple[TopicId, ...]
    eager: tuple[TopicId, ...] = ()
