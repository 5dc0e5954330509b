"""The local view (Alg. 2) and what T-Man needs of it (Alg. 4).

For each of its L predecessors a node keeps B (backups), N (neighbours) and R (ready). `select_view` is the
ranking of the T-Man block: it builds the backup sets anew from whatever candidates an exchange brought
together, and keeps those, the neighbours of the predecessors, and the node's own place on the circle. Records
of predecessors that have left stay until their departure is handled, so there are at most 2L.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from topicweave.blocks.descriptors import Descriptor
from topicweave.blocks.topic_directory.rules import Bucket
from topicweave.model.ids import Interest, NodeId
from topicweave.systems.omen import circle
from topicweave.systems.omen.backups import BUILDERS
from topicweave.systems.omen.messages import Links
from topicweave.systems.omen.parameters import OMenParameters

LOT, LOT_EVERY, LOTS_AT_ONCE = 8, 8.0, 16.0
"""Of so many strangers a node asks for the interests though they may be of no use, every so many seconds; and
so many such lots at once.
"""


class Predecessor(msgspec.Struct):
    """B, N and R of one predecessor, and what else it told."""

    interest: Interest
    backups: dict[NodeId, Interest] = msgspec.field(default_factory=dict)
    links: Links | None = None
    lonely_since: float | None = None
    gone: float = math.inf
    """When it had left for sure."""
    built: float = -math.inf
    """When the backup set was built last."""

    @property
    def ready(self) -> bool:
        """R(v'): its neighbours are known, and backups were built (for as many topics as have candidates)."""
        return self.links is not None


class LocalView:
    """B, N and R by predecessor."""

    def __init__(
        self,
        node_id: NodeId,
        parameters: OMenParameters,
        rng: random.Random,
        now: Callable[[], float],
        everybody: Callable[[], Mapping[NodeId, Interest]],
    ) -> None:
        self._id = node_id
        self._parameters = parameters
        self._random = rng
        self._now = now
        self._everybody = everybody
        self._lots = Bucket(1.0 / LOT_EVERY, LOTS_AT_ONCE, now())
        self._build = BUILDERS[parameters.builder]
        self.records: dict[NodeId, Predecessor] = {}
        self.predecessors: list[NodeId] = []
        self.successors: list[NodeId] = []
        self.held: set[NodeId] = set()
        """Predecessors whose departure is still to be handled."""

    def select_view(self, own: Descriptor, candidates: Sequence[Descriptor]) -> list[Descriptor]:
        """selectView (Alg. 4), as a ranking: whatever is not kept is left out."""
        known = {descriptor.id: descriptor for descriptor in candidates}
        # A watched peer stays in its place until it is found dead, whatever gossip says or forgets to say.
        self.place({**known, **dict.fromkeys(self.predecessors), **dict.fromkeys(self.successors)})
        keep = dict.fromkeys((*self.predecessors, *self.successors))
        pool: dict[NodeId, Interest] = {own.id: own.profile}
        pool.update((peer, descriptor.profile) for peer, descriptor in known.items())
        if self._parameters.global_view:
            pool.update(self._everybody())
        for peer in self.predecessors:
            record = self.records[peer]
            if peer in known:
                record.interest = known[peer].profile
            if self._is_due(record, pool):
                record.backups = self.build_backups(peer, record.interest, pool)
                record.built = self._now()
            keep.update(dict.fromkeys(record.backups))
            if record.links is not None:
                keep.update(dict.fromkeys(record.links.neighbours))
        return [known[peer] for peer in keep if peer in known]

    def _is_due(self, record: Predecessor, pool: Mapping[NodeId, Interest]) -> bool:
        """Once per gossip period, and whenever a backup was lost: both threads of T-Man call, and others'
        gossip comes as it likes.
        """
        return self._now() >= record.built + 0.75 * self._parameters.gossip_period or any(
            peer not in pool for peer in record.backups
        )

    def worth_asking(self, strangers: Collection[NodeId]) -> list[NodeId]:
        """Of peers whose interest is not known: those that it must be known of, and a few others. What a
        backup set gains by the many is little.
        """
        known, now = self.known_peers(), self._now()
        most, around = self._parameters.resilience, [*strangers, *self.ring()]
        known.update(circle.predecessors(self._id, around, most), circle.successors(self._id, around, most))
        needed = [peer for peer in strangers if peer in known]
        others = [peer for peer in strangers if peer not in known]
        for first in range(0, len(others), LOT):
            if not self._lots.take(now):
                break
            needed += others[first : first + LOT]
        return needed

    def build_backups(
        self, peer: NodeId, topics: Interest, pool: Mapping[NodeId, Interest], least: int = 0
    ) -> dict[NodeId, Interest]:
        """A backup set of one node for some topics; `least` covers, even where the coverage factor asks for fewer."""
        others = {node: interest for node, interest in pool.items() if node != peer}
        parameters = self._parameters
        chosen = self._build(topics, others, max(least, parameters.coverage), self._random, parameters.covers)
        return {node: others[node] for node in chosen}

    def place(self, known: Iterable[NodeId]) -> None:
        """Find this node's place on the circle among those known, and keep records accordingly."""
        most = self._parameters.resilience
        peers = list(known)
        self.predecessors = circle.predecessors(self._id, peers, most)
        self.successors = circle.successors(self._id, peers, most)
        for peer in self.predecessors:
            if peer not in self.records:
                self.records[peer] = Predecessor(frozenset())
        for peer in [
            peer for peer in self.records if peer not in self.predecessors and peer not in self.held
        ]:
            del self.records[peer]

    def forget(self, peer: NodeId) -> None:
        """A peer is gone: it is nobody's backup or neighbour any more."""
        self.predecessors = [other for other in self.predecessors if other != peer]
        self.successors = [other for other in self.successors if other != peer]
        for record in self.records.values():
            record.backups.pop(peer, None)
        if peer not in self.held:
            self.records.pop(peer, None)

    def ring(self) -> set[NodeId]:
        return {*self.predecessors, *self.successors}

    def known_peers(self) -> set[NodeId]:
        peers = {*self.records, *self.ring(), *self.held}
        return peers.union(*(record.backups for record in self.records.values()))

    def size(self) -> int:
        """Distinct nodes in B and N (getView of Alg. 4)."""
        seen: set[NodeId] = set()
        for record in self.records.values():
            seen.update(record.backups)
            if record.links is not None:
                seen.update(record.links.neighbours)
        return len(seen)
