"""Magnet's strawman: the same trees over a name-independent ring, whatever nodes want (Magnet §4, after Scribe).

Magnet without the skewed ring, views and the choice between fingers: one OSCAR ring on which nodes stand
where their names are hashed to serves for the homes and for the trees.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from topicweave.blocks.growing_ids import MAX_BYTES, position_of
from topicweave.blocks.oscar import Oscar
from topicweave.blocks.views import InterestView
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import World
from topicweave.systems.magnet.home_trees import CONTROL_KINDS, ByRing, HomeTreeNode, degree_limit
from topicweave.systems.magnet.parameters import HomeTreeParameters
from topicweave.systems.system import System


class StrawmanParameters(HomeTreeParameters, frozen=True, forbid_unknown_fields=True):
    """One ring, its fingers, and the trees; `oscar.choices` has nothing to choose by and is ignored."""


_NO_INTEREST: Interest = frozenset()


class StrawmanNode(HomeTreeNode):
    """Where it is, and whom it links to, has nothing to do with what it wants."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        _view: InterestView,
        parameters: StrawmanParameters,
    ) -> None:
        super().__init__(world, node_id, subscriptions, parameters, rings=1, most_bytes=MAX_BYTES)
        self.oscar = Oscar(world, self.overlay, lambda: _NO_INTEREST, lambda _: 0.0, parameters.oscar)
        self.use(ByRing([self.oscar]))
        self._timers.update(self.oscar.timers())

    def _blocks(self) -> Iterable[Any]:
        return (self.oscar,)

    def _begin(self, contacts: Sequence[NodeId]) -> None:
        self.oscar.restart()
        self.control.join(position_of(self.id), contacts)

    def _beat_more(self) -> None:
        self.oscar.beat()


STRAWMAN = System(
    name="strawman",
    summary="Magnet's trees over a ring of hashed names: one tree per topic, whatever nodes want",
    source="Magnet (DEBS 2010) §4, after Scribe",
    parameters=StrawmanParameters,
    build=StrawmanNode,
    connects_topics=True,
    needs="nothing",
    degree_limit=degree_limit,
    control_kinds=CONTROL_KINDS,
    settles_within=45.0,
)
