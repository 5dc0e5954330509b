"""SpiderCast's neighbour selection as OMen §6.1 sets it against overlay mending: those whom a churn event
leaves uncovered select anew.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from topicweave.blocks.interest_index import InterestIndex
from topicweave.bulk.omen.overlay import LiveOverlay
from topicweave.bulk.omen.plan import Handling, Mending
from topicweave.systems.spidercast.rules import Coverage, any_overlapping, most_overlapping


class _View(InterestIndex):
    """An index as the view that SpiderCast's rules ask for."""

    candidates = InterestIndex.alive_slots


class SpiderCastMender:
    """SpiderCast's neighbour selection, by those whom a churn event leaves uncovered (§6.1)."""

    def __init__(self, overlay: LiveOverlay, plan: Mending, rng: random.Random) -> None:
        self.overlay = overlay
        self._plan = plan
        self._random = rng
        self._view = _View()
        self._chosen_at_random: dict[int, set[int]] = {}
        for node in sorted(overlay.up):
            self._view.put(node, overlay.interest[node])

    def select(self) -> None:
        """Nodes choose their first neighbours: in every round each asks for one of either kind, in any order,
        until nobody lacks one whom it could ask.
        """
        looking = sorted(self.overlay.up)
        while looking:
            self._random.shuffle(looking)
            looking = [node for node in looking if self._cover(node, Handling(True, 0), most=1)]

    def join(self, node: int) -> Handling:
        self.overlay.join(node)
        self._view.put(node, self.overlay.interest[node])
        took = Handling(True, len(self.overlay.interest[node]))
        self._cover(node, took)
        return took

    def leave(self, nodes: Sequence[int]) -> list[Handling]:
        handled = []
        for node in nodes:
            self._view.discard(node)
            around = self.overlay.leave(node)
            took = Handling(False, len(self.overlay.interest[node]))
            for peer in sorted(around):
                self._cover(peer, took)
            handled.append(took)
        return handled

    def gossip(self) -> int:
        return 2 * len(self.overlay.up)

    def _cover(self, node: int, took: Handling, most: int | None = None) -> int:
        """How many links it added: all that it lacks, or so many of either kind."""
        start, before = time.process_time(), took.edges
        at_random = self._chosen_at_random.setdefault(node, set())
        at_random &= self.overlay.links[node]
        interest, links = self.overlay.interest, self.overlay.links[node]
        tasks = (
            (self._plan.k_greedy, most_overlapping, links),
            (self._plan.k_random, any_overlapping, at_random),
        )
        for k, pick, serving in tasks:
            coverage = Coverage(interest[node], k)
            for peer in serving:
                coverage.add(interest[peer])
            added = 0
            while coverage.lacking and added != most:
                chosen = pick(self._view, coverage.uncovered(), [node, *sorted(links)], self._random)
                if chosen is None:
                    break
                self.overlay.link([(node, chosen)])
                coverage.add(interest[chosen])
                if serving is at_random:
                    at_random.add(chosen)
                added += 1
                took.edges += 1
                took.messages += 2
        took.choice_seconds += time.process_time() - start
        return took.edges - before
