"""How a node is: the truth in a few lines, and its view of the overlay as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topicweave.live.node import LiveNode


def health(node: LiveNode) -> dict[str, Any]:
    """`status` is "ok", "alone" (it knows where others should be, and nobody answers) or "failing" (something here broke)."""
    reasons = []
    status = "ok"
    if not node.joined and (node.settings.join or node.counters.connections_opened):
        status = "alone"
        reasons.append("no other node is connected")
    elif node.joined and node.subscriptions and not any(True for _ in node.node.links()):
        reasons.append("connected, but without a link in the overlay yet")
    if node.counters.node_errors:
        status = "failing"
        reasons.append(
            f"{node.counters.node_errors} failures inside the node, the last: {node.world.last_error}"
        )
    return {
        "status": status,
        "reasons": reasons,
        "name": node.name,
        "system": node.settings.system,
        "connected": len(node.transport.connected),
        "degree": node.node.degree,
    }


def view(node: LiveNode) -> dict[str, Any]:
    """Links with their kinds, topics with what is kept of them, peers connected."""
    log = node.world.log
    return {
        "name": node.name,
        "id": f"{node.id:016x}",
        "swarm": node.settings.swarm,
        "system": node.settings.system,
        "address": str(node.address),
        "links": [{"peer": node.name_of_node(link.peer), "kind": link.kind} for link in node.node.links()],
        "connected": sorted(node.name_of_node(peer) for peer in node.transport.connected),
        "topics": [
            {
                "topic": node.topics.of(topic),
                "cached_events": len(log.events(topic)),
            }
            for topic in sorted(node.node.subscriptions)
        ],
        "cache": {"events": len(log), "bytes": log.bytes},
        "waiting_bytes": node.transport.waiting_bytes,
        "counters": node.counters.as_dict(),
        "gauges": dict(node.node.gauges()),
    }
