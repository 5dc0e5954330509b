"""The ring of homes: uniform identifiers, a few neighbours on either side, and a small world of long links.

Rules kept
----------
1. A node knows the nearest few nodes on either side. Every period it sends them a sign of life, with its
   neighbours if these changed. Only a node that spoke itself becomes a neighbour. If another node names a
   nearer one, the node asks that one first.
2. A newcomer has its own place looked up: the question is routed to where the newcomer belongs, and the node
   there answers with its neighbours. Every node repeats this now and then, through a random peer, and also
   takes candidates from peer sampling. So two rings that know of each other become one.
3. Long links (fingers) lead to points at harmonic distances (see `small_world`). A node knows those whose
   finger it is as its fans, and routes over them, too. A node that has as many fans as it may have refuses
   more. With its neighbours these are at most 6 + 2 log2 of the number of nodes, as the node estimates it; if
   the estimate falls, it lets go of some.
4. A node that is silent for too long, or does not acknowledge what it should carry, counts as dead. Hearsay
   about it is ignored for a while.
5. Contacts with an earlier wire format skip parcels. So parcels are carried, and kept, as if such contacts
   were not on the ring. A node that has such contacts also knows the nearest few others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from topicweave.blocks.small_world import LongLinkTargets
from topicweave.blocks.topic_directory import rules
from topicweave.blocks.topic_directory.messages import Beat, CarriedParcels, Found, Look, Release
from topicweave.blocks.topic_directory.parameters import DirectoryParameters
from topicweave.model.ids import RING_SIZE, NodeId, in_interval
from topicweave.port import Message, Receivers, World

MOST_HOPS = 64
MOST_NAMED = 16
YOUNG = 15.0
"""Seconds after a start, or a change of neighbours, in which signs of life go out at every tick."""
LOOKS_AT_FIRST = 4
"""A newcomer has itself looked up so often, at every other tick."""
FULL_BEAT_EVERY = 8
MOST_REMEMBERED = 8192
"""Next hops, and peers that are no neighbours."""


class HomesRing:
    """One node's part. It has no timer: `beat` is called once per tick.

    `sample()` gives a random peer, or None; `moved()` is called when the arc that the node owns, or the
    successors, changed; `lost(peer)` when a contact fell silent.
    """

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        parameters: DirectoryParameters,
        sample: Callable[[], NodeId | None],
        moved: Callable[[], None],
        lost: Callable[[NodeId], None],
    ) -> None:
        self._world = world
        self.id = node_id
        self._parameters = parameters
        self._sample = sample
        self._moved = moved
        self._lost = lost
        self._near: dict[NodeId, None] = {}
        self._fingers: dict[int, NodeId] = {}  # by the place of their points
        self._fans: dict[NodeId, None] = {}
        self._heard: dict[NodeId, float] = {}
        self._sent: dict[NodeId, float] = {}
        self._spoke: dict[NodeId, float] = {}  # when other blocks gave a sign of life
        self._told: dict[NodeId, tuple[int, int]] = {}  # contact -> (version it knows, beats since)
        self._asked: dict[NodeId, float] = {}
        self._silent: dict[NodeId, float] = {}
        self._contacts: tuple[NodeId, ...] = ()
        self._version = 0
        self._targets = LongLinkTargets(node_id, rules.MOST_FINGERS, world.random)
        self._looked: dict[int, float] = {}  # places of points that were looked up, and when
        self._served: set[int] = set()  # those next to which there is a contact already
        self._started = world.now
        self._next_look = world.now
        self._looks = 0
        self._changed_at = world.now
        self.after: list[NodeId] = []
        """The next ones clockwise, nearest first."""
        self.before: list[NodeId] = []
        self.nodes = 1
        """How many there seem to be."""
        # What follows from the contacts, and is worked out anew when they change.
        self._table: list[NodeId] | None = None
        self._hops: dict[int, NodeId] = {}
        self._too_far: set[NodeId] = set()
        self._earlier: set[NodeId] = set()  # contacts that read over parcels
        self._others: tuple[list[NodeId], list[NodeId], list[NodeId]] | None = None

    def receivers(self) -> Receivers:
        return {
            Beat: self._receive_beat,
            Look: self._receive_look,
            Found: self._receive_found,
            Release: self._receive_release,
        }

    # What the directory asks.

    @property
    def ready(self) -> bool:
        """Whether this node has a place: neighbours, or nobody it could have them from."""
        return bool(self.after) or not self._contacts

    def owns(self, point: int) -> bool:
        return not self.before or in_interval(point, self.before[0], self.id)

    def home_before(self, point: int) -> NodeId | None:
        """Which of the neighbours before this node, whose records it keeps, is home to a point. What lies before all
        of them counts as the furthest one's: nobody else brings records from there.
        """
        if not self.before or in_interval(point, self.before[0], self.id):
            return None
        for home, before in pairwise(self.before):
            if in_interval(point, before, home):
                return home
        return self.before[-1]

    def start_of(self, home: NodeId) -> NodeId:
        """Where the arc of one of the neighbours before this node begins: see `home_before`."""
        further = self.before[self.before.index(home) + 1 :]
        return further[0] if further else self.id

    def next_hop(self, point: int, attempt: int = 0) -> NodeId:
        table = self._table or self._sorted()
        if attempt:
            return rules.next_hop(self.id, self.after, self.before, table, point, attempt)
        hop = self._hops.get(point)
        if hop is None:
            if len(self._hops) >= MOST_REMEMBERED:
                self._hops.clear()
            hop = self._hops[point] = rules.next_hop(self.id, self.after, self.before, table, point)
        return hop

    def _sorted(self) -> list[NodeId]:
        """All contacts and the node itself."""
        if self._table is None:
            self._table = sorted({self.id, *self.contacts()})
            self._hops = {}
            self._others = None
        return self._table

    # The same for parcels.

    @property
    def beside_earlier(self) -> bool:
        """Whether there are contacts that read over parcels."""
        return bool(self._earlier)

    def parcel_sides(self) -> tuple[list[NodeId], list[NodeId]]:
        """Who comes next on either side, of those who keep parcels."""
        after, before, _ = self._without_earlier()
        return after, before

    def owns_parcels(self, point: int) -> bool:
        _, before = self.parcel_sides()
        return not before or in_interval(point, before[0], self.id)

    def parcel_hop(self, point: int, attempt: int = 0) -> NodeId:
        if not self._earlier:
            return self.next_hop(point, attempt)
        after, before, table = self._without_earlier()
        return rules.next_hop(self.id, after, before, table, point, attempt)

    def _without_earlier(self) -> tuple[list[NodeId], list[NodeId], list[NodeId]]:
        table = self._sorted()
        if not self._earlier:
            return self.after, self.before, table
        if self._others is None:
            others = [peer for peer in table if peer not in self._earlier]
            near = [peer for peer in others if peer in self._near] or [
                peer for peer in others if peer != self.id
            ]
            self._others = (*rules.sides_of(self.id, near, self._parameters.sides), others)
        return self._others

    def _note_wire(self, peer: NodeId) -> None:
        """Of a contact that was heard just now."""
        earlier = not self._world.understands(peer, CarriedParcels)
        if earlier != (peer in self._earlier):
            self._earlier ^= {peer}
            self._too_far.clear()
            self._table = None

    def contacts(self) -> set[NodeId]:
        """Neighbours, fingers and fans."""
        return {*self._near, *self._fingers.values(), *self._fans}

    def known_peers(self) -> set[NodeId]:
        return self.contacts().union(self._heard, self._sent, self._told, self._asked)

    def heard_since(self, peer: NodeId, moment: float) -> bool:
        return self._heard.get(peer, -1.0) >= moment

    def sign_due(self, peer: NodeId, since: float) -> bool:
        """Whether something for a contact that has waited since then may go now: it takes the place of a sign of life,
        or has waited for as long as there is between two of them.
        """
        parameters = self._parameters
        period = parameters.near_period if peer in self._near else parameters.finger_period
        limit = self._world.now - period + parameters.tick / 2
        return since < limit or self._sent.get(peer, -1e9) < limit

    # What the directory tells.

    def start(self, contacts: Sequence[NodeId]) -> None:
        """Join, or go on after a restart that kept the memory."""
        now = self._world.now
        self._contacts = tuple(contact for contact in contacts if contact != self.id)
        self._heard = dict.fromkeys(self._heard, now)
        self._silent.clear()
        self._asked.clear()
        self._started = self._changed_at = now
        self._looks = 0
        self._look_for(self.id, self._contacts)
        self._next_look = now + 2 * self._parameters.tick

    def send(self, peer: NodeId, message: Message) -> None:
        """To a contact; it is a sign of life, too."""
        self._sent[peer] = self._world.now
        self._world.send(peer, message)

    def hear(self, peer: NodeId) -> None:
        self._silent.pop(peer, None)
        if peer in self._heard:
            self._heard[peer] = self._world.now
            self._note_wire(peer)

    def candidates(self, peers: Iterable[NodeId]) -> None:
        """Peers that may be nearer than those known."""
        now = self._world.now
        for peer in peers:
            if (
                peer not in self._too_far
                and self._fits(peer)
                and self._silent.get(peer, 0.0) <= now
                and now - self._asked.get(peer, -1e9) > 3.0
            ):
                self._asked[peer] = now
                self._world.send(peer, Beat(self._named()))

    def _fits(self, peer: NodeId) -> bool:
        """Whether a peer belongs among the neighbours; the answer holds until these change."""
        sides = self._parameters.sides
        if rules.fits(self.id, peer, self.after, self.before, sides):
            return True
        if self._earlier and peer not in self._earlier:
            after, before = self.parcel_sides()
            if peer not in self._near and rules.fits(self.id, peer, after, before, sides):
                return True
        if len(self._too_far) >= MOST_REMEMBERED:
            self._too_far.clear()
        self._too_far.add(peer)
        return False

    def remove(self, peer: NodeId, dead: bool = True) -> None:
        """A contact is gone."""
        if dead:
            self._silent[peer] = self._world.now + self._parameters.doubt
        for memory in (self._heard, self._sent, self._spoke, self._told, self._asked):
            memory.pop(peer, None)
        self._earlier.discard(peer)
        if self._fans.pop(peer, self) is None:
            self._table = None
        for place in [place for place, finger in self._fingers.items() if finger == peer]:
            del self._fingers[place]
            self._looked.pop(place, None)
            self._table = None
        if self._near.pop(peer, self) is None:
            self._rearrange()
            # Other contacts may be next now. Their signs of life would not say so for a while.
            self.candidates(sorted({*self._fingers.values(), *self._fans}.difference(self._near)))

    def leave(self) -> None:
        for peer in sorted(self.contacts()):
            self._world.send(peer, Release())

    def spoke(self, peer: NodeId) -> None:
        """The node's own heartbeats and pings are signs of life, too, as long as there is nothing else to say."""
        if peer in self._heard:
            self._spoke[peer] = self._world.now

    def beat(self) -> None:
        """Once per tick: who is silent, signs of life, and questions that are due."""
        now, parameters = self._world.now, self._parameters
        slack = parameters.tick / 2
        young = now - max(self._started, self._changed_at) < YOUNG
        near_period = parameters.tick if young else parameters.near_period
        # Silence that ends a contact, silence that makes it asked, and its period: of neighbours, and of others.
        of_near = (parameters.near_silence, parameters.near_period + slack, near_period)
        of_others = (parameters.finger_silence, parameters.finger_period + slack, parameters.finger_period)
        for peer in self._sorted():
            if peer == self.id:
                continue
            too_long, late, period = of_near if peer in self._near else of_others
            silence = now - self._heard.setdefault(peer, now)
            if silence > late:
                if silence > too_long:
                    self.remove(peer)
                    self._lost(peer)
                else:
                    self.send(peer, Beat(None, finger=peer in self._fingers.values(), asks=True))
            elif now - self._sent.get(peer, -1e9) > period - slack:
                self._beat_to(peer, spoken=now - self._spoke.get(peer, -1e9) <= period)
        contacts = self.contacts()
        for peer in [peer for peer in self._sent if peer not in contacts]:
            self._forget(peer)
        for memory, limit in ((self._asked, now - 10.0), (self._silent, now)):
            for peer in [peer for peer, time in memory.items() if time < limit]:
                del memory[peer]
        self._look_around(now)
        self._look_for_fingers(now)

    def _beat_to(self, peer: NodeId, spoken: bool) -> None:
        near = peer in self._near
        version, since = self._told.get(peer, (-1, 0))
        same = version == self._version or not near
        if since < FULL_BEAT_EVERY and same and spoken:
            self._sent[peer] = self._spoke[peer]
        elif near:
            full = not same or since >= FULL_BEAT_EVERY
            self.send(peer, Beat(self._named() if full else None))
        else:
            self.send(peer, Beat(None, finger=peer in self._fingers.values()))
        self._told[peer] = (self._version, since + 1 if since < FULL_BEAT_EVERY and same else 0)

    def _named(self) -> tuple[NodeId, ...]:
        return tuple(self._near)

    def _look_around(self, now: float) -> None:
        if now < self._next_look:
            return
        self._looks += 1
        soon = self._looks < LOOKS_AT_FIRST or not self._near
        pause = 2 * self._parameters.tick if soon else self._parameters.look_around
        self._next_look = now + pause * self._world.random.uniform(0.75, 1.25)
        peer = self._sample()
        self._look_for(self.id, self._contacts if peer is None or not self._near else (peer,))

    def _look_for(self, point: int, by_way_of: Iterable[NodeId]) -> None:
        for peer in by_way_of:
            self._world.send(peer, Look(self.id, point))

    def _look_for_fingers(self, now: float) -> None:
        """A few points per tick: those without a finger, and those that were looked up long ago."""
        if not self._near or now - self._started < 4 * self._parameters.tick:
            return
        points = self._points()
        due = [
            place
            for place in range(len(points))
            if now - self._looked.get(place, -1e9)
            > (self._parameters.refresh if place in self._fingers or place in self._served else 5.0)
        ]
        for place in due[:2]:
            self._looked[place] = now
            self._served.discard(place)
            hop = self.next_hop(points[place])
            if hop != self.id:
                self._look_for(points[place], (hop,))
            else:
                self._served.add(place)

    def _points(self) -> Sequence[int]:
        """Where the fingers should lead."""
        return self._targets.points(rules.power_below(self.nodes))[: rules.fingers_among(self.nodes)]

    def _let_go(self) -> None:
        """Of fingers and fans that are too many for so many nodes."""
        wanted, most = rules.fingers_among(self.nodes), rules.most_fans(self.nodes)
        for place in [place for place in self._fingers if place >= wanted]:
            self._drop_finger(place)
        for fan in list(self._fans)[most:]:
            del self._fans[fan]
            self._table = None
            if fan not in self.contacts():
                self._forget(fan)
                self._world.send(fan, Release())

    def _drop_finger(self, place: int) -> None:
        finger = self._fingers.pop(place)
        self._table = None
        if finger not in self.contacts():
            self._forget(finger)
            self._world.send(finger, Release())

    def _forget(self, peer: NodeId) -> None:
        for memory in (self._heard, self._sent, self._spoke, self._told):
            memory.pop(peer, None)
        self._earlier.discard(peer)

    # What peers say.

    def _receive_beat(self, sender: NodeId, message: Beat) -> None:
        if sender == self.id:
            return
        self.hear(sender)
        if message.asks and sender in self._heard:
            self.send(sender, Beat(None, finger=sender in self._fingers.values(), answer=True))
        if message.finger:
            self._hear_fan(sender)
        elif sender not in self._near:
            self._hear_stranger(sender, message)
        if message.near:
            self.candidates(message.near[:MOST_NAMED])

    def _hear_fan(self, sender: NodeId) -> None:
        if sender in self._near or sender in self._fans or sender in self._fingers.values():
            return
        if len(self._fans) >= rules.most_fans(self.nodes):
            self._world.send(sender, Release())
            return
        self._fans[sender] = None
        self._heard[sender] = self._world.now
        self._table = None
        self._note_wire(sender)

    def _hear_stranger(self, sender: NodeId, message: Beat) -> None:
        if sender in self._fingers.values() and message.near is None:
            return  # It answers as a fan would: with a sign of life.
        if self._earlier and not self._world.understands(sender, CarriedParcels):
            fits = rules.fits(self.id, sender, self.after, self.before, self._parameters.sides)
            if not fits:
                self._too_far.add(sender)
        if sender not in self._too_far and self._fits(sender):
            self._near[sender] = None
            self._heard[sender] = self._world.now
            self._fans.pop(sender, None)
            self._note_wire(sender)
            self._rearrange()
        if not message.answer:
            self._world.send(sender, Beat(self._named(), answer=True))

    def _receive_look(self, sender: NodeId, message: Look) -> None:
        origin, point = message.origin, message.point
        if origin == self.id or not (0 <= origin < RING_SIZE and 0 <= point < RING_SIZE):
            return
        self.hear(sender)
        hop = self.next_hop(point)
        if hop == origin:
            # It is in our table already: whoever is next to it here will do.
            hop = self.id
        if hop in (self.id, sender) or not 0 <= message.hops < MOST_HOPS:
            full = len(self._fans) >= rules.most_fans(self.nodes) and origin not in self._fans
            self._world.send(origin, Found(point, self._named(), full))
        else:
            self._world.send(hop, Look(origin, point, message.hops + 1))
        if point == origin:
            self.candidates((origin,))

    def _receive_found(self, sender: NodeId, message: Found) -> None:
        if sender == self.id:
            return
        self.hear(sender)
        if message.point == self.id:
            self.candidates((sender, *message.near[:MOST_NAMED]))
            return
        points = self._points()
        if message.point not in points:
            return
        place = points.index(message.point)
        instead = [peer for peer in message.near[:MOST_NAMED] if peer != self.id]
        finger = self._world.random.choice(instead) if message.full and instead else sender
        if self._fingers.get(place) == finger:
            return
        if place in self._fingers:
            self._drop_finger(place)
        if finger in self.contacts():
            self._served.add(place)
            return
        self._fingers[place] = finger
        self._heard[finger] = self._world.now
        self._table = None
        self.send(finger, Beat(None, finger=True))

    def _receive_release(self, sender: NodeId, _message: Release) -> None:
        if sender in self._asked and sender not in self._sorted():
            # It was asked whether it stands next to this node, and does not stand on the ring.
            self._silent[sender] = self._world.now + self._parameters.doubt
        self.remove(sender, dead=False)

    def _rearrange(self) -> None:
        """Keep the nearest on either side."""
        sides = self._parameters.sides
        before = (self.after, self.before[:1])
        self.after, self.before = rules.sides_of(self.id, self._near, sides)
        self._too_far.clear()
        kept = {*self.after, *self.before}
        if self._earlier:
            for side in rules.sides_of(
                self.id, [one for one in self._near if one not in self._earlier], sides
            ):
                kept.update(side)
        for peer in [peer for peer in self._near if peer not in kept]:
            del self._near[peer]
            if peer not in self._fans and peer not in self._fingers.values():
                self._forget(peer)
        # There are at least those that it knows, also when so many neighbours are gone that the rest tells little.
        self.nodes = max(rules.estimated_nodes(self.id, self.after, self.before), len(self.contacts()) + 1)
        self._let_go()
        self._version += 1
        self._changed_at = self._world.now
        self._table = None
        if (self.after, self.before[:1]) != before:
            self._moved()
