"""A node as the home of topics: it keeps some of each topic's subscribers and introduces them to each other.

Rules kept
----------
1. A home keeps at most `records` subscribers of a topic. It keeps each until its term ends, it withdraws, or
   another node could not reach it. If there are more, newcomers take random places, but never that of a
   leader.
2. A home takes at most `hot` announcements of a topic per second. It always hears leaders of parts, also when
   they say that they lead no more: otherwise it would introduce a part that has ended for as long as the
   record lasts. Its answer says when to come again: soon, to a leader for whom there is no room.
3. An answer names at most `contacts` subscribers, drawn at random. Half of them have a lower id than the
   asker's, if there are so many. The home also names a newcomer to them: to all if these are all that it
   knows, otherwise to two of them. An asker that could not reach somebody is named to all whom the answer
   names, so that either side may call: with the budget of one more asker, for all of them together.
4. A label names a part of a topic. It counts once its bearer (the leader) has led for two lifetimes of a
   label. If there are two such parts, the home introduces random members of them to each other, a few at a
   time.
5. Every asker has a budget, and so has every topic. Where nodes have keys, an asker that does not prove its
   name shares the budget of the peer that brought the question: names can be made up, peers cannot.
6. The home's successors keep its records as well; see `directory` and `copies`. Of others' records a home takes all
   leaders, and other subscribers while there is room.
7. If subscribers sign what they say, a home keeps none without a proof, removes none for a withdrawal without
   a proof, and keeps none for longer than the proof counts. A renewal needs no proof. The home tells a
   subscriber whose proof it lacks, unless there is no room for it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator

from topicweave.blocks.topic_directory import copies, rules
from topicweave.blocks.topic_directory.messages import (
    CALL_ME,
    LEADS,
    PROOFS,
    SEEKS,
    SLICES,
    WANTS_CONTACTS,
    WITHDRAWS,
    Announcement,
    Lacking,
    Proof,
    Record,
    Renewal,
    Told,
    TopicContact,
    Unanswered,
)
from topicweave.blocks.topic_directory.parameters import DirectoryParameters
from topicweave.blocks.topic_directory.proofs import NOTHING, BroughtProofs
from topicweave.blocks.topic_directory.rules import Bucket
from topicweave.model.ids import RING_SIZE, NodeId, TopicId
from topicweave.port import PROOF_LASTS

MOST_TERM = 7200.0
MOST_ASKERS = 4096
MOST_TOPICS = 65_536
"""Nobody makes a node keep records of more topics than this."""
PAIRS = 4
"""Introductions of a topic per round; more where there are more than twice as many parts, so that each round
leaves half of them at most.
"""
TOLD_OF_NEWCOMERS = 2
MOST_ANSWERS = 25
"""Seconds' worth of a budget at once."""


class _Kept:
    """One subscriber of a topic."""

    __slots__ = ("_mark", "copied", "epoch", "label", "led_since", "proof", "proof_ends", "term", "until")

    def __init__(
        self, epoch: int, until: float, term: float, label: NodeId | None, led_since: float | None
    ) -> None:
        self.epoch, self.until, self.term = epoch, until, term
        self.label, self.led_since = label, led_since
        self.copied = False  # this is how the topic's home has it
        self._mark = -1  # until somebody wants to know it
        self.proof: Proof | None = None
        self.proof_ends = 0.0

    def prove(self, proof: Proof | None, earlier: _Kept | None, now: float) -> None:
        """No proof is good for longer because it is shown again."""
        if proof is None:
            return
        again = earlier is not None and earlier.proof == proof
        self.proof, self.proof_ends = proof, earlier.proof_ends if again and earlier else now + PROOF_LASTS
        self.until = min(self.until, self.proof_ends)

    def good_proof(self, epoch: int, now: float) -> Proof | None:
        return self.proof if self.epoch == epoch and now < self.proof_ends else None

    def says(self, later: _Kept) -> bool:
        """Whether a later one says the same, and for as long."""
        return (self.epoch, self.term, self.label, self.led_since) == (
            later.epoch,
            later.term,
            later.label,
            later.led_since,
        )

    def renews(self, old: _Kept) -> None:
        """It says the same as the old one did."""
        self.copied, self._mark = old.copied, old._mark

    def lasts(self, term: float) -> None:
        """As long as its home says."""
        self.copied, self.term, self._mark = True, term, -1

    def mark(self, topic: TopicId, subscriber: NodeId) -> int:
        if self._mark < 0:
            leads, term = self.led_since is not None, math.ceil(self.term)
            self._mark = copies.mark_of(topic, subscriber, self.epoch, term, self.label, leads)
        return self._mark


