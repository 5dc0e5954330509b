"""OMen: a low-degree topic-connected overlay mended under churn from proactively gossiped backup sets (DEBS 2016)."""

from topicweave.systems.omen.invariants import at_rest
from topicweave.systems.omen.messages import CONTROL_KINDS
from topicweave.systems.omen.node import OMenNode
from topicweave.systems.omen.parameters import OMenParameters
from topicweave.systems.presets import SystemPace
from topicweave.systems.system import System

OMEN = System(
    name="omen",
    summary="low-degree overlay mended under churn from gossiped backup sets",
    source="OMen (DEBS 2016) §3 to §5",
    parameters=OMenParameters,
    build=OMenNode,
    connects_topics=True,
    at_rest=at_rest,
    # Who is late with a heartbeat is asked, so the dead are found as soon as with twice as many. Backup sets
    # are for later.
    paces=dict.fromkeys(("local", "lan"), SystemPace({"heartbeat_period": 2.0, "gossip_period": 4.0})),
    control_kinds=CONTROL_KINDS,
)

__all__ = ["CONTROL_KINDS", "OMEN", "OMenNode", "OMenParameters"]
