"""T-Man: rankings become topologies, fast, and stay so when nodes die."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicweave.blocks.descriptors import Descriptor
from topicweave.blocks.newscast import Newscast
from topicweave.blocks.tman import Buffer, BufferBack, Ranking, TMan, TManParams, by_similarity
from topicweave.model.ids import Interest, NodeId, clockwise
from topicweave.testing import VirtualNetwork

NOTHING: Interest = frozenset()


class Both(NamedTuple):
    sampling: Newscast
    tman: TMan


def swarm(
    net: VirtualNetwork, interests: dict[NodeId, Interest], rank: Ranking, params: TManParams
) -> dict[NodeId, Both]:
    """Newscast runs for ten periods, then T-Man starts from its random views."""
    draw = random.Random(f"{net.seed}/contacts")
    ids = list(interests)
    nodes = {}
    for node, interest in interests.items():
        world = net.world(node)
        sampling = Newscast(world, node, interest)
        tman = TMan(world, sampling.own, rank, sampling.descriptors, params)
        world.use(sampling)
        world.use(tman)
        sampling.start(draw.sample(ids, 3))
        nodes[node] = Both(sampling, tman)
    net.run(10.0)
    for both in nodes.values():
        both.tman.start()
    return nodes


def random_ids(seed: int, size: int) -> list[NodeId]:
    draw = random.Random(f"{seed}/ids")
    return [draw.getrandbits(64) for _ in range(size)]


def by_ring(own: Descriptor, candidates: Sequence[Descriptor]) -> list[Descriptor]:
    """The nearest successor, the nearest predecessor, the next successor, and so on (T-Man's sorted ring).

    Both directions get the same share, however unevenly identifiers lie: by plain distance a node at the end
    of a dense stretch would fill its view from one side and never find its neighbour on the other.
    """
    clock = sorted(candidates, key=lambda candidate: clockwise(own.id, candidate.id))
    middle = (len(clock) + 1) // 2
    ranked = list(clock)
    ranked[0::2] = clock[:middle]
    ranked[1::2] = reversed(clock[middle:])
    return ranked


def off_the_ring(nodes: dict[NodeId, Both]) -> int:
    """How many nodes do not have their true successor and predecessor first."""
    ring = sorted(nodes)
    wrong = 0
    for place, node in enumerate(ring):
        best = [descriptor.id for descriptor in nodes[node].tman.view()[:2]]
        wrong += best != [ring[(place + 1) % len(ring)], ring[place - 1]]
    return wrong


@pytest.mark.parametrize("psi", [0, 10])
@pytest.mark.parametrize(("size", "seed"), [(200, 1), (200, 2), (200, 3), (500, 4)])
def test_the_ring_is_sorted_in_logarithmic_time(size: int, seed: int, psi: int) -> None:
    """Measured, 3 seeds each: 4..6 periods for 200 nodes, 6..8 for 500, 7..9 for 1000; log2: 7.6, 9.0, 10.0."""
    net = VirtualNetwork(seed)
    nodes = swarm(net, dict.fromkeys(random_ids(seed, size), NOTHING), by_ring, TManParams(psi=psi))
    net.run(11.0)
    assert off_the_ring(nodes) > size / 2  # nothing is sorted by itself
    net.run(10.0 + math.log2(size))
    assert off_the_ring(nodes) == 0


def test_a_lopsided_ring_is_sorted() -> None:
    """Nine tenths of the nodes on one thousandth of the ring: distance alone would never look across the gap."""
    draw = random.Random("lopsided")
    ids = [draw.getrandbits(54) for _ in range(180)] + [draw.getrandbits(64) for _ in range(20)]
    net = VirtualNetwork()
    nodes = swarm(net, dict.fromkeys(ids, NOTHING), by_ring, TManParams())
    net.run(20.0)
    assert off_the_ring(nodes) == 0


def test_the_ring_closes_over_the_dead() -> None:
    net = VirtualNetwork()
    params = TManParams()
    nodes = swarm(net, dict.fromkeys(random_ids(0, 200), NOTHING), by_ring, params)
    net.run(20.0)
    dead = set(list(nodes)[::4])
    net.kill(dead)
    alive = {node: both for node, both in nodes.items() if node not in dead}
    assert off_the_ring(alive) > len(alive) / 4
    net.run(20.0 + params.max_age + 5.0)
    assert off_the_ring(alive) == 0
    assert not any(descriptor.id in dead for both in alive.values() for descriptor in both.tman.view())


def test_similarity_finds_the_truly_best() -> None:
    """Nodes want ten topics out of two of ten buckets; ranked by brute force over all pairs."""
    draw = random.Random("interests")
    interests: dict[NodeId, Interest] = {}
    for node in range(200):
        first, second = draw.sample(range(10), 2)
        topics = draw.sample(range(20), 5)
        interests[node] = frozenset(
            [first * 20 + t for t in topics] + [second * 20 + t for t in draw.sample(range(20), 5)]
        )

    def likeness(a: NodeId, b: NodeId) -> float:
        return len(interests[a] & interests[b]) / len(interests[a] | interests[b])

    net = VirtualNetwork()
    nodes = swarm(net, interests, by_similarity, TManParams(view_size=10, psi=0))
    net.run(40.0)
    found = best = 0
    for node, both in nodes.items():
        chosen = sorted((likeness(node, descriptor.id) for descriptor in both.tman.view()), reverse=True)
        truth = sorted((likeness(node, other) for other in nodes if other != node), reverse=True)[:10]
        assert len(chosen) == 10
        assert chosen[:3] == truth[:3]
        found += sum(got == true for got, true in zip(chosen, truth, strict=True))
        best += 10
    assert found > 0.98 * best


def test_a_new_interest_brings_new_friends() -> None:
    net = VirtualNetwork()
    interests = {node: frozenset({node // 20 * 10 + topic for topic in range(5)}) for node in range(100)}
    nodes = swarm(net, interests, by_similarity, TManParams(view_size=10, psi=0))
    net.run(25.0)
    assert all(descriptor.id < 20 for descriptor in nodes[0].tman.view())
    nodes[0].sampling.profile = interests[99]
    net.run(50.0)
    assert all(descriptor.id >= 80 for descriptor in nodes[0].tman.view())


# Rankings.


@given(st.integers(0, 2**64 - 1), st.sets(st.integers(0, 2**64 - 1), max_size=30))
def test_ring_ranking_takes_turns(own: NodeId, others: set[NodeId]) -> None:
    others.discard(own)
    ranked = [d.id for d in by_ring(Descriptor(own, 0.0, 0, NOTHING), [about(other) for other in others])]
    remaining = set(others)
    for place, peer in enumerate(ranked):
        ahead = place % 2 == 0
        assert peer == min(remaining, key=lambda x: clockwise(own, x) if ahead else clockwise(x, own))
        remaining.remove(peer)
    assert not remaining


def test_similarity_is_vitis_equation_1() -> None:
    """Vitis §III-A.2: p = {A,B,C}, q = {C,D}, r = {C..H}: utility(p,q) = 0.25 > utility(p,r) = 0.125."""
    p, q, r = (about(node, frozenset(topics)) for node, topics in enumerate(("ABC", "CD", "CDEFGH")))  # type: ignore[arg-type]  # the paper's topics are letters
    stranger = about(3, frozenset({99}))
    assert by_similarity(p, [stranger, r, q]) == [q, r, stranger]
    assert by_similarity(q, [p, r]) == [r, p]
    empty = about(4)
    assert by_similarity(empty, [r, empty, q]) == [r, empty, q]


# One node, and a test that plays its peers.


class Alone:
    """Node 0, ranking by the ring; what it sends and what changes is written down."""

    def __init__(self, params: TManParams, samples: Sequence[Descriptor] = ()) -> None:
        self.net = VirtualNetwork()
        self.samples = list(samples)
        self.net.listen()
        self.changes: list[tuple[list[NodeId], list[NodeId]]] = []
        world = self.net.world(0)
        self.tman = TMan(
            world,
            lambda: about(0),
            by_ring,
            lambda: self.samples,
            params,
            lambda entered, left: self.changes.append((entered, left)),
        )
        world.use(self.tman)
        self.tman.start()

    @property
    def sent(self) -> list[tuple[NodeId, Any]]:
        return [(entry.receiver, entry.message) for entry in self.net.log]

    def tell(self, sender: NodeId, message: Buffer | BufferBack) -> None:
        self.net.worlds[0].receivers[type(message)](sender, message)

    @property
    def view(self) -> list[NodeId]:
        return [descriptor.id for descriptor in self.tman.view()]


def about(peer: NodeId, profile: Interest = NOTHING, age: float = 0.0, version: int = 0) -> Descriptor:
    return Descriptor(peer, age, version, profile)


def test_an_exchange_goes_both_ways() -> None:
    node = Alone(TManParams(view_size=2, message_size=10), samples=[about(40)])
    node.net.run(1.0)
    partner, buffer = node.sent.pop()
    assert partner == 40
    assert list(buffer.introduces()) == [0]  # the partner knows itself
    node.tell(40, BufferBack((about(40), about(2), about(0))))
    assert node.view == [2, 40]
    node.tell(7, Buffer((about(7), about(1))))
    receiver, back = node.sent.pop()
    assert (receiver, list(back.introduces())) == (7, [0, 2, 40])
    assert node.view == [1, 40]
    assert node.changes == [([40], []), ([2], []), ([1], [2])]


def test_a_full_buffer_is_chosen_for_the_partner() -> None:
    node = Alone(TManParams(view_size=10, message_size=3), samples=[about(p) for p in range(10, 100, 10)])
    node.tell(55, Buffer((about(55),)))
    assert list(node.sent[-1][1].introduces()) == [0, 60, 50]


def test_a_silent_partner_is_dropped_and_stays_out_until_it_speaks_again() -> None:
    node = Alone(TManParams(view_size=3, psi=1))
    node.tell(5, Buffer((about(1), about(5))))
    node.net.run(1.0)
    assert node.sent[-1][0] == 1
    node.net.run(2.0)
    assert node.view == [5]
    assert node.changes[-1] == ([], [1])
    node.tell(5, Buffer((about(5), about(1, age=1.9))))
    assert node.view == [5]
    node.tell(5, Buffer((about(5), about(1, age=0.0))))
    assert node.view == [1, 5]


@pytest.mark.parametrize("others", [[], [8]])
def test_the_place_of_a_silent_partner_is_filled_from_samples(others: list[NodeId]) -> None:
    node = Alone(TManParams(view_size=3, psi=1))
    node.tell(5, Buffer((about(5), *map(about, others))))
    node.samples = [about(9)]
    node.net.run(2.0)
    assert node.view == [*others, 9]


def test_old_entries_leave_unless_refreshed() -> None:
    node = Alone(TManParams(view_size=3, period=50.0, max_age=60.0))
    node.tell(5, Buffer((about(5), about(6, age=30.0))))
    node.net.at(25.0, lambda: node.tman.refresh(about(6, frozenset({1}), version=1)))
    node.net.at(25.0, lambda: node.tman.refresh(about(7)))  # not in the view: not our business
    node.net.run(40.0)
    assert node.view == [5, 6]
    assert node.tman.view()[1].profile == frozenset({1})
    node.tman.forget(5)
    assert node.view == [6]
    assert node.changes == [([5, 6], []), ([], [5])]


def test_expiry_is_told() -> None:
    node = Alone(TManParams(view_size=3, period=50.0, max_age=60.0))
    node.tell(5, Buffer((about(5), about(6, age=59.0))))
    node.net.run(2.0)
    assert node.view == [5]
    assert node.changes == [([5, 6], []), ([], [6])]


def test_a_flood_is_cut_to_size() -> None:
    node = Alone(TManParams(view_size=8, message_size=12))
    node.tell(5, Buffer(tuple(about(peer) for peer in range(100_000))))
    assert len(node.view) == 8
    assert 0 not in node.view
    assert max(node.view) < 12
    assert len(node.sent[-1][1].descriptors) <= 12


def test_nonsense_and_unasked_answers_stay_out() -> None:
    node = Alone(TManParams())
    node.tell(5, Buffer(()))
    node.tell(5, Buffer((about(-1), about(7, age=math.nan), about(8, age=math.inf), about(9, age=-math.inf))))
    assert [(d.id, d.age) for d in node.tman.view()] == [(9, 0.0)]
    node.tell(6, BufferBack((about(6),)))
    assert node.view == [9]


@pytest.mark.parametrize(
    "bad", [{"view_size": 0}, {"message_size": 0}, {"psi": -1}, {"period": 0.0}, {"max_age": 0.5}]
)
def test_parameters_are_checked(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="need"):
        TManParams(**bad)  # type: ignore[arg-type]  # wrong on purpose