def _contact(subscriber: NodeId, kept: _Kept, now: float) -> TopicContact:
    return TopicContact(subscriber, kept.label, int(kept.until - now))


class _Topic:
    """All that a home knows of one."""

    __slots__ = ("announced", "bits", "earlier_bits", "introduced", "kept", "turned")

    def __init__(self, now: float, hot: float) -> None:
        self.kept: dict[NodeId, _Kept] = {}
        self.announced = Bucket(hot, 8 * hot, now)
        self.introduced = now
        # Who announced since the last turn, and before it: one bit each, where there are more than can be kept.
        self.bits = self.earlier_bits = 0
        self.turned = now


class Home:
    """`changed` collects what the successors have to be told."""

    def __init__(
        self, node_id: NodeId, parameters: DirectoryParameters, rng: random.Random, lifetime: float
    ) -> None:
        self._id = node_id
        self._parameters = parameters
        self._random = rng
        self.lifetime = lifetime
        """Seconds that a label outlives its leader."""
        self._topics: dict[TopicId, _Topic] = {}
        self._budgets: dict[tuple[NodeId, bool], Bucket] = {}
        self._calls = Bucket(parameters.budget, MOST_ANSWERS * parameters.budget, 0.0)
        self.changed: dict[tuple[TopicId, NodeId], None] = {}
        self.renewed: dict[NodeId, dict[TopicId, None]] = {}
        self._to_be_shown: dict[Proof, None] = {}
        self._lacking: dict[NodeId, dict[TopicId, None]] = {}

    # Announcements.

    def announced(
        self, announcement: Announcement, now: float, brought: BroughtProofs = NOTHING
    ) -> list[Told]:
        """Take down what a subscriber says; the answers, and what others are told."""
        answers: list[Told] = []
        for place, (topic, flags) in enumerate(zip(announcement.topics, announcement.flags, strict=True)):
            label = announcement.labels[place] if announcement.labels else 0
            leader = announcement.leaders[label - 1] if label else None
            self._topic_announced(announcement, topic, flags, leader, now, answers, brought)
        return answers

    def _topic_announced(
        self,
        announcement: Announcement,
        topic: TopicId,
        flags: int,
        leader: NodeId | None,
        now: float,
        answers: list[Told],
        brought: BroughtProofs,
    ) -> None:
        subscriber, epoch = announcement.subscriber, announcement.epoch
        known = self._topics.get(topic)
        old = known.kept.get(subscriber) if known is not None else None
        if flags & WITHDRAWS:
            if known is None or old is None or old.epoch > epoch:
                return
            if not brought.needed or brought.of(subscriber, topic, epoch, withdraws=True):
                self._drop(topic, known, subscriber)
            return
        new, kept_proof = False, old.good_proof(epoch, now) if old is not None else None
        proof = brought.of(subscriber, topic, epoch, trusted=kept_proof) or kept_proof
        if proof is None and brought.needed and not flags & SEEKS:
            self._lack(subscriber, topic, known, bool(flags & LEADS))
        elif not flags & SEEKS:
            if known is None:
                if len(self._topics) >= MOST_TOPICS:
                    return
                known = self._topics[topic] = _Topic(now, self._parameters.hot)
            new = subscriber not in known.kept
            if flags & LEADS:
                leader = subscriber
            elif leader == subscriber:
                leader = None  # It does not say so itself: it may be new.
            self._keep(topic, known, announcement, leader, now, proof)
        audience = self.audience(topic, subscriber, now)
        again = rules.again_after(audience, self._parameters.hot, self._parameters.renew)
        asks = bool(flags & WANTS_CONTACTS)
        contacts = self._choose(known, subscriber, now) if asks and known is not None else []
        late = again > self._parameters.renew and not flags & SEEKS
        if (
            flags & LEADS
            and known is not None
            and subscriber not in known.kept
            and (proof or not brought.needed)
        ):
            # All places are leaders': the next round of introductions makes room.
            late, again = True, self._parameters.introduce_every
        asker = (subscriber, True) if proof is not None or not brought.needed else (brought.sender, False)
        answered = (asks or late) and self._may_ask(asker, now)
        if answered:
            answers.append(Told(subscriber, topic, tuple(contacts), audience, again))
            if flags & PROOFS and known is not None:
                self._show(known.kept[contact.id] for contact in contacts)
        if contacts and known is not None and subscriber in known.kept and (new or flags & CALL_ME):
            others = self._callers(known, contacts, new, answered and bool(flags & CALL_ME), now)
            newcomer = (_contact(subscriber, known.kept[subscriber], now),)
            self._show([known.kept[subscriber]] if others else ())
            answers += [
                Told(other.id, topic, newcomer, self.audience(topic, other.id, now)) for other in others
            ]

    def _callers(
        self, known: _Topic, named: list[TopicContact], new: bool, all_of_them: bool, now: float
    ) -> list[TopicContact]:
        """Those who are told of a subscriber to whom they were named."""
        if len(known.kept) <= self._parameters.contacts + 1:
            told = list(named) if new else []
        else:
            told = [one for one in named if new and self._random.random() < 0.5][:TOLD_OF_NEWCOMERS]
        if all_of_them:
            told += [one for one in named if one not in told and self._calls.take(now)]
        return told

    def _keep(
        self,
        topic: TopicId,
        known: _Topic,
        announcement: Announcement,
        leader: NodeId | None,
        now: float,
        proof: Proof | None,
    ) -> None:
        subscriber, kept = announcement.subscriber, known.kept
        old = kept.get(subscriber)
        leads = leader == subscriber
        if old is not None and old.epoch > announcement.epoch:
            return
        known.bits |= rules.audience_bit(subscriber)
        led = old is not None and old.led_since is not None
        if not known.announced.take(now) and not leads and not led:
            return
        if old is None and not self._room(topic, known):
            return
        term = min(announcement.term, MOST_TERM)
        if leads:
            since = old.led_since if old is not None and old.led_since is not None else now
        now_kept = kept[subscriber] = _Kept(
            announcement.epoch, now + term, term, leader, since if leads else None
        )
        now_kept.prove(proof, old, now)
        self._topics[topic] = known
        if old is not None and old.says(now_kept) and proof in (None, old.proof):
            now_kept.renews(old)
            self.renewed.setdefault(subscriber, {})[topic] = None
        else:
            self.changed[topic, subscriber] = None

    def _room(self, topic: TopicId, known: _Topic) -> bool:
        """Whether there is a place for one more subscriber; a random one that leads nothing makes room."""
        if len(known.kept) < self._parameters.records:
            return True
        replaceable = [peer for peer, record in known.kept.items() if record.led_since is None]
        if not replaceable:
            return False
        self._drop(topic, known, self._random.choice(replaceable))
        self._topics[topic] = known  # Also if that was the last one.
        return True

    def _choose(self, known: _Topic, asker: NodeId, now: float) -> list[TopicContact]:
        fresh = [peer for peer, record in known.kept.items() if peer != asker and record.until > now]
        drawn = self._random.sample(fresh, min(self._parameters.contacts, len(fresh)))
        chosen = rules.with_lower_ones(drawn, fresh, asker, self._random)
        return [_contact(peer, known.kept[peer], now) for peer in chosen]

    def _may_ask(self, asker: tuple[NodeId, bool], now: float) -> bool:
        """Whether there is budget left for one more answer; `asker` says whether that name is the asker's own."""
        bucket = self._budgets.get(asker)
        if bucket is None:
            if len(self._budgets) >= MOST_ASKERS:
                # Those that have asked least: whoever has spent its budget does not get another by this.
                by_left = sorted(self._budgets, key=lambda one: self._budgets[one].left(now), reverse=True)
                for one in by_left[: MOST_ASKERS // 4]:
                    del self._budgets[one]
            rate = self._parameters.budget
            bucket = self._budgets[asker] = Bucket(rate, MOST_ANSWERS * rate, now)
        return bucket.take(now)

    def audience(self, topic: TopicId, besides: NodeId, now: float) -> int:
        """How many want a topic, besides one."""
        known = self._topics.get(topic)
        if known is None:
            return 0
        if len(known.kept) < self._parameters.records:
            return len(known.kept) - (besides in known.kept)
        return max(len(known.kept), rules.estimated_audience(known.bits | known.earlier_bits)) - 1

    def reported(self, report: Unanswered) -> None:
        """Somebody could not reach a subscriber. If it lives, it will announce itself again."""
        known = self._topics.get(report.topic)
        if known is not None and report.peer in known.kept:
            self._drop(report.topic, known, report.peer)

    def _drop(self, topic: TopicId, known: _Topic, subscriber: NodeId) -> None:
        del known.kept[subscriber]
        self.changed[topic, subscriber] = None
        if not known.kept:
            self._topics.pop(topic, None)

    # Once in a while.

    def sweep(self, now: float) -> None:
        """Let go of what is too old."""
        for topic, known in list(self._topics.items()):
            for subscriber in [peer for peer, record in known.kept.items() if record.until <= now]:
                del known.kept[subscriber]
                self.changed[topic, subscriber] = None
            if not known.kept:
                del self._topics[topic]
                continue
            size = max(len(known.kept), rules.estimated_audience(known.bits | known.earlier_bits))
            lasts = self._parameters.lasts * rules.again_after(
                size, self._parameters.hot, self._parameters.renew
            )
            if now - known.turned >= lasts:
                known.bits, known.earlier_bits, known.turned = 0, known.bits, now
        for asker in [asker for asker, bucket in self._budgets.items() if bucket.full(now)]:
            del self._budgets[asker]

    def introductions(self, owned: Iterable[TopicId], now: float) -> list[Told]:
        """Bring the settled parts of topics together."""
        answers: list[Told] = []
        for topic in owned:
            known = self._topics.get(topic)
            if known is None or now - known.introduced < self._parameters.introduce_every:
                continue
            leaders = {
                peer: record.led_since
                for peer, record in known.kept.items()
                if record.led_since is not None and record.until > now
            }
            if len(leaders) < 2:
                continue
            settled = rules.settled_parts(leaders, now, self.lifetime)
            if len(settled) < 2:
                continue
            known.introduced = now
            parts = {
                leader: [
                    peer
                    for peer, record in known.kept.items()
                    if record.label == leader and record.until > now
                ]
                for leader in settled
            }
            most = max(PAIRS, len(settled) // 2)
            for one, its_part, other, other_part in rules.pairs_to_introduce(parts, most, self._random):
                audience = len(known.kept) - 1
                for member, stranger, part in ((one, other, other_part), (other, one, its_part)):
                    left = int(known.kept[stranger].until - now)
                    introduced = TopicContact(stranger, part, left)
                    self._show([known.kept[stranger]])
                    answers.append(Told(member, topic, (introduced,), audience, parted=True))
        return answers

    # Proofs.

    def _lack(self, subscriber: NodeId, topic: TopicId, known: _Topic | None, leads: bool) -> None:
        if known is not None and len(known.kept) >= self._parameters.records and not leads:
            known.bits |= rules.audience_bit(subscriber)  # There is no room for it anyway.
        else:
            self._lacking.setdefault(subscriber, {})[topic] = None

    def take_lacking(self) -> list[Lacking]:
        """Whose proofs of which topics were missing since the last time."""
        lacking, self._lacking = self._lacking, {}
        return [Lacking(subscriber, tuple(topics)) for subscriber, topics in lacking.items()]

    def _show(self, records: Iterable[_Kept]) -> None:
        self._to_be_shown.update({kept.proof: None for kept in records if kept.proof is not None})

    def take_shown(self) -> list[Proof]:
        """The proofs that go with what was answered since the last time."""
        shown, self._to_be_shown = self._to_be_shown, {}
        return list(shown)

    def proofs(self, records: Iterable[Record]) -> list[Proof]:
        """Those of records."""
        found: dict[Proof, None] = {}
        for record in records:
            known = self._topics.get(record.topic)
            kept = known.kept.get(record.subscriber) if known is not None else None
            if kept is not None and kept.proof is not None:
                found[kept.proof] = None
        return list(found)

    # Records that others keep as well.

    def topics(self) -> list[TopicId]:
        return list(self._topics)

    def subscribers(self, topic: TopicId) -> list[NodeId]:
        known = self._topics.get(topic)
        return list(known.kept) if known is not None else []

    def known_peers(self) -> Iterator[NodeId]:
        for known in self._topics.values():
            yield from known.kept

    def records(self, topics: Iterable[TopicId], now: float) -> list[Record]:
        return [
            self._record(topic, subscriber, now)
            for topic in topics
            if topic in self._topics
            for subscriber in self._topics[topic].kept
        ]

    def within(self, topics: Iterable[TopicId], most: int) -> int:
        """How many of these topics, from the first on, have so many records together; at least one."""
        count = 0
        for topic in topics:
            most -= len(self._topics[topic].kept) if topic in self._topics else 0
            if most < 0 and count:
                break
            count += 1
        return count

    def take_changed(self, now: float) -> list[Record]:
        """What changed since the last time."""
        changed, self.changed = self.changed, {}
        return [self._record(topic, subscriber, now) for topic, subscriber in changed]

    def take_renewed(self, owns: Callable[[TopicId], bool], now: float) -> list[Renewal]:
        """What was announced again since the last time, and is otherwise as it was."""
        renewed, self.renewed = self.renewed, {}
        renewals = []
        for subscriber, topics in renewed.items():
            kept = {
                topic: self._topics[topic].kept[subscriber]
                for topic in topics
                if topic in self._topics and subscriber in self._topics[topic].kept and owns(topic)
            }
            if kept:
                left = min(record.until for record in kept.values()) - now
                epoch = next(iter(kept.values())).epoch
                renewals.append(Renewal(subscriber, epoch, max(0.0, left), tuple(kept)))
        return renewals

    def learn_renewals(
        self, renewals: Iterable[Renewal], now: float, brought: BroughtProofs = NOTHING
    ) -> None:
        """Of records that this node keeps with a home. One that it lacks it gets to know without its label."""
        for renewal in renewals:
            missing = []
            for topic in renewal.topics:
                known = self._topics.get(topic)
                kept = known.kept.get(renewal.subscriber) if known is not None else None
                if kept is None:
                    missing.append(Record(topic, renewal.subscriber, renewal.epoch, renewal.left, None, -1.0))
                elif kept.epoch == renewal.epoch:
                    kept.until = max(kept.until, now + min(renewal.left, MOST_TERM))
                    shown = brought.of(renewal.subscriber, topic, renewal.epoch, trusted=kept.proof)
                    kept.prove(shown or kept.proof, kept, now)
            self.learn(missing, now, brought)

    def _record(self, topic: TopicId, subscriber: NodeId, now: float) -> Record:
        known = self._topics.get(topic)
        kept = known.kept.get(subscriber) if known is not None else None
        if kept is None:
            return Record(topic, subscriber, 0, 0.0, None, -1.0)
        led = now - kept.led_since if kept.led_since is not None else -1.0
        left, term = max(0.0, kept.until - now), math.ceil(kept.term)
        return Record(topic, subscriber, kept.epoch, left, kept.label, led, term)

    # Whether keepers have the same.

    def marks(self, topics: Iterable[TopicId], now: float, copied: bool = False) -> bytes:
        """Of the records of some topics, or of those among them that are as the topic's home has them. Each record
        keeps its own mark: a home may have tens of thousands.
        """
        sums = [0] * SLICES
        for topic in topics:
            for peer, kept in self._topics[topic].kept.items():
                if kept.until > now and (kept.copied or not copied):
                    sums[copies.slice_of(topic)] += kept.mark(topic, peer)
        return copies.marks(sums)

    def compared(self, topics: Iterable[TopicId], other: bytes, now: float) -> None:
        """The home of these topics has the same in all slices but the `other` ones: that counts for another term."""
        for topic in topics:
            differs = copies.slice_of(topic) in other
            for kept in self._topics[topic].kept.values():
                if differs:
                    kept.copied = False  # Until the home says so again.
                elif kept.copied and kept.until > now:
                    until = now + kept.term / self._parameters.lasts + copies.SLACK
                    if kept.proof is not None:
                        until = min(until, kept.proof_ends)
                    kept.until = max(kept.until, until)

    def learn(
        self,
        records: Iterable[Record],
        now: float,
        brought: BroughtProofs = NOTHING,
        is_home: Callable[[TopicId], bool] = lambda _topic: False,
    ) -> None:
        """Records of another's that this node keeps as well, or from now on as their home.

        Of two that differ, that of the later life counts, then what the topic's own home says (`is_home`: it is the
        one that brings the records), then that which lasts longer. Anybody else may hand over what is out of date.
        """
        for record in records:
            if not (0 <= record.topic < RING_SIZE and 0 <= record.subscriber < RING_SIZE):
                continue
            known = self._topics.get(record.topic)
            if not record.left > 0.0:
                if known is not None:
                    known.kept.pop(record.subscriber, None)
                    if not known.kept:
                        del self._topics[record.topic]
                continue
            old = known.kept.get(record.subscriber) if known is not None else None
            until = now + min(record.left, MOST_TERM)
            led_since = now - record.led if record.led >= 0.0 else None
            if old is not None and (old.epoch, old.until) >= (record.epoch, until):
                same = old.label == record.label and (old.led_since is None) == (led_since is None)
                if old.epoch == record.epoch and same and is_home(record.topic):
                    old.lasts(min(record.term or old.term, MOST_TERM))
                    old.prove(
                        brought.of(record.subscriber, record.topic, record.epoch, trusted=old.proof), old, now
                    )
                if old.epoch > record.epoch or same or not is_home(record.topic):
                    continue
            full = known is not None and old is None and len(known.kept) >= self._parameters.records
            if full and not record.led >= 0.0:
                continue
            kept_proof = old.good_proof(record.epoch, now) if old is not None else None
            proof = (
                brought.of(record.subscriber, record.topic, record.epoch, trusted=kept_proof) or kept_proof
            )
            if proof is None and brought.needed:
                continue
            if known is None:
                if len(self._topics) >= MOST_TOPICS:
                    continue
                known = self._topics[record.topic] = _Topic(now, self._parameters.hot)
            if full and not self._room(record.topic, known):
                continue
            taken = known.kept[record.subscriber] = _Kept(
                record.epoch, until, min(record.term or record.left, MOST_TERM), record.label, led_since
            )
            taken.prove(proof, old, now)
            taken.copied = is_home(record.topic)
            known.bits |= rules.audience_bit(record.subscriber)
