"""Getting a place between a node and its successor, and making room if there is none (see `growing_ids`).

Rules kept
----------
1. A node that wants a place next to another asks that one, which alone knows its successor. It answers with
   the mean of the two places and counts the newcomer as its successor from that moment. So the next one that
   asks gets another place.
2. If there is no room, the stretch message goes from successor to successor until the stretch that it has
   passed is sparse enough. On the way back each node takes its evenly spaced place. The far ones move first
   and no node moves back, so the order stays as it is all the time. The node that asked is told to ask again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from topicweave.blocks.growing_ids import (
    MAX_BYTES,
    Position,
    gap,
    is_position,
    mean,
    spaced,
    stretch_suffices,
)
from topicweave.blocks.ring.messages import Contact, RingMessage
from topicweave.blocks.ring.ring import Ring
from topicweave.model.ids import NodeId
from topicweave.port import Receivers, World

MOST_NODES = 16_384
"""Beyond that a stretch is given up: somebody is lying."""


class AskPlace(RingMessage, frozen=True, array_like=True, tag="ring-ask-place"):
    """May I be your successor? My move will have this stamp."""

    stamp: int


class GivenPlace(RingMessage, frozen=True, array_like=True, tag="ring-given-place"):
    """Be there; these are around you. Without a position: there is no room yet, ask again."""

    position: Position | None
    near: tuple[Contact, ...]

    def introduces(self) -> Iterable[NodeId]:
        return [contact.id for contact in self.near]


class Stretch(RingMessage, frozen=True, array_like=True, tag="ring-stretch"):
    """Room is needed after `start`; you are the `index`-th after it."""

    start: Position
    index: int


class Respaced(RingMessage, frozen=True, array_like=True, tag="ring-respaced"):
    """The stretch from start to end holds `nodes` nodes; you are the `index`-th: take your place."""

    start: Position
    end: Position
    index: int
    nodes: int


class RingPlaces:
    """`given(position, by, near)` is called with the answer to `ask`; a position of None means: later."""

    def __init__(
        self,
        world: World,
        ring: Ring,
        given: Callable[[Position | None, NodeId, tuple[Contact, ...]], None],
        most_bytes: int = MAX_BYTES,
    ) -> None:
        self._world = world
        self._ring = ring
        self._given = given
        self._most = most_bytes
        self._asked: NodeId | None = None
        self.moves = 0
        """How often this node moved to make room."""

    def receivers(self) -> Receivers:
        return {
            AskPlace: self._receive_ask,
            GivenPlace: self._receive_given,
            Stretch: self._receive_stretch,
            Respaced: self._receive_respaced,
        }

    def ask(self, peer: NodeId) -> None:
        """Ask for the place after a peer."""
        self._asked = peer
        own = self._ring.own
        stamp = own.stamp + 1 if own is not None else 1
        self._world.send(peer, AskPlace(self._ring.number, stamp))

    def give_up(self) -> None:
        """Stay. Whoever was asked may have answered all the same and count with this node elsewhere: a later
        stamp sets that right.
        """
        if self._asked is not None and self._ring.own is not None:
            self._ring.shift(self._ring.own.position)
        self._asked = None

    @property
    def asking(self) -> NodeId | None:
        return self._asked

    def _receive_ask(self, sender: NodeId, message: AskPlace) -> None:
        ring = self._ring
        if ring.own is None or sender == ring.id or not 0 <= message.stamp < 1 << 63:
            return
        successor = ring.near.successor or ring.own
        if successor.id == sender:
            position: Position | None = successor.position  # It is there already.
        else:
            position = mean(ring.own.position, successor.position, self._most)
        near = (*ring.near, ring.own)
        if position is None:
            if successor is not ring.own:
                self._world.send(successor.id, Stretch(ring.number, ring.own.position, 1))
        else:
            ring.expect(Contact(sender, position, message.stamp))
        self._world.send(sender, GivenPlace(ring.number, position, near))

    def _receive_given(self, sender: NodeId, message: GivenPlace) -> None:
        if sender != self._asked:
            return
        self._asked = None
        if message.position is None or is_position(message.position, self._most):
            self._given(message.position, sender, message.near)

    def _receive_stretch(self, sender: NodeId, message: Stretch) -> None:
        ring = self._ring
        start, index = message.start, message.index
        if ring.own is None or ring.near.successor is None or not 1 <= index < MOST_NODES:
            return
        if not is_position(start, self._most) or start == ring.own.position == b"":
            return
        end = ring.near.successor.position
        if stretch_suffices(start, end, index, self._most):
            self._receive_respaced(sender, Respaced(ring.number, start, end, index, index))
        elif ring.near.successor.position != start:
            self._world.send(ring.near.successor.id, Stretch(ring.number, start, index + 1))

    def _receive_respaced(self, _sender: NodeId, message: Respaced) -> None:
        ring = self._ring
        start, end, index, nodes = message.start, message.end, message.index, message.nodes
        if ring.own is None or not 1 <= index <= nodes < MOST_NODES:
            return
        if not (is_position(start, self._most) and is_position(end, self._most)):
            return
        now = ring.own.position
        new = spaced(start, end, index, nodes, now, self._most)
        following = ring.near.successor
        if (
            new != now
            and following is not None
            and gap(now, new, self._most) < gap(now, following.position, self._most)
        ):
            self.moves += 1
            ring.shift(new)
        if index > 1 and ring.near.predecessor is not None:
            self._world.send(ring.near.predecessor.id, Respaced(ring.number, start, end, index - 1, nodes))
