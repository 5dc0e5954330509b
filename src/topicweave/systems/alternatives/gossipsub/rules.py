"""What the specification decides at a heartbeat, as functions of plain data."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Sequence

from topicweave.model.ids import NodeId


def sample(peers: Sequence[NodeId], count: int, rng: random.Random) -> list[NodeId]:
    """So many of them at random, or all."""
    return rng.sample(peers, min(count, len(peers))) if count > 0 else []


def to_graft(
    mesh: Collection[NodeId], eligible: Sequence[NodeId], d: int, d_low: int, rng: random.Random
) -> list[NodeId]:
    """Whom to take into a mesh that has become too small: it is filled up to `d`.

    >>> to_graft({1, 2, 3, 4, 5}, [6, 7], d=6, d_low=5, rng=random.Random(0))
    []
    >>> sorted(to_graft({1, 2, 3, 4}, [6, 7], d=6, d_low=5, rng=random.Random(0)))
    [6, 7]
    """
    return sample(eligible, d - len(mesh), rng) if len(mesh) < d_low else []


def to_prune(
    mesh: Sequence[NodeId],
    outbound: Collection[NodeId],
    d: int,
    d_high: int,
    d_out: int,
    rng: random.Random,
    held: Collection[NodeId] = (),
) -> list[NodeId]:
    """Whom to drop from a mesh that has become too large: `d` stay, `d_out` of them outbound if there are so many.
    Those that are held are among them; `d` at most are.

    >>> rng = random.Random(0)
    >>> to_prune(range(12), {0}, d=6, d_high=12, d_out=2, rng=rng)
    []
    >>> pruned = to_prune(range(13), {3, 9}, d=6, d_high=12, d_out=2, rng=rng)
    >>> len(pruned), {3, 9} & set(pruned)
    (7, set())
    >>> {4, 5} & set(to_prune(range(13), {3, 9}, d=2, d_high=12, d_out=1, rng=rng, held={4, 5}))
    set()
    """
    if len(mesh) <= d_high:
        return []
    order = sorted(sample(mesh, len(mesh), rng), key=lambda peer: peer not in held)
    kept = order[:d]
    lacking = d_out - sum(peer in outbound for peer in kept)
    for peer in [peer for peer in order[d:] if peer in outbound][: max(0, lacking)]:
        # It takes the place of one that came to us.
        place = next(
            (i for i in range(d - 1, -1, -1) if kept[i] not in outbound and kept[i] not in held), None
        )
        if place is not None:
            kept[place] = peer
    staying = set(kept)
    return [peer for peer in mesh if peer not in staying]


def gossip_targets(outside: Sequence[NodeId], d_lazy: int, factor: float, rng: random.Random) -> list[NodeId]:
    """Who outside of the mesh hears of an event that is there to be had.

    >>> [len(gossip_targets(range(peers), 6, 0.25, random.Random(0))) for peers in (10, 40)]
    [6, 10]
    """
    return sample(outside, max(d_lazy, math.ceil(factor * len(outside))), rng)
