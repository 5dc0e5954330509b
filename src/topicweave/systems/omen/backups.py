"""Backup sets (§4.2): topic coverage, individual commitment, and the two builders.

A backup set of v' is a set cover of its topics by the interests of other nodes. Both builders cover again and
again until every topic is covered `coverage` times (the coverage factor λ), each time by nodes not taken yet.

What the paper leaves open: a topic with fewer than λ other subscribers (among the candidates) is covered as
often as it can be, and whether λ means so many covers one after another (`repeated`) or one cover with a
demand of λ per topic (`multi`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from functools import reduce
from operator import or_
from typing import Literal

from topicweave.model.ids import Interest, NodeId, TopicId

Covers = Literal["repeated", "multi"]
Candidates = Mapping[NodeId, Interest]
Builder = Callable[[Interest, Candidates, int, random.Random, Covers], list[NodeId]]


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

    def most_useful(useful: _Shares, uncovered: int) -> NodeId | None:
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
    """buildBackupsByPD (§4.2): a random uncovered topic, and that subscriber of it which covers the most
    uncovered topics.

    Of equals a random one.
    """

    def for_a_random_topic(useful: _Shares, uncovered: int) -> NodeId | None:
        while uncovered:
            topic = _nth_bit(uncovered, rng.randrange(uncovered.bit_count()))
            # The subscribers of a topic are looked up once: those taken meanwhile are passed over.
            peers = subscribers.get(topic)
            if peers is None:
                peers = subscribers[topic] = [peer for peer, share in useful.items() if share & topic]
            best, equals = 0, list[NodeId]()
            for peer in peers:
                share = useful.get(peer, 0)
                gain = (share & uncovered).bit_count()
                if gain > best:
                    best, equals = gain, [peer]
                elif gain == best:
                    equals.append(peer)
            if best:
                return equals[rng.randrange(len(equals))]
            uncovered ^= topic  # nobody left for this one
        return None

    subscribers: dict[int, list[NodeId]] = {}

    return _cover(topics, candidates, coverage, covers, for_a_random_topic)


BUILDERS: dict[str, Builder] = {
    "primal-dual": build_backups_by_primal_dual,
    "greedy": build_backups_greedily,
}


_Shares = dict[NodeId, int]
"""What each candidate shares with v', as a bit per topic; those taken are gone from it."""


def _nth_bit(bits: int, place: int) -> int:
    """The bit of a set that has `place` lower ones before it, found by halves."""
    below, width = 0, bits.bit_length()
    while width > 1:
        half = width // 2
        low = bits & ((1 << half) - 1)
        count = low.bit_count()
        if place < count:
            bits, width = low, half
        else:
            bits, width = bits >> half, width - half
            below, place = below + half, place - count
    return 1 << below


def _share(places: Mapping[TopicId, int], shared: Collection[TopicId]) -> int:
    """A bit for each of these topics; by way of bytes, since setting them one by one copies all of them each time."""
    if len(shared) == len(places):
        return (1 << len(places)) - 1
    digits = bytearray(b"0" * len(places))
    for topic in shared:
        digits[-1 - places[topic]] = 49  # "1"
    return int(digits, 2)


def _cover(
    topics: Interest,
    candidates: Candidates,
    coverage: int,
    covers: Covers,
    choose: Callable[[_Shares, int], NodeId | None],
) -> list[NodeId]:
    places = {topic: place for place, topic in enumerate(sorted(topics))}
    everything = (1 << len(places)) - 1
    # Only what a candidate shares matters, and whoever shares nothing can never be chosen (Eq. 2).
    useful: _Shares = {
        peer: _share(places, shared) for peer, interest in candidates.items() if (shared := interest & topics)
    }
    chosen: list[NodeId] = []
    if covers == "multi":
        # lacking[i]: the topics that lack more than i covers, so that lacking[0] is what is not covered enough.
        lacking = [everything & _all_of(useful)] * coverage
        while coverage and lacking[0] and (taken := choose(useful, lacking[0])) is not None:
            share = useful.pop(taken)
            for place in range(coverage):
                deeper = lacking[place + 1] if place + 1 < coverage else 0
                lacking[place] = (lacking[place] & ~share) | (deeper & share)
            chosen.append(taken)
        return chosen
    for _ in range(coverage):
        uncovered = everything & _all_of(useful)
        while uncovered and (taken := choose(useful, uncovered)) is not None:
            uncovered &= ~useful.pop(taken)
            chosen.append(taken)
    return chosen


def _all_of(useful: _Shares) -> int:
    """The topics that somebody is left for."""
    return reduce(or_, useful.values(), 0)
