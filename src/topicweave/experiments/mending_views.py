"""Local views of all nodes at once: OMen's rules of §4.2 and §4.3, gossip cycle by gossip cycle."""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections.abc import Collection, Iterable

from topicweave.experiments.mending_overlay import LiveOverlay
from topicweave.systems.omen.backups import BUILDERS, Covers

SAMPLES = 30
"""Random nodes in a gossip buffer, as in `OMenParameters.samples`."""
CANDIDATES_PER_TOPIC = 5


class LocalViews:
    """Who keeps which backups for whom.

    With a global view (OMen-G) a backup set is chosen among all nodes when it is asked for, with `candidates` among so many random ones; otherwise
    among what gossip brought together.
    """

    def __init__(
        self,
        overlay: LiveOverlay,
        *,
        resilience: int,
        coverage: int,
        builder: str,
        covers: Covers,
        global_view: bool,
        candidates: int,
        rng: random.Random,
    ) -> None:
        self._overlay = overlay
        self._resilience = resilience
        self._coverage = coverage
        self._build = BUILDERS[builder]
        self._covers = covers
        self.global_view = global_view
        self._candidates = candidates
        self._random = rng
        self._id = overlay.workload.node_ids
        self._circle = sorted((self._id[node], node) for node in overlay.up)
        self._backups: dict[int, dict[int, list[int]]] = {node: {} for node in overlay.up}
        self._everyone = sorted(overlay.up)

    def predecessors(self, node: int) -> list[int]:
        place = bisect_left(self._circle, (self._id[node], node))
        most = min(self._resilience, len(self._circle) - 1)
        return [self._circle[place - step][1] for step in range(1, most + 1)]

    def coordinator(self, churned: int) -> int:
        """The nearest live successor."""
        place = bisect_left(self._circle, (self._id[churned], churned))
        if place < len(self._circle) and self._circle[place][1] == churned:
            place += 1
        return self._circle[place % len(self._circle)][1]

    def view(self, node: int) -> set[int]:
        """getView (Alg. 4)."""
        links = self._overlay.links
        return {
            peer
            for predecessor, backups in self._backups[node].items()
            for peer in (*backups, *links[predecessor])
        } - {node}

    def cycle(self, nodes: Iterable[int]) -> int:
        """One gossip exchange by each of these nodes (Alg. 3); returns the messages sent."""
        messages = 0
        for node in nodes:
            if node not in self._overlay.up or self.global_view:
                continue
            view = sorted(self.view(node) & self._overlay.up)
            partner = self._random.choice(view) if view else self._random.choice(self._everyone)
            if partner == node:
                continue
            mine, theirs = (
                {node, *self.view(node), *self._sample()},
                {partner, *self.view(partner), *self._sample()},
            )
            both = mine | theirs
            self._select(node, both)
            self._select(partner, both)
            messages += 2
        return messages

    def backups_of(self, churned: int, joining: bool = False) -> list[int]:
        """The backup set that the coordinator has ready, without those who are gone."""
        if self.global_view:
            return self._built(churned, self._useful(churned))
        up = self._overlay.up
        keeper = self.coordinator(churned)
        kept = self._backups[keeper].get(churned)
        if self._candidates:
            kept = self._built(churned, self._random.sample(self._everyone, self._candidates))
        elif kept is None:
            # It has just become the coordinator, or the node has just come: its view is all it has.
            kept = self._built(churned, {keeper, *self.view(keeper), *self._sample()} & up)
        ready = [backup for backup in kept if backup in up]
        return ready + self._looked_up(churned, ready) if joining else ready

    def join(self, node: int) -> None:
        insort(self._circle, (self._id[node], node))
        self._everyone = sorted(self._overlay.up)
        self._backups[node] = {}
        self._settle_around(node)

    def leave(self, node: int) -> None:
        place = bisect_left(self._circle, (self._id[node], node))
        del self._circle[place]
        self._everyone = sorted(self._overlay.up)
        del self._backups[node]
        for kept in self._backups.values():
            for backups in kept.values():
                if node in backups:
                    backups.remove(node)
        self._settle_around(node)

    def sizes(self) -> list[int]:
        """How many nodes each local view holds."""
        return [len(self.view(node)) for node in self._everyone]

    def all_backups(self) -> dict[int, list[int]]:
        """The backup set of every node, as its coordinator keeps it."""
        return {node: self.backups_of(node) for node in self._everyone}

    def _settle_around(self, churned: int) -> None:
        """Successors see their predecessors change; they drop what they need no more."""
        place = bisect_left(self._circle, (self._id[churned], churned))
        for step in range(self._resilience + 1):
            node = self._circle[(place + step) % len(self._circle)][1]
            wanted = self.predecessors(node)
            self._backups[node] = {peer: kept for peer, kept in self._backups[node].items() if peer in wanted}

    def _select(self, node: int, candidates: set[int]) -> None:
        """selectView (Alg. 4)."""
        self._backups[node] = {
            peer: self._built(peer, candidates & self._overlay.up) for peer in self.predecessors(node)
        }

    def _built(self, node: int, candidates: Collection[int]) -> list[int]:
        interest = self._overlay.interest
        pool = {peer: interest[peer] for peer in sorted(candidates) if peer != node}
        return self._build(interest[node], pool, self._coverage, self._random, self._covers)

    def _useful(self, node: int) -> set[int]:
        return {peer for topic in self._overlay.interest[node] for peer in self._overlay.subscribers(topic)}

    def _looked_up(self, churned: int, ready: Collection[int]) -> list[int]:
        """Where no backup is known, peer sampling brings subscribers sooner or later; a join waits for it (§4.3), as `OMenNode._pool` does."""
        interest = self._overlay.interest
        missing = interest[churned].difference(*(interest[peer] for peer in ready))
        pool: dict[int, frozenset[int]] = {}
        for topic in sorted(missing):
            others = sorted(self._overlay.subscribers(topic) - {churned})
            for peer in self._random.sample(others, min(CANDIDATES_PER_TOPIC, len(others))):
                pool[peer] = interest[peer]
        return self._build(missing, pool, 1, self._random, self._covers)

    def _sample(self) -> list[int]:
        return self._random.sample(self._everyone, min(SAMPLES, len(self._everyone)))
