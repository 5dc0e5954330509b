"""The health of a node in a few lines, and its view of the overlay as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topicweave.live.node import LiveNode
    from topicweave.model.event import Event


LATELY = 60.0
"""Seconds for which a failure inside the node counts against its health."""
MOST_NAMED = 3
"""Topics that a reason names."""
ENDS_SOON = 7 * 86_400.0
"""Seconds before its end from which a certificate is spoken of."""


def health(node: LiveNode) -> dict[str, Any]:
    """`status` is "ok", "alone" (it knows where others should be, and nobody answers) or "failing" (something
    here does not work).
    """
    now = node.transport.loop.time()
    reasons = []
    status = "ok"
    if _alone(node):
        status = "alone"
        reasons.append("no other node is connected")
    elif node.joined and node.subscriptions and not any(True for _ in node.node.links()):
        reasons.append("connected, but without a link in the overlay yet")
    broken = [*_broken(node, now), *_unrecorded(node)]
    if broken:
        status = "failing"
    lacking = [
        f"not all topics of {one.pattern} are known, below {one.prefix!r}: {one.reason}"
        for one in node.patterns.lacking()
    ]
    notes = [*node.clock.problems(), *_certificate(node), *lacking]
    troubles = [f"{one.who}: {one.what}" for one in node.transport.troubles.lately(now)]
    return {
        "status": status,
        "reasons": [*reasons, *broken, *notes, *(troubles if status != "ok" else ())],
        "name": node.name,
        "system": node.settings.system,
        "connected": len(node.transport.connected),
        "degree": node.node.degree,
        "clock_skew": round(node.clock.skews.median(), 3),
        "missed": node.counters.events_missed,
        "refused": node.refusals,
        "troubles": node.transport.troubles.as_list(now),
    }


def readiness(node: LiveNode) -> str:
    """The same word, of whether the node serves events."""
    broken = _broken(node, node.transport.loop.time())
    return "failing" if broken else "alone" if _alone(node) else "ok"


def _alone(node: LiveNode) -> bool:
    return not node.joined and bool(node.settings.join or node.counters.connections_opened)


def _broken(node: LiveNode, now: float) -> list[str]:
    """What does not work here at the moment, and holds up events."""
    found = []
    world = node.world
    if world.last_error and now - world.last_error_at <= LATELY:
        found.append(f"{node.counters.node_errors} failures inside the node, the last: {world.last_error}")
    if node.disk is not None and node.disk.error:
        found.append(f"the data folder takes nothing: {node.disk.error}; events {_fate(node)}")
    what, events = world.gate.full_of
    if what:
        found.append(f"events are refused as full: {len(events)} events {what}{_topics(node, events)}")
    if node.keyring is not None:
        problem = node.keyring.problem(node.keyring.own, node.clock.trusted())
        if problem:
            found.append(
                f"this node's own certificate is {problem}: issue its keys anew, then send it a SIGHUP"
            )
    return found


def _unrecorded(node: LiveNode) -> list[str]:
    """What does not work and costs no event."""
    problem = node.recorder.problem if node.recorder is not None else ""
    return [f"{problem} ({node.counters.telemetry_lost} rows are lost)"] if problem else []


def _topics(node: LiveNode, events: list[Event]) -> str:
    """Of which topics they are."""
    topics = sorted({node.topics.of(event.topic) for event in events})
    more = ", …" if len(topics) > MOST_NAMED else ""
    return f" ({', '.join(topics[:MOST_NAMED])}{more})" if topics else ""


def _fate(node: LiveNode) -> str:
    hold = node.settings.when_disk_fails == "hold"
    return (
        "wait and are not confirmed" if hold else "are handed over without being kept, and are not confirmed"
    )


def _certificate(node: LiveNode) -> list[str]:
    if node.keyring is None:
        return []
    left = node.keyring.own.expires - node.clock.trusted()
    return [f"this node's certificate ends in {left / 86_400:.1f} days"] if 0 < left < ENDS_SOON else []


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
        "patterns": node.patterns.view(),
        "cache": {"events": len(log), "bytes": log.bytes},
        "waiting_bytes": node.transport.waiting_bytes,
        "memory": {
            "most": node.world.memory.most,
            "held": node.world.memory.held,
            "refused": node.world.memory.refused,
        },
        "peers": _peers(node),
        "interests_refused": node.transport.codec.names.refused,
        "counters": node.counters.as_dict(),
        "gauges": dict(node.node.gauges()),
    }


def _peers(node: LiveNode) -> list[dict[str, Any]]:
    """Those who did wrong lately, and for how long nobody speaks to them."""
    now = node.transport.loop.time()
    return [
        {
            "peer": node.name_of_node(peer),
            "score": round(conduct.score, 1),
            "bans": conduct.bans,
            "banned_for": round(max(0.0, conduct.banned_until - now), 1),
            "last_fault": conduct.last_fault,
        }
        for peer, conduct in node.transport.reputation
    ]
