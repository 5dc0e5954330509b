"""SpiderCast: one topic-connected overlay by greedy and random K-coverage (DEBS 2007)."""

from topicweave.systems.spidercast.messages import CONTROL_KINDS
from topicweave.systems.spidercast.node import SpiderCastNode, degree_limit
from topicweave.systems.spidercast.parameters import PACES, SpiderCastParameters
from topicweave.systems.system import System

SPIDERCAST = System(
    name="spidercast",
    summary="each node covers each of its topics K times, greedily and at random",
    source="SpiderCast (DEBS 2007) §2",
    parameters=SpiderCastParameters,
    build=SpiderCastNode,
    connects_topics=True,
    degree_limit=degree_limit,
    paces=PACES,
    tuning=({"k_greedy": 2}, {"k_greedy": 4}, {"k_greedy": 3, "k_random": 1}),
    control_kinds=CONTROL_KINDS,
)

__all__ = ["CONTROL_KINDS", "SPIDERCAST", "SpiderCastNode", "SpiderCastParameters"]
