"""Peer sampling: a small, ever-changing, random view of who is there. The part all protocols share.

Rules kept
----------
1. Once per period a node exchanges descriptors with one partner: it sends an offer and gets an answer. Which
   partner, what is offered and what is kept is the protocol's (`Newscast`, `Cyclon`); the frame is that of
   Jelasity, Voulgaris, Guerraoui, Kermarrec, van Steen: "Gossip-based peer sampling", ACM TOCS 25(3), 2007.
2. A partner that has not answered when the next period begins is taken for dead and leaves the view, so the
   period must be longer than a round trip.
3. A contact is a hint of the user's, not a sign of life, so it is never passed on. Each is a partner once at the
   start; later a random one is whenever the view is empty, and every `greet_every` periods in any case, so
   that two halves that lost and forgot each other find together again.
4. Nothing a peer sends makes the view, a message or a profile exceed the parameters.
5. With `profiles` what peers want is told only to those who lack it (see `profiles`); else each descriptor has it.
6. A node that hears news of itself that it did not make (it restarted without memory, or somebody lies)
   raises its version above that, as SWIM's incarnation numbers do (Das, Gupta, Motivala 2002).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

import msgspec

from topicweave.blocks.descriptors import MAX_VERSION, AgingView, Descriptor, Obituaries, believable
from topicweave.blocks.profiles import Names, Profiles
from topicweave.model.ids import Interest, NodeId
from topicweave.port import Message, Receivers, TimerKey, Timers, World

TIMER = "sampling"

Listener = Callable[[Sequence[Descriptor]], None]


class Offer(Message, frozen=True, array_like=True, tag="sampling.offer"):
    """The first half of an exchange; the sender's own descriptor comes first."""

    descriptors: tuple[Descriptor, ...]

    def introduces(self) -> Iterable[NodeId]:
        return [descriptor.id for descriptor in self.descriptors]


class Answer(Message, frozen=True, array_like=True, tag="sampling.answer"):
    """The second half."""

    descriptors: tuple[Descriptor, ...]

    def introduces(self) -> Iterable[NodeId]:
        return [descriptor.id for descriptor in self.descriptors]


class NamesOffer(Names, frozen=True, array_like=True, tag="sampling.names-offer"):
    """An offer without profiles."""


class NamesAnswer(Names, frozen=True, array_like=True, tag="sampling.names-answer"):
    """An answer without profiles."""


