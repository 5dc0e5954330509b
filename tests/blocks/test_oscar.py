"""OSCAR: medians, partitions, uniform walks; few hops whatever the identifiers, and nobody much sought after."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from topicweave.blocks.growing_ids import RingPlace, position_of
from topicweave.blocks.oscar import Oscar, OscarParameters, clockwise_median, most_similar, partition_bounds
from topicweave.blocks.ring.messages import Contact
from topicweave.blocks.ring.parameters import RingParameters
from topicweave.blocks.ring.ring import Ring
from topicweave.bulk.magnet.engine import build_overlay
from topicweave.bulk.magnet.plan import Converged
from topicweave.bulk.magnet.trees import links, route_hops
from topicweave.model.ids import RING_SIZE, Interest
from topicweave.model.workload import Workload
from topicweave.port import TimerKey
from topicweave.testing import VirtualNetwork


def at(number: int) -> Contact:
    return Contact(number, bytes([number]), 0)


def test_the_median_is_counted_clockwise_from_the_node() -> None:
    here = at(100).place
    assert clockwise_median(here, [at(n) for n in (110, 150, 200, 20, 90)]).id == 200
    assert clockwise_median(here, [at(110), at(20)]).id == 110
    assert clockwise_median(here, [at(30)]).id == 30


def test_the_partitions_are_the_arcs_between_medians() -> None:
    """Figure 1: each median halves what is left, towards the node."""
    here, medians = at(10).place, [at(130).place, at(70).place, at(40).place]
    assert partition_bounds(here, medians) == [
        (medians[0], here),
        (medians[1], medians[0]),
        (medians[2], medians[1]),
    ]


def test_of_two_choices_the_more_similar_is_taken() -> None:
    assert most_similar([at(1), at(2)], [0.1, 0.3]).id == 2
    assert most_similar([at(1), at(2)], [0.3, 0.3]).id == 1


class OscarNode:
    def __init__(self, net: VirtualNetwork, number: int, parameters: OscarParameters) -> None:
        self.world = net.world(number)
        self.ring = Ring(
            self.world, number, 0, RingParameters(most_fans=1000), lambda peer: None, lambda: None
        )
        self.oscar = Oscar(self.world, self.ring, frozenset, _alike, parameters)
        self.world.receivers.update(self.ring.receivers())
        self.world.receivers.update(self.oscar.receivers())
        self.world.timers.update({**self.oscar.timers(), "beat": self._beat})
        self.world.set_timer(("beat",), self.world.random.random())

    def _beat(self, _key: TimerKey) -> None:
        self.world.set_timer(("beat",), 1.0)
        self.ring.beat()
        self.oscar.beat()
        self.ring.give_signs()


def _alike(_interest: Interest) -> float:
    return 0.0


def overlay(
    count: int, skewed: bool, fingers: float = 6.0, until: float = 60.0, steps: int = 10
) -> dict[int, OscarNode]:
    """By messages. Heavily skewed: half of the ring's nodes in the last billionth of it."""
    net, rng = VirtualNetwork(5), random.Random(9)
    nodes = {n: OscarNode(net, n, OscarParameters(fingers=fingers, steps=steps)) for n in range(1, count + 1)}
    for node in nodes.values():
        position = (
            position_of(int(RING_SIZE * rng.random() ** 30)) if skewed else position_of(rng.getrandbits(64))
        )
        node.ring.join(position, rng.sample(sorted(nodes), 3))
    net.run(until)
    return nodes


def hops(nodes: dict[int, OscarNode], rng: random.Random) -> float:
    total, routes = 0, 300
    for _ in range(routes):
        here, target = rng.sample(sorted(nodes), 2)
        place: RingPlace = nodes[target].ring.here
        while here != target:
            here = nodes[here].ring.table.next_hop(place)
            total += 1
    return total / routes


@pytest.mark.parametrize("skewed", [False, True])
def test_by_messages_routes_are_short_and_in_degrees_balanced(skewed: bool) -> None:
    nodes = overlay(120, skewed)
    fans = [len(node.ring.long.fans) for node in nodes.values()]
    assert sum(fans) == pytest.approx(6.0 * 120, rel=0.1)
    # Fingers thrown at random would have a deviation of 2.4.
    assert np.std(fans) < 4.0
    assert max(fans) < 20
    # As the array form has it, within what so few nodes scatter.
    expected = route_hops(array_overlay(120, 6.0), seed=1)
    assert hops(nodes, random.Random(2)) == pytest.approx(expected, rel=0.15)


def test_walks_end_everywhere_alike() -> None:
    """On the whole ring and on an arc, though degrees differ: chi-square within five deviations.

    With many steps: on an arc of few nodes hardly any finger shortens the way along the ring, and ten steps
    favour what is near.
    """
    nodes = overlay(40, skewed=True, fingers=4.0, until=30.0, steps=80)
    order = sorted(node.ring.here for node in nodes.values())
    start = nodes[order[7][1]]
    net = start.world.net
    for arc in ((order[8], order[7]), (order[8], order[24])):
        low, high = order.index(arc[0]), order.index(arc[1]) % len(order)
        inside = [order[(low + step) % 40][1] for step in range((high - low) % 40)]
        tally: Counter[int] = Counter()
        start.oscar._found_median = lambda sample, tally=tally: tally.update(c.id for c, _ in sample)  # type: ignore[method-assign, misc]  # listened to
        walks = 40 * len(inside)
        for _ in range(walks // 40):
            start.oscar._walk([(start.ring.id, *arc)] * 40)
            net.run(net.now + 1.2)
        assert set(tally) <= set(inside)
        expected = sum(tally.values()) / len(inside)
        square = sum((tally[number] - expected) ** 2 / expected for number in inside)
        freedom = len(inside) - 1
        assert square < freedom + 5 * (2 * freedom) ** 0.5


def array_overlay(nodes: int, fingers: float, seed: int = 3):  # type: ignore[no-untyped-def]  # arrays of the test alone
    workload = Workload.from_lists({f"n{number}": [] for number in range(nodes)})
    return build_overlay("strawman", workload, Converged(fingers=fingers), seed)


def test_hops_grow_as_the_square_of_the_logarithm_over_the_fingers() -> None:
    """Up to 10,000 nodes; log2(n)^2 / k times a constant that hardly moves.

    The array form draws by rank, as walks do, so identifiers of any skew give the same overlay (by messages: above).
    """
    ratio = {}
    for nodes in (1000, 3000, 10_000):
        for fingers in (4.0, 8.0):
            found = route_hops(array_overlay(nodes, fingers), seed=1)
            ratio[nodes, fingers] = found / (np.log2(nodes) ** 2 / fingers)
    for fingers in (4.0, 8.0):
        values = [ratio[nodes, fingers] for nodes in (1000, 3000, 10_000)]
        assert max(values) < 1.2 * min(values), "as log^2 n"
        assert max(values) < 1.0
    for nodes in (1000, 10_000):
        # Not quite half: the ring's own links count, too.
        assert 1.0 <= ratio[nodes, 8.0] / ratio[nodes, 4.0] < 1.5, "as 1 / k"


def test_in_degrees_are_balanced_at_ten_thousand_nodes() -> None:
    overlay = array_overlay(10_000, 8.5)
    incoming = links(overlay).degrees - (overlay.tables < 10_000).sum(axis=1)
    assert incoming.mean() == pytest.approx(8.5, abs=0.1)
    # A Poisson law has a deviation of 2.9.
    assert incoming.std() < 3.2
    assert incoming.max() < 3 * 8.5
