"""Proofs that a node wants a topic, or stopped wanting it: who makes them, who believes them, and what
checking may cost.

Rules kept
----------
1. If nodes have keys (`World.vouches_by`), a home believes a subscriber only by its own signed word. So does
   a node that a home tells of a subscriber.
2. A proof covers at most `MOST_TOGETHER` topics that lie next to each other on the ring, no further apart
   than homes are. So they likely have one home.
3. Checking takes time, so it is rationed: by the sender of the message, and in all. A proof that was not
   checked for this reason is not believed; the home asks for it again.
4. A node believes a subscriber that was proven to it once for `REMEMBERED` seconds. So homes need not send
   the proof with each answer.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence

from topicweave.blocks.topic_directory.messages import MOST_TOGETHER, Carry, Proof, ProvenCarry
from topicweave.blocks.topic_directory.rules import Bucket
from topicweave.model.ids import RING_SIZE, NodeId, TopicId
from topicweave.port import World

CHECKS, CHECKS_AT_ONCE = 250.0, 1000.0
"""How many proofs of one sender are checked per second, and at once."""
ALL_CHECKS, ALL_CHECKS_AT_ONCE = 500.0, 2000.0
MOST_SENDERS = 1024
REMEMBERED = 3600.0
MOST_REMEMBERED = 32
"""Subscribers of a topic."""

ProofsByTopic = Mapping[tuple[NodeId, TopicId], Sequence[Proof]]


def statement(proof: Proof) -> bytes | None:
    """What a subscriber vouches for; None if that cannot be.

    >>> statement(Proof(7, 2, (3,), b"", withdraws=True)).hex()
    '0200000000000000020000000000000003'
    >>> statement(Proof(7, 2, (), b"")), statement(Proof(7, -1, (3,), b""))
    (None, None)
    """
    numbers = (proof.epoch, *proof.topics)
    if not 0 < len(proof.topics) <= MOST_TOGETHER:
        return None
    if not all(0 <= number < RING_SIZE for number in (proof.subscriber, *numbers)):
        return None
    return struct.pack(f">B{len(numbers)}Q", 2 if proof.withdraws else 1, *numbers)


def groups(topics: Iterable[TopicId], span: int) -> Iterator[tuple[TopicId, ...]]:
    """Topics that one proof may speak of together: neighbours on the ring, and no further apart than that.

    >>> list(groups([9, 1, 2, 5, 30], span=4))
    [(1, 2, 5), (9,), (30,)]
    """
    group: list[TopicId] = []
    for topic in sorted(topics):
        if group and (len(group) == MOST_TOGETHER or topic - group[0] > span):
            yield tuple(group)
            group = []
        group.append(topic)
    if group:
        yield tuple(group)


def by_topic(proofs: Iterable[Proof]) -> dict[tuple[NodeId, TopicId], list[Proof]]:
    """Each proof by what it speaks of."""
    table: dict[tuple[NodeId, TopicId], list[Proof]] = {}
    for proof in proofs:
        for topic in proof.topics:
            table.setdefault((proof.subscriber, topic), []).append(proof)
    return table


class ProofMaker:
    """One node's own proofs."""

    def __init__(self, world: World, node_id: NodeId) -> None:
        self._world, self._id = world, node_id

    def make(self, epoch: int, topics: tuple[TopicId, ...], withdraws: bool = False) -> Proof:
        said = statement(Proof(self._id, epoch, topics, b"", withdraws))
        assert said is not None
        return Proof(self._id, epoch, topics, self._world.vouch(said), withdraws)


class BroughtProofs:
    """The proofs that came with one message. Each is checked when it is needed, and once."""

    def __init__(
        self, proofs: Iterable[Proof] = (), checks: ProofChecks | None = None, sender: NodeId = 0
    ) -> None:
        self.needed = checks is not None and checks.needed
        """Whether what has no proof does not count."""
        self.sender = sender
        """The peer that brought them."""
        self._checks = checks
        self._by_topic: ProofsByTopic = by_topic(proofs) if checks is not None else {}
        self._holds: dict[Proof, bool] = {}

    def of(
        self,
        subscriber: NodeId,
        topic: TopicId,
        epoch: int | None = None,
        withdraws: bool = False,
        trusted: Proof | None = None,
    ) -> Proof | None:
        """One that holds; `trusted` is known to."""
        for proof in self._by_topic.get((subscriber, topic), ()):
            fits = proof.withdraws == withdraws and epoch in (None, proof.epoch)
            if fits and (proof == trusted or self._check(proof)):
                return proof
        return None

    def _check(self, proof: Proof) -> bool:
        holds = self._holds.get(proof)
        if holds is None:
            assert self._checks is not None
            holds = self._holds[proof] = self._checks.holds(proof, self.sender)
        return holds


class ProofChecks:
    """What a node believes, and how many checks senders may cause."""

    def __init__(self, world: World, node_id: NodeId) -> None:
        self._world, self._id = world, node_id
        self._all: Bucket | None = None
        self._senders: dict[NodeId, Bucket] = {}

    @property
    def on(self) -> bool:
        """Whether subscribers vouch for what they say."""
        return bool(self._world.vouches_by)

    @property
    def needed(self) -> bool:
        return self.on and not self._world.vouched(self._id, b"", b"")

    def brought(self, sender: NodeId, carry: Carry) -> BroughtProofs:
        if not self.on:
            return NOTHING
        return BroughtProofs(carry.proofs if isinstance(carry, ProvenCarry) else (), self, sender)

    def holds(self, proof: Proof, sender: NodeId) -> bool:
        said = statement(proof)
        if said is None or not proof.seal or not self._may_check(sender):
            return False
        return self._world.vouched(proof.subscriber, said, proof.seal)

    def _may_check(self, sender: NodeId) -> bool:
        now = self._world.now
        if self._all is None:
            self._all = Bucket(ALL_CHECKS, ALL_CHECKS_AT_ONCE, now)
        bucket = self._senders.get(sender)
        if bucket is None:
            if len(self._senders) >= MOST_SENDERS:
                del self._senders[next(iter(self._senders))]
            bucket = self._senders[sender] = Bucket(CHECKS, CHECKS_AT_ONCE, now)
        return bucket.take(now) and self._all.take(now)


class ProvenContacts:
    """Who was proven to this node to want a topic, and until when that is remembered."""

    def __init__(self) -> None:
        self._until: dict[TopicId, dict[NodeId, float]] = {}

    def add(self, topic: TopicId, peer: NodeId, now: float) -> None:
        peers = self._until.setdefault(topic, {})
        peers.pop(peer, None)
        if len(peers) >= MOST_REMEMBERED:
            del peers[next(iter(peers))]
        peers[peer] = now + REMEMBERED

    def has(self, topic: TopicId, peer: NodeId, now: float) -> bool:
        return self._until.get(topic, {}).get(peer, 0.0) > now

    def sweep(self, now: float) -> None:
        """Forget what is too old."""
        for topic, peers in list(self._until.items()):
            for peer in [peer for peer, until in peers.items() if until <= now]:
                del peers[peer]
            if not peers:
                del self._until[topic]


NOTHING = BroughtProofs()
"""Where nothing is proven, nothing has to be."""
