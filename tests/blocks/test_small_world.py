"""The small world: links at harmonic distances, and lookups that end at one node."""

from __future__ import annotations

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from topicweave.blocks.small_world import (
    LongLinkTargets,
    Router,
    estimated_nodes,
    harmonic_distance,
    nearest,
    ring_sides,
)
from topicweave.model.ids import RING_SIZE, clockwise, distance

ids = st.integers(0, RING_SIZE - 1)
rings = st.sets(ids, min_size=1, max_size=30).map(sorted)


def closest(point: int, ring: list[int]) -> int:
    """By the definition: the shorter way round, then the lower identifier."""
    return min(ring, key=lambda peer: (distance(point, peer), peer))


@given(ids, rings)
def test_nearest_is_the_closest_by_definition(point: int, ring: list[int]) -> None:
    assert nearest(point, ring) == closest(point, ring)


@given(ids, rings, st.data())
def test_nearest_leaves_out_what_is_taken(point: int, ring: list[int], data: st.DataObject) -> None:
    taken = set(data.draw(st.lists(st.sampled_from(ring))))
    free = [peer for peer in ring if peer not in taken]
    assert nearest(point, ring, taken) == (closest(point, free) if free else None)


@given(ids, rings, st.lists(ids, min_size=1, max_size=40))
def test_router_in_bulk_and_one_by_one(own: int, links: list[int], points: list[int]) -> None:
    router = Router(own, links)
    expected = [closest(point, [own, *links]) for point in points]
    assert router.next_hops(points) == expected
    assert [router.next_hop(point) for point in points] == expected


@given(ids, rings, st.integers(1, 5))
def test_ring_sides_are_the_neighbours_on_both_sides(own: int, ring: list[int], count: int) -> None:
    others = [peer for peer in ring if peer != own]
    ahead = sorted(others, key=lambda peer: clockwise(own, peer))[:count]
    behind = sorted(others, key=lambda peer: clockwise(peer, own))[:count]
    assert set(ring_sides(own, others, count)) == {*ahead, *behind}
    assert ring_sides(own, others, 1)[:1] == ahead[:1]


def test_long_links_have_harmonic_distances() -> None:
    """Every octave between one node's share and the whole ring gets the same number of links."""
    nodes, rng = 1024, random.Random(1)
    octaves = [0] * 10
    for _ in range(20_000):
        octaves[int(math.log2(harmonic_distance(rng.random(), nodes) * nodes / RING_SIZE))] += 1
    assert max(octaves) < 1.15 * min(octaves)


def test_targets_are_drawn_once_unless_asked_to_be_redrawn() -> None:
    once = LongLinkTargets(5, 3, random.Random(1))
    assert once.points(1024) == once.points(1024)
    assert once.points(2048) != once.points(1024)
    again = LongLinkTargets(5, 3, random.Random(1), redraw=True)
    assert list(again.points(1024)) != list(again.points(1024))


def test_number_of_nodes_is_estimated_from_the_ring_neighbours() -> None:
    gap = RING_SIZE // 300
    assert estimated_nodes(10, 10 + gap, RING_SIZE + 10 - gap) == 256
    assert estimated_nodes(10, 11, 9) == RING_SIZE  # the closest there can be


def test_lookups_on_a_converged_ring_end_at_one_node_within_log_squared_hops() -> None:
    """Every start ends at the closest node (brute force), in O(log² N / k) hops (Symphony, Theorem 1)."""
    count, k = 300, 3
    rng = random.Random(7)
    ring = sorted(rng.randrange(RING_SIZE) for _ in range(count))
    links: dict[int, set[int]] = {node: set(ring_sides(node, ring, 1)) for node in ring}
    for node in ring:
        for target in LongLinkTargets(node, k, rng).points(count):
            peer = nearest(target, ring, {node})
            assert peer is not None
            links[node].add(peer)
            links[peer].add(node)
    routers = {node: Router(node, peers) for node, peers in links.items()}
    lengths = []
    for point in [rng.randrange(RING_SIZE) for _ in range(20)]:
        for start in ring:
            here, hops = start, 0
            while (hop := routers[here].next_hop(point)) != here:
                here, hops = hop, hops + 1
            assert here == closest(point, ring)
            lengths.append(hops)
    assert sum(lengths) / len(lengths) <= math.log2(count) ** 2 / k
