"""Carrying announcements, answers and reports over the ring: hop by hop over open connections, merged per
next hop, acknowledged.

Rules kept
----------
1. What goes to the same next hop goes together, once per tick. Urgent things go at once, with all that waits
   for the same hop. What waits for a hop that is no contact by then goes another way: nobody dials in order
   to announce. Records for such a neighbour are dropped; whoever takes its place gets all of them.
2. Each hop acknowledges. A hop that does not, and said nothing else, counts as dead, and what it should have
   carried goes another way. So a crash costs the things under way a time-out, and they still arrive.
3. An announcement is split if the ways of its topics part, and so are answers and reports. Each piece makes
   at most `MOST_TRIES` such detours.
4. A proof goes with everything that concerns the same subscriber and topic, and no further. A hop with an
   earlier wire format gets none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from topicweave.blocks.name_messages import RingParcel, weight
from topicweave.blocks.topic_directory.messages import (
    WANTS_CONTACTS,
    Announcement,
    Carry,
    Got,
    Lacking,
    Proof,
    ProvenCarry,
    Record,
    Renewal,
    Told,
    Unanswered,
)
from topicweave.blocks.topic_directory.parameters import DirectoryParameters
from topicweave.blocks.topic_directory.proofs import ProofsByTopic, by_topic
from topicweave.blocks.topic_directory.ring import HomesRing
from topicweave.model.ids import RING_SIZE, NodeId, TopicId
from topicweave.port import Receivers, TimerKey, Timers, World

TIMER = "dir-hop"
SOON = "dir-soon"
MOST_TRIES = 4
MOST_ITEMS = 4096
"""A message that brings more than so many things is not looked at."""
AT_ONCE = 2048
DELAY = 0.1
"""Seconds within which urgent things for the same hop are put together."""
MOST_HOPS = 64
NOT_ASKING = bytes(flags for flags in range(256) if not flags & WANTS_CONTACTS)


class _Sent(NamedTuple):
    at: float
    peer: NodeId
    message: Carry
    tries: int


class Waiting:
    """What goes to one hop next."""

    __slots__ = (
        "announcements",
        "lacking",
        "parcels",
        "proofs",
        "records",
        "renewals",
        "reports",
        "told",
        "tries",
    )

    def __init__(self) -> None:
        self.announcements: list[Announcement] = []
        self.told: list[Told] = []
        self.reports: list[Unanswered] = []
        self.records: list[Record] = []
        self.renewals: list[Renewal] = []
        self.parcels: list[RingParcel] = []
        self.proofs: dict[Proof, None] = {}
        self.lacking: list[Lacking] = []
        self.tries = 0

    def take_along(self, proofs: ProofsByTopic, speaks_of: Iterable[tuple[NodeId, TopicId]]) -> None:
        """The proofs for what goes to this hop."""
        for one in speaks_of:
            self.proofs.update(dict.fromkeys(proofs.get(one, ())))

    def to_be_routed(self) -> Carry:
        """All that ends at a home or at a node, and not at this hop."""
        said, told, reports = tuple(self.announcements), tuple(self.told), tuple(self.reports)
        return carrying(Carry(0, said, told, reports, parcels=tuple(self.parcels)), self.proofs, self.lacking)


class Carrier:
    """`arrived(sender, carry)` gets what ends here, and from whom it came; `dead(peer)` is called for a hop
    that does not answer. Parcels are for `opened`; where nobody wants them, they end.
    """

    def __init__(
        self,
        world: World,
        ring: HomesRing,
        parameters: DirectoryParameters,
        arrived: Callable[[NodeId, Carry], None],
        dead: Callable[[NodeId], None],
    ) -> None:
        self._world = world
        self._ring = ring
        self._parameters = parameters
        self._arrived = arrived
        self._dead = dead
        self.opened: Callable[[RingParcel], None] = lambda _parcel: None
        self._waiting: dict[NodeId, Waiting] = {}
        self._urgent = False
        self._sent: dict[int, _Sent] = {}
        self._number = 0

    def receivers(self) -> Receivers:
        return {Carry: self._receive, ProvenCarry: self._receive, Got: self._receive_got}

    def timers(self) -> Timers:
        return {TIMER: self._check, SOON: self._flush_soon}

    def restart(self) -> None:
        """Timers were lost with the last life."""
        self._waiting.clear()
        self._sent.clear()
        self._urgent = False

    def known_peers(self) -> set[NodeId]:
        return {*self._waiting, *(sent.peer for sent in self._sent.values())}

    # What is to be carried.

    def announce(self, announcement: Announcement, proofs: Iterable[Proof] = ()) -> None:
        carry = carrying(Carry(0, announcements=(announcement,)), proofs)
        self._pass_on(self._ring.id, carry, 0, urgent=False)

    def tell(self, answers: Iterable[Told], proofs: Iterable[Proof] = ()) -> None:
        told = tuple(answers)
        self._pass_on(self._ring.id, carrying(Carry(0, told=told), proofs), 0, any(map(waited_for, told)))

    def pass_on(self, carry: Carry) -> None:
        """What went another way so far."""
        self._pass_on(self._ring.id, carry, 0, urgent=False)

    def lack(self, lacking: Iterable[Lacking]) -> None:
        """Ask subscribers for their proofs."""
        self._pass_on(self._ring.id, carrying(Carry(0), (), lacking), 0, urgent=False)

    def report(self, reports: Iterable[Unanswered]) -> None:
        self._pass_on(self._ring.id, Carry(0, reports=tuple(reports)), 0, urgent=False)

    def post(self, parcel: RingParcel) -> None:
        """To the home of a point, or to a node; a ring neighbour is the home of its own identifier."""
        self._pass_on(self._ring.id, Carry(0, parcels=(parcel,)), 0, parcel.soon)

    def records(
        self,
        peer: NodeId,
        records: Iterable[Record],
        renewals: Iterable[Renewal] = (),
        proofs: Iterable[Proof] = (),
    ) -> None:
        """To a ring neighbour, and no further."""
        waiting = self._to(peer)
        waiting.records.extend(records)
        waiting.renewals.extend(renewals)
        waiting.proofs.update(dict.fromkeys(proofs))

    def flush(self) -> None:
        """Send all that waits."""
        self._find_other_ways()
        waiting, self._waiting, self._urgent = self._waiting, {}, False
        now = self._world.now
        for peer, things in waiting.items():
            made = loads(things, self._number + 1)
            if (things.proofs or things.lacking) and self._world.understands(peer, ProvenCarry):
                made = with_proofs(made or [Carry(self._number + 1)], things)
            for message in made:
                self._number = message.number
                if not self._sent:
                    self._world.set_timer((TIMER,), self._parameters.hop_timeout)
                self._sent[self._number] = _Sent(now, peer, message, things.tries)
                self._ring.send(peer, message)

    def _find_other_ways(self) -> None:
        contacts = self._ring.contacts()
        while gone := [peer for peer in self._waiting if peer not in contacts]:
            for peer in gone:
                if things := self._waiting.pop(peer, None):
                    self._pass_on(self._ring.id, things.to_be_routed(), things.tries, urgent=False)
            contacts = self._ring.contacts()

    def _to(self, hop: NodeId, tries: int = 0) -> Waiting:
        """What goes to a hop next, which may be this node."""
        waiting = self._waiting.get(hop)
        if waiting is None:
            waiting = self._waiting[hop] = Waiting()
        if tries:
            waiting.tries = max(waiting.tries, tries)
        return waiting

    def _pass_on(self, sender: NodeId, carry: Carry, tries: int, urgent: bool) -> None:
        """Each thing to its next hop, or here, if this is where it should be."""
        ring = self._ring
        # An exact type, since there are no others: it is asked several times per hop, and `isinstance` takes long.
        proofs = by_topic(carry.proofs) if type(carry) is ProvenCarry else {}
        # A node that does not know its place yet can neither keep anything nor say where it goes.
        for announcement in carry.announcements if ring.ready else ():
            ways: dict[NodeId, list[int]] = {}
            for place, topic in enumerate(announcement.topics):
                ways.setdefault(ring.next_hop(topic, announcement.attempt), []).append(place)
            for hop, places in ways.items():
                going, part = self._to(hop, tries), part_of(announcement, places)
                going.announcements.append(part)
                if proofs:
                    going.take_along(proofs, ((part.subscriber, topic) for topic in part.topics))
        for told in carry.told:
            going = self._to(ring.next_hop(told.to), tries)
            going.told.append(told)
            if proofs:
                going.take_along(proofs, ((contact.id, told.topic) for contact in told.contacts))
        for lacking in carry.lacking if type(carry) is ProvenCarry else ():
            self._to(ring.next_hop(lacking.to), tries).lacking.append(lacking)
        for report in carry.reports if ring.ready else ():
            self._to(ring.next_hop(report.topic), tries).reports.append(report)
        for parcel in carry.parcels if ring.ready else ():
            self._to(ring.parcel_hop(parcel.to, parcel.attempt), tries).parcels.append(parcel)
        staying = self._waiting.pop(ring.id, None)
        if staying is not None:
            self._end(sender, staying)
        if urgent and self._waiting and not self._urgent:
            self._urgent = True
            self._world.set_timer((SOON,), DELAY)

    def _end(self, sender: NodeId, staying: Waiting) -> None:
        """What goes no further than this node."""
        if staying.announcements or staying.told or staying.reports or staying.lacking:
            ends = Carry(0, tuple(staying.announcements), tuple(staying.told), tuple(staying.reports))
            self._arrived(sender, carrying(ends, staying.proofs, staying.lacking))
        for parcel in staying.parcels:
            self.opened(parcel)

    def _flush_soon(self, _key: TimerKey) -> None:
        self.flush()

    # What comes, and what does not.

    def _receive(self, sender: NodeId, message: Carry) -> None:
        self._ring.hear(sender)
        self._ring.send(sender, Got(message.number))
        size = len(message.told) + len(message.reports) + len(message.records)
        for announcement in message.announcements:
            size += len(announcement.topics)
        for renewal in message.renewals:
            size += len(renewal.topics)
        size += sum(map(weight, message.parcels))
        if size > MOST_ITEMS or not all(map(sound, message.announcements)):
            return
        proofs: tuple[Proof, ...] = ()
        if type(message) is ProvenCarry:
            proofs = message.proofs
            lacking = sum(len(one.topics) for one in message.lacking)
            if max(len(proofs), len(message.lacking), lacking) > MOST_ITEMS:
                return
        parcels = message.parcels
        if not all(0 <= parcel.to < RING_SIZE and 0 <= parcel.attempt < 16 for parcel in parcels):
            return
        if message.records or message.renewals:
            kept = Carry(0, records=message.records, renewals=message.renewals)
            self._arrived(sender, carrying(kept, proofs))
        urgent = any(map(waited_for, message.told)) or any(map(urgent_to, message.announcements))
        urgent = urgent or any(parcel.soon for parcel in parcels)
        self._pass_on(sender, message, 0, urgent)

    def _receive_got(self, sender: NodeId, message: Got) -> None:
        self._ring.hear(sender)
        sent = self._sent.get(message.number)
        if sent is not None and sent.peer == sender:
            del self._sent[message.number]

    def _check(self, key: TimerKey) -> None:
        now, timeout = self._world.now, self._parameters.hop_timeout
        late = [number for number, sent in self._sent.items() if now - sent.at >= timeout - 1e-6]
        for number in late:
            sent = self._sent.pop(number)
            if not self._ring.heard_since(sent.peer, sent.at):
                self._ring.remove(sent.peer)
                self._dead(sent.peer)
            if sent.tries < MOST_TRIES:
                self._pass_on(self._ring.id, sent.message, sent.tries + 1, urgent=True)
        if self._sent:
            due = min(sent.at for sent in self._sent.values()) + timeout
            self._world.set_timer(key, max(due - now, 1e-3))


def loads(things: Waiting, number: int) -> list[Carry]:
    """What waits for a hop, in messages of at most half of what the hop looks at: a node may want thousands
    of topics. They are numbered from `number` on.
    """
    announcements, renewals = merged(things.announcements), things.renewals
    long_ones: list[Announcement | Renewal] = [*announcements, *renewals]
    told, reports, records = things.told, things.reports, things.records
    size = len(told) + len(reports) + len(records) + sum(map(weight, things.parcels))
    for thing in long_ones:
        size += len(thing.topics)
    if not (size or long_ones):
        return []
    if size <= AT_ONCE:
        said, parcels = tuple(announcements), tuple(things.parcels)
        return [Carry(number, said, tuple(told), tuple(reports), tuple(records), tuple(renewals), parcels)]
    made = [Carry(number + place, parcels=tuple(some)) for place, some in enumerate(in_loads(things.parcels))]
    parts: list[tuple[list[Announcement], list[Renewal]]] = []
    room = 0
    for thing in long_ones:
        for first in range(0, max(1, len(thing.topics)), AT_ONCE):
            places = list(range(first, min(first + AT_ONCE, len(thing.topics))))
            if room < len(places):
                parts.append(([], []))
                room = AT_ONCE
            room -= len(places)
            if isinstance(thing, Announcement):
                parts[-1][0].append(part_of(thing, places))
            else:
                topics = thing.topics[first : first + AT_ONCE]
                parts[-1][1].append(Renewal(thing.subscriber, thing.epoch, thing.left, topics))
    for some_said, some_renewals in parts:
        made.append(Carry(number + len(made), tuple(some_said), renewals=tuple(some_renewals)))
    rest: list[Told | Unanswered | Record] = [*told, *reports, *records]
    for first in range(0, len(rest), AT_ONCE):
        some = rest[first : first + AT_ONCE]
        made.append(
            Carry(
                number + len(made),
                told=tuple(one for one in some if isinstance(one, Told)),
                reports=tuple(one for one in some if isinstance(one, Unanswered)),
                records=tuple(one for one in some if isinstance(one, Record)),
            )
        )
    return made


def carrying(carry: Carry, proofs: Iterable[Proof], lacking: Iterable[Lacking] = ()) -> Carry:
    """The same with proofs, if there are any.

    >>> carrying(Carry(1), ()) == Carry(1), carrying(Carry(1), (), [Lacking(5, (7,))]).lacking
    (True, (Lacking(to=5, topics=(7,)),))
    """
    proven, lacked = tuple(proofs), tuple(lacking)
    if not (proven or lacked):
        return carry
    parts = (carry.announcements, carry.told, carry.reports, carry.records, carry.renewals, carry.parcels)
    return ProvenCarry(carry.number, *parts, proven, lacked)


def with_proofs(made: list[Carry], things: Waiting) -> list[Carry]:
    """Each message with the proofs for what it says; what is lacked goes with the first."""
    proofs, lacking = by_topic(things.proofs), things.lacking
    proven = []
    for carry in made:
        mine = {proof: None for one in spoken_of(carry) for proof in proofs.get(one, ())}
        proven.append(carrying(carry, mine, lacking))
        lacking = []
    return proven


def spoken_of(carry: Carry) -> Iterator[tuple[NodeId, TopicId]]:
    """Of whom a message says that it wants which topic, or wants it no more."""
    for announcement in carry.announcements:
        for topic in announcement.topics:
            yield announcement.subscriber, topic
    for told in carry.told:
        for contact in told.contacts:
            yield contact.id, told.topic
    for record in carry.records:
        yield record.subscriber, record.topic
    for renewal in carry.renewals:
        for topic in renewal.topics:
            yield renewal.subscriber, topic


def in_loads(parcels: list[RingParcel]) -> list[list[RingParcel]]:
    """Parcels in lots that weigh no more than goes at once, unless one alone does."""
    lots: list[list[RingParcel]] = []
    room = 0
    for parcel in parcels:
        heavy = weight(parcel)
        if room < heavy:
            lots.append([])
            room = AT_ONCE
        room -= heavy
        lots[-1].append(parcel)
    return lots


def waited_for(told: Told) -> bool:
    """Whether it is an answer or an introduction. News of a newcomer is neither: the newcomer was answered,
    and calls.
    """
    return told.parted or told.again > 0


def urgent_to(announcement: Announcement) -> bool:
    """Whether somebody waits for the answer."""
    return bool(announcement.flags.translate(None, NOT_ASKING))


def sound(announcement: Announcement) -> bool:
    """Whether an announcement's parts fit together."""
    count = len(announcement.topics)
    labels = announcement.labels
    return (
        len(announcement.flags) == count
        and len(labels) in (0, count)
        and (not labels or max(labels) <= len(announcement.leaders))
        and 0 <= announcement.attempt < 16
        and 0.0 <= announcement.term < 1e6
        and 0 <= announcement.epoch < 1 << 63
    )


