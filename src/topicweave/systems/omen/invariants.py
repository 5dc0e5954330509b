"""What must hold of OMen's nodes once everything is healed: for campaigns and tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from topicweave.model.ids import NodeId
from topicweave.port import Node
from topicweave.systems.omen.node import OMenNode


def at_rest(nodes: Mapping[NodeId, Node]) -> Iterator[str]:
    """No departure is left over, and lists of them never outgrew what the paper says (§5)."""
    for node_id, node in nodes.items():
        assert isinstance(node, OMenNode)
        left = {*node.coordinator.churn.executing, *node.coordinator.churn.standby, *node.local.held}
        if left:
            yield f"{node_id:x} has {len(left)} departures that nobody reported as handled"
        most = 2 * node.parameters.resilience
        if node.coordinator.churn.most > most:
            yield f"{node_id:x} kept {node.coordinator.churn.most} departures at a time, more than {most}"
        if len(node.local.records) > most:
            yield f"{node_id:x} keeps records of {len(node.local.records)} predecessors, more than {most}"
