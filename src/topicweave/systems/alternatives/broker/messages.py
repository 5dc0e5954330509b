"""What clients and their broker say to each other."""

from __future__ import annotations

from collections.abc import Iterable

from topicweave.model.ids import Interest, NodeId
from topicweave.port import EventMessage, Message


class Attach(Message, frozen=True, array_like=True, tag="br-attach"):
    """Be my broker: this is what I want to receive."""

    version: int
    interest: Interest


class Attached(Message, frozen=True, array_like=True, tag="br-attached"):
    """I am, and know what you want as of this version (-1: not at all). Repeated as a sign of life."""

    version: int
    broker: NodeId | None = None
    """My own broker, if I have one: it would be yours, too, if you knew it. Earlier versions do not say so."""
    heir: NodeId | None = None
    """My lowest client: it is to be the broker of the others when I fail."""

    def introduces(self) -> Iterable[NodeId]:
        return [peer for peer in (self.broker, self.heir) if peer is not None]


class Detach(Message, frozen=True, array_like=True, tag="br-detach"):
    """I have another broker now, or am gone."""

    broker: NodeId | None = None
    """The other one, which is lower than you. Earlier versions do not say so."""

    def introduces(self) -> Iterable[NodeId]:
        return () if self.broker is None else (self.broker,)


class Closed(Message, frozen=True, array_like=True, tag="br-closed"):
    """I am your broker no more."""


class KeepAlive(Message, frozen=True, array_like=True, tag="br-keep-alive"):
    """From a client: I am here, and want what I told under this version."""

    version: int


class Upwards(EventMessage, frozen=True, array_like=True, tag="br-upwards"):
    """An event on its way to the broker."""


class Downwards(EventMessage, frozen=True, array_like=True, tag="br-downwards"):
    """An event on its way to a client that wants it."""


CONTROL_KINDS = ("br-attach", "br-attached", "br-detach", "br-closed")
