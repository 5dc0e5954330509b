"""Long links on a ring of uniform identifiers: harmonic distances and lookups, as Symphony makes them (see
`small_world`).

What a name-independent ring needs, and no more: since the identifiers are hashes, the point a link should lead to is
drawn without knowing the population, and whoever owns it is the finger.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from topicweave.blocks.growing_ids import RingPlace, is_position, position_of
from topicweave.blocks.ring.messages import MOST_HOPS, Contact, RingMessage
from topicweave.blocks.ring.ring import Ring
from topicweave.blocks.small_world import estimated_nodes, harmonic_distance
from topicweave.model.ids import RING_SIZE, NodeId
from topicweave.port import Receivers, World


class Find(RingMessage, frozen=True, array_like=True, tag="ring-find"):
    """Who owns this point?"""

    origin: NodeId
    point: int
    hops: int = 0

    def introduces(self) -> Iterable[NodeId]:
        return (self.origin,)


class Found(RingMessage, frozen=True, array_like=True, tag="ring-found"):
    """I do."""

    point: int
    own: Contact


class HarmonicLinks:
    """One node's fingers; places drawn once, and looked up again now and then."""

    def __init__(self, world: World, ring: Ring, fingers: int, every: int) -> None:
        self._world = world
        self._ring = ring
        self._draws = [world.random.random() for _ in range(fingers)]
        self._every = every
        self._beats = 0
        self._found: dict[int, Contact] = {}
        self._points: set[int] = set()

    def receivers(self) -> Receivers:
        return {Find: self._receive_find, Found: self._receive_found}

    def known_peers(self) -> set[NodeId]:
        return {contact.id for contact in self._found.values()}

    def lost(self, peer: NodeId) -> None:
        self._found = {point: contact for point, contact in self._found.items() if contact.id != peer}

    def beat(self) -> None:
        """Once per period: link to what was found, and from time to time look all points up again."""
        ring = self._ring
        if ring.own is None or ring.near.successor is None or ring.near.predecessor is None:
            return
        if self._beats % self._every == 1:
            around = {ring.id, ring.near.successor.id, ring.near.predecessor.id}
            if self._found:
                ring.set_fingers(contact for contact in self._found.values() if contact.id not in around)
            self._found = {}
        if self._beats % self._every == 0:
            nodes = estimated_nodes(ring.id, ring.near.successor.id, ring.near.predecessor.id)
            self._points = {(ring.id + harmonic_distance(draw, nodes)) % RING_SIZE for draw in self._draws}
            for point in self._points:
                self._find(Find(ring.number, ring.id, point))
        self._beats += 1

    def _find(self, message: Find) -> None:
        ring = self._ring
        hop = ring.table.next_hop(as_point(message.point))
        if hop != ring.id:
            ring.send(hop, Find(ring.number, message.origin, message.point, message.hops + 1))
        elif message.origin != ring.id and ring.own is not None:
            ring.send(message.origin, Found(ring.number, message.point, ring.own))

    def _receive_find(self, _sender: NodeId, message: Find) -> None:
        if self._ring.own is not None and 0 <= message.hops < MOST_HOPS and 0 <= message.point < RING_SIZE:
            self._find(message)

    def _receive_found(self, sender: NodeId, message: Found) -> None:
        if message.point in self._points and message.own.id == sender and is_position(message.own.position):
            self._found[message.point] = message.own


@lru_cache(maxsize=65_536)
def as_point(identifier: int) -> RingPlace:
    """A point of a ring of hashed identifiers: after the node that has the very same one."""
    return position_of(identifier), RING_SIZE
