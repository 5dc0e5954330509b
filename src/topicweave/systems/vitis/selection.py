"""Whom a node wants in its routing table, and whom it asks about others (Alg. 2 to 4): what Vitis and RVR
hand to T-Man.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence

from topicweave.blocks.descriptors import Descriptor
from topicweave.blocks.peer_sampling import PeerSampling
from topicweave.blocks.small_world import LongLinkTargets, estimated_nodes, ring_sides
from topicweave.model.ids import NodeId
from topicweave.port import World
from topicweave.systems.vitis.parameters import NEAR, RendezvousParameters
from topicweave.systems.vitis.rules import select_neighbours

Utilities = Callable[[Sequence[Descriptor]], list[float]]
"""How good friends peers would be."""

MAX_AGE_NEAR = 20
"""Periods after which a node near on the ring that is not in the table is forgotten."""


class TableSelection:
    """`linked` holds the peers that a link leads to; without `utilities` there are no friends."""

    def __init__(
        self,
        world: World,
        sampling: PeerSampling,
        linked: Container[NodeId],
        parameters: RendezvousParameters,
        small_world: int,
        utilities: Utilities | None,
    ) -> None:
        self._world = world
        self._sampling = sampling
        self._linked = linked
        self._parameters = parameters
        self._utilities = utilities
        self._targets = LongLinkTargets(sampling.id, small_world, world.random, parameters.redraw_targets)
        self._nodes = 2
        self._near: list[tuple[Descriptor, float]] = []  # around it on the ring, with the time they were made
        self.ranked: dict[NodeId, tuple[Descriptor, str]] = {}
        """The table as it was selected last, and what each entry is for."""

    def known_peers(self) -> Iterable[NodeId]:
        return (descriptor.id for descriptor, _ in self._near)

    def partner(self, ranked: Sequence[Descriptor]) -> Descriptor:
        """With whom to exchange tables.

        Drawn from the whole table, as the paper says, most exchanges are with friends, who know nothing of
        one's place on the ring; every other one with a ring neighbour makes the ring right several times
        sooner.
        """
        draw = self._world.random
        if draw.random() < self._parameters.ring_partners:
            return draw.choice(ranked[:2])
        return draw.choice(ranked)

    def candidates(self) -> list[Descriptor]:
        """Random peers, and the few that were nearest on the ring among all known at the last selection.

        T-Man makes rings fast when views hold many ring neighbours (2009); the table has two, the others are
        only known.
        """
        sample = self._sampling.sample_descriptors(self._parameters.samples)
        now, oldest = self._world.now, MAX_AGE_NEAR * self._parameters.period
        for known, made in self._near:
            if (age := now - made) <= oldest:
                sample.append(Descriptor(known.id, age, known.version, known.profile))
        return sample

    def rank(self, own: Descriptor, candidates: Sequence[Descriptor]) -> list[Descriptor]:
        """The new table (Alg. 4).

        A stranger that nobody heard of for as long as a neighbour may be silent is as good as dead: without
        this, a node that died would be taken from old gossip by one node after another, each of which has to
        find out for itself.
        """
        stale, linked = self._parameters.suspect_after, self._linked
        known = {
            descriptor.id: descriptor
            for descriptor in candidates
            if descriptor.age <= stale or descriptor.id in linked
        }
        ring, utilities = sorted(known), self._utilities
        choices = select_neighbours(
            own.id,
            list(known),
            ring,
            self._targets.points(self._nodes),
            self._parameters.table_size,
            (lambda peers: utilities([known[peer] for peer in peers])) if utilities else None,
        )
        if len(choices) >= 2:
            self._nodes = estimated_nodes(own.id, choices[0][0], choices[1][0])
        now = self._world.now
        self._near = [
            ((descriptor := known[peer]), now - descriptor.age) for peer in ring_sides(own.id, ring, NEAR)
        ]
        self.ranked = {peer: (known[peer], kind) for peer, kind in choices}
        return [known[peer] for peer, _ in choices]
