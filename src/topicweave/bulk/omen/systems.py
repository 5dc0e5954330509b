"""What each system of OMen's Table 3 does about a churn event, over the whole overlay at once; SpiderCast's
is in `spidercast`.

OMen and LowODA-Inc are one class: LowODA-Inc is OMen's repair with everybody in the shadow set and every degree known.
"""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from topicweave.bulk.omen import kernels
from topicweave.bulk.omen.overlay import LiveOverlay
from topicweave.bulk.omen.plan import Handling, Mending
from topicweave.bulk.omen.views import LocalViews
from topicweave.designs import Instance, Problem, compiled, low_oda_re
from topicweave.model.arrays import IntArray

EXCHANGES = 4
HOW = {"shadow": kernels.SHADOW, "beacons": kernels.BEACONS, "spread": kernels.EXACT}


class OMenMender:
    """OMen, OMen-G and LowODA-Inc."""

    def __init__(self, overlay: LiveOverlay, plan: Mending, rng: random.Random, everybody: bool) -> None:
        self.overlay = overlay
        self._plan = plan
        self._everybody = everybody
        self.views = LocalViews(overlay, plan, plan.global_view or everybody, rng)
        self._rehearse()

    def _rehearse(self) -> None:
        """Have everything compiled before the first repair is timed."""
        nobody = np.empty(0, np.int64)
        self._shadow_labels(0, nobody, nobody, kernels.SHADOW)
        compiled.design(shadow_problem(np.array([[0, 1]]), [0, 0], 0), self._plan.rho)

    def join(self, node: int) -> Handling:
        overlay = self.overlay
        overlay.join(node)
        self.views.join(node)
        # The coordinator waits until its local view is ready (Alg. 5, line 3): a handful of exchanges.
        self.views.cycle([self.views.coordinator(node)] * EXCHANGES)
        topics = overlay.topics_of(node)
        took = Handling(True, len(topics))
        start = time.process_time()
        backups = self._subscribers(topics) if self._everybody else self.views.backups_of(node, joining=True)
        members = np.array(sorted({node, *backups}), np.int64)
        took.build_seconds = time.process_time() - start
        start = time.process_time()
        # All the others count as one part: whatever joins the newcomer to one of them will do.
        labels, _ = self._shadow_labels(node, topics, members, kernels.SHADOW)
        labels[labels >= 0] = 0
        labels[:, np.searchsorted(members, node)] = 1
        self._mend(members, labels, took, start)
        self._gossip_around(node)
        return took

    def leave(self, nodes: Sequence[int]) -> list[Handling]:
        """Departures in one instant; each is handled by what its coordinator had prepared."""
        overlay, views = self.overlay, self.views
        prepared, seconds = [], []
        for node in nodes:
            start = time.process_time()
            prepared.append([] if self._everybody else views.backups_of(node))
            seconds.append(time.process_time() - start)
        neighbours = [set(overlay.links[node]) for node in nodes]
        for node in nodes:
            overlay.leave(node)
            views.leave(node)
        handled = []
        for place, node in enumerate(nodes):
            took = Handling(False, len(overlay.interest[node]))
            around = neighbours[place]
            held = self._held(node, around)
            start = time.process_time()
            backups = self._subscribers(held) if self._everybody else prepared[place]
            shadow = np.array([peer for peer in sorted({*backups, *around}) if peer in overlay.up], np.int64)
            took.build_seconds = seconds[place] + time.process_time() - start
            how = kernels.EXACT if self._everybody else HOW[self._plan.components]
            _ = overlay.network  # every node knows its own links; to list them all is no part of a repair
            start = time.process_time()
            labels, spread = self._shadow_labels(node, held, shadow, how)
            took.search_seconds = time.process_time() - start
            if self._plan.labels:
                through = held if self._plan.components == "spread" else held[spread]
                took.label_messages = _spreading_messages(
                    overlay, around & overlay.up, frozenset(through.tolist())
                )
            self._mend(shadow, labels, took, time.process_time())
            handled.append(took)
            self._gossip_around(node)
        return handled

    def gossip(self) -> int:
        return self.views.cycle(sorted(self.overlay.up))

    def _gossip_around(self, node: int) -> None:
        """The successors' views get ready again within a handful of cycles (§6.6)."""
        keeper = self.views.coordinator(node)
        self.views.cycle([keeper] * EXCHANGES)
        if node in self.overlay.up:
            self.views.cycle([node] * EXCHANGES)

    def _held(self, node: int, around: Collection[int]) -> IntArray:
        """The topics on which it had two neighbours or more: no others can come apart."""
        overlay = self.overlay
        lists = [overlay.topics_of(peer) for peer in around]
        counts = np.bincount(
            np.concatenate(lists) if lists else np.empty(0, np.int64), minlength=overlay.workload.topics
        )
        own = overlay.topics_of(node)
        return own[counts[own] > 1]

    def _subscribers(self, topics: Iterable[int]) -> set[int]:
        return {peer for topic in topics for peer in self.overlay.subscribers(topic).tolist()}

    def _shadow_labels(
        self, departed: int, topics: IntArray, shadow: IntArray, how: int
    ) -> tuple[IntArray, IntArray]:
        labels, spread = kernels.shadow_labels(topics, shadow, how, departed, self.overlay.network)
        return labels, spread

    def _mend(self, shadow: IntArray, labels: IntArray, took: Handling, start: float) -> None:
        """Algorithm 1 over labels by (topic, member), as `systems.omen.repair` does it for one node."""
        plan, links = self._plan, self.overlay.links
        ceiling = self.overlay.highest_degree() if plan.ceiling == "all" or self._everybody else 0
        problem = shadow_problem(labels, [len(links[peer]) for peer in shadow.tolist()], ceiling)
        edges = shadow[compiled.design(problem, plan.rho)].tolist()
        took.choice_seconds = time.process_time() - start
        self.overlay.link(edges)
        took.shadow, took.edges = len(shadow), len(edges)
        # A survey and a report each; a notice to the lower ends, two words per link and one that it stands;
        # both ends tell their successors of it; and the departure's successors hear that it is handled.
        lower_ends = len({edge[0] for edge in edges})
        took.messages = (
            2 * len(shadow) + lower_ends + (3 + 2 * plan.resilience) * len(edges) + plan.resilience
        )


