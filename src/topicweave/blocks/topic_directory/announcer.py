"""A node as a subscriber: it announces its topics to their homes, asks for contacts, and hears what homes tell.

Rules kept
----------
1. Each topic is announced when it is new, when its term is about to end, and when the node begins or ceases
   to lead its part of it. Renewals are spread over time, so that nodes which joined together do not go on in
   waves: the first one comes at any moment of its term. But a node renews in `SLOTS` moments of a term only:
   what is due together travels together. That it leads, a node says again after one lifetime of a label, then
   in growing pauses up to its renewals, however late the home wants others: its word may have gone to one
   that is not the home any more. One that had no room for it says so. Such pauses have as many moments.
2. A topic of which the node knows too few others, or none that suits it, is asked about: with its
   announcement, and again after a time-out, then in growing pauses, in the end with each renewal. A node
   that knows as many as the home said there are asks with each fourth renewal: a home tells of newcomers by
   itself, and its word may get lost. A node that could not reach somebody says so with its next question.
3. A topic that is only published on is asked about, not announced.
4. Where nodes have keys, a proof goes with the first announcement of a topic, with withdrawals, with a
   question that is asked again, where a home lacks it, and again before it ends; the first of these comes at
   any moment of its term. Renewals go without. A question asks for proofs of those whom the home names unless
   all that it named were proven to this node already.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from topicweave.blocks.topic_directory import rules
from topicweave.blocks.topic_directory.messages import (
    CALL_ME,
    LEADS,
    PROOFS,
    SEEKS,
    WANTS_CONTACTS,
    WITHDRAWS,
    Announcement,
    Proof,
    Told,
)
from topicweave.blocks.topic_directory.parameters import DirectoryParameters
from topicweave.blocks.topic_directory.proofs import ProofMaker, groups
from topicweave.model.ids import RING_SIZE, Interest, NodeId, TopicId
from topicweave.port import World

MOST_LEADERS = 255
MOST_ATTEMPTS = 4
SLOTS = 8
"""Moments of a term in which a node renews its topics."""
KNOWS_ALL = 4
"""Renewals between two questions of a node that knows all others, as far as the home does."""
PATIENCE = 60.0
"""Seconds after which such a question, which travels with renewals, counts as lost."""
SOUGHT_FOR = 60.0
"""Seconds for which a topic that was published on is asked about."""
SOUGHT_FRESH = 10.0
"""Seconds for which it counts that nobody wants such a topic. Publishing asks again after half of them."""
PROVE_EVERY = 6300.0
"""Seconds after which a proof is made anew, at the latest."""
PROVE_PAUSE, MOST_PROVE_PAUSE = 3.0, 60.0
"""Seconds before a home that lacks a proof gets it: at first, and in the end. Each time it is twice as long."""


class _Own:
    """One of the node's topics."""

    __slots__ = (
        "again",
        "asked",
        "attempt",
        "audience",
        "calm",
        "doubts",
        "due",
        "heard",
        "leads",
        "led_since",
        "needs_proofs",
        "next_ask",
        "patient",
        "pause",
        "prove_pause",
        "proven",
        "proves",
        "renews",
        "said_pause",
        "unreached",
    )

    def __init__(self, due: float) -> None:
        self.due = due  # when to announce it
        self.renews = False  # it was announced
        self.calm = False  # what is said next is a renewal, for which nobody waits
        self.patient = False  # nor for the answer to the last question
        self.asked = -1.0  # when a question went out that was not answered yet
        self.attempt = 0
        self.next_ask = 0.0
        self.pause = 0.0  # between the last question and the next
        self.heard = -math.inf  # when the home answered last
        self.unreached = False  # somebody could not be reached since the last answer
        self.again = 0.0
        self.audience: int | None = None
        self.leads = False  # as announced
        self.led_since = -1.0
        self.said_pause = 0.0  # between the last two times that it said that it leads
        self.proven = -PROVE_PAUSE  # when a proof was made last
        self.prove_pause = PROVE_PAUSE
        self.proves = 0.0  # when to make one
        self.needs_proofs = True  # of those whom the home names
        self.doubts = 0.0  # when to ask at once for proofs that were missing, if some are


