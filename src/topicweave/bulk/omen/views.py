"""Local views of all nodes at once: OMen's rules of §4.2 and §4.3, gossip cycle by gossip cycle."""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections.abc import Collection

import numpy as np

from topicweave.bulk.omen import kernels
from topicweave.bulk.omen.overlay import LiveOverlay
from topicweave.bulk.omen.plan import Mending
from topicweave.model.arrays import IntArray

CANDIDATES_PER_TOPIC = 5
MOST_BACKUPS = 512
"""Per predecessor, as `OMenParameters.view_size` bounds a local view."""


class LocalViews:
    """Who keeps which backups for whom.

    With a global view (OMen-G) a backup set is chosen among all nodes when it is asked for, with
    `plan.candidates` among so many random ones; otherwise among what gossip brought together.
    """

    def __init__(self, overlay: LiveOverlay, plan: Mending, global_view: bool, rng: random.Random) -> None:
        self._overlay = overlay
        self._plan = plan
        self.global_view = global_view
        self._random = rng
        self._counter = np.array([rng.getrandbits(64)], np.uint64)
        self._id = overlay.workload.node_ids
        self._circle = sorted((self._id[node], node) for node in overlay.up)
        nodes = overlay.workload.nodes
        self._keeping = kernels.Keeping(
            before=np.full((nodes, plan.resilience), -1, np.int32),
            kept=np.zeros((nodes, plan.resilience, min(nodes, MOST_BACKUPS)), np.int32),
            kept_count=np.full((nodes, plan.resilience), -1, np.int32),
        )
        self._building = kernels.Building(
            *(plan.coverage, plan.covers == "multi", plan.builder == "greedy", self._counter)
        )
        self._everyone = np.array(sorted(overlay.up), np.int32)
        for node in overlay.up:
            before = self.predecessors(node)
            self._keeping.before[node, : len(before)] = before

    def predecessors(self, node: int) -> list[int]:
        place = bisect_left(self._circle, (self._id[node], node))
        most = min(self._plan.resilience, len(self._circle) - 1)
        return [self._circle[place - step][1] for step in range(1, most + 1)]

    def coordinator(self, churned: int) -> int:
        """The nearest live successor."""
        place = bisect_left(self._circle, (self._id[churned], churned))
        if place < len(self._circle) and self._circle[place][1] == churned:
            place += 1
        return self._circle[place % len(self._circle)][1]

    def view(self, node: int) -> list[int]:
        """getView (Alg. 4)."""
        view: list[int] = kernels.view_of(node, self._keeping, self._overlay.network).tolist()
        return view

    def cycle(self, nodes: Collection[int]) -> int:
        """One gossip exchange by each of these nodes (Alg. 3); returns the messages sent."""
        if self.global_view or not len(self._everyone):
            return 0
        samples = min(self._plan.samples, len(self._everyone))
        messages: int = kernels.gossip(
            *(np.array(nodes, np.int64), self._everyone, samples),
            *(self._keeping, self._overlay.network, self._building),
        )
        return messages

    def backups_of(self, churned: int, joining: bool = False) -> list[int]:
        """The backup set that the coordinator has ready, without those who are gone."""
        if self.global_view:
            return self._built(churned, self._everyone)
        keeper = self.coordinator(churned)
        kept = self._ready(keeper, churned)
        if self._plan.candidates:
            chosen = self._random.sample(range(len(self._everyone)), self._plan.candidates)
            kept = self._built(churned, self._everyone[chosen])
        elif kept is None:
            # It has just become the coordinator, or the node has just come: its view is all it has.
            sample = self._random.sample(
                range(len(self._everyone)), min(self._plan.samples, len(self._everyone))
            )
            kept = self._built(churned, [keeper, *self.view(keeper), *self._everyone[sample].tolist()])
        ready = [backup for backup in kept if backup in self._overlay.up]
        return self._looked_up(churned, ready) if joining else ready

    def join(self, node: int) -> None:
        insort(self._circle, (self._id[node], node))
        self._everyone = np.array(sorted(self._overlay.up), np.int32)
        self._keeping.before[node] = -1
        self._keeping.kept_count[node] = -1
        self._settle_around(node)

    def leave(self, node: int) -> None:
        place = bisect_left(self._circle, (self._id[node], node))
        del self._circle[place]
        self._everyone = np.array(sorted(self._overlay.up), np.int32)
        self._settle_around(node)

    def sizes(self) -> list[int]:
        """How many nodes each local view holds."""
        network = self._overlay.network
        sizes: list[int] = kernels.view_sizes(self._everyone, self._keeping, network).tolist()
        return sizes

    def all_backups(self) -> dict[int, list[int]]:
        """The backup set of every node, as its coordinator keeps it."""
        return {node: self.backups_of(node) for node in self._everyone.tolist()}

    def _ready(self, keeper: int, churned: int) -> list[int] | None:
        for place in np.flatnonzero(self._keeping.before[keeper] == churned).tolist():
            count = int(self._keeping.kept_count[keeper, place])
            if count >= 0:
                kept: list[int] = self._keeping.kept[keeper, place, :count].tolist()
                return kept
        return None

    def _settle_around(self, churned: int) -> None:
        """Successors see their predecessors change; they drop what they need no more."""
        place = bisect_left(self._circle, (self._id[churned], churned))
        for step in range(min(self._plan.resilience + 1, len(self._circle))):
            node = self._circle[(place + step) % len(self._circle)][1]
            ready = {
                peer: (self._keeping.kept[node, slot].copy(), self._keeping.kept_count[node, slot])
                for slot, peer in enumerate(self._keeping.before[node].tolist())
                if peer >= 0
            }
            self._keeping.before[node] = self._keeping.kept_count[node] = -1
            for slot, peer in enumerate(self.predecessors(node)):
                self._keeping.before[node, slot] = peer
                if peer in ready:
                    self._keeping.kept[node, slot], self._keeping.kept_count[node, slot] = ready[peer]

    def _built(self, node: int, candidates: Collection[int] | IntArray) -> list[int]:
        pool = np.unique(np.array(candidates, np.int32))
        return self._build(self._overlay.topics_of(node), pool[pool != node], self._building)

    def _build(self, topics: IntArray, pool: IntArray, building: kernels.Building) -> list[int]:
        built: list[int] = kernels.build_backups(topics, pool, self._overlay.bits, building).tolist()
        return built

    def _looked_up(self, joined: int, ready: Collection[int]) -> list[int]:
        """A join waits until the coordinator's view is ready for it (Alg. 5, line 3): as `OMenNode` does, the
        coordinator adds a few subscribers of each topic, as peer sampling has brought them, to the
        candidates.
        """
        overlay = self._overlay
        pool = set(ready)
        for topic in overlay.topics_of(joined).tolist():
            others = overlay.subscribers(topic).tolist()
            pool.update(self._random.sample(others, min(CANDIDATES_PER_TOPIC, len(others))))
        pool.discard(joined)
        building = self._building._replace(coverage=max(1, self._building.coverage))
        return self._build(overlay.topics_of(joined), np.array(sorted(pool), np.int32), building)
