"""The neighbours of a node: those in its routing table, those in whose table it is, and those about to part.

A link serves both ways, whoever chose it: if events only went along routing tables, a node that nobody chose would get
none. So a node's degree is its table and its *fans*, who chose it. A link that neither end wants any more
*fades*: it is no longer counted on (for routing, for the election), but carries events a while longer, until both
ends have found other ways.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from topicweave.blocks.descriptors import Descriptor
from topicweave.blocks.small_world import Router
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import Link
from topicweave.systems.vitis.messages import Profile


class LinkEnd:
    """The other end of a link."""

    __slots__ = ("chosen", "descriptor", "fades_at", "fan", "kind", "number", "said", "told")

    def __init__(self, descriptor: Descriptor) -> None:
        self.descriptor = descriptor
        self.said: Profile | None = None
        """Its last profile: hearing the very same message again is no news, and changes build on it."""
        self.number = 0
        """Of that message."""
        self.told: Profile | None = None
        """The profile that it has, if nothing was lost."""
        self.kind = "fan"
        self.chosen = False
        self.fan = False
        self.fades_at = math.inf

    @property
    def fading(self) -> bool:
        return self.fades_at != math.inf


class LinkTable:
    """All links of a node."""

    def __init__(self, own: NodeId) -> None:
        self._own = own
        self._links: dict[NodeId, LinkEnd] = {}
        self._router: Router | None = None
        self._fading: dict[NodeId, None] = {}

    def __len__(self) -> int:
        return len(self._links)

    def __contains__(self, peer: object) -> bool:
        return peer in self._links

    def __iter__(self) -> Iterator[NodeId]:
        return iter(self._links)

    def get(self, peer: NodeId) -> LinkEnd | None:
        return self._links.get(peer)

    def items(self) -> Iterator[tuple[NodeId, LinkEnd]]:
        return iter(self._links.items())

    def add(self, peer: NodeId, descriptor: Descriptor) -> LinkEnd:
        neighbour = self._links[peer] = LinkEnd(descriptor)
        self._router = None
        return neighbour

    def remove(self, peer: NodeId) -> LinkEnd | None:
        neighbour = self._links.pop(peer, None)
        if neighbour is not None:
            self._fading.pop(peer, None)
            self._router = None
        return neighbour

    def fade(self, peer: NodeId, at: float) -> None:
        """Neither end wants the link any more."""
        neighbour = self._links[peer]
        if not neighbour.fading:
            neighbour.said = neighbour.told = None
            neighbour.number = 0
            neighbour.fades_at = at
            self._fading[peer] = None
            self._router = None

    def hold(self, peer: NodeId) -> None:
        """Somebody wants the link (again)."""
        neighbour = self._links[peer]
        if neighbour.fading:
            neighbour.fades_at = math.inf
            del self._fading[peer]
            self._router = None

    def faded(self, now: float) -> list[NodeId]:
        """Links whose time is up."""
        return [peer for peer in self._fading if self._links[peer].fades_at <= now]

    def router(self) -> Router:
        """Routes over all links that are there to stay, of whatever kind (§III-B)."""
        if self._router is None:
            fading = self._fading
            self._router = Router(self._own, [peer for peer in self._links if peer not in fading])
        return self._router

    def interested(self, topic: TopicId) -> list[NodeId]:
        """The neighbours that want a topic, links that fade included."""
        return [peer for peer, neighbour in self._links.items() if topic in neighbour.descriptor.profile]

    def fans(self) -> list[NodeId]:
        """Neighbours that are not in the routing table."""
        return [peer for peer, neighbour in self._links.items() if not neighbour.chosen]

    def listed(self) -> Iterator[Link]:
        for peer, neighbour in self._links.items():
            yield Link(peer, neighbour.kind if neighbour.chosen else "fan")
