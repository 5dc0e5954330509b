"""What a broadcast tree remembers of events on their way."""

from __future__ import annotations

import msgspec

from topicweave.model.event import Event
from topicweave.model.ids import NodeId


class Way(msgspec.Struct):
    """Over whom the events of one topic come: those of the publisher whose second copies cut links."""

    publisher: NodeId
    heard: float
    """When an event of that publisher last came."""
    peer: NodeId | None
    """None: the publisher is this node."""
    hops: int
    pushed: float
    """When the peer last pushed one, be it a second copy."""
    rival: NodeId | None = None
    """Another one, no shorter, that was ahead of the peer lately."""


class RecentRun:
    """Consecutive events of a stream that were spread one right after the other, and when the first of them was."""

    __slots__ = ("began", "epoch", "first", "last", "publisher", "topic")

    def __init__(self, event: Event, last: int, now: float) -> None:
        self.began = now
        self.publisher, self.topic, self.epoch = event.publisher, event.topic, event.epoch
        self.first, self.last = event.sequence, last


class RunSource:
    """What one peer announced of a stream, from the first to the last number, and how often it was asked in vain."""

    __slots__ = ("first", "last", "tries")

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last
        self.tries = 0


class Missing:
    """Events of one stream that were announced and have not come."""

    __slots__ = ("first", "gaps", "highest", "last", "searches", "sources")

    def __init__(self, highest: int, gaps: int, first: int, last: int) -> None:
        self.sources: dict[NodeId, RunSource] = {}
        self.first = first
        self.last = last
        self.searches = 0
        """How often all who had announced them were gone or had been asked in vain."""
        self.highest = highest
        """The highest number seen when the timer was set."""
        self.gaps = gaps
        """How many numbers below it were missing then."""


class Hole:
    """A stream jumped over some numbers."""

    __slots__ = ("asked", "first", "sender")

    def __init__(self, sender: NodeId, first: int) -> None:
        self.sender = sender
        """Who sent what came after."""
        self.first = first
        self.asked: set[NodeId] = set()