class Announcer:
    """`known(topic)` says how many others the node knows; `label(topic)` who leads its part of a topic, None
    if that is not known; `leading()` the topics that it leads itself; `suited(topic)` whether some of those
    it knows are of use to it.
    """

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        parameters: DirectoryParameters,
        known: Callable[[TopicId], int],
    ) -> None:
        self._world = world
        self._id = node_id
        self._parameters = parameters
        self._known = known
        self.label: Callable[[TopicId], NodeId | None] = lambda _topic: None
        self.leading: Callable[[], Iterable[TopicId]] = lambda: ()
        self.suited: Callable[[TopicId], bool] = lambda _topic: True
        self.lifetime = 30.0
        self.nodes: Callable[[], int] = lambda: 1
        """How many nodes there are, about."""
        self._proofs = ProofMaker(world, node_id)
        self._key = b""
        self._epoch = 0
        self._topics: dict[TopicId, _Own] = {}
        self._wanted: Interest = frozenset()  # the same
        self._sought: dict[TopicId, tuple[_Own, float]] = {}
        self._dropped: dict[TopicId, None] = {}
        self._calm: list[Announcement] = []
        self._next_look = 0.0
        self._phase, self._pace = world.random.random(), world.random.uniform(0.5, 1.5)

    def restart(self) -> None:
        now = self._world.now
        self._epoch = max(self._epoch + 1, int(now * 1e3))
        for own in self._topics.values():
            own.due, own.asked, own.attempt, own.next_ask, own.pause = now, -1.0, 0, 0.0, 0.0
            own.leads, own.led_since, own.renews, own.calm, own.patient = False, -1.0, False, False, False
            own.proven, own.proves, own.prove_pause = -PROVE_PAUSE, 0.0, PROVE_PAUSE

    def set_topics(self, topics: Interest) -> None:
        now, before = self._world.now, self._wanted
        self._wanted = topics
        gone = before - topics
        for topic in [topic for topic in self._topics if topic in gone] if len(gone) > 1 else gone:
            del self._topics[topic]
            self._dropped[topic] = None
        for topic in sorted(topics - before):
            self._topics[topic] = _Own(now)
            self._dropped.pop(topic, None)
            self._sought.pop(topic, None)

    def seek(self, topic: TopicId) -> None:
        """The node publishes on a topic that it does not want."""
        if topic not in self._topics:
            now = self._world.now
            own, _ = self._sought.get(topic, (_Own(now), now))
            self._sought[topic] = (own, now + SOUGHT_FOR)
            if own.audience == 0 and now - own.heard >= SOUGHT_FRESH / 2:
                self.lacks(topic)

    def audience(self, topic: TopicId) -> int | None:
        """How many others want a topic, as its home said; None before it did, and some time after it said that there
        are none. Of newcomers in a topic that this node wants, too, a home tells by itself.
        """
        own = self._own(topic)
        if own is None:
            return None
        stale = topic in self._sought and self._world.now - own.heard > SOUGHT_FRESH
        return None if stale and own.audience == 0 else own.audience

    def _own(self, topic: TopicId) -> _Own | None:
        own = self._topics.get(topic)
        if own is None and topic in self._sought:
            own = self._sought[topic][0]
        return own

    def lacks(self, topic: TopicId, unreached: bool = False) -> None:
        """A contact on the topic is gone, or could not be reached: ask soon, should there be too few now."""
        own = self._own(topic)
        if own is None:
            return
        own.unreached = own.unreached or unreached
        if own.asked < 0 or own.patient:
            own.asked, own.patient = -1.0, False
            own.next_ask = own.pause = 0.0
            self._next_look = 0.0

    @property
    def renewal(self) -> float:
        return max(self._parameters.renew, self._parameters.renew_per_topic * len(self._topics))

    # What goes out.

    def due(self) -> list[Announcement]:
        """What is to be said now."""
        now = self._world.now
        look = now >= self._next_look
        if look:
            self._next_look = now + 2 * self._parameters.tick
            self._look_who_leads(now)
            self._look_at_key()
        said: dict[tuple[int, float, bool], dict[TopicId, int]] = {}
        self._calm.clear()
        for topic, own in self._topics.items():
            if own.asked < 0.0 and own.due > now and not (look and now >= own.next_ask):
                continue  # Most of them, most of the time.
            asks = self._asks(topic, own, now, look or own.due <= now)
            if asks or own.due <= now:
                flags = (self._asking(own) if asks else 0) | (LEADS if own.leads else 0)
                calm = own.calm and (own.patient or not asks)
                said.setdefault((own.attempt if asks else 0, self._term(own), calm), {})[topic] = flags
                if own.due <= now:
                    own.due = self._next_due(own, now)
                    if now < own.proves:
                        own.due = min(own.due, own.proves)
        for topic, (own, until) in list(self._sought.items()):
            if until <= now:
                del self._sought[topic]
            elif self._asks(topic, own, now, look):
                said.setdefault((own.attempt, self._term(), False), {})[topic] = SEEKS | self._asking(own)
        for topic in self._dropped:
            said.setdefault((0, self._term(), False), {})[topic] = WITHDRAWS
        self._dropped.clear()
        announcements = []
        for (attempt, term, calm), topics in said.items():
            announcements.append(self._announcement(topics, attempt, term))
            if calm:
                self._calm.append(announcements[-1])
        return announcements

    def calm(self, announcement: Announcement) -> bool:
        """Whether nobody waits for what was due just now: it is a renewal."""
        return any(announcement is one for one in self._calm)

    def _term(self, own: _Own | None = None) -> float:
        """For how long it is good what is said of a topic."""
        again = own.again if own is not None else 0.0
        return self._parameters.lasts * rules.next_within(again, self.renewal)

    def _asking(self, own: _Own) -> int:
        proofs = PROOFS if self._key and own.needs_proofs else 0
        return WANTS_CONTACTS | proofs | (CALL_ME if own.unreached else 0)

    def _next_due(self, own: _Own, now: float) -> float:
        """When to announce a topic again. Nodes are spread, also those that joined together; a node's topics
        meet in few moments of a term.
        """
        share = self._world.random.uniform(0.7, 1.0 - 1.0 / SLOTS)
        if own.leads:
            # On average no later for the moment that it shares.
            pause = self._until_next(own)
            own.calm = pause >= self.renewal
            return self._in_slot(now + pause * (share - 0.5 / SLOTS), pause)
        own.calm = True
        if not own.renews:
            own.renews, share = True, share * self._world.random.random()
        return self._in_slot(now + self._until_next(own) * share, self.renewal)

    def _in_slot(self, moment: float, term: float) -> float:
        """The next of the few moments of a term in which a node renews its topics."""
        slot = term / SLOTS
        return moment + (self._phase * slot - moment) % slot

    def _until_next(self, own: _Own) -> float:
        if not own.leads:
            return max(self.renewal, own.again)
        own.said_pause = min(max(2 * own.said_pause, self.lifetime), self.renewal)
        return own.said_pause

    def withdrawals(self) -> list[Announcement]:
        """The node leaves."""
        if not self._topics:
            return []
        return [self._announcement(dict.fromkeys(self._topics, WITHDRAWS), 0, self._term())]

    # Proofs.

    def proofs(self, announcement: Announcement) -> list[Proof]:
        """Those that go with an announcement of this node's."""
        if not self._key:
            return []
        now, span = self._world.now, RING_SIZE // max(1, self.nodes())
        wanted, withdrawn = [], []
        for topic, flags in zip(announcement.topics, announcement.flags, strict=True):
            own = self._topics.get(topic)
            if flags & WITHDRAWS:
                withdrawn.append(topic)
            elif own is not None and (own.proves <= now or announcement.attempt):
                wanted.append(topic)
        made = [self._proofs.make(self._epoch, group, withdraws=True) for group in groups(withdrawn, span)]
        for group in groups(wanted, span):
            made.append(self._proofs.make(self._epoch, group))
            # Nodes that joined together do not prove themselves in waves.
            pause, first = PROVE_EVERY * self._world.random.uniform(0.9, 1.0), self._world.random.random()
            for topic in group:
                own = self._topics[topic]
                own.proves = self._in_slot(now + pause * (first if own.proven < 0.0 else 1.0), self.renewal)
                own.proven = now
                own.due = min(own.due, own.proves)
        return made

    def lacking(self, topics: Iterable[TopicId]) -> None:
        """A home has no proof of these."""
        now = self._world.now
        for topic in topics:
            own = self._topics.get(topic)
            if own is not None and own.proves > now and now - own.proven >= own.prove_pause:
                own.proves = own.due = now
                own.calm = False
                own.prove_pause = min(2 * own.prove_pause, MOST_PROVE_PAUSE)

    def proven(self, topic: TopicId, all_of_them: bool) -> None:
        """Of those whom a home named all were proven, or some were not."""
        own = self._own(topic)
        if own is None or own.needs_proofs != all_of_them:
            return
        own.needs_proofs = not all_of_them
        if own.needs_proofs and self._world.now >= own.doubts:
            own.doubts = self._world.now + self.renewal
            self.lacks(topic)

    def _look_at_key(self) -> None:
        """What was proven under another certificate is proven anew, with the next renewals."""
        if self._key != self._world.vouches_by:
            self._key = self._world.vouches_by
            for own in self._topics.values():
                own.proves = 0.0

    def _announcement(self, topics: dict[TopicId, int], attempt: int, term: float) -> Announcement:
        places: dict[NodeId, int] = {}
        labels = bytearray()
        for topic, flags in topics.items():
            leader = None if flags & (WITHDRAWS | SEEKS | LEADS) else self.label(topic)
            if leader is None or leader == self._id or (leader not in places and len(places) >= MOST_LEADERS):
                labels.append(0)
            else:
                labels.append(places.setdefault(leader, len(places) + 1))
        return Announcement(
            self._id,
            self._epoch,
            term,
            tuple(topics),
            bytes(topics.values()),
            tuple(places),
            bytes(labels) if places else b"",
            attempt,
        )

    def _asks(self, topic: TopicId, own: _Own, now: float, look: bool) -> bool:
        if own.asked >= 0:
            if now - own.asked < (PATIENCE if own.patient else self._parameters.ask_timeout):
                return False
            # A patient question may be under way still: its home need not be gone.
            own.attempt = own.attempt if own.patient else min(own.attempt + 1, MOST_ATTEMPTS)
        elif not look or now < own.next_ask or (own.pause >= self.renewal and now < own.due):
            return False
        if self._known(topic) >= self._parameters.enough and self.suited(topic):
            own.asked, own.attempt, own.patient = -1.0, 0, False
            return False
        audience = own.audience
        knows_all = own.asked < 0 and audience is not None and self._known(topic) >= audience
        own.patient = knows_all and own.calm and own.due <= now
        own.asked = now
        return True

    def _look_who_leads(self, now: float) -> None:
        leading = set(self.leading())
        for topic, own in self._topics.items():
            if topic not in leading:
                own.led_since = -1.0
                if own.leads:
                    own.leads = own.calm = False
                    own.due = now
            elif own.led_since < 0:
                own.led_since = now
            elif not own.leads and now - own.led_since >= self.lifetime:
                own.leads, own.calm = True, False
                own.due = now
                own.said_pause = 0.0

    # What homes tell.

    def told(self, answer: Told) -> bool:
        """Note an answer; whether the topic is one that this node asks about."""
        own = self._own(answer.topic)
        if own is None:
            return False
        now = self._world.now
        if answer.again > 0:
            own.again = min(answer.again, 3600.0)
            if own.leads and own.again < self._parameters.renew:
                own.due = min(own.due, now + max(own.again, self._parameters.introduce_every))
                own.calm = False
            if own.asked >= 0:
                own.asked, own.attempt, own.unreached, own.patient = -1.0, 0, False, False
                # Few may be on their way to become more: ask again, ever more seldom.
                own.pause = min(max(2 * own.pause, self._parameters.ask_timeout), self.renewal)
                if own.pause < self.renewal:
                    own.next_ask = now + own.pause * self._pace
                elif self._known(answer.topic) < answer.audience:
                    own.next_ask = own.due
                else:
                    own.next_ask = now + (KNOWS_ALL - 1) * self.renewal
        own.audience, own.heard = answer.audience, now
        return True
