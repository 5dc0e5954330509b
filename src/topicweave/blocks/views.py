"""Interest views: what a node knows of who wants what, for the selection rules of systems.

SpiderCast (§2.1) assumes a service that tells each node the identity and interest of all the others, or of a share
of them (§3.7 finds 5% enough). These views give that, behind one interface:

- `FullView`: everybody, as in most of the paper's experiments;
- `ShareView`: a random share of everybody, as in §3.7;
- `GossipView`: for real: what a peer sampling block hears, forgotten when it gets old;
- `DirectoryView` (see `directory_view`): the same, and what the homes of topics know. Live nodes have this one.

The first two are oracles: they read a `Directory` that all nodes of a simulation share. The others run in both worlds.

A rule over a view asks for counts per slot, then works on the array (see `InterestIndex`). Greedy coverage:

    counts = view.overlap_counts(uncovered)
    counts[view.slots(neighbours)] = 0
    if counts.any():
        best = np.flatnonzero(counts == counts.max())
        peer = view.peer_at(world.random.choice(best))
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from topicweave.blocks.descriptors import Descriptor
from topicweave.blocks.interest_index import InterestIndex, Slots
from topicweave.blocks.peer_sampling import PeerSampling
from topicweave.blocks.profiles import Profiles
from topicweave.blocks.topic_directory.parts import Parts
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import Receivers, Timers, World


class InterestView(ABC):
    """What selection rules see. The owner is never in its own view.

    Slots are good until the node is told the next thing, and not to be kept longer.
    """

    @property
    @abstractmethod
    def _index(self) -> InterestIndex: ...

    @abstractmethod
    def overlap_counts(self, topics: Iterable[TopicId]) -> Slots:
        """For each slot, how many of these topics the peer in it wants; 0 for slots outside of the view.

        The array is the caller's to change.
        """

    @abstractmethod
    def candidates(self) -> Slots:
        """The slots in the view."""

    def slots(self, peers: Iterable[NodeId]) -> Slots:
        """The slots of those peers that have one."""
        return self._index.slots(peers)

    def peer_at(self, slot: int | np.integer) -> NodeId:
        return self._index.peer_at(slot)

    def slot_ids(self) -> NDArray[np.uint64]:
        """The peers of all slots, those outside of the view included."""
        return self._index.peers_from(0)

    def interest_of(self, peer: NodeId) -> Interest:
        """What a peer wants; nothing, if it is not known."""
        return self._index.interest_of(peer)

    def subscribers(self, topic: TopicId) -> NDArray[np.uint64]:
        """The peers in the view that want a topic."""
        return self._index.peers_at(np.flatnonzero(self.overlap_counts((topic,))))

    def lowest(self, topic: TopicId) -> NodeId | None:
        """The lowest of them; None if there is nobody."""
        subscribers = self.subscribers(topic)
        return int(subscribers.min()) if len(subscribers) else None

    @property
    def version(self) -> int:
        """Grows whenever somebody comes, goes or changes its interest."""
        return self._index.version

    def peer_ids(self) -> NDArray[np.uint64]:
        """All peers in the view, as an array."""
        return self._index.peers_at(self.candidates())

    def peers(self) -> list[NodeId]:
        return [self.peer_at(slot) for slot in self.candidates()]

    @abstractmethod
    def start(self, contacts: Sequence[NodeId]) -> None:
        """Join, or go on after a restart that kept the memory."""

    @abstractmethod
    def set_interest(self, interest: Interest) -> None:
        """Let the others know what the owner wants from now on."""

    @abstractmethod
    def lost(self, peer: NodeId) -> None:
        """The owner could not reach a peer: leave it out until there is reason to believe in it again."""

    @abstractmethod
    def leave(self) -> None:
        """The owner goes."""

    forgets = False
    """Whether peers that live drop out of the view, for want of room or news."""

    # What only a view with a topic directory has.

    introduces = False
    """Whether parts of topics are introduced to each other, if the system names them."""

    def serve(self, parts: Parts) -> None:  # noqa: B027 - others have nobody to tell
        """Let the homes of topics know which parts the owner's are in."""

    def spoke(self, peer: NodeId) -> None:  # noqa: B027
        """The owner gave a peer a sign of life: the view need not."""

    def heard(self, peer: NodeId) -> None:  # noqa: B027
        """A peer gave the owner one."""

    def said(self, peer: NodeId, interest: Interest) -> None:  # noqa: B027
        """A peer told the owner itself what it wants: a home may have said otherwise, and not know better yet."""

    def seek(self, topic: TopicId) -> None:  # noqa: B027
        """Look for subscribers of a topic that the owner publishes on and does not want."""

    def audience(self, topic: TopicId) -> int | None:
        """How many others want a topic; None if that is not known."""
        return None

    def contacts(self) -> Collection[NodeId]:
        """Peers with whom the view itself keeps in touch; they carry no events."""
        return ()

    def known_peers(self) -> Collection[NodeId]:
        """Every peer that some state is kept for."""
        return self.peers()

    @abstractmethod
    def receivers(self) -> Receivers: ...

    @abstractmethod
    def timers(self) -> Timers: ...


