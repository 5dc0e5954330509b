"""What nodes tell of themselves, and what pages are told. Nodes and topics go by their ids, in 16 hexadecimal
digits.
"""

from __future__ import annotations

from typing import Literal

import msgspec

NodeKey = str
TopicKey = str
State = Literal["up", "silent", "stopped", "killed", "seen"]
"""`silent`: it should tell something, and does not. `seen`: others tell of it, it does not itself."""


REFUSALS = {
    "connections_refused": "connections refused",
    "refused_events": "events refused",
    "refused_by_peers": "own events refused by others",
    "events_dropped": "events that could not be sent",
    "bans": "peers shut out",
    "protocol_errors": "connections that made no sense",
    "events_missed": "events missed",
}
"""Counters that tell of refusals and losses, and what the log calls them."""
COUNTED = ("publishes", "deliveries", "links_lost", *REFUSALS)
"""Counters that the picture needs."""


class Hop(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An event came to a node."""

    event: str
    topic: TopicKey
    sender: NodeKey
    receiver: NodeKey
    hops: int
    wanted: bool
    first: bool
    time: float


class SentEvent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A node published an event."""

    event: str
    topic: TopicKey
    time: float


class NodeTick(msgspec.Struct, omit_defaults=True):
    """What one node tells, several times a second: what is so, if it is not as it was, and what happened
    since the last tick.
    """

    node: NodeKey
    name: str
    time: float
    topics: list[str] | None = None
    links: list[tuple[NodeKey, str]] | None = None
    names: dict[NodeKey, str] | None = None
    """Of the peers that links lead to, as far as they are known."""
    counts: dict[str, int] = {}
    """Of `COUNTED`, those that have changed, as they are."""
    control: tuple[int, int] = (0, 0)
    """Messages without events, and their bytes."""
    hops: list[Hop] = []
    left_out: int = 0
    """Hops that there was no room for."""
    sent: list[SentEvent] = []
    pid: int = 0
    listen: str = ""


class NodeState(msgspec.Struct, omit_defaults=True):
    """A node in the picture."""

    id: NodeKey
    name: str
    state: State
    topics: list[str] | None = None
    links: list[tuple[NodeKey, str]] | None = None
    part: int = 0
    """On which side of a partition it is."""


class Line(msgspec.Struct, frozen=True, array_like=True):
    """In the log: when, of what kind, what."""

    time: float
    kind: Literal["join", "loss", "repair", "refusal", "order"]
    text: str


Figures = dict[str, float | None]
"""One second's, by name; None where it is not known."""


class Frame(msgspec.Struct, omit_defaults=True):
    """What a page is told: all at first, then what has changed."""

    time: float
    whole: bool = False
    title: str = ""
    orders: list[str] = []
    """What may be done to nodes, if anything."""
    nodes: list[NodeState] = []
    topics: dict[TopicKey, str] = {}
    hops: list[Hop] = []
    left_out: int = 0
    figures: list[Figures] = []
    log: list[Line] = []
    answer: str = ""
    """To an order of this page."""


class Order(msgspec.Struct, forbid_unknown_fields=True):
    """What a page asks to be done."""

    order: Literal["kill", "stop", "restart", "partition", "heal"]
    nodes: list[NodeKey] = []
