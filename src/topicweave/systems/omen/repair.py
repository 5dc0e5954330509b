"""Shadow-based overlay repair (§4.1, Algorithm 1).

Algorithm 1 asks for the components of G = (S, E_new ∪ E_cur): to the letter, those that edges among the
shadow set itself make. Nodes that are joined through others then count as parted, each repair adds edges that
nobody needs, and degrees run away. So a member may report the label of its component in the whole overlay,
and repair joins what is parted there (see docs/systems/omen.md for both, measured).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from topicweave.designs.problem import Edges, Instance, Problem
from topicweave.designs.small import design as design_few
from topicweave.model.ids import Interest, NodeId, TopicId


class Member(msgspec.Struct, frozen=True):
    """What the coordinator knows of a shadow node."""

    interest: Interest
    """At least its part of the topics that churned."""
    degree: int = 0
    neighbours: frozenset[NodeId] = frozenset()
    labels: Mapping[TopicId, NodeId] | None = None
    """Its component in the whole overlay, per topic; None for components among the shadow set alone."""


def shadow_of_leave(backups: Iterable[NodeId], neighbours: Iterable[NodeId]) -> set[NodeId]:
    """S = B(v') ∪ N(v') (§3.2)."""
    return {*backups, *neighbours}


def shadow_of_join(backups: Iterable[NodeId], joined: NodeId) -> set[NodeId]:
    """S = B(v') ∪ {v'} (§3.2)."""
    return {*backups, joined}


def repair(
    members: Mapping[NodeId, Member],
    topics: Interest,
    rho: float,
    ceiling: int = 0,
    design: Callable[[Problem, float], Edges] = design_few,
) -> list[tuple[NodeId, NodeId]]:
    """repairTcoOnChurn(S, T_chev, I_S, E_cur) of Algorithm 1: the new edges, chosen by the LowODA rule.

    `ceiling` is a maximum degree known from elsewhere; without it, that of the shadow set counts. `design`
    may be an engine for large sets.
    """
    order = sorted(members)
    place = {peer: number for number, peer in enumerate(order)}
    column = {topic: number for number, topic in enumerate(sorted(topics))}
    # Topics numbered in order of their identifiers, so a node's numbers grow with its topics.
    wanted = [sorted(members[peer].interest & topics) for peer in order]
    instance = Instance.of_lists([[column[topic] for topic in some] for some in wanted], len(column))
    edges = _edges_among(members, place)
    degrees = [members[peer].degree for peer in order]
    by_edges = Problem.of(instance, edges, degrees=degrees, ceiling=ceiling)
    labels = _overlay_labels(members, order, wanted, by_edges.labels.tolist())
    problem = Problem.of(instance, edges, labels=labels, degrees=degrees, ceiling=ceiling)
    return [(order[u], order[v]) for u, v in design(problem, rho).tolist()]


def _edges_among(members: Mapping[NodeId, Member], place: Mapping[NodeId, int]) -> list[tuple[int, int]]:
    return sorted(
        {
            (min(place[peer], place[other]), max(place[peer], place[other]))
            for peer, member in members.items()
            for other in member.neighbours
            if other in place and other != peer
        }
    )


def _overlay_labels(
    members: Mapping[NodeId, Member],
    order: Sequence[NodeId],
    wanted: Sequence[Sequence[TopicId]],
    by_edges: Sequence[int],
) -> list[int]:
    """One number per slot: parts that edges or equal labels hold together get the same."""
    parent: dict[object, object] = {}

    def root(key: object) -> object:
        while parent.setdefault(key, key) != key:
            key = parent[key]
        return key

    slots: list[tuple[str, int]] = []
    for peer, topics in zip(order, wanted, strict=True):
        for topic in topics:
            slot = ("edges", by_edges[len(slots)])
            labels = members[peer].labels
            if labels is not None and topic in labels:
                parent[root(slot)] = root((topic, labels[topic]))
            slots.append(slot)
    numbers: dict[object, int] = {}
    return [numbers.setdefault(root(slot), len(numbers)) for slot in slots]