class Directory(InterestIndex):
    """Who is up and what they want: a simulation's truth, shared by the views of all its nodes.

    Views put their owners in and take them out as these start, change and leave; of a crash, which is the end of
    a node that cannot tell, the simulator says `discard`. The seed decides who sees whom in `ShareView`s.
    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self._seed = seed

    def seen(self, owner: NodeId, share: float, first: int) -> NDArray[np.bool_]:
        """For each slot from `first` on, whether its peer is in the owner's share of the nodes.

        A function of seed, owner and peer alone, so it does not matter who asks when, and who comes back is
        seen by the same nodes as before.
        """
        key = np.array([self._seed & 0xFFFF_FFFF_FFFF_FFFF, owner], dtype=np.uint64)
        seed_bits, owner_bits = _scramble(key)
        bits = _scramble(self.peers_from(first) ^ _scramble(np.array([seed_bits ^ owner_bits])))
        return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53 < share


def _scramble(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's step and finaliser (Steele, Lea, Flood 2014): each input bit moves half of the output bits."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class FullView(InterestView):
    """Everybody in the directory.

    A peer reported lost is left out for `hide` seconds: the directory may well be right, but a rule that always
    takes the best would otherwise try the same unreachable one again at once.
    """

    def __init__(
        self, world: World, owner: NodeId, interest: Interest, directory: Directory, hide: float = 10.0
    ) -> None:
        self.world = world
        self.owner = owner
        self._interest = interest
        self._directory = directory
        self._hide = hide
        self._hidden: dict[NodeId, float] = {}  # until when, in order of time

    @property
    def _index(self) -> InterestIndex:
        return self._directory

    def overlap_counts(self, topics: Iterable[TopicId]) -> Slots:
        counts = self._directory.overlap_counts(topics)
        counts[self._outside()] = 0
        return counts

    def candidates(self) -> Slots:
        inside = np.zeros(self._directory.slot_count, dtype=np.bool_)
        inside[self._directory.alive_slots()] = True
        inside[self._outside()] = False
        return np.flatnonzero(inside)

    def _outside(self) -> Slots:
        now = self.world.now
        while self._hidden and next(iter(self._hidden.values())) <= now:
            del self._hidden[next(iter(self._hidden))]
        return self._directory.slots([self.owner, *self._hidden])

    def start(self, contacts: Sequence[NodeId]) -> None:
        self._directory.put(self.owner, self._interest)

    def set_interest(self, interest: Interest) -> None:
        self._interest = interest
        if self.owner in self._directory:
            self._directory.put(self.owner, interest)

    def lost(self, peer: NodeId) -> None:
        self._hidden.pop(peer, None)
        self._hidden[peer] = self.world.now + self._hide

    def leave(self) -> None:
        self._directory.discard(self.owner)

    def receivers(self) -> Receivers:
        return {}

    def timers(self) -> Timers:
        return {}


class ShareView(FullView):
    """Each node of the directory with probability `share`, the same ones for as long as they exist."""

    def __init__(
        self,
        world: World,
        owner: NodeId,
        interest: Interest,
        directory: Directory,
        share: float,
        hide: float = 10.0,
    ) -> None:
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"share must be between 0 and 1, got {share}")
        super().__init__(world, owner, interest, directory, hide)
        self.share = share
        self._seen = np.zeros(0, dtype=np.uint8)  # a bit per slot: ten thousand nodes have as many of these
        self._seen_count = 0
        self._generation = directory.generation

    def overlap_counts(self, topics: Iterable[TopicId]) -> Slots:
        counts = super().overlap_counts(topics)
        counts *= self._mask()
        return counts

    def candidates(self) -> Slots:
        inside = np.zeros(self._directory.slot_count, dtype=np.uint8)
        inside[super().candidates()] = 1
        return np.flatnonzero(inside & self._mask())

    def _mask(self) -> NDArray[np.uint8]:
        """One per slot in the share; kept, and extended as slots are added."""
        directory = self._directory
        if self._generation != directory.generation:
            self._generation = directory.generation
            self._seen_count = 0
        mask = np.unpackbits(self._seen, count=self._seen_count)
        if self._seen_count < directory.slot_count:
            news = directory.seen(self.owner, self.share, self._seen_count)
            mask = np.concatenate([mask, news.view(np.uint8)])
            self._seen = np.packbits(mask)
            self._seen_count = directory.slot_count
        return mask


class GossipView(InterestView):
    """What a peer sampling block heard lately: at most `capacity` peers, none older than `max_age` seconds.

    The block belongs to the view: a node that `use`s the view needs not `use` it as well.
    """

    forgets = True

    def __init__(
        self,
        world: World,
        sampling: PeerSampling,
        capacity: int = 1000,
        max_age: float = 60.0,
        profiles: Profiles | None = None,
    ) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, got {capacity}")
        self.world = world
        self.sampling = sampling
        self.profiles = profiles
        """Who wants what, as the block remembers it, if it tells that only to those who lack it."""
        self.capacity = capacity
        self.max_age = max_age
        self._known = InterestIndex()
        self._made: dict[NodeId, tuple[float, int]] = {}  # when the freshest descriptor was made; version
        self._next_sweep = world.now
        sampling.listen(self._learn)

    @property
    def _index(self) -> InterestIndex:
        return self._known

    def overlap_counts(self, topics: Iterable[TopicId]) -> Slots:
        self._sweep()
        return self._known.overlap_counts(topics)

    def subscribers(self, topic: TopicId) -> NDArray[np.uint64]:
        self._sweep()
        return self._known.wanting(topic)

    def lowest(self, topic: TopicId) -> NodeId | None:
        self._sweep()
        return self._known.lowest(topic)

    def candidates(self) -> Slots:
        self._sweep()
        return self._known.alive_slots()

    def start(self, contacts: Sequence[NodeId]) -> None:
        self.sampling.start(contacts)

    def set_interest(self, interest: Interest) -> None:
        self.sampling.profile = interest

    def lost(self, peer: NodeId) -> None:
        self._drop(peer)
        self.sampling.forget(peer)

    def leave(self) -> None:
        """Nothing to say: who is not heard of any more is forgotten."""

    def receivers(self) -> Receivers:
        told = {} if self.profiles is None else self.profiles.receivers()
        return {**self.sampling.receivers(), **told}

    def timers(self) -> Timers:
        return self.sampling.timers()

    def _learn(self, descriptors: Sequence[Descriptor]) -> None:
        now = self.world.now
        for news in descriptors:
            if news.age > self.max_age:
                continue
            made, version = self._made.get(news.id, (-math.inf, -1))
            if news.version > version:
                self._learn_profile(news.id, news.profile)
                version = news.version
            self._made[news.id] = (max(made, now - news.age), version)
        if len(self._made) > self.capacity:
            # The stalest tenth leaves at once: one sort per tenth of a view, not per newcomer.
            by_age = sorted(self._made, key=lambda peer: self._made[peer][0])
            for peer in by_age[: len(by_age) - max(1, self.capacity * 9 // 10)]:
                self._drop(peer)
        self._sweep()

    def _learn_profile(self, peer: NodeId, profile: Interest) -> None:
        self._known.put(peer, profile)

    def _sweep(self) -> None:
        """Let go of what is too old, looking a few times per `max_age`."""
        now = self.world.now
        if now >= self._next_sweep:
            self._next_sweep = now + self.max_age / 10
            limit = now - self.max_age
            for peer in [peer for peer, (made, _) in self._made.items() if made < limit]:
                self._drop(peer)

    def _drop(self, peer: NodeId) -> None:
        self._made.pop(peer, None)
        self._known.discard(peer)


class PeersView(GossipView):
    """Who is there, and not what they want: nobody is told of that."""

    def set_interest(self, interest: Interest) -> None:
        pass
