"""T-Man: gossip that turns random views into whatever topology a ranking describes.

M. Jelasity, A. Montresor, O. Babaoglu: "T-Man: Gossip-based fast overlay topology construction", Computer Networks
53(13), 2009. As Vitis uses it: Alg. 2 (active) and 3 (passive); as OMen does: Alg. 3 and 4.

Rules kept
----------
1. Once per period a node sends its buffer (itself, its view, fresh random samples) to a partner out of the
   `psi` best of its view, and gets the partner's buffer back.
2. Each side then ranks all it knows (view, samples, buffer received) from its own place and keeps the first
   `view_size`. A ranking may leave candidates out altogether, and so keep a smaller view.
3. A buffer larger than `message_size` is ranked from the partner's place, and the best for it are sent, as in
   the 2009 paper. Rankings that only make sense at home want a `message_size` that a buffer never reaches.
4. A partner that has not answered when the next period begins leaves the view, and older news of it is not
   believed. Descriptors older than `max_age` leave, so a dead peer is gone everywhere after that time.
5. Nothing a peer sends makes the view or a message exceed the parameters.
6. A view that has not changed for `CALM` periods is exchanged ever more rarely, down to once per
   `rest_period`; with the first change it is exchanged every period again, at once.
7. With `profiles` what peers want is told only to those who lack it (see `profiles`).

A node has one T-Man; what wants several topologies at once (Vitis: ring, small world, friends) says so in
its ranking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from topicweave.blocks.descriptors import AgingView, Descriptor, Obituaries, believable, merge
from topicweave.blocks.profiles import Choice, Names, Profiles
from topicweave.model.ids import NodeId
from topicweave.port import Message, Receivers, TimerKey, Timers, World

TIMER = "tman"

Ranking = Callable[[Descriptor, Sequence[Descriptor]], list[Descriptor]]
"""Candidates, best first, from the place of the first argument (which is not among them)."""

OnChange = Callable[[list[NodeId], list[NodeId]], None]
"""Told who entered the view and who left it."""


class Buffer(Message, frozen=True, array_like=True, tag="tman.buffer"):
    """What the active side sends; its own descriptor comes first."""

    descriptors: tuple[Descriptor, ...]

    def introduces(self) -> Iterable[NodeId]:
        return [descriptor.id for descriptor in self.descriptors]


class BufferBack(Message, frozen=True, array_like=True, tag="tman.back"):
    """What the passive side answers; its own descriptor comes first."""

    descriptors: tuple[Descriptor, ...]

    def introduces(self) -> Iterable[NodeId]:
        return [descriptor.id for descriptor in self.descriptors]


class NamesBuffer(Names, frozen=True, array_like=True, tag="tman.names-buffer"):
    """A buffer without profiles."""


class NamesBack(Names, frozen=True, array_like=True, tag="tman.names-back"):
    """The passive side's."""


class TManParams(msgspec.Struct, frozen=True):
    """`psi` of 0 draws the partner from the whole view, as Vitis and OMen do.

    `max_age` bounds how long the dead stay where nobody says `forget`. Entries of the living were measured at up to
    11 periods on a ring, and in 99% of cases under 23 (1000 nodes, psi 0) by similarity.
    """

    view_size: int = 20
    message_size: int = 20
    psi: int = 10
    period: float = 1.0
    rest_period: float = 0.0
    """Between exchanges of a view that does not change; 0: as always."""
    max_age: float = 30.0
    max_topics: int = 16_384

    def __post_init__(self) -> None:
        if self.view_size < 1 or self.message_size < 1 or self.psi < 0:
            raise ValueError(f"need view_size, message_size >= 1 and psi >= 0, got {self}")
        if not 0 < self.period <= max(self.period, self.rest_period) < self.max_age:
            raise ValueError(f"need 0 < period < max_age, and rest_period below it, too, got {self}")


DEFAULTS = TManParams()
CALM = 5
"""Periods without a change after which a view is exchanged more rarely."""


