"""Has an overlay settled? It is looked at again and again until nothing worth a word changes."""

from __future__ import annotations

import math
from typing import NamedTuple

from topicweave.model.ids import NodeId
from topicweave.sim.simulation import Simulation

QUIET = 20.0
"""Virtual seconds without change after which an overlay counts as settled; longer than most timers."""
GROWING = 0.01
"""The share of links by which their number may differ meanwhile."""
CHANGING = 0.1
"""The share that may be exchanged for others: some systems never stop looking for better ones."""


class OverlayLook(NamedTuple):
    """An overlay at one moment."""

    links: frozenset[tuple[NodeId, NodeId, str]]
    covered: int
    """(node, topic) of which some neighbour of the node wants the topic as well."""


def look(simulation: Simulation) -> OverlayLook:
    nodes = {simulation.hosts[index].name: simulation.node(index) for index in simulation.up()}
    links = frozenset((name, link.peer, link.kind) for name, node in nodes.items() for link in node.links())
    around: dict[NodeId, set[NodeId]] = {name: set() for name in nodes}
    for name, peer, _ in links:
        if peer in around:
            around[name].add(peer)
            around[peer].add(name)
    covered = 0
    for name, peers in around.items():
        mine = nodes[name].subscriptions
        covered += len(mine & set().union(*(nodes[peer].subscriptions for peer in peers)))
    return OverlayLook(links, covered)


def quiet(before: OverlayLook, after: OverlayLook) -> bool:
    """Whether there are as many links, most of them the same, and nobody more is covered: that growth is
    slow, and matters.
    """
    links = len(after.links)
    return (
        after.covered <= before.covered
        and abs(links - len(before.links)) <= GROWING * links
        and len(before.links ^ after.links) <= CHANGING * links
    )


def settle(simulation: Simulation, least: float, limit: float) -> float:
    """Let time pass until the overlay has settled: for `least` seconds or longer, to `limit` at most.

    Returns the moment of the last change worth a word, to `QUIET` seconds; inf if changes went on until the limit.
    """
    simulation.run(max(0.0, least - QUIET))
    seen, changed = look(simulation), simulation.now
    while True:
        simulation.run(max(least, simulation.now + QUIET))
        now = look(simulation)
        if quiet(seen, now):
            return changed
        if simulation.now + QUIET > limit:
            return math.inf
        seen, changed = now, simulation.now
