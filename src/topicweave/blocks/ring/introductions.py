"""How a newcomer, or a node that doubts its place, comes to be known where it belongs on a ring.

A message is routed there, and the last node on the way answers with its own neighbourhood. A node passes an
introduction on once per period. If tables disagree about a node's place, the way may be a circle, and on a network
that duplicates messages each round would bring more of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from topicweave.blocks.growing_ids import NOBODY
from topicweave.blocks.ring.conversation import Conversation
from topicweave.blocks.ring.fingers import Fingers
from topicweave.blocks.ring.messages import MOST_HOPS, Contact, Introduce
from topicweave.blocks.ring.near import Nearest
from topicweave.blocks.ring.signs import SignsOfLife
from topicweave.blocks.ring.table import RingTable
from topicweave.model.ids import NodeId
from topicweave.port import Receivers, World

LOOK_AROUND, LOOK_AROUND_CALMLY = 4, 16
"""Beats between two introductions through a finger; the second where nothing has changed around for so many."""


class Introductions:
    """Of the node itself, and of those that come by. `learn` takes over where a peer is."""

    def __init__(
        self,
        world: World,
        ring: int,
        most_bytes: int,
        table: RingTable,
        near: Nearest,
        long: Fingers,
        signs: SignsOfLife,
        talk: Conversation,
        own: Callable[[], Contact | None],
        learn: Callable[[Contact], bool],
    ) -> None:
        self._world = world
        self._ring = ring
        self._most_bytes = most_bytes
        self._table = table
        self._near = near
        self._long = long
        self._signs = signs
        self._talk = talk
        self._own = own
        self._learn = learn
        self._entrances: list[NodeId] = []
        self._handed_on: set[tuple[NodeId, int]] = set()  # introductions, since the last beat
        self._beats = 0
        self._changed_at = 0  # the beat at which there was other news than at the one before

    def receivers(self) -> Receivers:
        return {Introduce: self._receive_introduce}

    def begin(self, entrances: list[NodeId]) -> None:
        """By way of these, and again for as long as nobody is near."""
        self._entrances = entrances
        self._introduce(entrances)

    def new_period(self) -> None:
        self._handed_on.clear()

    def something_changed(self) -> None:
        self._changed_at = self._beats

    def look_around(self) -> None:
        """Be introduced again: to the doubted, in case the network was cut, and now and then through a finger."""
        self._beats += 1
        draw = self._world.random
        asked = [peer for peer, doubt in self._signs.doubts.items() if doubt.ask]
        if asked:
            self._introduce([draw.choice(asked)])
        if not self._near:
            self._introduce(self._entrances)
        elif self._long.fingers and self._beats % self._look_around_every() == 0:
            self._introduce([draw.choice(list(self._long.fingers))])

    def _look_around_every(self) -> int:
        calm = self._beats - self._changed_at > LOOK_AROUND_CALMLY
        return LOOK_AROUND_CALMLY if calm else LOOK_AROUND

    def _introduce(self, entrances: Iterable[NodeId]) -> None:
        own = self._own()
        assert own is not None
        message = Introduce(self._ring, own)
        for peer in entrances:
            self._talk.send(peer, message)

    def _receive_introduce(self, sender: NodeId, message: Introduce) -> None:
        own, newcomer = self._own(), message.contact
        if own is None or newcomer.id == own.id or not newcomer.believable(self._most_bytes):
            return
        if not 0 <= message.hops < MOST_HOPS:
            return
        self._signs.doubts.pop(newcomer.id, None)
        self._learn(newcomer)
        hop = self._table.next_hop(newcomer.place)
        if hop == newcomer.id:
            # It is in our table: whoever is before it there knows the spot.
            hop = self._table.next_hop((newcomer.position, NOBODY))
        if hop in (own.id, newcomer.id, sender):
            self._talk.answer(newcomer.id)
        elif (newcomer.id, newcomer.stamp) not in self._handed_on:
            self._handed_on.add((newcomer.id, newcomer.stamp))
            self._talk.send(hop, Introduce(self._ring, newcomer, message.hops + 1))
