"""Weave: our own overlay. Each topic of a node is covered once, by a node with a lower id."""

from topicweave.systems.spidercast.messages import CONTROL_KINDS
from topicweave.systems.spidercast.parameters import PACES
from topicweave.systems.system import System
from topicweave.systems.weave.bounded import build, degree_limit
from topicweave.systems.weave.node import WeaveNode
from topicweave.systems.weave.parameters import LEAST_BOUND, WeaveParameters

WEAVE = System(
    name="weave",
    summary="each topic is covered by one link to a lower id, so that it is in one piece over few links; few hops by a dial",
    source="Topicweave's own; docs/systems/weave.md",
    parameters=WeaveParameters,
    build=build,
    connects_topics=True,
    degree_limit=degree_limit,
    paces=PACES,
    tuning=({"hubs": 1.0}, {"links": 7}, {"links": 12}),
    hard_bound=("max_degree", LEAST_BOUND),
    control_kinds=CONTROL_KINDS,
)

__all__ = ["WEAVE", "WeaveNode", "WeaveParameters"]
