"""What each system of OMen's Table 3 does about a churn event, over the whole overlay at once.

OMen and LowODA-Inc are one class: LowODA-Inc is OMen's repair with everybody in the shadow set and every degree known.
"""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from topicweave.blocks.interest_index import InterestIndex
from topicweave.designs import low_oda_re
from topicweave.designs.design import design
from topicweave.experiments.mending_overlay import LiveOverlay, Pair
from topicweave.experiments.mending_views import LocalViews
from topicweave.systems.omen.repair import Member, repair
from topicweave.systems.spidercast.rules import any_overlapping, most_overlapping

EXCHANGES = 4


class Handling(msgspec.Struct):
    """What one churn event took."""

    joins: bool
    size: int
    """Subscriptions of the churned node."""
    shadow: int = 0
    edges: int = 0
    messages: int = 0
    """Coordination and new links; without gossip and failure detection."""
    label_messages: int = 0
    search_seconds: float = 0.0
    """Wall-clock time to find components."""
    choice_seconds: float = 0.0
    """And to choose edges."""


class Mending(msgspec.Struct, frozen=True):
    """A run of churn events, each handled before the next (§6: Google's come minutes apart)."""

    rounds: int
    churn: Literal["google", "random"] = "random"
    concurrent: int = 1
    """How many departures come at a time; joins always come alone."""
    looks: int = 10
    """How often the overlay is looked at, besides the start."""
    resilience: int = 1
    coverage: int = 5
    rho: float = 2.0
    builder: str = "primal-dual"
    covers: Literal["repeated", "multi"] = "repeated"
    global_view: bool = False
    candidates: int = 0
    """Choose backups among so many random nodes instead of among what gossip brings together."""
    components: Literal["beacons", "spread", "shadow"] = "beacons"
    """As in `OMenParameters`."""
    ceiling: Literal["all", "shadow"] = "all"
    """Whether the maximum degree is taken over all nodes or over the shadow set."""
    warm_up: int = 15
    """Gossip cycles before the first event."""
    gossip_every: int = 20
    """Events between two cycles of everybody; those whose predecessors or backups change gossip at once."""
    k_greedy: int = 3
    k_random: int = 1
    diameters: bool = False
    labels: bool = False
    """Count the messages that spread labels."""
    backups: bool = False
    """Keep the backup degrees of every node."""
    histogram: bool = False
    """Keep the sizes of all local views at the end."""


