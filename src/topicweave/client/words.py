"""What HTTP and WebSocket clients say to a node, and what it answers: typed, so that both sides check it."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

import msgspec

from topicweave.errors import BadInput

MOST_TOPICS = 10_000
"""In one request."""
Topic = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
Topics = Annotated[list[Topic], msgspec.Meta(max_length=MOST_TOPICS)]
Payload = bytes | bytearray | memoryview
"""What an application hands over to be sent."""


def as_payload(given: object) -> bytes:
    """A payload as it travels. Others would take an event with anything but bytes for a broken one.

    >>> as_payload(bytearray(b"news"))
    b'news'
    """
    if isinstance(given, Payload):
        return bytes(given)
    raise BadInput(f"a payload of type {type(given).__name__}; give bytes, as text.encode() does")


class PublishRequest(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """An event to publish: `text`, or any bytes as `base64`."""

    topic: Topic
    text: str = ""
    base64: str = ""
    wait_for: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    timeout: Annotated[float, msgspec.Meta(ge=0, le=60)] = 5.0
    retain: bool = False

    def payload(self) -> bytes:
        return from_base64(self.base64) if self.base64 else self.text.encode()


class Request(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A WebSocket message to the node: one of these. With `subscribe`: `last` events of each topic, or those
    `since` a moment (Unix time). One with nothing in it asks whether the node is there.
    """

    subscribe: Topics | None = None
    last: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    since: float | None = None
    unsubscribe: Topics | None = None
    publish: PublishRequest | None = None


class EventJson(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event as clients get it: `text` if its payload is UTF-8, else `base64`."""

    topic: str
    publisher: str
    epoch: int
    sequence: int
    text: str | None = None
    base64: str | None = None
    age: float = 0.0
    """Seconds since its publication, at least, if it came late; 0 if it came at once."""

    @classmethod
    def holding(
        cls, payload: bytes, topic: str, publisher: str, epoch: int, sequence: int, age: float
    ) -> EventJson:
        text = encoded = None
        try:
            text = payload.decode()
        except UnicodeDecodeError:
            encoded = base64.b64encode(payload).decode()
        return cls(topic, publisher, epoch, sequence, text, encoded, age)

    @property
    def payload(self) -> bytes:
        return from_base64(self.base64) if self.base64 is not None else (self.text or "").encode()


class Gap(msgspec.Struct, frozen=True, gc=False):
    """Events that did not come, and will most likely not: one publisher's, on one topic, from one number to another."""

    topic: str
    publisher: str
    epoch: int
    first: int
    last: int
    reason: str
    """`passed`: later ones came. `told`: a neighbour says there were any. `older life`: the publisher began
    anew. `before`: they may be older than the subscription. `unread`: they came, and the reader did not take
    them in time.
    """


class Incomplete(msgspec.Struct, frozen=True):
    """Not all topics that a pattern matches are known here: some below a prefix are missing. Without a
    reason: what was missing is known.
    """

    pattern: str
    prefix: str
    """Levels with a slash after each; empty for all of them."""
    reason: str


class ReceiptJson(msgspec.Struct, frozen=True):
    """What a publisher is told."""

    neighbours: int
    accepted: int
    refused: dict[str, int]
    reason: str
    sequence: int
    epoch: int


class Reply(msgspec.Struct, omit_defaults=True):
    """A WebSocket message from the node: an event, a gap (events that will not come), a pattern that is not
    complete, or the answer to the oldest request not yet answered.
    """

    event: EventJson | None = None
    gap: Gap | None = None
    incomplete: Incomplete | None = None
    receipt: ReceiptJson | None = None
    subscriptions: list[str] | None = None
    time: float | None = None
    """With `subscriptions`: the node's clock, in Unix time, for a later `since`."""
    error: str | None = None


def from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise BadInput(f"base64: {error}") from None
