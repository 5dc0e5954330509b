"""One node's part in the topic directory: subscriber, carrier, home.

Theory of operation: every topic has a home on a ring of uniform identifiers (`ring`). Subscribers announce
themselves to the home (`announcer`), hop by hop over connections that are open anyway (`carrier`). The home
keeps some of the subscribers (`home`), names them to each other, and joins parts of a topic that have lost
each other. A home introduces nodes and never carries events. Records are kept at the home and at its
successors. A node that becomes the home of more topics asks its neighbours for their records. If nodes have
keys, they believe a record only with the subscriber's own proof (`proofs`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from topicweave.blocks.topic_directory import copies
from topicweave.blocks.topic_directory.announcer import Announcer
from topicweave.blocks.topic_directory.carrier import Carrier, part_of
from topicweave.blocks.topic_directory.home import Home
from topicweave.blocks.topic_directory.messages import (
    SLICES,
    Announcement,
    Carry,
    OtherRecords,
    ProvenCarry,
    Record,
    Renewal,
    SameRecords,
    Told,
    TopicContact,
    Unanswered,
    WantRecords,
)
from topicweave.blocks.topic_directory.parameters import DirectoryParameters
from topicweave.blocks.topic_directory.parts import Parts
from topicweave.blocks.topic_directory.proofs import BroughtProofs, ProofChecks, ProvenContacts
from topicweave.blocks.topic_directory.ring import HomesRing
from topicweave.blocks.topic_directory.slow import SlowCarrier
from topicweave.model.ids import RING_SIZE, Interest, NodeId, TopicId, clockwise, in_interval
from topicweave.port import Receivers, TimerKey, Timers, World

TIMER = "dir-tick"
RECORDS_AT_ONCE = 256
SWEEP_EVERY, INTRODUCE_EVERY = 10, 3
"""Ticks."""
RENEWALS_EVERY, SAME_EVERY = 5, 30
"""Ticks between two times that keepers are told who renewed: their records are good for at least one more
term, and many renewals travel together. And between two times that they are told what the home has, which is all
that those get to know who understand it.
"""


class NamedSubscribers(NamedTuple):
    """The subscribers of a topic that a home named. `parted`: they are in another part of the topic than the node."""

    topic: TopicId
    contacts: Sequence[TopicContact]
    parted: bool


class TopicDirectory:
    """`known(topic)` returns how many other subscribers the node knows. `learned(named)` takes the
    subscribers that homes named, and returns for each topic those that the node believes. `sample()` returns
    a random peer. `said(peer, topic)` tells whether a peer itself told this node that it wants a topic.
    """

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        known: Callable[[TopicId], int],
        learned: Callable[[Sequence[NamedSubscribers]], Iterable[Sequence[TopicContact]]],
        sample: Callable[[], NodeId | None],
        parameters: DirectoryParameters | None = None,
    ) -> None:
        self._world = world
        self.id = node_id
        self.parameters = parameters or DirectoryParameters()
        self._learned = learned
        self._parts: Parts | None = None
        self.ring = HomesRing(world, node_id, self.parameters, sample, self._moved, self._dead)
        self.carrier = Carrier(world, self.ring, self.parameters, self._arrived, self._dead)
        self.slow = SlowCarrier(world, self.ring, self.parameters, self._arrived_slowly, self.carrier.pass_on)
        self.home = Home(node_id, self.parameters, world.random, lifetime=30.0)
        self._announcer = Announcer(world, node_id, self.parameters, known)
        self._announcer.nodes = lambda: self.ring.nodes
        self._checks = ProofChecks(world, node_id)
        self._proven = ProvenContacts()
        self.said: Callable[[NodeId, TopicId], bool] = lambda _peer, _topic: False
        self._ticks = 0
        self._arc_start: int | None = None
        self._keepers: list[NodeId] = []  # successors that have our records
        self._compared: set[NodeId] = set()  # those that may say that they have others
        self._asked: set[NodeId] = set()  # the nearest ones, for the records of our arc
        self._has_moved = False
        self._backlog: dict[NodeId, dict[TopicId, None]] = {}  # records yet to be sent to a neighbour

    def serve(self, parts: Parts) -> None:
        """Go by what a system knows of the parts of topics."""
        self._parts = parts
        self._announcer.label = parts.label
        self._announcer.leading = parts.leading
        self._announcer.suited = parts.suited
        self._announcer.lifetime = self.home.lifetime = parts.lifetime

    def receivers(self) -> Receivers:
        return {
            **self.ring.receivers(),
            **self.carrier.receivers(),
            **self.slow.receivers(),
            WantRecords: self._receive_want,
            SameRecords: self._receive_same,
            OtherRecords: self._receive_other,
        }

    def timers(self) -> Timers:
        return {TIMER: self._tick, **self.carrier.timers()}

    # What the node tells.

    def start(self, contacts: Sequence[NodeId]) -> None:
        self.carrier.restart()
        self.slow.restart()
        self._compared.clear()
        self._announcer.restart()
        self._backlog.clear()
        self._keepers = []
        self._asked.clear()
        self.ring.start(contacts)
        self._world.set_timer((TIMER,), self._world.random.random() * self.parameters.tick)

    def set_topics(self, topics: Interest) -> None:
        self._announcer.set_topics(topics)

    def seek(self, topic: TopicId) -> None:
        """Look for subscribers of a topic that the node publishes on and does not want itself."""
        self._announcer.seek(topic)

    def audience(self, topic: TopicId) -> int | None:
        """How many others want a topic, as far as its home knows; None while that is not known here."""
        return self._announcer.audience(topic)

    def unreachable(self, peer: NodeId, topics: Iterable[TopicId]) -> None:
        """A contact did not answer: tell the homes of these topics."""
        if peer in self.ring.contacts():
            self.ring.remove(peer)
            self._dead(peer)
        reports = [Unanswered(topic, peer) for topic in topics]
        for report in reports:
            self._announcer.lacks(report.topic, unreached=True)
        if reports:
            self.carrier.report(reports)

    def candidates(self, peers: Iterable[NodeId]) -> None:
        """What peer sampling brings: some may be neighbours on the ring."""
        self.ring.candidates(peers)

    def leave(self) -> None:
        for announcement in self._announcer.withdrawals():
            self.carrier.announce(announcement, self._announcer.proofs(announcement))
        self.carrier.flush()  # Those who follow on the ring keep this node's records already.
        self.ring.leave()

    def known_peers(self) -> set[NodeId]:
        return {
            *self.ring.known_peers(),
            *self.carrier.known_peers(),
            *self.slow.known_peers(),
            *self._keepers,
            *self._backlog,
            *self._compared,
            *self._asked,
        }

    # Once per tick.

    def _tick(self, key: TimerKey) -> None:
        self._world.set_timer(key, self.parameters.tick)
        self._ticks += 1
        now = self._world.now
        self.slow.flush()
        self.ring.beat()
        if self.ring.ready:
            if self._has_moved:
                self._has_moved = False
                self._settle_in()
            for announcement in self._announcer.due():
                self._announce(announcement)
            self._share_records(now)
            if self._ticks % SWEEP_EVERY == 0:
                self.home.sweep(now)
                self._proven.sweep(now)
            if self._ticks % INTRODUCE_EVERY == 0:
                answers = self.home.introductions(filter(self.ring.owns, self.home.topics()), now)
                if answers:
                    self.carrier.tell(answers, self.home.take_shown())
        self.carrier.flush()
        if self._ticks % SAME_EVERY == self.id % SAME_EVERY:
            self._say_what_there_is(now)

    def _announce(self, announcement: Announcement) -> None:
        """A renewal waits for others on its way, unless it brings a proof."""
        calm, proofs = self._announcer.calm(announcement), self._announcer.proofs(announcement)
        proven = {topic for proof in proofs for topic in proof.topics}
        if not calm:
            self.carrier.announce(announcement, proofs)
            return
        places: tuple[list[int], list[int]] = ([], [])
        for place, topic in enumerate(announcement.topics):
            places[topic in proven].append(place)
        if places[0]:
            self.slow.announce(part_of(announcement, places[0]))
        if places[1]:
            self.carrier.announce(part_of(announcement, places[1]), proofs)

    def _moved(self) -> None:
        self._has_moved = True

    def _settle_in(self) -> None:
        """The arc that this node is home to may be longer, and other nodes keep its records."""
        ring = self.ring
        start = ring.before[0] if ring.before else self.id
        grew = self._arc_start is None or clockwise(start, self.id) > clockwise(self._arc_start, self.id)
        if start != self._arc_start:
            if grew:
                self._asked.clear()
            elif ring.before:
                # Somebody stands before this node now: what lies before that one is its to keep.
                lost = [topic for topic in self.home.topics() if not ring.owns(topic)]
                self._hand_over(ring.before[:1], lost)
            self._arc_start = start
        nearest = {*ring.after[:1], *ring.before[:1]}
        self._asked &= nearest
        for peer in sorted(nearest - self._asked):
            # Whoever finds its place learns bit by bit who is next to it. These may not have missed it.
            self._asked.add(peer)
            ring.send(peer, WantRecords(start))
        keepers = ring.after[: self.parameters.sides]
        fresh = [peer for peer in keepers if peer not in self._keepers]
        self._keepers = list(keepers)
        self._compared.intersection_update(keepers)
        if fresh:
            owned = [topic for topic in self.home.topics() if ring.owns(topic)]
            self._hand_over(fresh, owned)

    def _hand_over(self, peers: Iterable[NodeId], topics: list[TopicId]) -> None:
        for peer in peers:
            if topics:
                self._backlog.setdefault(peer, {}).update(dict.fromkeys(topics))

    def _share_records(self, now: float) -> None:
        """What changed, to all who keep records with this node; and what single ones are yet to get, a part
        at a time.
        """
        changed = [record for record in self.home.take_changed(now) if self.ring.owns(record.topic)]
        proofs = self.home.proofs(changed) if self._checks.on else []
        renewed: list[Renewal] = []
        if self._ticks % RENEWALS_EVERY == 0:
            renewed = self.home.take_renewed(self.ring.owns, now)
        if changed or renewed:
            for peer in self._keepers:
                said = () if self._world.understands(peer, SameRecords) else renewed
                if changed or said:
                    self.carrier.records(peer, changed, said, proofs)
        contacts = self.ring.contacts() if self._backlog else ()
        for peer, topics in list(self._backlog.items()):
            if peer not in contacts:
                del self._backlog[peer]
                continue
            # Whoever gets proofs has to check them: no more at a time than it will.
            most = self.home.within(topics, RECORDS_AT_ONCE) if self._checks.on else RECORDS_AT_ONCE
            some = list(islice(topics, most))
            records = self.home.records(some, now)
            self.carrier.records(peer, records, proofs=self.home.proofs(records) if self._checks.on else ())
            for topic in some:
                del topics[topic]
            if not topics:
                del self._backlog[peer]

    # What comes.

    def _arrived(self, sender: NodeId, carry: Carry) -> None:
        now, brought = self._world.now, self._checks.brought(sender, carry)
        if carry.records:
            records: Iterable[Record] = carry.records
            if brought.needed:
                # That a subscriber is gone is for the home to say, not to be told.
                records = [one for one in records if one.left > 0.0 or not self.ring.owns(one.topic)]
            self.home.learn(records, now, brought, lambda topic: self.ring.home_before(topic) == sender)
        if carry.renewals:
            self.home.learn_renewals(carry.renewals, now, brought)
        # Whoever asks because it could not reach somebody is not to be told of that one again.
        for report in carry.reports:
            self.home.reported(report)
        answers = []
        for announcement in carry.announcements:
            answers += self.home.announced(announcement, now, brought)
        if carry.told:
            told = [told for told in carry.told if told.to == self.id and self._announcer.told(told)]
            self._hear(told, brought)
        if answers:
            self.carrier.tell(answers, self.home.take_shown())
        if lacking := self.home.take_lacking():
            self.carrier.lack(lacking)
        for lack in carry.lacking if type(carry) is ProvenCarry else ():
            if lack.to == self.id:
                self._announcer.lacking(lack.topics)

    def _arrived_slowly(
        self, sender: NodeId, announcements: Sequence[Announcement], told: Sequence[Told]
    ) -> None:
        """What nobody waits for; nor does anybody for the answers to it."""
        now, brought = self._world.now, self._checks.brought(sender, Carry(0))
        answers: list[Told] = []
        news: list[Told] = []
        for announcement in announcements:
            for answer in self.home.announced(announcement, now, brought):
                (answers if answer.to == announcement.subscriber else news).append(answer)
        self._hear([one for one in told if one.to == self.id and self._announcer.told(one)], brought)
        if shown := self.home.take_shown():
            self.carrier.tell((*answers, *news), shown)
        else:
            if answers:
                self.slow.tell(answers)
            if news:
                self.carrier.tell(news)
        if lacking := self.home.take_lacking():
            self.carrier.lack(lacking)

    def _hear(self, told: Sequence[Told], brought: BroughtProofs) -> None:
        """What homes say to this node. All of it is learned at once: a node may want thousands of topics."""
        named = [
            NamedSubscribers(answer.topic, self._believable(answer, brought), answer.parted)
            for answer in told
        ]
        for (topic, _, parted), believed in zip(named, self._learned(named), strict=True):
            if parted and self._parts is not None:
                for contact in believed:
                    self._parts.introduced(topic, contact.id, contact.label)
        if self._parts is not None and any(contacts for _, contacts, _ in named):
            self._parts.named()

    def _believable(self, answer: Told, brought: BroughtProofs) -> list[TopicContact]:
        """The contacts of an answer: where nodes have keys, those that are proven, or were."""
        named = answer.contacts[: self.parameters.contacts]
        contacts = [one for one in named if one.id != self.id and 0 <= one.id < RING_SIZE]
        if not contacts or not self._checks.on:
            return contacts
        topic, now = answer.topic, self._world.now
        proven = []
        for contact in contacts:
            if self._proven.has(topic, contact.id, now) or self.said(contact.id, topic):
                proven.append(contact)
            elif brought.of(contact.id, topic) is not None:
                self._proven.add(topic, contact.id, now)
                proven.append(contact)
        self._announcer.proven(topic, len(proven) == len(contacts))
        return proven if brought.needed else contacts

    def _receive_want(self, sender: NodeId, message: WantRecords) -> None:
        if 0 <= message.start < RING_SIZE and sender in self.ring.contacts():
            mine = [topic for topic in self.home.topics() if in_interval(topic, message.start, sender)]
            self._hand_over((sender,), mine)

    # Whether keepers have the same records.

    def _say_what_there_is(self, now: float) -> None:
        before = self.ring.before
        keepers = [
            peer
            for peer in self._keepers
            if peer not in self._backlog and self._world.understands(peer, SameRecords)
        ]
        if before and keepers and not self._has_moved:
            owned = filter(self.ring.owns, self.home.topics())
            same = SameRecords(before[0], self.home.marks(owned, now))
            for peer in keepers:
                self._compared.add(peer)
                self.ring.send(peer, same)

    def _receive_same(self, sender: NodeId, message: SameRecords) -> None:
        if sender not in self.ring.before or len(message.marks) != 4 * SLICES:
            return
        # What the sender says is its own, and is that as far as this node knows: the shorter one of the two.
        starts = (message.start, self.ring.start_of(sender))
        start = min(starts, key=lambda one: clockwise(one, sender) or RING_SIZE)
        now, its = self._world.now, [one for one in self.home.topics() if in_interval(one, start, sender)]
        other = copies.differing(self.home.marks(its, now, copied=True), message.marks)
        self.home.compared(its, other, now)
        if other:
            self.ring.send(sender, OtherRecords(other))

    def _receive_other(self, sender: NodeId, message: OtherRecords) -> None:
        if sender in self._compared and sender in self._keepers:
            self._compared.discard(sender)  # Once for each time that it was told.
            of_them = [
                topic
                for topic in self.home.topics()
                if copies.slice_of(topic) in message.slices and self.ring.owns(topic)
            ]
            self._hand_over((sender,), of_them)

    def _dead(self, peer: NodeId) -> None:
        self._backlog.pop(peer, None)
