"""A ring of nodes at arbitrary places, with long links across it, and clockwise greedy routing.

Rules kept
----------
1. A node knows the few nodes next to it on either side (`ring_near`), and tells them so at its next beat
   after any change. It takes over nearer nodes that it hears of. Every few beats it gives a sign of life to
   all its neighbours: a word that names the version of what it said last. A neighbour that lacks this version
   asks for it.
2. A newcomer, or a node that doubts its place, is *introduced*: a message is routed to where it belongs, and
   the last node on the way answers with its own neighbourhood. A node passes an introduction on once per
   period. If tables disagree about a node's place, the way may be a circle, and on a network that duplicates
   messages each round would bring more of them.
3. Messages are routed by the table of `ring_table`, over the near nodes and the long links of `ring_fingers`.
4. A node that sent a peer something else (`send`) gives it no sign of life at that time, three times in a row
   at most. The node tells its rings of all that it hears (`met`). It asks a peer that is late with its sign
   of life at every beat, twice, since one word may be lost. So signs may be few, and dead nodes are found no
   later. A peer that is silent for too long counts as gone; for a while it is asked whether it is back
   (`ring_signs`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain

import msgspec

from topicweave.blocks.growing_ids import MAX_BYTES, NOBODY, Place, Position
from topicweave.blocks.ring_fingers import Fingers
from topicweave.blocks.ring_messages import MOST_CONTACTS, MOST_HOPS, Contact, Introduce, Near, Still, Tell
from topicweave.blocks.ring_near import Nearest
from topicweave.blocks.ring_signs import SignsOfLife
from topicweave.blocks.ring_table import RingTable
from topicweave.model.ids import NodeId
from topicweave.port import Link, Message, Receivers, World


class RingParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds, and numbers of links."""

    period: float = 1.0
    """Between two beats."""
    signs_every: int = 2
    """Beats between two signs of life to the same neighbour."""
    suspect_after: float = 4.0
    doubt: float = 60.0
    """For how long the silent are asked whether they are back."""
    sides: int = 3
    """How many nodes are known on either side."""
    most_fans: int = 40

    def __post_init__(self) -> None:
        if self.signs_every < 1 or not 0 < self.period * self.signs_every < self.suspect_after:
            raise ValueError(
                "need 0 < period * signs_every < suspect_after, "
                f"got {self.period:g}, {self.signs_every} and {self.suspect_after:g}"
            )
        if self.sides < 1 or self.most_fans < 1 or not self.doubt > 0:
            raise ValueError("need at least one node on each side, one fan, and doubts that last")