class TMan:
    """One node's half of T-Man.

    `own` gives this node's descriptor and `sample` random peers', as a `PeerSampling` block's `own` and
    `descriptors` do. `choose` may pick partners (out of a view that is not empty, best first) in another way,
    and `strangers` those whose profiles are worth asking for.
    """

    def __init__(
        self,
        world: World,
        own: Callable[[], Descriptor],
        rank: Ranking,
        sample: Callable[[], Sequence[Descriptor]],
        params: TManParams = DEFAULTS,
        on_change: OnChange = lambda entered, left: None,
        choose: Callable[[Sequence[Descriptor]], Descriptor] | None = None,
        profiles: Profiles | None = None,
        strangers: Choice | None = None,
    ) -> None:
        self.world = world
        self.params = params
        self._own = own
        self._rank = rank
        self._sample = sample
        self._on_change = on_change
        self._profiles = profiles
        self._strangers = strangers
        self._choose = choose or (lambda ranked: world.random.choice(ranked[: params.psi or None]))
        self._view = AgingView(world.now, params.max_age)  # in order of rank
        self._obituaries = Obituaries(params.max_age)
        self._partner: NodeId | None = None  # who owes us a buffer
        self._samples: Sequence[Descriptor] = ()  # what we drew for that exchange
        self._calm = 0  # periods without a change

    def start(self) -> None:
        """Begin to gossip, or go on after a restart that kept the memory."""
        self._partner = None
        self.world.set_timer((TIMER,), self.world.random.uniform(0.0, self.params.period))

    def view(self) -> list[Descriptor]:
        """The chosen peers, best first."""
        self._age()
        return list(self._view.entries.values())

    def forget(self, peer: NodeId) -> None:
        """The peer is dead, as far as this node can tell: only news made from now on brings it back."""
        self._obituaries.report(peer, self.world.now)
        if self._view.entries.pop(peer, None) is not None:
            self._changed([], [peer])

    def refresh(self, news: Descriptor) -> None:
        """First-hand news of a peer in the view, from a heartbeat, say (Vitis Alg. 7)."""
        self._view.refresh(news, self.world.now)

    def receivers(self) -> Receivers:
        if self._profiles is not None:
            return {NamesBuffer: self._receive_names, NamesBack: self._receive_names_back}
        return {Buffer: self._receive_buffer, BufferBack: self._receive_back}

    def timers(self) -> Timers:
        return {TIMER: self._begin_period}

    def _changed(self, entered: list[NodeId], left: list[NodeId]) -> None:
        rested, self._calm = self._calm > CALM, 0
        if rested and self.params.rest_period:
            self.world.set_timer((TIMER,), self.world.random.uniform(0.0, self.params.period))
        self._on_change(entered, left)

    def _begin_period(self, _key: TimerKey) -> None:
        period, rest = self.params.period, self.params.rest_period
        self.world.set_timer((TIMER,), max(period, min(rest, period * 2.0 ** (self._calm - CALM))))
        self._calm = min(self._calm + 1, 2 * CALM)
        self._obituaries.expire(self.world.now)
        if self._partner is not None:
            self.forget(self._partner)
            self._partner = None
            self._select(self._samples, ())  # nothing came back: make do with what we drew ourselves
        self._age()
        self._samples = self._sample()
        if not self._view.entries:
            self._select(self._samples, ())
        ranked = list(self._view.entries.values())
        if ranked:
            partner = self._choose(ranked)
            self._partner = partner.id
            buffer, profiles = self._buffer_for(partner, self._samples), self._profiles
            self.world.send(
                partner.id, Buffer(buffer) if profiles is None else NamesBuffer(profiles.pack(buffer))
            )

    def _receive_buffer(self, sender: NodeId, message: Buffer) -> None:
        self._age()
        received = self._believe(message.descriptors)
        samples = self._sample()
        self.world.send(sender, BufferBack(self._buffer_for(received.get(sender), samples)))
        self._select(samples, received.values())

    def _receive_back(self, sender: NodeId, message: BufferBack) -> None:
        if sender == self._partner:
            self._partner = None
            self._age()
            self._select(self._samples, self._believe(message.descriptors).values())

    def _receive_names(self, sender: NodeId, message: NamesBuffer) -> None:
        assert self._profiles is not None
        self._age()
        samples = self._sample()
        # The sender is in the view, or its profile is not known yet: then it gets what a stranger would.
        buffer = self._buffer_for(self._view.entries.get(sender), samples)
        self.world.send(sender, NamesBack(self._profiles.pack(buffer)))
        self._unpack(sender, message, samples)

    def _receive_names_back(self, sender: NodeId, message: NamesBack) -> None:
        if sender == self._partner:
            self._partner = None
            self._age()
            self._unpack(sender, message, self._samples)

    def _unpack(self, sender: NodeId, message: Names, samples: Sequence[Descriptor]) -> None:
        assert self._profiles is not None
        limit = self.params.message_size
        self._profiles.unpack(
            *(sender, message.packed, limit, lambda received: self._complete(samples, received)),
            choose=self._strangers,
        )

    def _complete(self, samples: Sequence[Descriptor], received: list[Descriptor]) -> None:
        self._age()
        self._select(samples, self._believe(received).values())

    def _buffer_for(
        self, partner: Descriptor | None, samples: Iterable[Descriptor]
    ) -> tuple[Descriptor, ...]:
        own, known = self._own(), dict(self._view.entries)
        merge(known, samples)
        if partner is not None:
            known.pop(partner.id, None)
        buffer = list(known.values())
        room = self.params.message_size - 1
        if len(buffer) > room and partner is not None:
            buffer = self._rank(partner, buffer)
        return (own, *buffer[:room])

    def _believe(self, descriptors: Sequence[Descriptor]) -> dict[NodeId, Descriptor]:
        params = self.params
        return believable(descriptors, params.message_size, params.max_age, params.max_topics)

    def _select(self, samples: Iterable[Descriptor], received: Iterable[Descriptor]) -> None:
        own, now, before = self._own(), self.world.now, self._view.entries
        known = dict(before)
        merge(known, samples)
        merge(known, received)
        known.pop(own.id, None)
        if len(self._obituaries):
            for peer in self._obituaries.refuted(known, now):
                del known[peer]
        ranked = self._rank(own, list(known.values()))[: self.params.view_size]
        after = {descriptor.id: descriptor for descriptor in ranked}
        self._view.entries = after
        if after.keys() != before.keys():
            self._changed(
                [peer for peer in after if peer not in before],
                [peer for peer in before if peer not in after],
            )

    def _age(self) -> None:
        before = self._view.entries
        self._view.age(self.world.now)
        if len(self._view.entries) < len(before):
            self._changed([], [peer for peer in before if peer not in self._view.entries])


def by_similarity(own: Descriptor, candidates: Sequence[Descriptor]) -> list[Descriptor]:
    """The most shared topics for the fewest others first (Jaccard; Vitis Eq. 1 with equal rates).

    Among equals the order given stays, so a view does not change for nothing.
    """
    mine = own.profile

    def unlikeness(candidate: Descriptor) -> float:
        shared = len(mine & candidate.profile)
        return -shared / (len(mine) + len(candidate.profile) - shared) if shared else 0.0

    return sorted(candidates, key=unlikeness)
