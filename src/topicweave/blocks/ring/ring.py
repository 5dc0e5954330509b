"""A ring of nodes at arbitrary places, with long links across it, and clockwise greedy routing.

Rules kept
----------
1. A node knows the few nodes next to it on either side (`near`), and tells them so at its next beat
   after any change. It takes over nearer nodes that it hears of. Every few beats it gives a sign of life to
   all its neighbours: a word that names the version of what it said last. A neighbour that lacks this version
   asks for it (`conversation`).
2. A newcomer, or a node that doubts its place, is *introduced* to where it belongs (`introductions`).
3. Messages are routed by the table of `table`, over the near nodes and the long links of `fingers`.
4. A node that sent a peer something else (`send`) gives it no sign of life at that time, three times in a row
   at most. The node tells its rings of all that it hears (`met`). It asks a peer that is late with its sign
   of life at every beat, twice, since one word may be lost. So signs may be few, and dead nodes are found no
   later. A peer that is silent for too long counts as gone; for a while it is asked whether it is back
   (`signs`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain

from topicweave.blocks.growing_ids import MAX_BYTES, Position, RingPlace
from topicweave.blocks.ring.conversation import Conversation
from topicweave.blocks.ring.fingers import Fingers
from topicweave.blocks.ring.introductions import Introductions
from topicweave.blocks.ring.messages import MOST_CONTACTS, Contact, Near
from topicweave.blocks.ring.near import Nearest
from topicweave.blocks.ring.parameters import RingParameters
from topicweave.blocks.ring.signs import SignsOfLife
from topicweave.blocks.ring.table import RingTable
from topicweave.model.ids import NodeId
from topicweave.port import Link, Message, Receivers, World


class Ring:
    """One node's part in a ring. It has no timer of its own: the node calls `beat` once per period, and after
    all that it says at that time `give_signs`.

    `lost(peer)` is called when a peer fell silent; the node then tells all its blocks. `table_changed()` is
    called when the routing table did.
    """

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        ring: int,
        parameters: RingParameters,
        lost: Callable[[NodeId], None],
        table_changed: Callable[[], None],
        most_bytes: int = MAX_BYTES,
        spoken: dict[NodeId, float] | None = None,
    ) -> None:
        """`spoken`: when the node said something to whom, on any of its rings."""
        self._world = world
        self.id = node_id
        self.number = ring
        self._lost = lost
        self._table_changed = table_changed
        self._most_bytes = most_bytes
        self.own: Contact | None = None
        """None until the node has a place."""
        self.table = RingTable()
        self.near = Nearest(parameters.sides, parameters.doubt)
        self._signs = SignsOfLife(parameters.suspect_after, parameters.doubt, world.now)

        def own() -> Contact | None:
            return self.own

        self.long = Fingers(
            *(world, ring, parameters.most_fans, most_bytes, self._signs),
            own=own,
            learn=self._learn,
            changed=self._rebuild,
            unlinked=self._unwatch_if_unlinked,
        )
        spoken = spoken if spoken is not None else {}
        self._talk = Conversation(world, ring, parameters, self.near, self.long, self._signs, own, spoken)
        self._introductions = Introductions(
            *(world, ring, most_bytes, self.table, self.near, self.long, self._signs, self._talk),
            own,
            self._learn,
        )

    def receivers(self) -> Receivers:
        return {
            Near: self._receive_near,
            **self._talk.receivers(),
            **self._introductions.receivers(),
            **self.long.receivers(),
        }

    # What a node asks.

    @property
    def here(self) -> RingPlace:
        assert self.own is not None
        return self.own.place

    @property
    def fingers(self) -> dict[NodeId, Contact]:
        return self.long.fingers

    def contact(self, peer: NodeId) -> Contact | None:
        """Where a linked peer is."""
        return self.near.contacts.get(peer) or self.long.fingers.get(peer)

    def heard(self, peer: NodeId) -> float:
        """When a linked peer gave its last sign of life."""
        return self._signs.heard.get(peer, -math.inf)

    @property
    def watched(self) -> Collection[NodeId]:
        return self._signs.heard.keys()

    def known_peers(self) -> list[NodeId]:
        """Each once, in an order that follows from what happened alone: goodbyes are said in it."""
        near, long, signs = self.near, self.long, self._signs
        parts = (
            near.contacts,
            long.fingers,
            long.fans,
            signs.doubts,
            near.moved,
            signs.heard,
            self._talk.said,
        )
        return list(dict.fromkeys(chain(*parts)))

    def links(self) -> Iterator[Link]:
        taken = set()
        sides = (("successor", self.near.successor), ("predecessor", self.near.predecessor))
        for kind, contact in sides:
            if contact is not None and contact.id not in taken:
                taken.add(contact.id)
                yield Link(contact.id, kind)
        for peer in self.long.fingers:
            if peer not in taken:
                taken.add(peer)
                yield Link(peer, "finger")
        for peer in self.long.fans:
            if peer not in taken:
                yield Link(peer, "fan")

    # What a node tells.

    def send(self, peer: NodeId, message: Message) -> None:
        """Any message to a peer that may be linked: it is a sign of life."""
        self._talk.send(peer, message)

    def met(self, peer: NodeId) -> None:
        """The node heard something of a peer."""
        self._signs.met(peer, self._world.now)

    def restart(self) -> None:
        """Timers and time were lost with the last life: everybody gets a new term."""
        self._signs.restart(self._world.now)

    def join(self, position: Position, entrances: Sequence[NodeId], near: Sequence[Contact] = ()) -> None:
        """Take a place, or another one, and be introduced there by way of the entrances."""
        own = self.own
        stamp = max(1 + int(self._world.now * 1e6), own.stamp + 1 if own is not None else 0)
        self.own = Contact(self.id, position, stamp)
        self.long.moved()
        self._talk.moved()
        # Those around the old place have to know, too.
        old = [*self.near.contacts, *self.long.fans]
        for contact in near:
            self._consider(contact)
        self._rebuild(trim=True)
        news = self._talk.news()
        for peer in dict.fromkeys([*old, *self.near.contacts]):
            self._talk.say(peer, news)
        self.long.hold(self.long.fingers)
        self._introductions.begin([peer for peer in entrances if peer != self.id])

    def shift(self, position: Position) -> None:
        """Move a little, without passing anybody."""
        assert self.own is not None
        self.join(position, ())

    def expect(self, newcomer: Contact) -> None:
        """Somebody is about to take a place: count with it already. If it never comes, its silence ends that."""
        self._learn(newcomer)

    def set_fingers(self, fingers: Iterable[Contact]) -> None:
        """Hold these and no others."""
        near = self.near.contacts
        self.long.choose(near.get(contact.id, contact) for contact in fingers if contact.id != self.id)

    def remove(self, peer: NodeId, departed: bool) -> None:
        """A peer is dead (then its doubts begin) or gone for good."""
        near, long = self.near.contacts.pop(peer, None), self.long.drop(peer)
        known = near or long
        self._signs.unwatch(peer)
        self._talk.forget_near(peer)
        self._talk.forget_link(peer)
        if known is not None:
            self._signs.doubt(peer, known.stamp, ask=not departed, now=self._world.now)
            self._rebuild(trim=True)
        elif departed and peer in self._signs.doubts:
            self._signs.doubts[peer].ask = False

    def beat(self) -> None:
        """Once per period: who is silent."""
        now, signs = self._world.now, self._signs
        if self.own is None:
            return
        self._introductions.new_period()
        for peer in signs.silent(now):
            if peer in signs.heard:
                if peer in self.near or peer in self.long.fingers:
                    self._lost(peer)
                elif self.long.drop(peer) is not None:
                    self._rebuild()
                self._unwatch_if_unlinked(peer)
        signs.forget_old_doubts(now)
        self.near.forget_old_moves(now)
        self._introductions.look_around()

    def give_signs(self) -> None:
        """To the near ones what they do not know yet; to all links a word now and then; and to those that are late."""
        if self.own is not None and self._talk.give_signs():
            self._introductions.something_changed()

    # News of who is where.

    def _receive_near(self, sender: NodeId, message: Near) -> None:
        signs = self._signs
        if self._talk.said.get(sender) is message and sender in signs.heard:
            signs.heard[sender] = self._world.now
            return
        if message.own.id != sender or len(message.others) > MOST_CONTACTS or self.own is None:
            return
        signs.hear(sender, self._world.now)
        changed = self._consider(message.own)
        for contact in message.others:
            if signs.credible(contact.id, contact.stamp):
                changed |= self._consider(contact)
        if changed:
            self._rebuild(trim=True)
        if sender in self.near:
            self._talk.said[sender] = message
        elif not message.answer:
            self._talk.answer(sender)

    def _learn(self, contact: Contact) -> bool:
        """Take over where somebody is, and its consequences; returns whether there were any."""
        changed = self._consider(contact)
        if changed:
            self._rebuild(trim=True)
        return changed

    def _consider(self, contact: Contact) -> bool:
        """Take over where somebody is; returns whether anything may have changed."""
        if contact.id == self.id or not contact.believable(self._most_bytes):
            return False
        linked = self.long.renew(contact)
        return self.near.take(contact, linked, self._world.now) or linked

    def _rebuild(self, trim: bool = False) -> None:
        own = self.own
        if own is None:
            return
        if trim:
            for peer in self.near.trim(own.place):
                self._talk.forget_near(peer)
                self._unwatch_if_unlinked(peer)
            for peer in self.near.contacts:
                self._signs.watch(peer, self._world.now)
        self._talk.others_may_be_near()
        sides = (self.near.successor, self.near.predecessor)
        links = [contact.place for contact in (*sides, *self.long.fingers.values()) if contact is not None]
        if self.table.replace(own.place, links, (fan.place for fan in self.long.fans.values())):
            self._table_changed()

    def _unwatch_if_unlinked(self, peer: NodeId) -> None:
        if peer not in self.near and peer not in self.long:
            self._signs.unwatch(peer)
            self._talk.forget_link(peer)
