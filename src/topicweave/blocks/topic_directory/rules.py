"""What the directory decides, as functions of plain data.

The ring is one of uniform identifiers (those of the nodes are hashes of their names, and so are those of the
topics). A topic's home is the first node at or after the topic's identifier, clockwise.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from topicweave.blocks.small_world import nearest
from topicweave.model.ids import RING_SIZE, NodeId, clockwise, in_interval

MOST_FINGERS = 24
AUDIENCE_BITS = 2048
TERM_STEP = 1.25


def sides_of(own: NodeId, peers: Collection[NodeId], count: int) -> tuple[list[NodeId], list[NodeId]]:
    """The nearest so many after and before a node, nearest first. Where there are few, a peer is on both sides.

    >>> sides_of(10, [3, 40, 12, 90], 2)
    ([12, 40], [3, 90])
    """
    ring = sorted(peers)
    place = bisect_right(ring, own)
    around = ring[place:] + ring[:place]
    return around[:count], around[::-1][:count]


def fits(own: NodeId, peer: NodeId, after: Sequence[NodeId], before: Sequence[NodeId], count: int) -> bool:
    """Whether a peer belongs among the nearest `count` on either side.

    >>> fits(10, 11, [12, 40], [3, 90], 2), fits(10, 50, [12, 40], [3, 90], 2), fits(10, 95, [12, 40], [3, 90], 2)
    (True, False, True)
    """
    if peer == own or peer in after or peer in before:
        return False
    if len(after) < count:
        return True
    ahead = clockwise(own, peer)
    return ahead < clockwise(own, after[-1]) or RING_SIZE - ahead < clockwise(before[-1], own)


def estimated_nodes(own: NodeId, after: Sequence[NodeId], before: Sequence[NodeId]) -> int:
    """How many nodes there are if all lie as close as the known ones.

    >>> step = RING_SIZE // 1000
    >>> estimated_nodes(5 * step, [6 * step, 7 * step], [4 * step, 3 * step])
    1000
    """
    if not after:
        return 1
    if set(after) & set(before):
        return len({*after, *before}) + 1
    arc = clockwise(before[-1], after[-1])
    return max(2, round((len(after) + len(before)) * RING_SIZE / max(arc, 1)))


def finger_count(nodes: int) -> int:
    """Half the logarithm: as many again lead here, and lookups go both ways.

    >>> [finger_count(nodes) for nodes in (1, 8, 1000, 10_000)]
    [0, 2, 5, 7]
    """
    return min(MOST_FINGERS, math.ceil(math.log2(max(nodes, 1)) / 2))


def fingers_among(nodes: int) -> int:
    """The same for an estimate: as if there were a power of two, so that it does not change all the time.

    >>> [fingers_among(nodes) for nodes in (1, 5, 300, 1000)]
    [1, 1, 4, 5]
    """
    return finger_count(power_below(nodes))


def power_below(nodes: int) -> int:
    """The largest power of two that is not above a number of nodes; at least two."""
    return 1 << max(1, nodes.bit_length() - 1)


def most_contacts(nodes: int) -> float:
    """Of a node that takes them for so many: 6 + 2 log2.

    >>> most_contacts(2), most_contacts(256)
    (8.0, 22.0)
    """
    return 6 + 2 * math.log2(max(nodes, 1))


def most_fans(nodes: int) -> int:
    """As many as two nodes have fingers; beside six neighbours and the fingers there is room for them.

    >>> [most_fans(nodes) for nodes in (1, 2, 5, 300, 1000)]
    [0, 1, 3, 10, 10]
    >>> all(6 + fingers_among(nodes) + most_fans(nodes) <= most_contacts(nodes) for nodes in range(2, 5000))
    True
    """
    room = math.floor(most_contacts(nodes)) - 6 - fingers_among(nodes)
    return max(0, min(2 * finger_count(nodes), room))


def next_hop(
    own: NodeId,
    after: Sequence[NodeId],
    before: Sequence[NodeId],
    table: Sequence[NodeId],
    point: int,
    attempt: int = 0,
) -> NodeId:
    """Where what is meant for a point goes from here; the node itself where it has arrived.

    Greedy, by the shorter way round, as far as the node nearest to the point (`table`: all contacts and the
    node itself, in order), whose successor may be the home. A question that went unanswered goes to a later
    successor: it keeps the home's records.

    >>> table = [10, 20, 40, 90]
    >>> [next_hop(20, [40], [10], table, point) for point in (15, 20, 22, 39, 80, 5)]
    [20, 20, 40, 40, 90, 10]
    """
    if not after or in_interval(point, before[0], own):
        return own
    if attempt and in_interval(point, before[-1], own):
        return own
    hop = nearest(point, table)
    if hop is None or hop == own:
        return after[min(attempt, len(after) - 1)]
    return hop


def again_after(audience: int, hot: float, least: float) -> float:
    """When a subscriber should announce again, so that its home gets no more than four fifths of `hot`
    announcements per second.

    >>> again_after(3, 5.0, 60.0), again_after(4000, 5.0, 60.0)
    (60.0, 1000.0)
    """
    return max(least, audience / (0.8 * hot))


def next_within(again: float, renewal: float) -> float:
    """Seconds within which a topic is announced again: a node's own renewal or, where its home wants it later,
    the first of few steps that is as late. So topics for which homes named different times are still said together.

    >>> next_within(0.0, 60.0), next_within(61.0, 60.0), round(next_within(1000.0, 60.0))
    (60.0, 75.0, 1091)
    """
    if again <= renewal:
        return renewal
    return float(renewal * TERM_STEP ** math.ceil(math.log(again / renewal, TERM_STEP)))


def audience_bit(subscriber: NodeId) -> int:
    """Which bit of a topic's bitmap stands for a subscriber. Identifiers are hashes already."""
    return 1 << ((subscriber * 0x9E3779B97F4A7C15 & (RING_SIZE - 1)) >> 53)


