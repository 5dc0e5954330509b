"""Events: what nodes publish."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import msgspec

from topicweave.model.ids import NodeId, TopicId

# What a decoder accepts: points of the ring (64 bits are the most that the encoding holds), and numbers that
# fit the tables.
Point = Annotated[int, msgspec.Meta(ge=0)]
Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class EventId(NamedTuple):
    """The identity of one event in the whole swarm."""

    publisher: NodeId
    topic: TopicId
    epoch: int
    sequence: int


class Event(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One published event.

    `sequence` counts the publisher's events on this topic from 0, so that a subscriber can tell what it
    missed. `epoch` tells apart the lives of a publisher that lost its memory. It grows with each life, so events of a
    restarted counter are not taken for old ones. (The time of the publisher's start, in microseconds, is used.)
    """

    publisher: Point
    topic: Point
    epoch: Number
    sequence: Number
    payload: bytes = b""

    @property
    def id(self) -> EventId:
        return EventId(self.publisher, self.topic, self.epoch, self.sequence)