def shadow_problem(labels: IntArray, degrees: Sequence[int], ceiling: int) -> Problem:
    """A design problem from labels by (topic, member); -1 where a member does not want a topic."""
    by_member = labels.T
    member, topic = np.nonzero(by_member >= 0)
    offsets = np.zeros(len(by_member) + 1, np.int64)
    np.cumsum(np.bincount(member, minlength=len(by_member)), out=offsets[1:])
    instance = Instance(offsets, topic, len(labels))
    return Problem.of(instance, labels=by_member[member, topic], degrees=degrees, ceiling=ceiling)


def _spreading_messages(overlay: LiveOverlay, sources: Collection[int], topics: frozenset[int]) -> int:
    """How many messages `LabelSpreading` sends when all take equally long."""
    labels: dict[int, dict[int, int]] = {}
    news = {peer: dict.fromkeys(overlay.interest[peer] & topics, peer) for peer in sources}
    messages = 0
    while news:
        for peer, heard in news.items():
            labels.setdefault(peer, {}).update(heard)
        following: dict[int, dict[int, int]] = {}
        for peer, heard in news.items():
            for other in overlay.links[peer]:
                shared = overlay.interest[other] & heard.keys()
                if not shared:
                    continue
                messages += 1
                known, coming = labels.get(other, {}), following.setdefault(other, {})
                for topic in shared:
                    label = heard[topic]
                    if label < known.get(topic, label + 1) and label < coming.get(topic, label + 1):
                        coming[topic] = label
        news = {peer: heard for peer, heard in following.items() if heard}
    return messages


class RebuildMender:
    """LowODA-Re: from scratch upon each churn event; here whenever somebody looks, for what was before is
    thrown away.
    """

    def __init__(self, overlay: LiveOverlay, plan: Mending) -> None:
        self.overlay = overlay
        self._plan = plan

    def join(self, node: int) -> Handling:
        self.overlay.join(node)
        return Handling(True, len(self.overlay.interest[node]))

    def leave(self, nodes: Sequence[int]) -> list[Handling]:
        for node in nodes:
            self.overlay.leave(node)
        return [Handling(False, len(self.overlay.interest[node])) for node in nodes]

    def gossip(self) -> int:
        return 0

    def rebuild(self) -> float:
        """Returns the seconds it took."""
        nodes, instance = self.overlay.instance()
        start = time.process_time()
        edges = low_oda_re(instance, self._plan.rho)
        seconds = time.process_time() - start
        self.overlay.unlink_all()
        self.overlay.link((nodes[u], nodes[v]) for u, v in edges.tolist())
        return seconds
