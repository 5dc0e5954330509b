"""Compiled halves of the round-based experiments: backup sets, gossip, and the components of topics, in bulk.

Each kernel does what a rule of `topicweave.systems.omen` says, for many nodes at once; the tests hold them to
the rules, draw by draw. Random numbers come from a counter that the caller owns (splitmix64), so a run is a
function of its seed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from topicweave.model.arrays import IntArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)

SHADOW, BEACONS, EXACT = 0, 1, 2
"""How the parts of a topic are known: not at all, by beacons, or all of them."""


class OverlayArrays(NamedTuple):
    """Who wants what, who is up, and who is linked to whom."""

    offsets: IntArray
    """Node i wants `topics[offsets[i]:offsets[i + 1]]`; also as bits."""
    topics: IntArray
    bits: npt.NDArray[np.uint64]
    members_at: IntArray
    """Topic t is wanted by `members[members_at[t]:members_at[t + 1]]`, up or not."""
    members: IntArray
    rank: IntArray
    """The nodes' order on the identifier circle."""
    up: npt.NDArray[np.bool_]
    links_at: IntArray
    """Node i is linked to `links[links_at[i]:links_at[i + 1]]`."""
    links: IntArray


class Keeping(NamedTuple):
    """Per node: its predecessors (-1: none), the backups that it keeps for each, and how many (-1: not built yet)."""

    before: npt.NDArray[np.int32]
    kept: npt.NDArray[np.int32]
    kept_count: npt.NDArray[np.int32]


class Building(NamedTuple):
    """How a backup set is built."""

    coverage: int
    multi: bool
    """All covers at once, not one after another."""
    greedy: bool
    counter: npt.NDArray[np.uint64]


@njit(cache=True)
def below(counter: Any, limit: int) -> int:
    """A random number from 0 to limit - 1."""
    counter[0] += _GOLDEN
    z = counter[0]
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    z = z ^ (z >> np.uint64(31))
    return int(float(z >> np.uint64(11)) * (1.0 / 9007199254740992.0) * limit)


@njit(cache=True)
def _bit_count(word: Any) -> int:
    x = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(cache=True)
def _bits(words: Any) -> int:
    count = 0
    for word in words:
        count += _bit_count(word)
    return count


@njit(cache=True)
def _gain(share: Any, uncovered: Any) -> int:
    count = 0
    for place in range(len(uncovered)):
        count += _bit_count(share[place] & uncovered[place])
    return count


@njit(cache=True)
def _wants(bits: Any, node: int, topic: int) -> bool:
    return bool((bits[node, topic >> 6] >> np.uint64(topic & 63)) & np.uint64(1))


@njit(cache=True)
def _choose_greedily(shares: Any, free: Any, uncovered: Any) -> int:
    chosen, best = -1, 0
    for place in range(len(free)):
        if free[place]:
            gain = _gain(shares[place], uncovered)
            if gain > best:
                chosen, best = place, gain
    return chosen


@njit(cache=True)
def _choose_for_a_random_topic(shares: Any, free: Any, uncovered: Any, counter: Any) -> int:
    left = uncovered.copy()
    while True:
        count = _bits(left)
        if count == 0:
            return -1
        skip = below(counter, count)
        word = 0
        while True:
            here = _bit_count(left[word])
            if skip < here:
                break
            skip -= here
            word += 1
        rest = left[word]
        for _ in range(skip):
            rest &= rest - np.uint64(1)
        topic = rest & (~rest + np.uint64(1))
        best, equals = 0, 0
        for place in range(len(free)):
            if free[place] and shares[place, word] & topic:
                gain = _gain(shares[place], left)
                if gain > best:
                    best, equals = gain, 1
                elif gain == best:
                    equals += 1
        if equals:
            skip = below(counter, equals)
            for place in range(len(free)):
                if free[place] and shares[place, word] & topic and _gain(shares[place], left) == best:
                    if skip == 0:
                        return place
                    skip -= 1
        left[word] ^= topic  # nobody left for this one