class SamplingParams(msgspec.Struct, frozen=True):
    """`shuffle_size` is Cyclon's alone. `greet_every` of 0 asks contacts only when there is nobody else to ask.

    Profiles of more than `max_topics` topics are advertised in part: the longer, the less of it, down to
    `fewest_topics` if that is less. What strangers want then costs no more bytes the more topics they want.
    """

    view_size: int = 20
    shuffle_size: int = 8
    period: float = 1.0
    greet_every: int = 60
    max_topics: int = 16_384
    fewest_topics: int = 16_384

    def __post_init__(self) -> None:
        if self.view_size < 1 or not 1 <= self.shuffle_size <= self.view_size:
            raise ValueError(f"need 1 <= shuffle_size <= view_size, got {self}")
        if not self.period > 0 or self.greet_every < 0:
            raise ValueError(f"need period > 0 and greet_every >= 0, got {self}")

    def advertised(self, topics: int) -> int:
        """How many topics of a profile are told.

        >>> params = SamplingParams(max_topics=256, fewest_topics=32)
        >>> [params.advertised(topics) for topics in (50, 256, 257, 512, 1024, 5000)]
        [50, 256, 255, 128, 64, 32]
        >>> SamplingParams().advertised(20_000)
        16384
        """
        most = self.max_topics
        return topics if topics <= most else max(most * most // topics, min(self.fewest_topics, most))

    @property
    def max_age(self) -> float:
        """When a descriptor is surely a ghost.

        In Cyclon an entry lives `view_size` periods on average (each node makes one per period and has
        `view_size` of them about), in Newscast a few; four times that is never reached by the living.
        """
        return 4 * self.view_size * self.period


DEFAULTS = SamplingParams()


class PeerSampling(ABC):
    """One node's half of a peer sampling protocol."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        interest: Interest = frozenset(),
        params: SamplingParams = DEFAULTS,
        profiles: Profiles | None = None,
    ) -> None:
        self.world = world
        self.id = node_id
        self.params = params
        self._profiles = profiles
        self._view = AgingView(world.now, params.max_age)
        self._contacts: list[NodeId] = []
        self._to_greet: list[NodeId] = []
        self._periods = 0
        self._partner: NodeId | None = None  # who owes us an answer
        self._offered: list[NodeId] = []
        self._obituaries = Obituaries(params.max_age)
        self._listeners: list[Listener] = []
        self._version = 0
        self._profile: Interest = frozenset()
        self._advertised: Interest | None = None  # until somebody is told
        self.profile = interest

    # What other parts of a node use.

    def start(self, contacts: Iterable[NodeId]) -> None:
        """Begin to gossip, or go on after a restart that kept the memory."""
        self._contacts = [contact for contact in dict.fromkeys(contacts) if contact != self.id]
        self._to_greet = self._contacts.copy()
        self._partner = None
        self.world.set_timer((TIMER,), self.world.random.uniform(0.0, self.params.period))

    def sample(self, k: int) -> list[NodeId]:
        """Up to k different peers, at random."""
        peers = self.peers()
        return self.world.random.sample(peers, min(k, len(peers)))

    def peers(self) -> list[NodeId]:
        return list(self._view.entries)

    def descriptors(self) -> list[Descriptor]:
        """The view, with ages as of now."""
        self._view.age(self.world.now)
        return list(self._view.entries.values())

    def sample_descriptors(self, k: int) -> list[Descriptor]:
        """Up to k different peers, at random, with ages as of now; the view stays as it is."""
        held, entries = self._view.held(self.world.now), list(self._view.entries.values())
        chosen = self.world.random.sample(entries, k) if len(entries) > k else entries
        limit = self.params.max_age - held
        return [descriptor.older(held) for descriptor in chosen if descriptor.age <= limit]

    def own(self) -> Descriptor:
        """This node's descriptor, fresh."""
        return Descriptor(self.id, 0.0, self._version, self._told())

    def _told(self) -> Interest:
        """What gossip tells of the profile: all of it, or the lowest topics. It is drawn up when it is told."""
        if self._advertised is None:
            most = self.params.advertised(len(self._profile))
            whole = len(self._profile) <= most
            self._advertised = self._profile if whole else frozenset(sorted(self._profile)[:most])
        return self._advertised

    @property
    def profile(self) -> Interest:
        """What this node says it wants."""
        return self._profile

    @profile.setter
    def profile(self, interest: Interest) -> None:
        if interest != self._profile:
            self._profile, self._advertised = interest, None
            self._version = min(self._version + 1, MAX_VERSION)

    def forget(self, peer: NodeId) -> None:
        """The peer is dead, as far as this node can tell: only news made from now on brings it back."""
        self._view.entries.pop(peer, None)
        self._obituaries.report(peer, self.world.now)

    def listen(self, on_descriptors: Listener) -> None:
        """Call `on_descriptors` with what each exchange brings (never empty, one per peer, never ourselves)."""
        self._listeners.append(on_descriptors)

    def receivers(self) -> Receivers:
        if self._profiles is not None:
            return {NamesOffer: self._receive_offer, NamesAnswer: self._receive_answer}
        return {Offer: self._receive_offer, Answer: self._receive_answer}

    def timers(self) -> Timers:
        return {TIMER: self._begin_period}

    # What a protocol fills in; the view's ages are right whenever these are called.

    @abstractmethod
    def _choose(self, view: dict[NodeId, Descriptor]) -> NodeId:
        """The partner for this period, out of a view that is not empty."""

    @abstractmethod
    def _offer(self, view: dict[NodeId, Descriptor], partner: NodeId) -> list[Descriptor]:
        """What of the view goes to the partner, besides our own descriptor."""

    @abstractmethod
    def _answer(self, view: dict[NodeId, Descriptor]) -> list[Descriptor]:
        """What goes back to a peer that made us an offer."""

    @abstractmethod
    def _merge(
        self, view: dict[NodeId, Descriptor], received: dict[NodeId, Descriptor], sent: Sequence[NodeId]
    ) -> dict[NodeId, Descriptor]:
        """The new view, after `received` came in return for `sent`."""

    # The exchange.

    def _begin_period(self, _key: TimerKey) -> None:
        now = self.world.now
        self.world.set_timer((TIMER,), self.params.period)
        if self._partner is not None:
            self.forget(self._partner)
            self._partner = None
        self._obituaries.expire(now)
        self._view.age(now)
        view = self._view.entries
        partner = self._contact_to_greet()
        if partner is None and view:
            partner = self._choose(view)
        if partner is not None:
            offer = self._offer(view, partner)
            self._partner = partner
            self._offered = [descriptor.id for descriptor in offer]
            whole, profiles = (self.own(), *offer), self._profiles
            self.world.send(partner, Offer(whole) if profiles is None else NamesOffer(profiles.pack(whole)))

    def _contact_to_greet(self) -> NodeId | None:
        """See rule 3."""
        self._periods += 1
        if self._to_greet:
            return self._to_greet.pop()
        every = self.params.greet_every
        due = not self._view.entries or (every > 0 and self._periods % every == 0)
        return self.world.random.choice(self._contacts) if due and self._contacts else None

    def _receive_offer(self, sender: NodeId, message: Offer | NamesOffer) -> None:
        self._view.age(self.world.now)
        answer, profiles = tuple(self._answer(self._view.entries)), self._profiles
        self.world.send(sender, Answer(answer) if profiles is None else NamesAnswer(profiles.pack(answer)))
        self._hear(sender, message, [descriptor.id for descriptor in answer])

    def _receive_answer(self, sender: NodeId, message: Answer | NamesAnswer) -> None:
        if sender == self._partner:
            self._partner = None
            self._view.age(self.world.now)
            self._hear(sender, message, self._offered)

    def _hear(
        self, sender: NodeId, message: Offer | Answer | NamesOffer | NamesAnswer, sent: Sequence[NodeId]
    ) -> None:
        if not isinstance(message, Names):
            self._learn(message.descriptors, sent)
        elif self._profiles is not None:
            limit = self.params.view_size + 1
            self._profiles.unpack(sender, message.packed, limit, lambda late: self._late(late, sent))

    def _late(self, descriptors: Sequence[Descriptor], sent: Sequence[NodeId]) -> None:
        self._view.age(self.world.now)
        self._learn(descriptors, sent)

    def _learn(self, descriptors: Sequence[Descriptor], sent: Sequence[NodeId]) -> None:
        params, now = self.params, self.world.now
        received = believable(descriptors, params.view_size + 1, params.max_age, params.max_topics)
        ourselves = received.pop(self.id, None)
        if ourselves is not None:
            self._outbid(ourselves)
        if self._obituaries:
            for peer in [peer for peer, news in received.items() if self._obituaries.refute(news, now)]:
                del received[peer]
        if received:
            self._view.entries = self._merge(self._view.entries, received, sent)
            for listener in self._listeners:
                listener(list(received.values()))

    def _outbid(self, rumour: Descriptor) -> None:
        """See rule 6."""
        if rumour.version > self._version or (
            rumour.version == self._version and rumour.profile != self._told()
        ):
            self._version = min(rumour.version + 1, MAX_VERSION)
