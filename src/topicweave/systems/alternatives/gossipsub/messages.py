"""GossipSub's messages.

What a heartbeat has to tell a peer goes into one `Control`, as libp2p sends one RPC.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from topicweave.blocks.label_table import LabelTable
from topicweave.model.event import EventId
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import EventMessage, Message


class Greeting(Message, frozen=True, array_like=True, tag="gs-hello"):
    """Opens a connection, or answers that: what I subscribe to."""

    version: int
    interest: Interest
    answer: bool


class Subscriptions(Message, frozen=True, array_like=True, tag="gs-subscriptions"):
    """What I subscribe to from now on; `version` grows with every change."""

    version: int
    interest: Interest


class Ping(Message, frozen=True, array_like=True, tag="gs-ping"):
    """Still here, with subscriptions of this version; now and then with the labels of the parts of topics
    (see `topic_beacons`).
    """

    version: int
    labels: LabelTable | None = None


class SubscriptionsQuery(Message, frozen=True, array_like=True, tag="gs-query"):
    """Your subscriptions have changed, and I was not told, or it was lost."""


class Goodbye(Message, frozen=True, array_like=True, tag="gs-goodbye"):
    """The connection is closed."""


class Pruned(msgspec.Struct, frozen=True, array_like=True):
    """Out of my mesh of this topic; do not come back for `backoff` seconds, try these peers instead."""

    topic: TopicId
    backoff: float
    peers: tuple[NodeId, ...] = ()


class Announced(msgspec.Struct, frozen=True, array_like=True):
    """Events of a topic that can be had."""

    topic: TopicId
    events: tuple[EventId, ...]


class Control(Message, frozen=True, array_like=True, tag="gs-control"):
    """All that one heartbeat has to say to one peer."""

    graft: tuple[TopicId, ...] = ()
    prune: tuple[Pruned, ...] = ()
    ihave: tuple[Announced, ...] = ()
    iwant: tuple[EventId, ...] = ()

    def introduces(self) -> Iterable[NodeId]:
        return _named(self.prune)


def _named(prunes: tuple[Pruned, ...]) -> Iterator[NodeId]:
    for pruned in prunes:
        yield from pruned.peers


class GossipEvent(EventMessage, frozen=True, array_like=True, tag="gs-publish"):
    """The event itself."""


CONTROL_KINDS = ("gs-hello", "gs-subscriptions", "interest-change", "gs-control", "gs-goodbye")
