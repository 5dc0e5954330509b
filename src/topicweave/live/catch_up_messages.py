"""What nodes with a link say to each other about events that one of them has and the other has not."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from topicweave.model.event import EventId, Number, Point
from topicweave.port import EventMessage, Message

MOST_TOPICS = 16_384
MOST_IDS = 1024
"""Event ids in one message, and events sent for one fetch."""


class TopicDigest(msgspec.Struct, frozen=True, array_like=True):
    """Of the events kept of a topic, and of how far each publisher's events on it go."""

    topic: Point
    digest: int
    heads: int


class Summary(Message, frozen=True, array_like=True, tag="catchup.summary"):
    """What I hold of topics that I want. `answer`: this is an answer to one; don't answer with another."""

    topics: tuple[TopicDigest, ...]
    answer: bool


class Head(msgspec.Struct, frozen=True, array_like=True):
    publisher: Point
    epoch: Number
    sequence: Number


class Heads(Message, frozen=True, array_like=True, tag="catchup.heads"):
    """The last number I saw of each publisher on a topic; and of its last epochs before, as far as I know."""

    topic: Point
    heads: Annotated[tuple[Head, ...], msgspec.Meta(max_length=MOST_IDS)]


class Inventory(Message, frozen=True, array_like=True, tag="catchup.inventory"):
    """I can give these events."""

    events: tuple[EventId, ...]


class Fetch(Message, frozen=True, array_like=True, tag="catchup.fetch"):
    """Give me these events."""

    events: tuple[EventId, ...]


class MissedRange(msgspec.Struct, frozen=True, array_like=True):
    """Consecutive events of one publisher on one topic."""

    publisher: Point
    topic: Point
    epoch: Number
    first: Number
    last: Number


class Wanted(Message, frozen=True, array_like=True, tag="catchup.wanted"):
    """Give me what you have of these."""

    ranges: Annotated[tuple[MissedRange, ...], msgspec.Meta(max_length=64)]


class History(Message, frozen=True, array_like=True, tag="catchup.history"):
    """Name the last events of a topic that came to you after a moment (Unix time)."""

    topic: Point
    last: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
    since: float


class CatchUp(EventMessage, frozen=True, array_like=True, tag="catchup.event"):
    """An event that was asked for."""


class Aged(Message, frozen=True, array_like=True, tag="catchup.aged"):
    """The event that I am about to send you is so many seconds old, at least."""

    event: EventId
    age: Annotated[float, msgspec.Meta(ge=0, le=1e10)]


class Measured(Message, frozen=True, array_like=True, tag="catchup.measured"):
    """The event that I am about to send you, or that waits to be sent, was published so many seconds ago; see
    `latency`.
    """

    wire: ClassVar[int] = 6

    event: EventId
    age: Annotated[float, msgspec.Meta(ge=0, le=1e10)]


TYPES: tuple[type[Message], ...] = (
    Summary,
    Heads,
    Inventory,
    Fetch,
    Wanted,
    History,
    CatchUp,
    Aged,
    Measured,
)
