"""The identifier circle (§3.3): predecessors, successors, and who coordinates."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from topicweave.model.ids import NodeId, clockwise


def predecessors(own: NodeId, others: Iterable[NodeId], most: int) -> list[NodeId]:
    """getPreds (Alg. 6): the `most` nodes nearest before `own`, the nearest first."""
    ring = sorted({*others} - {own})
    place = bisect_left(ring, own)
    return (ring[place:] + ring[:place])[::-1][:most]


def successors(own: NodeId, others: Iterable[NodeId], most: int) -> list[NodeId]:
    """The `most` nodes nearest after `own`, the nearest first."""
    ring = sorted({*others} - {own})
    place = bisect_left(ring, own)
    return (ring[place:] + ring[:place])[:most]


def is_in_predecessor_range(own: NodeId, churned: NodeId, alive: Iterable[NodeId], most: int) -> bool:
    """isInPredRange (Alg. 6): whether fewer than `most` live nodes stand between the churned node and this one."""
    reach = clockwise(churned, own)
    between = sum(clockwise(churned, peer) < reach for peer in alive if peer not in (own, churned))
    return between < most
