"""OPT: an overlay per topic with shared links, by coverage of interests alone (Vitis §IV, similar to SpiderCast).

SpiderCast's greedy coverage, with a bound on the true degree: what a node would need beyond that stays
uncovered. A node that has to choose covers as much as it can with the links it may have.

The paper builds OPT over Newscast with T-Man. With `tman` a node chooses among the candidates that T-Man brings
together, which needs views by gossip alone: it would run a directory and not ask it. Without it, a node chooses among
all that its view knows.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Sequence
from typing import Annotated

import msgspec

from topicweave.blocks.views import GossipView, InterestView
from topicweave.errors import BadInput
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import Node, World
from topicweave.systems.baselines.tman_candidates import TManCandidates
from topicweave.systems.spidercast import rules
from topicweave.systems.spidercast.messages import CONTROL_KINDS
from topicweave.systems.spidercast.node import OverlayNode
from topicweave.systems.spidercast.parameters import PACES, LinkParameters
from topicweave.systems.spidercast.selection import CoverageSelection
from topicweave.systems.system import System


class OPTParameters(LinkParameters, frozen=True, forbid_unknown_fields=True):
    """`table_size` bounds the distinct peers a node is linked to; 0 leaves it free."""

    coverage: int = 2
    """K: how many neighbours each topic should have."""
    table_size: int = 0
    margin: int = 0
    """With a bound on the degree there is nothing beyond it."""
    bridges: int = 0
    """Mending links are SpiderCast's (ours); the paper's OPT has none."""
    tman: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    """How many candidates T-Man keeps (§IV); 0: no T-Man."""


class BoundedCoverage(CoverageSelection):
    """Greedy K-coverage that never wants more than `most` neighbours (0: as many as it takes)."""

    def __init__(
        self, k: int, view: InterestView, most: int, candidates: TManCandidates | None = None
    ) -> None:
        def pick(
            view: InterestView, topics: Collection[TopicId], excluded: Collection[NodeId], rng: random.Random
        ) -> NodeId | None:
            if candidates is not None:
                return candidates.choose(topics, excluded, rng)
            return rules.most_overlapping(view, topics, excluded, rng)

        super().__init__(k, view, pick)
        self._most = most

    def limit(self) -> int:
        wanted = super().limit()
        return min(wanted, self._most) if self._most else wanted


class TManNode(OverlayNode):
    """A node whose candidates are T-Man's."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        view: GossipView,
        parameters: OPTParameters,
    ) -> None:
        self._candidates = TManCandidates(world, view.sampling, parameters.coverage, parameters.tman)
        coverage = BoundedCoverage(parameters.coverage, view, parameters.table_size, self._candidates)
        super().__init__(world, node_id, subscriptions, view, parameters, {"coverage": coverage})
        self.use(self._candidates.tman)

    def start(self, contacts: Sequence[NodeId]) -> None:
        super().start(contacts)
        self._candidates.tman.start()

    def _unanswered(self, peer: NodeId) -> None:
        super()._unanswered(peer)
        self._candidates.tman.forget(peer)


def build(
    world: World,
    node_id: NodeId,
    subscriptions: Iterable[TopicId],
    view: InterestView,
    parameters: OPTParameters,
) -> OverlayNode:
    if parameters.tman:
        if not isinstance(view, GossipView) or view.introduces:
            raise BadInput("opt: T-Man works on views by gossip alone; say --membership gossip, or tman=0")
        return TManNode(world, node_id, subscriptions, view, parameters)
    coverage = BoundedCoverage(parameters.coverage, view, parameters.table_size)
    return OverlayNode(world, node_id, subscriptions, view, parameters, {"coverage": coverage})


def degree_limit(node: Node) -> int:
    """The bound, or what full coverage can need at the most."""
    assert isinstance(node, OverlayNode)
    return sum(task.selection.limit() + node.parameters.margin for task in node.tasks.values())


OPT = System(
    name="opt",
    summary="an overlay per topic with shared links; with a bounded degree some topics fall apart",
    source="Vitis (IPDPS 2011) §IV, after SpiderCast",
    parameters=OPTParameters,
    build=build,
    connects_topics=False,
    degree_limit=degree_limit,
    tuning=({"coverage": 3}, {"coverage": 4}),
    control_kinds=CONTROL_KINDS,
    paces=PACES,
)
