"""Backup sets (§4.2): topic coverage, individual commitment, and the two builders.

A backup set of v' is a set cover of its topics by the interests of other nodes. Both builders cover again and again until every topic is
covered `coverage` times (the coverage factor λ), each time by nodes not taken yet.

What the paper leaves open: a topic with fewer than λ other subscribers (among the candidates) is covered as often as it can be, and whether λ
means so many covers one after another (`repeated`) or one cover with a demand of λ per topic (`multi`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from functools import reduce
from operator import or_
from typing import Literal

from topicweave.model.ids import Interest, NodeId

Covers = Literal["repeated", "multi"]
Candidates = Mapping[NodeId, Interest]
Builder = Callable[[Interest, Candidates, int, random.Random, Covers], list[NodeId]]


def is_acceptable(topics: Interest, backups: Collection[Interest]) -> bool:
    """Topic coverage (Eq. 1) and individual commitment (Eq. 2)."""
    covered = frozenset().union(*backups)
    return topics <= covered and all(interest & topics for interest in backups)


def coverage_factor(topics: Interest, backups: Collection[Interest]) -> int:
    """λ(B(v')) of Eq. 3: how often the least covered topic is covered; 0 for a node without topics."""
    return min((sum(topic in interest for interest in backups) for topic in topics), default=0)


def build_backups_greedily(
    topics: Interest,
    candidates: Candidates,
    coverage: int,
    rng: random.Random,
    covers: Covers = "repeated",
) -> list[NodeId]:
    """buildBackupsGreedily (§4.2): always the node that covers the most uncovered topics.

    Of equals the lowest: the paper's greedy has no randomness to it, and that is what makes it unfair (§6.3).
    """

    def most_useful(useful: _Shares, _wanting: _Wanting, uncovered: int) -> NodeId | None:
        chosen, best = None, 0
        for peer, share in useful.items():
            gain = (share & uncovered).bit_count()
            if gain > best or (gain == best and chosen is not None and peer < chosen):
                chosen, best = peer, gain
        return chosen

    return _cover(topics, candidates, coverage, covers, most_useful)


def build_backups_by_primal_dual(
    topics: Interest,
    candidates: Candidates,
    coverage: int,
    rng: random.Random,
    covers: Covers = "repeated",
) -> list[NodeId]:
    """buildBackupsByPD (§4.2): a random uncovered topic, and that subscriber of it which covers the most uncovered topics.

    Of equals a random one.
    """

    def for_a_random_topic(useful: _Shares, wanting: _Wanting, uncovered: int) -> NodeId | None:
        while uncovered:
            topic = _nth_bit(uncovered, rng.randrange(uncovered.bit_count()))
            best, equals = 0, list[NodeId]()
            for peer in wanting.get(topic, ()):
                if share := useful.get(peer):
                    gain = (share & uncovered).bit_count()
                    if gain > best:
                        best, equals = gain, [peer]
                    elif gain == best:
                        equals.append(peer)
            if equals:
                return equals[rng.randrange(len(equals))]
            uncovered ^= topic  # nobody left for this one
        return None

    return _cover(topics, candidates, coverage, covers, for_a_random_topic)


BUILDERS: dict[str, Builder] = {
    "primal-dual": build_backups_by_primal_dual,
    "greedy": build_backups_greedily,
}


_Shares = dict[NodeId, int]
"""What each candidate shares with v', as a bit per topic; those taken are gone from it."""
_Wanting = dict[int, list[NodeId]]
"""The candidates that share a topic, taken or not."""


def _nth_bit(bits: int, place: int) -> int:
    """The bit of a set that has `place` lower ones before it."""
    for _ in range(place):
        bits &= bits - 1
    return bits & -bits


def _cover(
    topics: Interest,
    candidates: Candidates,
    coverage: int,
    covers: Covers,
    choose: Callable[[_Shares, _Wanting, int], NodeId | None],
) -> list[NodeId]:
    bit = {topic: 1 << place for place, topic in enumerate(sorted(topics))}
    everything = (1 << len(bit)) - 1
    # Only what a candidate shares matters, and whoever shares nothing can never be chosen (Eq. 2).
    useful: _Shares = {}
    wanting: _Wanting = {}
    for peer, interest in candidates.items():
        if shared := interest & topics:
            bits = 0
            for topic in shared:
                bits |= bit[topic]
                wanting.setdefault(bit[topic], []).append(peer)
            useful[peer] = bits
    chosen: list[NodeId] = []
    if covers == "multi":
        # lacking[i]: the topics that lack more than i covers, so that lacking[0] is what is not covered enough.
        lacking = [everything & _all_of(useful)] * coverage
        while coverage and lacking[0] and (taken := choose(useful, wanting, lacking[0])) is not None:
            share = useful.pop(taken)
            for place in range(coverage):
                deeper = lacking[place + 1] if place + 1 < coverage else 0
                lacking[place] = (lacking[place] & ~share) | (deeper & share)
            chosen.append(taken)
        return chosen
    for _ in range(coverage):
        uncovered = everything & _all_of(useful)
        while uncovered and (taken := choose(useful, wanting, uncovered)) is not None:
            uncovered &= ~useful.pop(taken)
            chosen.append(taken)
    return chosen


def _all_of(useful: _Shares) -> int:
    """The topics that somebody is left for."""
    return reduce(or_, useful.values(), 0)
