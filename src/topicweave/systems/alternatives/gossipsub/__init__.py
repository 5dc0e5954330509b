"""GossipSub v1.1: a random mesh per topic, mended by gossip; what libp2p's users run."""

from topicweave.systems.alternatives.gossipsub.messages import CONTROL_KINDS
from topicweave.systems.alternatives.gossipsub.node import GossipSubNode
from topicweave.systems.alternatives.gossipsub.parameters import GossipSubParameters
from topicweave.systems.system import System

GOSSIPSUB = System(
    name="gossipsub",
    summary="a random mesh of D links for every topic, with announcements to those outside of it",
    source="libp2p GossipSub v1.1 (Vyzovitis et al. 2020)",
    parameters=GossipSubParameters,
    build=GossipSubNode,
    connects_topics=True,
    tuning=({"d": 4, "d_low": 3, "d_high": 8, "d_out": 1}, {"d": 8, "d_low": 6, "d_high": 16}),
    control_kinds=CONTROL_KINDS,
)

__all__ = ["CONTROL_KINDS", "GOSSIPSUB", "GossipSubNode", "GossipSubParameters"]