@njit(cache=True)
def build_backups(topics: Any, pool: Any, bits: Any, building: Any) -> Any:
    """A backup set for a node with these topics, among a pool in ascending order, as `systems.omen.backups`
    builds it.
    """
    coverage, multi, greedy, counter = building
    words = (len(topics) + 63) // 64
    shares = np.zeros((len(pool), words), np.uint64)
    free = np.zeros(len(pool), np.bool_)
    for place in range(len(pool)):
        for number in range(len(topics)):
            if _wants(bits, pool[place], topics[number]):
                shares[place, number >> 6] |= np.uint64(1) << np.uint64(number & 63)
                free[place] = True
    chosen = np.empty(len(pool), np.int32)
    count = 0
    rounds = min(1, coverage) if multi else coverage
    for _ in range(rounds):
        # lacking[i]: the topics that lack more than i covers.
        depth = coverage if multi else 1
        lacking = np.zeros((depth, words), np.uint64)
        for place in range(len(pool)):
            if free[place]:
                for word in range(words):
                    lacking[0, word] |= shares[place, word]
        for deeper in range(1, depth):
            lacking[deeper] = lacking[0]
        while True:
            if _bits(lacking[0]) == 0:
                break
            if greedy:
                taken = _choose_greedily(shares, free, lacking[0])
            else:
                taken = _choose_for_a_random_topic(shares, free, lacking[0], counter)
            if taken < 0:
                break
            free[taken] = False
            chosen[count] = pool[taken]
            count += 1
            for deeper in range(depth):
                for word in range(words):
                    share = shares[taken, word]
                    below_it = lacking[deeper + 1, word] if deeper + 1 < depth else np.uint64(0)
                    lacking[deeper, word] = (lacking[deeper, word] & ~share) | (below_it & share)
    return chosen[:count]


@njit(cache=True)
def _view(node: int, keeping: Any, network: Any, mark: Any, stamp: int) -> Any:
    """getView (Alg. 4): backups and neighbours of the predecessors, without those who are gone."""
    before, kept, kept_count = keeping
    links_at, links = network.links_at, network.links
    most = 0
    for place in range(before.shape[1]):
        peer = before[node, place]
        if peer >= 0:
            most += max(0, kept_count[node, place]) + links_at[peer + 1] - links_at[peer]
    found = np.empty(most, np.int32)
    count = 0
    mark[node] = stamp
    for place in range(before.shape[1]):
        peer = before[node, place]
        if peer < 0:
            continue
        for i in range(kept_count[node, place]):
            other = kept[node, place, i]
            if network.up[other]:
                count = _add(found, count, other, mark, stamp)
        for i in range(links_at[peer], links_at[peer + 1]):
            count = _add(found, count, links[i], mark, stamp)
    return found[:count]


@njit(cache=True)
def _add(found: Any, count: int, node: int, mark: Any, stamp: int) -> int:
    """One more, unless it is marked; returns how many there are."""
    if mark[node] == stamp:
        return count
    mark[node] = stamp
    found[count] = node
    return count + 1


@njit(cache=True)
def view_of(node: int, keeping: Any, network: Any) -> Any:
    return _view(node, keeping, network, np.zeros(len(network.up), np.int64), 1)


@njit(cache=True)
def view_sizes(nodes: Any, keeping: Any, network: Any) -> Any:
    mark = np.zeros(len(network.up), np.int64)
    sizes = np.empty(len(nodes), np.int64)
    for place in range(len(nodes)):
        sizes[place] = len(_view(nodes[place], keeping, network, mark, place + 1))
    return sizes


@njit(cache=True)
def _select_view(node: int, pool: Any, keeping: Any, network: Any, building: Any) -> None:
    """selectView (Alg. 4)."""
    before, kept, kept_count = keeping
    for place in range(before.shape[1]):
        peer = before[node, place]
        if peer < 0:
            continue
        wanted = network.topics[network.offsets[peer] : network.offsets[peer + 1]]
        built = build_backups(wanted, pool[pool != peer], network.bits, building)
        count = min(len(built), kept.shape[2])
        kept[node, place, :count] = built[:count]
        kept_count[node, place] = count


@njit(cache=True)
def gossip(nodes: Any, everyone: Any, samples: int, keeping: Any, network: Any, building: Any) -> int:
    """An exchange by each of these nodes, in order (Alg. 3); returns the messages sent."""
    mark = np.zeros(len(network.up), np.int64)
    stamp = 0
    messages = 0
    for node in nodes:
        if not network.up[node]:
            continue
        stamp += 1
        mine = _view(node, keeping, network, mark, stamp)
        known = mine if len(mine) else everyone
        partner = known[below(building.counter, len(known))]
        if partner == node:
            continue
        stamp += 1
        theirs = _view(partner, keeping, network, mark, stamp)
        stamp += 1
        pool = np.empty(len(mine) + len(theirs) + 2 * samples + 2, np.int32)
        count = _add(pool, _add(pool, 0, node, mark, stamp), partner, mark, stamp)
        for other in mine:
            count = _add(pool, count, other, mark, stamp)
        for other in theirs:
            count = _add(pool, count, other, mark, stamp)
        for _ in range(2 * samples):
            other = everyone[below(building.counter, len(everyone))]
            count = _add(pool, count, other, mark, stamp)
        both = np.sort(pool[:count])
        _select_view(node, both, keeping, network, building)
        _select_view(partner, both, keeping, network, building)
        messages += 2
    return messages


