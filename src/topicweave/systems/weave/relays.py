"""Who carries a topic that cannot be joined within the bound on links.

A node without a link to a lower subscriber of a topic asks a lower neighbour, whatever that wants, to take
part in the topic. If that one has no lower neighbour in the topic either, it asks a lower one in turn, down
to the lowest node of all. So all ways meet there, or before. Ids fall from hop to hop: a way has no loop, and
the theorem of `rules` holds for those who carry a topic as for those who want it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from topicweave.blocks.relay_paths import RelayParameters, RelayPaths
from topicweave.blocks.small_world import Router
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import World

MOST_CARRIED = 16_384
"""Topics, counted once for each neighbour that asks."""


class DownwardRouter(Router):
    """Where a topic goes from a node: nowhere if a lower neighbour takes part in it anyway, else to the
    lowest neighbour.
    """

    def __init__(
        self,
        own: NodeId,
        interests: Mapping[NodeId, Interest],
        parent: Callable[[TopicId], NodeId | None],
    ) -> None:
        """parent: the neighbour that carries a topic for this node. It stays the one to ask, even if it takes
        part in the topic for no other reason.
        """
        self._own = own
        self._below = {peer: interest for peer, interest in interests.items() if peer < own}
        self._lowest = min(self._below, default=own)
        self._parent = parent

    def next_hop(self, point: int) -> NodeId:
        parent = self._parent(point)
        if any(point in interest for peer, interest in self._below.items() if peer != parent):
            return self._own
        return parent if parent in self._below else self._lowest

    def next_hops(self, points: Sequence[int]) -> list[NodeId]:
        return [self.next_hop(point) for point in points]


def relay_paths(
    world: World,
    own: NodeId,
    router: Callable[[], Router],
    wanted: Callable[[], Collection[TopicId]],
    period: float,
    appeared: Callable[[TopicId, NodeId], None],
) -> RelayPaths:
    """period: seconds between two heartbeats"""
    parameters = RelayParameters(refresh=2 * period, expire=7 * period, most_children=MOST_CARRIED)
    return RelayPaths(world, own, router, wanted, parameters, appeared)