def part_of(announcement: Announcement, places: list[int]) -> Announcement:
    """What an announcement says of some of its topics.

    >>> whole = Announcement(1, 2, 60.0, (5, 6, 7), bytes([0, 1, 0]), leaders=(9,), labels=bytes([0, 0, 1]))
    >>> part = part_of(whole, [1, 2]); part.topics, part.flags, part.labels
    ((6, 7), b'\\x01\\x00', b'\\x00\\x01')
    """
    topics = announcement.topics
    if len(places) == len(topics):
        return announcement
    labels = bytes(announcement.labels[place] for place in places) if announcement.labels else b""
    return Announcement(
        announcement.subscriber,
        announcement.epoch,
        announcement.term,
        tuple(topics[place] for place in places),
        bytes(announcement.flags[place] for place in places),
        announcement.leaders if any(labels) else (),
        labels if any(labels) else b"",
        announcement.attempt,
    )


def merged(announcements: list[Announcement]) -> list[Announcement]:
    """The same with one announcement per subscriber, as far as their other words agree.

    >>> one, other = Announcement(1, 2, 60.0, (5,), b"\\x00"), Announcement(1, 2, 60.0, (6,), b"\\x01")
    >>> [(a.topics, a.flags) for a in merged([one, other])]
    [((5, 6), b'\\x00\\x01')]
    """
    if len(announcements) < 2:
        return announcements
    together: dict[tuple[NodeId, int, float, int], Announcement] = {}
    alone = []
    for announcement in announcements:
        if announcement.labels:
            alone.append(announcement)
            continue
        key = (announcement.subscriber, announcement.epoch, announcement.term, announcement.attempt)
        first = together.get(key)
        together[key] = announcement if first is None else _joined(first, announcement)
    return [*together.values(), *alone]


def _joined(one: Announcement, other: Announcement) -> Announcement:
    topics: tuple[TopicId, ...] = one.topics + other.topics
    return Announcement(
        one.subscriber, one.epoch, one.term, topics, one.flags + other.flags, attempt=one.attempt
    )
