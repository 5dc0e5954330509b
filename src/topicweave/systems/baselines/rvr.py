"""RVR: rendezvous routing on a small world, oblivious of interests; one Scribe-like tree per topic (Vitis §IV).

Vitis without friends, clusters and gateways: all links but the ring's are small-world links, every subscriber
builds a relay path of its own, and events travel along these paths only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from topicweave.blocks.views import InterestView
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import World
from topicweave.systems.system import System
from topicweave.systems.vitis.messages import CONTROL_KINDS
from topicweave.systems.vitis.parameters import RendezvousParameters
from topicweave.systems.vitis.rendezvous import RendezvousNode, degree_limit


class RVRParameters(RendezvousParameters, frozen=True, forbid_unknown_fields=True):
    """One successor, one predecessor, and small-world links."""


class RVRNode(RendezvousNode):
    """Every subscription asks for its own relay path."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        _view: InterestView,
        parameters: RVRParameters,
    ) -> None:
        super().__init__(world, node_id, subscriptions, parameters, parameters.table_size - 2)

    def _topics_to_relay(self) -> Collection[TopicId]:
        return self._interest


RVR = System(
    name="rvr",
    summary="one rendezvous tree per topic over small-world links, whatever nodes want",
    source="Vitis (IPDPS 2011) §IV, after Scribe",
    parameters=RVRParameters,
    build=RVRNode,
    connects_topics=True,
    needs="nothing",
    degree_limit=degree_limit,
    control_kinds=CONTROL_KINDS,
    heals_within=90.0,
)