@njit(cache=True)
def _part_of_topic(t: int, network: Any, part: Any, stack: Any) -> int:
    """Number the parts of a topic from 0: `part` of its subscribers; returns how many parts there are.

    `part` must hold -1 for everybody before, and `_forget_parts` sees to it afterwards.
    """
    members, links_at, links = network.members, network.links_at, network.links
    start, end = network.members_at[t], network.members_at[t + 1]
    for i in range(start, end):
        if network.up[members[i]]:
            part[members[i]] = -2
    parts = 0
    for i in range(start, end):
        if part[members[i]] != -2:
            continue
        part[members[i]] = parts
        stack[0] = members[i]
        depth = 1
        while depth:
            depth -= 1
            node = stack[depth]
            for j in range(links_at[node], links_at[node + 1]):
                if part[links[j]] == -2:
                    part[links[j]] = parts
                    stack[depth] = links[j]
                    depth += 1
        parts += 1
    return parts


@njit(cache=True)
def _forget_parts(t: int, network: Any, part: Any) -> None:
    for i in range(network.members_at[t], network.members_at[t + 1]):
        part[network.members[i]] = -1


@njit(cache=True)
def parted(topics: Any, network: Any) -> Any:
    """Those of the topics that are in several parts."""
    part = np.full(len(network.up), -1, np.int32)
    stack = np.empty(len(network.up), np.int32)
    apart = np.zeros(len(topics), np.bool_)
    for place in range(len(topics)):
        apart[place] = _part_of_topic(topics[place], network, part, stack) > 1
        _forget_parts(topics[place], network, part)
    return topics[apart]


@njit(cache=True)
def _leader(t: int, network: Any) -> int:
    """The first on the circle of those who want a topic and are up; -1 if nobody is."""
    leader = -1
    for i in range(network.members_at[t], network.members_at[t + 1]):
        node = network.members[i]
        if network.up[node] and (leader < 0 or network.rank[node] < network.rank[leader]):
            leader = node
    return leader


@njit(cache=True)
def _join_linked(labels: Any, shadow: Any, place_of: Any, network: Any) -> None:
    """One label for members that are linked to each other."""
    for s in range(len(shadow)):
        if labels[s] < 0:
            continue
        for i in range(network.links_at[shadow[s]], network.links_at[shadow[s] + 1]):
            other = place_of[network.links[i]]
            if other > s and labels[other] >= 0 and labels[other] != labels[s]:
                old, new = labels[other], labels[s]
                for again in range(len(shadow)):
                    if labels[again] == old:
                        labels[again] = new


@njit(cache=True)
def shadow_labels(topics: Any, shadow: Any, how: int, departed: int, network: Any) -> tuple[Any, Any]:
    """What a shadow set reports: labels by (topic, member), -1 where a member does not want it; and the
    topics that labels had to be spread through.

    Beacons tell who is still in the part of a topic's leader, and nothing of those who are not; where the
    departed was the leader, labels are spread. Links among the shadow set join in any case.
    """
    labels = np.full((len(topics), len(shadow)), -1, np.int64)
    spread = np.zeros(len(topics), np.bool_)
    part = np.full(len(network.up), -1, np.int32)
    stack = np.empty(len(network.up), np.int32)
    place_of = np.full(len(network.up), -1, np.int32)
    for s in range(len(shadow)):
        place_of[shadow[s]] = s
    for place in range(len(topics)):
        t = topics[place]
        exact = how == EXACT
        if how == SHADOW:
            for s in range(len(shadow)):
                if _wants(network.bits, shadow[s], t):
                    labels[place, s] = s
        else:
            parts = _part_of_topic(t, network, part, stack)
            leader = _leader(t, network)
            if how == BEACONS and (leader < 0 or network.rank[departed] < network.rank[leader]):
                exact = spread[place] = True
            for s in range(len(shadow)):
                its_part = part[shadow[s]]
                if its_part >= 0:
                    labels[place, s] = its_part if exact or its_part == part[leader] else parts + s
            _forget_parts(t, network, part)
        if not exact:
            _join_linked(labels[place], shadow, place_of, network)
    return labels, spread
