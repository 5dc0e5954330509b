"""A ring of nodes at arbitrary places, with long links across it, and clockwise greedy routing.

Rules kept
----------
1. A node knows the few nodes next to it on either side. It tells them so every period; that is also the sign of life.
   What it hears of others that are nearer it takes over.
2. A newcomer (or one who doubts its place) is *introduced*: the message is routed to where it belongs, and whoever is
   last on the way answers with its own neighbourhood. An introduction is handed on once per period: where tables disagree about
   somebody's place its way may be a circle, and on a network that duplicates messages each round would bring more of them.
3. The routing table is the node itself, its successor, its predecessor and its fingers, in the order of their places. A
   message for a point goes to the last place at or before it, clockwise: each hop comes nearer, none oversteps. The node
   whose next place lies beyond the point is the point's *owner*. So everything between two entries of a table
   goes to the first of them: that arc is all there is to know of a hop.
4. A link that a node chose (a finger) is held at the other end as a *fan*, as long as it is asked for. Whoever has as many
   fans as it can bear refuses.
5. Whoever is silent for too long is taken for dead, and hearsay about it ignored for a while. But a cut network looks
   just the same: so for that while it is asked now and then, and hearing from it ends the doubt. Who said goodbye is not asked.
6. A node may move. Every move has a later stamp, so that old news of where it was does not undo it, also where it is
   not a neighbour any more.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from topicweave.blocks.growing_ids import MAX_BYTES, NOBODY, Place, Position, inside, is_position
from topicweave.model.ids import RING_SIZE, NodeId
from topicweave.port import Link, Message, Receivers, World

MOST_CONTACTS = 64
MOST_HOPS = 4096
"""A ring of which nobody knows more than its successor still routes, if slowly."""


class Contact(msgspec.Struct, frozen=True, array_like=True):
    """Where a node is."""

    id: NodeId
    position: Position
    stamp: int

    @property
    def place(self) -> Place:
        return self.position, self.id


class RingMessage(Message, frozen=True, array_like=True):
    """`ring` tells apart the rings that a node is on."""

    ring: int


class Near(RingMessage, frozen=True, array_like=True, tag="ring-near"):
    """I am here, and these are next to me."""

    own: Contact
    others: tuple[Contact, ...]
    answer: bool = False
    """To one who took the sender for a neighbour and may be told of nearer ones; not to be answered again."""

    def introduces(self) -> Iterable[NodeId]:
        return [contact.id for contact in self.others]


class Introduce(RingMessage, frozen=True, array_like=True, tag="ring-introduce"):
    """Somebody belongs somewhere: pass it on until it is there."""

    contact: Contact
    hops: int = 0

    def introduces(self) -> Iterable[NodeId]:
        return (self.contact.id,)


class Hold(RingMessage, frozen=True, array_like=True, tag="ring-hold"):
    """You are my finger."""

    own: Contact


class Held(RingMessage, frozen=True, array_like=True, tag="ring-held"):
    """I am, and I am here."""

    own: Contact


class Release(RingMessage, frozen=True, array_like=True, tag="ring-release"):
    """You are my finger no more, or I will not be yours."""


class RingParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds, and numbers of links."""

    period: float = 1.0
    """Between two signs of life."""
    suspect_after: float = 4.0
    doubt: float = 60.0
    """For how long the silent are asked whether they are back."""
    sides: int = 3
    """How many nodes are known on either side."""
    most_fans: int = 40

    def __post_init__(self) -> None:
        if not 0 < self.period < self.suspect_after:
            raise ValueError(
                f"need 0 < period < suspect_after, got {self.period:g} and {self.suspect_after:g}"
            )
        if self.sides < 1 or self.most_fans < 1 or not self.doubt > 0:
            raise ValueError("need at least one node on each side, one fan, and doubts that last")


class _Doubt:
    __slots__ = ("ask", "stamp", "until")

    def __init__(self, until: float, stamp: int, ask: bool) -> None:
        self.until, self.stamp, self.ask = until, stamp, ask