LATE = 0.1
"""By which share of a period a sign of life may be late before it is asked for."""
SPARED = 3
"""Signs of life in a row that other words may stand for: they do not say where a node is, and what it said last."""
LOOK_AROUND, LOOK_AROUND_CALMLY = 4, 16
"""Beats between two introductions through a finger; the second where nothing has changed around for so many."""


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
        self.long = Fingers(
            *(world, ring, parameters.most_fans, most_bytes, self._signs),
            own=lambda: self.own,
            learn=self._learn,
            changed=self._rebuild,
            unlinked=self._unwatch_if_unlinked,
        )
        self._entrances: list[NodeId] = []
        self._handed_on: set[tuple[NodeId, int]] = set()  # introductions, since the last beat
        self._every = parameters.signs_every
        self._late_after = (parameters.signs_every + LATE) * parameters.period
        # Who was spoken to later than that hears from the node in time if there is a sign at the next beat.
        self._soon_enough = (parameters.signs_every - 1 + LATE / 2) * parameters.period
        self._spoken = spoken if spoken is not None else {}
        self._long_ago = self._soon_enough + SPARED * parameters.signs_every * parameters.period
        self._signed: dict[NodeId, float] = {}  # when the last sign of life went
        self._said: dict[NodeId, Near] = {}
        self._told: dict[NodeId, Near] = {}
        self._news: Near | None = None
        self._latest: Near | None = None
        self._beats = 0
        self._changed_at = 0  # the beat at which there was other news than at the one before

    def receivers(self) -> Receivers:
        return {
            Near: self._receive_near,
            Still: self._receive_still,
            Tell: self._receive_tell,
            Introduce: self._receive_introduce,
            **self.long.receivers(),
        }

    # What a node asks.

    @property
    def here(self) -> Place:
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
        parts = (near.contacts, long.fingers, long.fans, signs.doubts, near.moved, signs.heard, self._said)
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
        self._spoken[peer] = self._world.now
        self._world.send(peer, message)

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
        self._signed.clear()
        # Those around the old place have to know, too.
        old = [*self.near.contacts, *self.long.fans]
        for contact in near:
            self._consider(contact)
        self._rebuild(trim=True)
        news = self._message()
        for peer in dict.fromkeys([*old, *self.near.contacts]):
            self._say(peer, news)
        self.long.hold(self.long.fingers)
        self._entrances = [peer for peer in entrances if peer != self.id]
        self._introduce(self._entrances)

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
        self._said.pop(peer, None)
        self._told.pop(peer, None)
        self._signed.pop(peer, None)
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
        self._handed_on.clear()
        for peer in signs.silent(now):
            if peer in signs.heard:
                if peer in self.near or peer in self.long.fingers:
                    self._lost(peer)
                elif self.long.drop(peer) is not None:
                    self._rebuild()
                self._unwatch_if_unlinked(peer)
        signs.forget_old_doubts(now)
        self.near.forget_old_moves(now)
        self._beats += 1
        self._look_around()

    def give_signs(self) -> None:
        """To the near ones what they do not know yet; to all links a word now and then; and to those that are late."""
        if self.own is None:
            return
        now, before, news = self._world.now, self._latest, self._message()
        if news is not before:
            self._changed_at = self._beats
        near, long, told = self.near, self.long, self._told
        late = dict.fromkeys(self._signs.late(now, self._late_after))
        sign = Still(self.number, news.version)
        for peer in near.contacts:
            if told.get(peer) is not news:
                self._say(peer, news)
            elif peer not in late and self._due(peer, now):
                self.send(peer, sign)
        for peer in dict.fromkeys((*long.fingers, *long.fans)):
            if peer not in near and peer not in late and self._due(peer, now):
                self.send(peer, long.sign(peer))
        for peer in late:
            if peer in near or peer in long:
                ask = (
                    Still(self.number, news.version, ask=True) if peer in near else long.sign(peer, ask=True)
                )
                self.send(peer, ask)
                self.send(peer, ask)

    def _due(self, peer: NodeId, now: float) -> bool:
        """Whether it is time for a sign of life, and nothing else was one."""
        if (
            now - self._spoken.get(peer, -math.inf) <= self._soon_enough
            and now - self._signed.get(peer, -math.inf) <= self._long_ago
        ):
            return False
        self._signed[peer] = now
        return True

    # Introductions.

    def _look_around(self) -> None:
        """Be introduced again: to the doubted, in case the network was cut, and now and then through a finger."""
        draw = self._world.random
        asked = [peer for peer, doubt in self._signs.doubts.items() if doubt.ask]
        if asked:
            self._introduce([draw.choice(asked)])
        if not self.near:
            self._introduce(self._entrances)
        elif self.long.fingers and self._beats % self._look_around_every() == 0:
            self._introduce([draw.choice(list(self.long.fingers))])

    def _look_around_every(self) -> int:
        calm = self._beats - self._changed_at > LOOK_AROUND_CALMLY
        return LOOK_AROUND_CALMLY if calm else LOOK_AROUND

    def _introduce(self, entrances: Iterable[NodeId]) -> None:
        assert self.own is not None
        message = Introduce(self.number, self.own)
        for peer in entrances:
            self.send(peer, message)

    def _receive_introduce(self, sender: NodeId, message: Introduce) -> None:
        newcomer = message.contact
        if self.own is None or newcomer.id == self.id or not newcomer.believable(self._most_bytes):
            return
        if not 0 <= message.hops < MOST_HOPS:
            return
        self._signs.doubts.pop(newcomer.id, None)
        self._learn(newcomer)
        hop = self.table.next_hop(newcomer.place)
        if hop == newcomer.id:
            # It is in our table: whoever is before it there knows the spot.
            hop = self.table.next_hop((newcomer.position, NOBODY))
        if hop in (self.id, newcomer.id, sender):
            self._world.send(newcomer.id, self._answer())
        elif (newcomer.id, newcomer.stamp) not in self._handed_on:
            self._handed_on.add((newcomer.id, newcomer.stamp))
            self.send(hop, Introduce(self.number, newcomer, message.hops + 1))

    # News of who is where.

    def _receive_near(self, sender: NodeId, message: Near) -> None:
        signs = self._signs
        if self._said.get(sender) is message and sender in signs.heard:
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
            self._said[sender] = message
        elif not message.answer:
            self._world.send(sender, self._answer())

    def _receive_still(self, sender: NodeId, message: Still) -> None:
        said = self._said.get(sender)
        if self.own is None:
            return
        self._signs.hear(sender, self._world.now)
        if said is None or said.version != message.version:
            self._world.send(sender, Tell(self.number))
        if message.ask:
            news = self._message()
            if self._told.get(sender) is news:
                self._world.send(sender, Still(self.number, news.version))
            else:
                self._say(sender, news)

    def _receive_tell(self, sender: NodeId, _message: Tell) -> None:
        if self.own is not None:
            self._say(sender, self._message())

    def _say(self, peer: NodeId, news: Near) -> None:
        if peer in self.near:
            self._told[peer] = news
            self._signed.pop(peer, None)  # Should this be lost, the next sign shows it.
        self.send(peer, news)

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
                self._said.pop(peer, None)
                self._told.pop(peer, None)
                self._unwatch_if_unlinked(peer)
            for peer in self.near.contacts:
                self._signs.watch(peer, self._world.now)
        self._news = None
        sides = (self.near.successor, self.near.predecessor)
        links = [contact.place for contact in (*sides, *self.long.fingers.values()) if contact is not None]
        if self.table.replace(own.place, links, (fan.place for fan in self.long.fans.values())):
            self._table_changed()

    def _unwatch_if_unlinked(self, peer: NodeId) -> None:
        if peer not in self.near and peer not in self.long:
            self._signs.unwatch(peer)
            self._signed.pop(peer, None)

    def _answer(self) -> Near:
        news = self._message()
        return Near(news.ring, news.own, news.others, answer=True, version=news.version)

    def _message(self) -> Near:
        own = self.own
        assert own is not None
        if self._news is None or self._news.own is not own:
            others, latest = tuple(self.near), self._latest
            if latest is None or latest.own != own or latest.others != others:
                version = own.stamp if latest is None else max(own.stamp, latest.version + 1)
                self._latest = latest = Near(self.number, own, others, version=version)
            self._news = latest
        return self._news