class OMenMender:
    """OMen, OMen-G and LowODA-Inc."""

    def __init__(self, overlay: LiveOverlay, plan: Mending, rng: random.Random, everybody: bool) -> None:
        self.overlay = overlay
        self._plan = plan
        self._everybody = everybody
        self.views = LocalViews(
            overlay,
            resilience=plan.resilience,
            coverage=plan.coverage,
            builder=plan.builder,
            covers=plan.covers,
            global_view=plan.global_view or everybody,
            candidates=plan.candidates,
            rng=rng,
        )

    def join(self, node: int) -> Handling:
        overlay = self.overlay
        overlay.join(node)
        self.views.join(node)
        # The coordinator waits until its local view is ready (Alg. 5, line 3): a handful of exchanges.
        self.views.cycle([self.views.coordinator(node)] * EXCHANGES)
        topics = overlay.interest[node]
        took = Handling(True, len(topics))
        backups = self._subscribers(topics) if self._everybody else self.views.backups_of(node, joining=True)
        rest = dict.fromkeys(topics, -1)
        members = {peer: self._member(peer, rest) for peer in backups if peer != node}
        members[node] = self._member(node, dict.fromkeys(topics, node))
        self._mend(members, topics, took, only=node)
        self._gossip_around(node)
        return took

    def leave(self, nodes: Sequence[int]) -> list[Handling]:
        """Departures in one instant; each is handled by what its coordinator had prepared."""
        overlay, views = self.overlay, self.views
        prepared = [] if self._everybody else [views.backups_of(node) for node in nodes]
        neighbours = [set(overlay.links[node]) for node in nodes]
        for node in nodes:
            overlay.leave(node)
            views.leave(node)
        handled = []
        for place, node in enumerate(nodes):
            took = Handling(False, len(overlay.interest[node]))
            around = neighbours[place]
            counts: dict[int, int] = {}
            for peer in around:
                for topic in overlay.interest[peer] & overlay.interest[node]:
                    counts[topic] = counts.get(topic, 0) + 1
            held = frozenset(topic for topic, count in counts.items() if count > 1)
            backups = self._subscribers(held) if self._everybody else prepared[place]
            shadow = [peer for peer in sorted({*backups, *around}) if peer in overlay.up]
            start = time.perf_counter()
            labels, spread = self._labels(node, held, shadow)
            took.search_seconds = time.perf_counter() - start
            if self._plan.labels:
                took.label_messages = _spreading_messages(overlay, around & overlay.up, spread)
            self._mend({peer: self._member(peer, labels.get(peer)) for peer in shadow}, held, took)
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

    def _subscribers(self, topics: Iterable[int]) -> set[int]:
        return {peer for topic in topics for peer in self.overlay.subscribers(topic)}

    def _labels(
        self, departed: int, topics: Iterable[int], shadow: Collection[int]
    ) -> tuple[dict[int, dict[int, int]], frozenset[int]]:
        """What the shadow set reports: labels per member, and the topics that labels were spread through to know them.

        Beacons tell who is still in the part of a topic's leader, and nothing of those who are not; where the departed was the leader, labels are
        spread. To the letter of Alg. 1 nothing is reported.
        """
        how = "exact" if self._everybody else self._plan.components
        if how == "shadow":
            return {}, frozenset()
        name = self.overlay.workload.node_ids
        labels: dict[int, dict[int, int]] = {peer: {} for peer in shadow}
        spread = set()
        for topic in topics:
            parts = self.overlay.parts(topic)
            leader = min((name[peer] for part in parts for peer in part), default=name[departed])
            exact = how != "beacons" or name[departed] < leader
            if exact and how != "exact":
                spread.add(topic)
            for number, part in enumerate(parts):
                known = exact or any(name[peer] == leader for peer in part)
                for peer in part.intersection(labels):
                    labels[peer][topic] = number if known else -1 - peer
        return labels, frozenset(spread)

    def _member(self, peer: int, labels: Mapping[int, int] | None) -> Member:
        links = self.overlay.links[peer]
        return Member(self.overlay.interest[peer], len(links), frozenset(links), labels)

    def _mend(
        self, members: Mapping[int, Member], topics: frozenset[int], took: Handling, only: int | None = None
    ) -> None:
        plan = self._plan
        ceiling = max(self.overlay.degrees()) if plan.ceiling == "all" or self._everybody else 0
        start = time.perf_counter()
        edges: list[Pair] = repair(members, topics, plan.rho, ceiling, design)
        took.choice_seconds = time.perf_counter() - start
        if only is not None:
            edges = [edge for edge in edges if only in edge]
        self.overlay.link(edges)
        ends = {end for edge in edges for end in edge}
        took.shadow, took.edges = len(members), len(edges)
        # A survey and a report each, a notice to every end, two words per link, and the successors told.
        took.messages = 2 * len(members) + len(ends) + 2 * len(edges) + plan.resilience


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
    """LowODA-Re: from scratch upon each churn event; here whenever somebody looks, for what was before is thrown away."""

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
        start = time.perf_counter()
        edges = low_oda_re(instance, self._plan.rho)
        seconds = time.perf_counter() - start
        for node in nodes:
            self.overlay.links[node] = set()
        self.overlay.link((nodes[u], nodes[v]) for u, v in edges.tolist())
        return seconds


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

    def _cover(self, node: int, took: Handling) -> None:
        start = time.perf_counter()
        at_random = self._chosen_at_random.setdefault(node, set())
        at_random &= self.overlay.links[node]
        tasks = (
            (self._plan.k_greedy, most_overlapping, None),
            (self._plan.k_random, any_overlapping, at_random),
        )
        for k, pick, counted in tasks:
            interest, links = self.overlay.interest, self.overlay.links[node]
            while True:
                serving = links if counted is None else counted
                lacking = [
                    topic
                    for topic in sorted(interest[node])
                    if sum(topic in interest[peer] for peer in serving) < k
                ]
                peer = pick(self._view, lacking, [node, *sorted(links)], self._random) if lacking else None
                if peer is None:
                    break
                self.overlay.link([(node, peer)])
                if counted is not None:
                    counted.add(peer)
                took.edges += 1
                took.messages += 2
        took.choice_seconds += time.perf_counter() - start