def estimated_audience(bits: int) -> int:
    """How many subscribers set so many bits: linear counting (Whang, Vander-Zanden, Taylor 1990).

    >>> estimated_audience(0), estimated_audience((1 << 100) - 1)
    (0, 103)
    """
    ones = min(bits.bit_count(), AUDIENCE_BITS - 1)
    return round(-AUDIENCE_BITS * math.log(1 - ones / AUDIENCE_BITS))


def settled_parts(leaders: Mapping[NodeId, float], now: float, lifetime: float) -> list[NodeId]:
    """The labels of parts that have lasted: `leaders` with the time from which each has said that it leads.

    A leader says so after it has led for one lifetime of a label; it counts after another.

    >>> settled_parts({3: 0.0, 7: 50.0, 9: 10.0}, now=60.0, lifetime=30.0)
    [3, 9]
    """
    return sorted(leader for leader, since in leaders.items() if now - since >= lifetime)


def pairs_to_introduce(
    parts: Mapping[NodeId, Sequence[NodeId]], most: int, rng: random.Random
) -> list[tuple[NodeId, NodeId, NodeId, NodeId]]:
    """Whom to introduce to whom: (a member, its part, a member of another part, that part).

    Each part to the next one in a random order: so all come together in the end, and random members see to
    it, not leaders.

    >>> pairs_to_introduce({1: [1, 5], 2: [2]}, 4, random.Random(1))
    [(2, 2, 5, 1)]
    """
    order = sorted(parts)
    rng.shuffle(order)
    return [(rng.choice(parts[one]), one, rng.choice(parts[other]), other) for one, other in pairwise(order)][
        :most
    ]


def with_lower_ones(
    drawn: Sequence[NodeId], all_of_them: Collection[NodeId], asker: NodeId, rng: random.Random
) -> list[NodeId]:
    """The drawn contacts; half of them are lower than the asker, if there are so many. Those that are missing
    are drawn from the lower ones.

    Systems that agree on a topic's lowest subscriber would otherwise leave its second lowest alone until
    chance names the lowest. One lower contact would not do: when many crash together, a home names some that
    it does not know to be gone.

    >>> rng = random.Random(1)
    >>> sorted(with_lower_ones([7, 9, 11, 13], [2, 3, 7, 9, 11, 13], 5, rng))
    [2, 3, 7, 9]
    >>> with_lower_ones([2, 9], [2, 3, 9], 5, rng), with_lower_ones([7], [7], 5, rng)
    ([2, 9], [7])
    """
    lower = [peer for peer in drawn if peer < asker]
    others = [peer for peer in all_of_them if peer < asker and peer not in lower]
    more = rng.sample(others, max(0, min(len(drawn) // 2 - len(lower), len(others))))
    if not more:
        return list(drawn)
    higher = [peer for peer in drawn if peer > asker]
    return [*lower, *more, *higher[: len(higher) - len(more)]]


class Bucket:
    """So many per second, and a number at once."""

    __slots__ = ("_at", "_left", "_most", "_rate")

    def __init__(self, rate: float, most: float, now: float) -> None:
        self._rate, self._most = rate, most
        self._left, self._at = most, now

    def take(self, now: float) -> bool:
        """Whether there is one left; if so, it is taken.

        >>> bucket = Bucket(1.0, 2.0, now=0.0)
        >>> [bucket.take(0.0), bucket.take(0.0), bucket.take(0.5), bucket.take(1.0)]
        [True, True, False, True]
        """
        self._left = min(self._most, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True

    def left(self, now: float) -> float:
        """How many there are.

        >>> bucket = Bucket(1.0, 2.0, now=0.0)
        >>> bucket.take(0.0), bucket.left(0.5), bucket.left(9.0)
        (True, 1.5, 2.0)
        """
        return min(self._most, self._left + (now - self._at) * self._rate)

    def full(self, now: float) -> bool:
        """Whether it is as if nobody had ever taken one."""
        return self.left(now) >= self._most

    def owe(self, amount: float) -> None:
        """Take more than there is; it has to come in again first.

        >>> bucket = Bucket(1.0, 2.0, now=0.0)
        >>> bucket.owe(4.0)
        >>> [bucket.take(2.5), bucket.take(3.0)]
        [False, True]
        """
        self._left -= amount
