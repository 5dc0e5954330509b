"""Ring per topic: for each topic a ring of its subscribers by identifier; links that coincide are merged (§3.9.2)."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable

import numpy as np
import numpy.typing as npt

from topicweave.blocks.views import InterestView
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import World
from topicweave.systems.spidercast.messages import CONTROL_KINDS
from topicweave.systems.spidercast.node import OverlayNode
from topicweave.systems.spidercast.parameters import Count, LinkParameters
from topicweave.systems.spidercast.selection import Shared
from topicweave.systems.system import System


def ring_neighbours(own: NodeId, peers: npt.NDArray[np.uint64]) -> set[NodeId]:
    """The next and the previous of the peers on the ring, seen from `own` (one peer may be both).

    >>> sorted(ring_neighbours(10, np.array([3, 7, 10, 20, 40], dtype=np.uint64)))
    [7, 20]
    """
    others = peers[peers != own]
    if not len(others):
        return set()
    # Unsigned differences wrap as the ring does: they are the clockwise distances from and to `own`.
    here = np.uint64(own)
    return {int(others[np.argmin(others - here)]), int(others[np.argmin(here - others)])}


LOOK_AGAIN = 5.0
"""Seconds after which the rings are worked out anew, though the view says that nothing changed: it leaves out peers that
could not be reached, and takes them in again, without counting that as a change."""


class RingPerTopicParameters(LinkParameters, frozen=True, forbid_unknown_fields=True):
    """The rings need no settings of their own."""

    bridges: Count = 0
    """Rings mend themselves as views do; and a label takes too long round a large ring to tell it from a parted one."""


class RingSelection:
    """Wants the ring neighbours of every topic, as far as the view knows them. Implements `Selection`."""

    def __init__(self, world: World, own_id: NodeId, view: InterestView) -> None:
        self._world = world
        self._id = own_id
        self._view = view
        self._interest: Interest = frozenset()
        self._neighbours: set[NodeId] = set()
        self._wanted: set[NodeId] = set()
        self._seen_version = -1
        self._look_again_at = 0.0

    def _want(self) -> set[NodeId]:
        """The peers wanted as neighbours; worked out anew when the view has changed, or may have."""
        if self._view.version != self._seen_version or self._world.now >= self._look_again_at:
            self._seen_version = self._view.version
            self._look_again_at = self._world.now + LOOK_AGAIN
            rings = (
                ring_neighbours(self._id, self._view.subscribers(topic)) for topic in sorted(self._interest)
            )
            self._wanted = set().union(*rings)
        return self._wanted

    def enabled(self) -> bool:
        return True

    def limit(self) -> int:
        return 2 * len(self._interest)

    def reset(self, interest: Interest) -> None:
        self._interest = interest
        self._neighbours.clear()
        self._seen_version = -1

    def added(self, peer: NodeId, shared: Shared) -> None:
        self._neighbours.add(peer)

    def removed(self, peer: NodeId, shared: Shared) -> None:
        self._neighbours.discard(peer)

    def lacking(self) -> int:
        return len(self._want() - self._neighbours)

    def lacking_without(self, peer: NodeId, shared: Shared) -> int:
        return self.lacking() + (peer in self._neighbours and self.serves(peer, shared))

    def serves(self, peer: NodeId, shared: Shared) -> bool:
        return peer in self._want()

    def choose(self, excluded: Collection[NodeId], rng: random.Random) -> NodeId | None:
        missing = sorted(self._want().difference(excluded))
        return missing[rng.randrange(len(missing))] if missing else None


def build(
    world: World,
    node_id: NodeId,
    subscriptions: Iterable[TopicId],
    view: InterestView,
    parameters: RingPerTopicParameters,
) -> OverlayNode:
    return OverlayNode(
        world, node_id, subscriptions, view, parameters, {"ring": RingSelection(world, node_id, view)}
    )


RING_PER_TOPIC = System(
    name="ring-per-topic",
    summary="a ring of its subscribers for each topic, common links merged",
    source="SpiderCast (DEBS 2007) §3.9.2, after Sub-2-Sub",
    parameters=RingPerTopicParameters,
    build=build,
    connects_topics=True,
    control_kinds=CONTROL_KINDS,
)
