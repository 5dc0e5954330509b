"""Vitis: clusters of similar nodes, joined by relay paths over a small world (IPDPS 2011)."""

from topicweave.systems.system import System
from topicweave.systems.vitis.messages import CONTROL_KINDS
from topicweave.systems.vitis.node import VitisNode
from topicweave.systems.vitis.parameters import VitisParameters
from topicweave.systems.vitis.rendezvous import degree_limit

VITIS = System(
    name="vitis",
    summary="a bounded table of friends and small-world links; gateways and relay paths join a topic's clusters",
    source="Vitis (IPDPS 2011) §III",
    parameters=VitisParameters,
    build=VitisNode,
    connects_topics=True,
    needs="nothing",
    degree_limit=degree_limit,
    tuning=({"table_size": 10}, {"table_size": 25}),
    control_kinds=CONTROL_KINDS,
    heals_within=90.0,
)

__all__ = ["CONTROL_KINDS", "VITIS", "VitisNode", "VitisParameters"]
