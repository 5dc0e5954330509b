"""What gossip says about a peer, and how much of it is believed.

Rules kept
----------
1. Only a peer itself makes a descriptor of itself, with age 0. Everybody else passes on what they got, older
   by the time they held it. So an age is an elapsed time, summed up by local clocks: no two clocks need agree,
   and news of a peer that is gone can only grow old.
2. The profile carries a version that only its owner raises; whoever sees two keeps the higher one.
3. Whatever arrives is cut to size before it is looked at (`believable`): a peer may lie about itself, but it
   cannot make us keep or send more than our own limits. Gossip is not signed here: a liar can spread a false
   profile of somebody else until that peer hears of it and outbids it (see `PeerSampling`).
4. Once a peer was found silent, news made before that moment is not believed any more (`Obituaries`), or the
   neighbours who have not noticed yet would bring it back again and again.

Ages instead of timestamps: Newscast (Jelasity, Kowalczyk, van Steen 2003) compares timestamps and asks for
clocks that roughly agree; Cyclon (Voulgaris, Gavidia, van Steen 2005) counts rounds. Elapsed seconds order
entries as both do, and stay comparable between blocks that gossip at different paces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from topicweave.model.ids import RING_SIZE, Interest, NodeId

MAX_VERSION = 1 << 40
"""No honest peer changes its mind this often."""


class Descriptor(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A peer as somebody knew it `age` seconds after it spoke for itself."""

    id: NodeId
    age: float
    version: int
    profile: Interest

    def older(self, by: float) -> Descriptor:
        return Descriptor(self.id, self.age + by, self.version, self.profile)


def newest(a: Descriptor, b: Descriptor) -> Descriptor:
    """One out of two descriptors of the same peer: its latest sign of life, its latest profile."""
    fresh, stale = (a, b) if a.age <= b.age else (b, a)
    if stale.version <= fresh.version:
        return fresh
    return Descriptor(fresh.id, fresh.age, stale.version, stale.profile)


def merge(known: dict[NodeId, Descriptor], news: Iterable[Descriptor]) -> None:
    """Add the news to what is known, one descriptor per peer."""
    for descriptor in news:
        peer = descriptor.id
        old = known.get(peer)
        if old is None:
            known[peer] = descriptor
        elif descriptor.age < old.age or descriptor.version > old.version:
            known[peer] = newest(old, descriptor)


def believable(
    received: Sequence[Descriptor], limit: int, max_age: float, max_topics: int
) -> dict[NodeId, Descriptor]:
    """What we look at of a peer's message: its first `limit` descriptors, without the impossible ones."""
    clean: dict[NodeId, Descriptor] = {}
    for descriptor in received[:limit]:
        age, peer = descriptor.age, descriptor.id
        if (
            age <= max_age  # false for "not a number", too
            and 0 <= peer < RING_SIZE
            and 0 <= descriptor.version <= MAX_VERSION
            and len(descriptor.profile) <= max_topics
        ):
            if age < 0.0:
                descriptor = Descriptor(peer, 0.0, descriptor.version, descriptor.profile)
            clean[peer] = newest(clean[peer], descriptor) if peer in clean else descriptor
    return clean


class AgingView:
    """A bounded owner's set of descriptors, all of whose ages are right at one moment.

    Whoever uses it calls `age(now)` first; the descriptors can then go into messages as they are.
    """

    def __init__(self, now: float, max_age: float) -> None:
        self.entries: dict[NodeId, Descriptor] = {}
        self._as_of = now
        self._max_age = max_age

    def held(self, now: float) -> float:
        """By how much the entries are older than they say."""
        return now - self._as_of

    def age(self, now: float) -> None:
        """Let time pass; what is too old leaves."""
        held = now - self._as_of
        if held > 0.0:
            limit = self._max_age - held
            # `older`, written out: this is done for every entry several times a second.
            self.entries = {
                peer: Descriptor(peer, age + held, descriptor.version, descriptor.profile)
                for peer, descriptor in self.entries.items()
                if (age := descriptor.age) <= limit
            }
            self._as_of = now

    def refresh(self, news: Descriptor, now: float) -> None:
        """News of a peer that is in here, without letting time pass for all the others.

        Until the next `age` the entry is younger than nothing, by the time that has not passed yet.
        """
        old = self.entries.get(news.id)
        if old is not None:
            self.entries[news.id] = newest(old, news.older(self._as_of - now))


class Obituaries:
    """Peers found silent, and when: older news of them is refuted, newer news shows that they live.

    Kept for `keep` seconds, which should be the age at which descriptors are dropped anyway, and at most
    `limit` of them.
    """

    def __init__(self, keep: float, limit: int = 1024) -> None:
        self._keep = keep
        self._limit = limit
        self._reported: dict[NodeId, float] = {}  # in order of time

    def __len__(self) -> int:
        return len(self._reported)

    def report(self, peer: NodeId, now: float) -> None:
        self._reported.pop(peer, None)
        self._reported[peer] = now
        if len(self._reported) > self._limit:
            del self._reported[next(iter(self._reported))]

    def expire(self, now: float) -> None:
        while self._reported:
            eldest = next(iter(self._reported))
            if now - self._reported[eldest] <= self._keep:
                return
            del self._reported[eldest]

    def refuted(self, known: Mapping[NodeId, Descriptor], now: float) -> list[NodeId]:
        """Whose descriptors were made before they were found silent."""
        return [peer for peer in self._reported if peer in known and self.refute(known[peer], now)]

    def refute(self, descriptor: Descriptor, now: float) -> bool:
        """Whether the descriptor was made before its peer was found silent."""
        reported = self._reported.get(descriptor.id)
        return reported is not None and now - descriptor.age <= reported
