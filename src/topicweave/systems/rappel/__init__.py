"""Rappel: friends by interest and network distance, one push-pull tree per feed (Computer Networks, 2009)."""

from topicweave.systems.rappel.invariants import always, at_rest
from topicweave.systems.rappel.messages import CONTROL_KINDS
from topicweave.systems.rappel.node import RappelNode, degree_limit
from topicweave.systems.rappel.parameters import RappelParameters, paced
from topicweave.systems.system import System

RAPPEL = System(
    name="rappel",
    summary="friends by interest and network distance; one tree per feed among its subscribers; no noise",
    source="Rappel (Computer Networks 53, 2009) §2 to §5",
    parameters=RappelParameters,
    build=RappelNode,
    connects_topics=True,
    settles_within=120.0,
    paces={"local": paced(3.0), "lan": paced(6.0)},
    degree_limit=degree_limit,
    control_kinds=CONTROL_KINDS,
    heals_within=400.0,
    noiseless=True,
    always=always,
    at_rest=at_rest,
)

__all__ = ["CONTROL_KINDS", "RAPPEL", "RappelNode", "RappelParameters"]
