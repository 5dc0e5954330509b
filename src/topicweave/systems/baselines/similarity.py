"""similarity(x, y): x links to the most similar peers, y to random ones (SpiderCast §3.9.1).

The paper's nodes know everybody, so the most similar are found at once. Where they get to know each other by
and by, neighbours are exchanged for more similar ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from topicweave.blocks.views import GossipView, InterestView
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import World
from topicweave.systems.baselines.counted import CountSelection
from topicweave.systems.spidercast import rules
from topicweave.systems.spidercast.messages import CONTROL_KINDS
from topicweave.systems.spidercast.node import OverlayNode
from topicweave.systems.spidercast.parameters import PACES, Count, LinkParameters
from topicweave.systems.system import System


class SimilarityParameters(LinkParameters, frozen=True, forbid_unknown_fields=True):
    """How many links of each sort a node keeps."""

    similar: Count = 10
    random: Count = 0
    bridges: Count = 0
    """Mending parted topics is our addition to SpiderCast: here it would add as many links again."""


def build(
    world: World,
    node_id: NodeId,
    subscriptions: Iterable[TopicId],
    view: InterestView,
    parameters: SimilarityParameters,
) -> OverlayNode:
    growing = view if isinstance(view, GossipView) else None
    selections = {
        "similar": CountSelection(parameters.similar, partial(rules.most_overlapping, view), growing),
        "random": CountSelection(
            parameters.random, lambda _interest, excluded, rng: rules.any_peer(view, excluded, rng)
        ),
    }
    return OverlayNode(world, node_id, subscriptions, view, parameters, selections)


SIMILARITY = System(
    name="similarity",
    summary="links to the nodes with the most similar interests, and to some random ones",
    source="SpiderCast (DEBS 2007) §3.9.1, after Chand and Felber",
    parameters=SimilarityParameters,
    build=build,
    connects_topics=False,
    control_kinds=CONTROL_KINDS,
    paces=PACES,
)
