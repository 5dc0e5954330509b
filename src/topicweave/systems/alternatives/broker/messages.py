"""What clients and their broker say to each other."""

from __future__ import annotations

from topicweave.model.ids import Interest
from topicweave.port import EventMessage, Message


class Attach(Message, frozen=True, array_like=True, tag="br-attach"):
    """Be my broker: this is what I want to receive."""

    version: int
    interest: Interest


class Attached(Message, frozen=True, array_like=True, tag="br-attached"):
    """I am, and know what you want as of this version (-1: not at all). Repeated as a sign of life."""

    version: int


class Detach(Message, frozen=True, array_like=True, tag="br-detach"):
    """I have another broker now, or am gone."""


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