class Ring:
    """One node's part in a ring. It has no timer of its own: the node calls `beat` once per period.

    `lost(peer)` is called when a peer fell silent; the node then tells all its blocks. `table_changed()` is called when the
    routing table did.
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
    ) -> None:
        self._world = world
        self.id = node_id
        self.number = ring
        self._parameters = parameters
        self._lost = lost
        self._table_changed = table_changed
        self._most_bytes = most_bytes
        self.own: Contact | None = None
        """None until the node has a place."""
        self._near: dict[NodeId, Contact] = {}
        self._fingers: dict[NodeId, Contact] = {}
        self._fans: dict[NodeId, Contact] = {}
        self._heard: dict[NodeId, float] = {}
        self._doubts: dict[NodeId, _Doubt] = {}
        self._moved: dict[
            NodeId, tuple[int, float]
        ] = {}  # the stamp of the last move seen, and until when to know it
        self._entrances: list[NodeId] = []
        self._handed_on: set[tuple[NodeId, int]] = set()  # introductions, since the last beat
        self._said: dict[NodeId, Near] = {}
        self._news: Near | None = None
        self._held: Held | None = None
        self._outermost: tuple[Place, Place] | None = None
        self.successor: Contact | None = None
        self.predecessor: Contact | None = None
        self.table: list[Place] = []
        self.neighbours: list[Place] = []
        """All links, in whichever direction, without the node itself: where random walks go."""
        self._beats = 0
        self._ticked = world.now

    def receivers(self) -> Receivers:
        return {
            Near: self._receive_near,
            Introduce: self._receive_introduce,
            Hold: self._receive_hold,
            Held: self._receive_held,
            Release: self._receive_release,
        }

    # What a node asks.

    @property
    def here(self) -> Place:
        assert self.own is not None
        return self.own.place

    def next_hop(self, point: Place) -> NodeId:
        """Where a message for a point goes; the node itself if it owns it (rule 3)."""
        return self.table[bisect_right(self.table, point) - 1][1]

    def hop_and_end(self, point: Place) -> tuple[Place, Place]:
        """The next hop's place, and where the arc ends that goes to it."""
        index = bisect_right(self.table, point) - 1
        return self.table[index], self.table[(index + 1) % len(self.table)]

    def end_of(self, place: Place) -> Place | None:
        """Where the arc ends that goes to a place of the table; None if it is not there."""
        index = bisect_left(self.table, place)
        if index < len(self.table) and self.table[index] == place:
            return self.table[(index + 1) % len(self.table)]
        return None

    def neighbours_between(self, start: Place, end: Place) -> tuple[int, int]:
        """(first, count): the neighbours on the arc [start, end) are so many from `neighbours[first]` on, round the end."""
        if start == end:
            return 0, len(self.neighbours)
        first, last = bisect_left(self.neighbours, start), bisect_left(self.neighbours, end)
        count = last - first if start < end else len(self.neighbours) - first + last
        return first, count

    @property
    def fingers(self) -> dict[NodeId, Contact]:
        return self._fingers

    @property
    def fans(self) -> int:
        return len(self._fans)

    def near(self) -> list[Contact]:
        return list(self._near.values())

    def contact(self, peer: NodeId) -> Contact | None:
        """Where a linked peer is."""
        return self._near.get(peer) or self._fingers.get(peer)

    def following(self) -> list[Contact]:
        """The nodes known next to this one clockwise, nearest first."""
        here = self.here
        ahead = sorted(self._near.values(), key=lambda contact: (contact.place < here, contact.place))
        return ahead[: self._parameters.sides]

    def known_peers(self) -> set[NodeId]:
        return {
            *self._near,
            *self._fingers,
            *self._fans,
            *self._doubts,
            *self._moved,
            *self._heard,
            *self._said,
        }

    def links(self) -> Iterator[Link]:
        taken = set()
        for kind, contact in (("successor", self.successor), ("predecessor", self.predecessor)):
            if contact is not None and contact.id not in taken:
                taken.add(contact.id)
                yield Link(contact.id, kind)
        for peer in self._fingers:
            if peer not in taken:
                taken.add(peer)
                yield Link(peer, "finger")
        for peer in self._fans:
            if peer not in taken:
                yield Link(peer, "fan")

    # What a node tells.

    def restart(self) -> None:
        """Timers and time were lost with the last life: everybody gets a new term."""
        now = self._world.now
        self._ticked = now
        self._heard = dict.fromkeys(self._heard, now)

    def join(self, position: Position, entrances: Sequence[NodeId], near: Sequence[Contact] = ()) -> None:
        """Take a place, or another one, and be introduced there by way of the entrances."""
        own = self.own
        stamp = max(1 + int(self._world.now * 1e6), own.stamp + 1 if own is not None else 0)
        self.own = Contact(self.id, position, stamp)
        self._held = None
        # Those around the old place have to know, too.
        old = [*self._near, *self._fans]
        for contact in near:
            self._consider(contact)
        self._rebuild(trim=True)
        news = self._message()
        for peer in {*old, *self._near}:
            self._world.send(peer, news)
        for peer in self._fingers:
            self._world.send(peer, Hold(self.number, self.own))
        self._entrances = [peer for peer in entrances if peer != self.id]
        self._introduce(self._entrances)

    def shift(self, position: Position) -> None:
        """Move a little, without passing anybody."""
        assert self.own is not None
        self.join(position, ())

    def expect(self, newcomer: Contact) -> None:
        """Somebody is about to take a place: count with it already. If it never comes, its silence ends that."""
        if self._consider(newcomer):
            self._rebuild(trim=True)

    def set_fingers(self, fingers: Iterable[Contact]) -> None:
        """Hold these and no others."""
        assert self.own is not None
        chosen = {contact.id: contact for contact in fingers if contact.id != self.id}
        for peer in [peer for peer in self._fingers if peer not in chosen]:
            del self._fingers[peer]
            self._forget_if_unlinked(peer)
            self._world.send(peer, Release(self.number))
        hold = Hold(self.number, self.own)
        for peer, contact in chosen.items():
            if peer not in self._fingers:
                self._fingers[peer] = self._near.get(peer, contact)
                self._heard.setdefault(peer, self._world.now)
                self._world.send(peer, hold)
        self._rebuild()

    def remove(self, peer: NodeId, departed: bool) -> None:
        """A peer is dead (then its doubts begin) or gone for good."""
        known = self._near.pop(peer, None) or self._fingers.get(peer) or self._fans.get(peer)
        self._fingers.pop(peer, None)
        self._fans.pop(peer, None)
        self._heard.pop(peer, None)
        self._said.pop(peer, None)
        if known is not None:
            self._doubts[peer] = _Doubt(
                self._world.now + self._parameters.doubt, known.stamp, ask=not departed
            )
            self._rebuild(trim=True)
        elif departed and peer in self._doubts:
            self._doubts[peer].ask = False

    def beat(self) -> None:
        """Once per period: who is silent, and a sign of life to all."""
        now, parameters = self._world.now, self._parameters
        if self.own is None:
            return
        self._handed_on.clear()
        if now - self._ticked > parameters.suspect_after:
            self.restart()  # It slept: it could not have heard anybody.
        self._ticked = now
        deadline = now - parameters.suspect_after
        for peer in [peer for peer, heard in self._heard.items() if heard < deadline]:
            if peer in self._heard:
                if peer in self._near or peer in self._fingers:
                    self._lost(peer)
                elif self._fans.pop(peer, None) is not None:
                    self._rebuild()
                self._forget_if_unlinked(peer)
        for peer in [peer for peer, doubt in self._doubts.items() if doubt.until <= now]:
            del self._doubts[peer]
        for peer in [peer for peer, (_, until) in self._moved.items() if until <= now]:
            del self._moved[peer]
        news = self._message()
        send = self._world.send
        for peer in self._near:
            send(peer, news)
        hold = Hold(self.number, self.own)
        for peer in self._fingers:
            if peer not in self._near:
                send(peer, hold)
        self._beats += 1
        self._look_around()

    def _look_around(self) -> None:
        """Be introduced again: to the doubted, in case the network was cut, and now and then through a finger."""
        draw = self._world.random
        asked = [peer for peer, doubt in self._doubts.items() if doubt.ask]
        if asked:
            self._introduce([draw.choice(asked)])
        if not self._near:
            self._introduce(self._entrances)
        elif self._fingers and self._beats % 4 == 0:
            self._introduce([draw.choice(list(self._fingers))])

    def _introduce(self, entrances: Iterable[NodeId]) -> None:
        assert self.own is not None
        message = Introduce(self.number, self.own)
        for peer in entrances:
            self._world.send(peer, message)

    # What peers say.

    def _receive_near(self, sender: NodeId, message: Near) -> None:
        if self._said.get(sender) is message and sender in self._heard:
            self._heard[sender] = self._world.now
            return
        if message.own.id != sender or len(message.others) > MOST_CONTACTS or self.own is None:
            return
        self._hear(message.own)
        changed = self._consider(message.own)
        for contact in message.others:
            if contact.id not in self._doubts or self._doubts[contact.id].stamp < contact.stamp:
                changed |= self._consider(contact)
        if changed:
            self._rebuild(trim=True)
        if sender in self._near:
            self._said[sender] = message
        elif not message.answer:
            self._world.send(sender, self._answer())

    def _receive_introduce(self, sender: NodeId, message: Introduce) -> None:
        newcomer = message.contact
        if self.own is None or newcomer.id == self.id or not self._believable(newcomer):
            return
        if not 0 <= message.hops < MOST_HOPS:
            return
        self._doubts.pop(newcomer.id, None)
        if self._consider(newcomer):
            self._rebuild(trim=True)
        hop = self.next_hop(newcomer.place)
        if hop == newcomer.id:
            # It is in our table: whoever is before it there knows the spot.
            hop = self.next_hop((newcomer.position, NOBODY))
        if hop in (self.id, newcomer.id, sender):
            self._world.send(newcomer.id, self._answer())
        elif (newcomer.id, newcomer.stamp) not in self._handed_on:
            self._handed_on.add((newcomer.id, newcomer.stamp))
            self._world.send(hop, Introduce(self.number, newcomer, message.hops + 1))

    def _receive_hold(self, sender: NodeId, message: Hold) -> None:
        if self._fans.get(sender) is message.own and self._held is not None:
            # In the simulator, where messages pass by reference, this is most of them.
            self._heard[sender] = self._world.now
            self._world.send(sender, self._held)
            return
        if message.own.id != sender or not self._believable(message.own):
            return
        if self.own is None or (sender not in self._fans and len(self._fans) >= self._parameters.most_fans):
            self._world.send(sender, Release(self.number))
            return
        self._hear(message.own)
        known = self._fans.get(sender)
        self._fans[sender] = message.own
        self._heard[sender] = self._world.now
        if self._consider(message.own):
            self._rebuild(trim=True)
        elif known is None or known.place != message.own.place:
            self._rebuild()
        if self._held is None:
            self._held = Held(self.number, self.own)
        self._world.send(sender, self._held)

    def _receive_held(self, sender: NodeId, message: Held) -> None:
        if self._fingers.get(sender) is message.own and sender in self._heard:
            self._heard[sender] = self._world.now
            return
        if message.own.id == sender and self._believable(message.own):
            self._hear(message.own)
            if self._consider(message.own):
                self._rebuild(trim=True)

    def _receive_release(self, sender: NodeId, _message: Release) -> None:
        changed = self._fans.pop(sender, None) is not None
        changed |= self._fingers.pop(sender, None) is not None
        self._forget_if_unlinked(sender)
        if changed:
            self._rebuild()

    # The node's own bookkeeping.

    def _believable(self, contact: Contact) -> bool:
        return (
            0 <= contact.id < RING_SIZE
            and is_position(contact.position, self._most_bytes)
            and 0 <= contact.stamp < 1 << 63
        )

    def _hear(self, contact: Contact) -> None:
        self._doubts.pop(contact.id, None)
        if contact.id in self._heard:
            self._heard[contact.id] = self._world.now

    def _consider(self, contact: Contact) -> bool:
        """Take over news of where somebody is; returns whether anything may have changed."""
        peer = contact.id
        if peer == self.id or not self._believable(contact):
            return False
        changed = False
        finger = self._fingers.get(peer)
        if finger is not None and finger.stamp < contact.stamp:
            self._fingers[peer] = contact
            changed = True
        fan = self._fans.get(peer)
        if fan is not None and fan.stamp < contact.stamp:
            self._fans[peer] = contact
            changed = True
        known = self._near.get(peer)
        moved = self._moved.get(peer)
        if moved is not None and moved[0] > contact.stamp:
            return changed  # Somebody has not heard of the move: two such would remind each other for ever.
        if known is not None:
            if known.stamp >= contact.stamp:
                return changed
            self._moved[peer] = (contact.stamp, self._world.now + self._parameters.doubt)
        elif not changed and len(self._near) >= 2 * self._parameters.sides and not self._is_nearer(contact):
            return False
        self._near[peer] = contact
        return True

    def _is_nearer(self, contact: Contact) -> bool:
        """Whether a stranger belongs to the near ones: it lies between the outermost of them on our side."""
        return self._outermost is None or inside(contact.place, *self._outermost)

    def _rebuild(self, trim: bool = False) -> None:
        own = self.own
        if own is None:
            return
        if trim:
            self._trim(own.place)
        self._news = None
        table = {own.place}
        links: set[Place] = set()
        for contact in (self.successor, self.predecessor):
            if contact is not None:
                links.add(contact.place)
        links.update(contact.place for contact in self._fingers.values())
        table |= links
        links.update(contact.place for contact in self._fans.values())
        self.neighbours = sorted(links)
        ordered = sorted(table)
        if ordered != self.table:
            self.table = ordered
            self._table_changed()

    def _trim(self, here: Place) -> None:
        """Keep the nearest on either side."""
        ordered = sorted(self._near.values(), key=lambda contact: (contact.place < here, contact.place))
        sides = self._parameters.sides
        if len(ordered) > 2 * sides:
            for contact in ordered[sides:-sides]:
                del self._near[contact.id]
                self._said.pop(contact.id, None)
                self._forget_if_unlinked(contact.id)
        full = len(ordered) >= 2 * sides
        self._outermost = (ordered[-sides].place, ordered[sides - 1].place) if full else None
        now = self._world.now
        for peer in self._near:
            self._heard.setdefault(peer, now)
        self.successor = ordered[0] if ordered else None
        self.predecessor = ordered[-1] if ordered else None

    def _forget_if_unlinked(self, peer: NodeId) -> None:
        if peer not in self._near and peer not in self._fingers and peer not in self._fans:
            self._heard.pop(peer, None)

    def _answer(self) -> Near:
        news = self._message()
        return Near(news.ring, news.own, news.others, answer=True)

    def _message(self) -> Near:
        assert self.own is not None
        if self._news is None or self._news.own is not self.own:
            self._news = Near(self.number, self.own, tuple(self._near.values()))
        return self._news
