"""The compiled halves of round-based experiments against the rules that OMen's nodes call."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from topicweave.bulk.omen import kernels
from topicweave.bulk.omen.overlay import LiveOverlay
from topicweave.bulk.omen.systems import shadow_problem
from topicweave.designs import compiled
from topicweave.model.workload import Workload
from topicweave.systems.omen.backups import BUILDERS
from topicweave.systems.omen.repair import Member, repair

TOPICS = 70
"""More than fit into one word of bits."""


class Counter(random.Random):
    """Draws what the kernels draw."""

    def __init__(self, seed: int) -> None:
        super().__init__(0)
        self.state = np.array([seed], np.uint64)

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        assert stop is None
        return int(kernels.below(self.state, start))


lists = st.lists(st.frozensets(st.integers(0, TOPICS - 1), max_size=20), min_size=2, max_size=12)


def workload_of(interests: list[frozenset[int]]) -> Workload:
    return Workload.from_lists(
        {f"n{node:02}": [f"t{topic:02}" for topic in sorted(wanted)] for node, wanted in enumerate(interests)}
    )


@given(
    lists,
    st.integers(0, 4),
    st.sampled_from(["primal-dual", "greedy"]),
    st.sampled_from(["repeated", "multi"]),
    st.integers(0, 2**63),
)
@settings(max_examples=120, deadline=None)
def test_backup_sets_are_those_of_the_rule(
    interests: list[frozenset[int]], coverage: int, builder: str, covers: Any, seed: int
) -> None:
    bits = np.zeros((len(interests), 2), np.uint64)
    for node, wanted in enumerate(interests):
        for topic in wanted:
            bits[node, topic >> 6] |= np.uint64(1 << (topic & 63))
    own, pool = interests[0], range(1, len(interests))
    by_rule = BUILDERS[builder](
        own, {peer: interests[peer] for peer in pool}, coverage, Counter(seed), covers
    )
    built = kernels.build_backups(
        np.array(sorted(own), np.int64),
        np.array(pool, np.int32),
        bits,
        kernels.Building(coverage, covers == "multi", builder == "greedy", np.array([seed], np.uint64)),
    )
    assert built.tolist() == by_rule


@given(lists, st.sampled_from(["shadow", "beacons", "spread"]), st.data())
@settings(max_examples=120, deadline=None)
def test_repairs_take_the_edges_of_the_rule(
    interests: list[frozenset[int]], how: str, data: st.DataObject
) -> None:
    """A departure: labels found by the kernel, against parts found by hand and Algorithm 1 as a node runs it."""
    workload = workload_of([wanted | {0} for wanted in interests])
    overlay = LiveOverlay(workload, range(workload.nodes))
    pairs = data.draw(
        st.lists(st.tuples(*[st.integers(0, workload.nodes - 1)] * 2).filter(lambda pair: pair[0] != pair[1]))
    )
    overlay.link(pairs)
    departed = 0
    overlay.leave(departed)
    topics = overlay.topics_of(departed)
    shadow = np.array(sorted(data.draw(st.sets(st.integers(1, workload.nodes - 1)))), np.int64)
    kind = {"shadow": kernels.SHADOW, "beacons": kernels.BEACONS, "spread": kernels.EXACT}[how]
    labels, spread = kernels.shadow_labels(topics, shadow, kind, departed, overlay.network)
    degrees = [len(overlay.links[peer]) for peer in shadow.tolist()]
    edges = shadow[compiled.design(shadow_problem(labels, degrees, 3), 2.0)].tolist()

    reported: dict[int, dict[int, int]] = {peer: {} for peer in shadow.tolist()}
    for place, topic in enumerate(topics.tolist()):
        parts = parts_of(overlay, topic)
        leader = min((peer for part in parts for peer in part), key=workload.node_ids.__getitem__, default=-1)
        led = leader < 0 or workload.node_ids[departed] < workload.node_ids[leader]
        assert bool(spread[place]) == (how == "beacons" and led)
        assert (topic in overlay.parted([topic])) == (len(parts) > 1)
        for number, part in enumerate(parts):
            known = how == "spread" or led or leader in part
            for peer in part & reported.keys():
                reported[peer][topic] = number if known else -1 - peer
    members = {
        peer: Member(
            overlay.interest[peer],
            len(overlay.links[peer]),
            frozenset(overlay.links[peer]),
            None if how == "shadow" else reported[peer],
        )
        for peer in shadow.tolist()
    }
    expected = repair(members, frozenset(topics.tolist()), 2.0, ceiling=3)
    assert edges == [list(edge) for edge in expected]


def parts_of(overlay: LiveOverlay, topic: int) -> list[set[int]]:
    """The connected parts of a topic, by search over sets."""
    left, parts = set(overlay.subscribers(topic).tolist()), []
    while left:
        part, edge = set(), {left.pop()}
        while edge:
            part |= edge
            edge = {peer for node in edge for peer in overlay.links[node] if peer in left}
            left -= edge
        parts.append(part)
    return parts
