"""Rappel's rules as functions of plain data: utility, audit, join, rejoin.

Slips of the paper's pseudo-code, where its prose is right: Algorithm 1 loops over candidates where it means
friends; Algorithm 2 sends ChangeParent to the joining node where it means the evicted child. §3.2's utilities
of 500 and 5 are per second, and of its example's friends B uniquely covers f1, f3, f5, and C f2, f4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Literal, NamedTuple

from topicweave.blocks.bloom import Bloom
from topicweave.blocks.vivaldi import Coordinate
from topicweave.model.ids import NodeId

Part = Literal["both", "interest", "distance"]


class FriendCandidate(NamedTuple):
    """What the utility of a friend depends on."""

    seconds: float
    """Network distance, one way."""
    bloom: Bloom


def overlap(mine: Bloom, theirs: Bloom) -> float:
    """Jaccard index of two subscription filters (§3.2)."""
    union = (mine | theirs).bit_count()
    return (mine & theirs).bit_count() / union if union else 0.0


def utility(
    own: Bloom, friends: Sequence[FriendCandidate], part: Part = "both", least: float = 1e-3
) -> float:
    """The utility of a set of friends, per second (Fig. 3): the sum over friends of (overlap + bonus) / distance.

    The bonus of a friend is the share of the node's own bits that this friend alone covers. `part` leaves out
    the distance or the interest, for §6.3's comparison. Distances count as `least` at least.
    """
    if part == "distance":
        return sum(1.0 / max(seconds, least) for seconds, _ in friends)
    covered = twice = 0
    for _, bloom in friends:
        shared = own & bloom
        twice |= covered & shared
        covered |= shared
    unique = covered & ~twice
    bits = own.bit_count()
    if not bits:
        return 0.0
    total = 0.0
    for seconds, bloom in friends:
        worth = (own & bloom).bit_count() / (own | bloom).bit_count() + (unique & bloom).bit_count() / bits
        total += worth if part == "interest" else worth / max(seconds, least)
    return total


def best_swap(
    own: Bloom,
    friends: Sequence[FriendCandidate],
    candidate: FriendCandidate,
    hysteresis: float = 0.01,
    part: Part = "both",
    least: float = 1e-3,
) -> int | None:
    """Algorithm 1 for full friends: whom to give up for the candidate, as a place in `friends`; None to stay as it is.

    The utilities of all swaps at once: with the candidate taken in, a bit that one peer alone covers is in
    `once`, one that two cover in `twice`. Without peer j those in `once` that j does not cover are still
    unique, and those in `twice` that it does become so.
    """
    peers = [*friends, candidate]
    if part == "distance":
        swap = max(range(len(friends)), key=lambda place: friends[place].seconds)
        nearer, given_up = (1.0 / max(peer.seconds, least) for peer in (candidate, friends[swap]))
        base = utility(own, friends, part, least)
        return swap if base - given_up + nearer > (1.0 + hysteresis) * base else None
    bits = own.bit_count()
    if not bits:
        return None
    once = twice = more = 0
    shared, weights, bases = [], [], []
    for seconds, bloom in peers:
        both = own & bloom
        more |= twice & both
        twice = (twice | once & both) & ~more
        once = (once | both) & ~twice & ~more
        weight = 1.0 if part == "interest" else 1.0 / max(seconds, least)
        shared.append(both)
        weights.append(weight)
        bases.append(weight * both.bit_count() / (own | bloom).bit_count())
    total = sum(bases)

    def without(gone: int) -> float:
        unique = once & ~shared[gone] | twice & shared[gone]
        worth = total - bases[gone]
        for place, weight in enumerate(weights):
            if place != gone:
                worth += weight * (unique & shared[place]).bit_count() / bits
        return worth

    base = without(len(friends))
    victim = max(range(len(friends)), key=without)
    return victim if without(victim) > (1.0 + hysteresis) * base else None


Rank = tuple[float, NodeId]
"""How near a node is to a feed's publisher; of equally near ones the lower identifier is nearer (§4.2, footnote 2)."""

ROOT: Rank = (-1.0, 0)
"""The publisher's own rank: nobody is nearer, not even at the same place."""


FARTHEST = 3600.0
"""Seconds; nobody is so far from anybody."""


def rank(coordinate: Coordinate, publisher: Coordinate, node: NodeId) -> Rank:
    return (math.dist(coordinate, publisher), node)


def is_place(coordinate: Coordinate, dimensions: int) -> bool:
    """Whether a peer's coordinate is one: it has so many dimensions, and nothing in it is too far."""
    return len(coordinate) == dimensions and all(-FARTHEST < value < FARTHEST for value in coordinate)


class Child(NamedTuple):
    """A child as its parent knows it."""

    rank: Rank
    coordinate: Coordinate


class JoinCase(Enum):
    """What becomes of a join request (Fig. 4)."""

    UP = "the joining node is nearer to the publisher: ask my parent"
    ACCEPT = "there is room"
    DOWN = "full, and all children are nearer: ask the child nearest to you"
    EVICT = "full, but some child is farther: the farthest makes room"
    KEEP = "it is my child already: nothing changes"


class Decision(NamedTuple):
    case: JoinCase
    forward: NodeId | None = None
    """DOWN: whom the joining node, EVICT: whom the evicted child is to ask."""
    evicted: NodeId | None = None


def decide_join(
    own: Rank, joiner: NodeId, joining: Child, children: Mapping[NodeId, Child], beta: int
) -> Decision:
    """Algorithm 2 at a node that subscribes to the feed.

    A request of a child of one's own changes nothing: without that rule a rejoin that is led back to one's
    own full parent would evict a sibling.
    """
    if joiner in children:
        return Decision(JoinCase.KEEP)
    if own > joining.rank:
        return Decision(JoinCase.UP)
    if len(children) < beta:
        return Decision(JoinCase.ACCEPT)
    farthest = max(children, key=lambda child: children[child].rank)
    if children[farthest].rank < joining.rank:
        return Decision(JoinCase.DOWN, nearest_to(joining.coordinate, children))
    remaining = {child: known for child, known in children.items() if child != farthest}
    remaining[joiner] = joining
    return Decision(JoinCase.EVICT, nearest_to(children[farthest].coordinate, remaining), farthest)


def nearest_to(point: Coordinate, children: Mapping[NodeId, Child]) -> NodeId:
    return min(children, key=lambda child: (math.dist(point, children[child].coordinate), child))


def rejoin_distribution(height: int, beta: int) -> list[float]:
    """The chance of each non-parent ancestor to be asked in a periodic rejoin (§4.3), grandparent first.

    beta^-d for the ancestor d levels up, d from 2 to the node's height, divided by their sum.

    >>> [round(chance, 3) for chance in rejoin_distribution(4, 5)]
    [0.806, 0.161, 0.032]
    """
    weights = [float(beta) ** -levels for levels in range(2, height + 1)]
    total = sum(weights)
    return [weight / total for weight in weights]


def rejoin_ancestor(ancestors: Sequence[NodeId], beta: int, draw: float) -> NodeId | None:
    """Whom to ask, of one's ancestors from the parent up, for `draw` uniform in [0, 1); None for the
    publisher's children.
    """
    for ancestor, chance in zip(ancestors[1:], rejoin_distribution(len(ancestors), beta), strict=True):
        draw -= chance
        if draw < 0:
            return ancestor
    return ancestors[-1] if len(ancestors) > 1 else None
