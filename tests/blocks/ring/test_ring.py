"""A ring of nodes anywhere: it closes, routes, mends, moves, and becomes one again after a cut."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from topicweave.blocks.growing_ids import position_of
from topicweave.blocks.harmonic_links import Find, HarmonicLinks, as_point
from topicweave.blocks.ring.messages import Contact, Held, Hold, Introduce, Near, Release
from topicweave.blocks.ring.parameters import RingParameters
from topicweave.blocks.ring.places import RingPlaces
from topicweave.blocks.ring.ring import Ring
from topicweave.model.ids import RING_SIZE
from topicweave.port import TimerKey
from topicweave.testing import VirtualNetwork

PARAMETERS = RingParameters(period=1.0, suspect_after=3.0, doubt=40.0)


class RingNode:
    """A ring, its links and its places, with a beat."""

    def __init__(self, net: VirtualNetwork, node_id: int, most_bytes: int = 64) -> None:
        self.world = net.world(node_id)
        self.id = node_id
        self.given: list[bytes | None] = []
        self.ring = Ring(self.world, node_id, 0, PARAMETERS, self.lost, lambda: None, most_bytes)
        self.links = HarmonicLinks(self.world, self.ring, 4, 6)
        self.places = RingPlaces(self.world, self.ring, self._given, most_bytes)
        for block in (self.ring, self.links, self.places):
            self.world.receivers.update({kind: self._met(then) for kind, then in block.receivers().items()})
        self.world.timers["beat"] = self._beat
        self.world.set_timer(("beat",), self.world.random.random())

    def lost(self, peer: int) -> None:
        self.ring.remove(peer, departed=False)
        self.links.lost(peer)

    def _met(self, then: Callable[[int, Any], None]) -> Callable[[int, Any], None]:
        def receive(sender: int, message: Any) -> None:
            self.ring.met(sender)
            then(sender, message)

        return receive

    def _beat(self, _key: TimerKey) -> None:
        self.world.set_timer(("beat",), 1.0)
        self.ring.beat()
        self.links.beat()
        self.ring.give_signs()

    def _given(self, position: bytes | None, by: int, near: tuple[Contact, ...]) -> None:
        self.given.append(position)
        if position is not None:
            self.ring.join(position, [by], near)


def ring_of(count: int, seed: int = 0, skewed: bool = False) -> tuple[VirtualNetwork, dict[int, RingNode]]:
    net = VirtualNetwork(seed)
    rng = random.Random(seed)
    nodes = {number: RingNode(net, number) for number in (rng.getrandbits(64) for _ in range(count))}
    ids = list(nodes)
    for number, node in nodes.items():
        contacts = rng.sample(ids, 3)
        # Heavily skewed: all but a few in a tiny part of the ring.
        position = position_of(int(RING_SIZE * rng.random() ** 30)) if skewed else position_of(number)
        node.ring.join(position, contacts)
    return net, nodes


def out_of_place(nodes: dict[int, RingNode]) -> list[int]:
    """Who does not know its true successor and predecessor."""
    order = [node.id for node in sorted(nodes.values(), key=lambda node: node.ring.here)]
    wrong = []
    for index, number in enumerate(order):
        ring = nodes[number].ring
        sides = (ring.near.successor, ring.near.predecessor)
        known = [side.id if side is not None else None for side in sides]
        if known != [order[(index + 1) % len(order)], order[index - 1]]:
            wrong.append(number)
    return wrong


@pytest.mark.parametrize("skewed", [False, True])
def test_the_ring_closes_and_every_point_has_one_owner(skewed: bool) -> None:
    net, nodes = ring_of(60, skewed=skewed)
    net.run(15.0)
    assert out_of_place(nodes) == []
    rng = random.Random(1)
    order = sorted(node.ring.here for node in nodes.values())
    for _ in range(50):
        point = as_point(rng.randrange(RING_SIZE))
        owner = max((place for place in order if place <= point), default=order[-1])[1]
        here = rng.choice(list(nodes))
        for _hop in range(60):
            hop = nodes[here].ring.table.next_hop(point)
            if hop == here:
                break
            here = hop
        assert here == owner


def test_the_dead_are_closed_over_and_forgotten() -> None:
    net, nodes = ring_of(40)
    net.run(15.0)
    dead = sorted(nodes)[5:9] + sorted(nodes)[20:22]
    net.kill(dead)
    for number in dead:
        del nodes[number]
    net.run(35.0)
    assert out_of_place(nodes) == []
    net.run(90.0)
    for node in nodes.values():
        assert not set(node.ring.known_peers()) & set(dead)
        assert not node.links.known_peers() & set(dead)


def test_a_cut_makes_two_rings_and_its_end_one() -> None:
    net, nodes = ring_of(40)
    net.run(15.0)
    east = set(sorted(nodes)[::2])
    net.cut = lambda sender, peer: (sender in east) != (peer in east)
    net.run(40.0)
    assert out_of_place({number: node for number, node in nodes.items() if number in east}) == []
    net.cut = lambda sender, peer: False
    net.run(60.0)
    assert out_of_place(nodes) == []


def test_a_move_is_known_to_all_though_old_news_of_it_goes_round() -> None:
    net, nodes = ring_of(30)
    net.run(15.0)
    rng = random.Random(4)
    for number in rng.sample(sorted(nodes), 12):
        nodes[number].ring.join(position_of(rng.randrange(RING_SIZE)), [rng.choice(sorted(nodes))])
    net.run(30.0)
    assert out_of_place(nodes) == []


@pytest.mark.parametrize("most_bytes", [8, 64])
def test_many_get_a_place_after_the_same_node(most_bytes: int) -> None:
    """With 8 bytes room has to be made again and again; each ends up between the node and whoever came before it."""
    net = VirtualNetwork(3)
    first = RingNode(net, 1, most_bytes)
    first.ring.join(b"\x40", [])
    nodes = {1: first}
    for number in range(2, 90):
        node = nodes[number] = RingNode(net, number, most_bytes)
        while not node.given or node.given[-1] is None:
            node.places.ask(1)
            net.run(net.now + 0.5)
    net.run(net.now + 10.0)
    assert out_of_place(nodes) == []
    order = [node.id for node in sorted(nodes.values(), key=lambda node: node.ring.here)]
    start = order.index(1)
    assert [*order[start:], *order[:start]] == [1, *range(89, 1, -1)]
    moved = sum(node.places.moves for node in nodes.values())
    assert (moved > 0) == (most_bytes == 8)


def test_who_gave_up_a_move_is_where_it_was_for_all() -> None:
    """The answer is lost, so the asked one counts with a node that stays away; whoever has it as a finger
    believes that, too.
    """
    net, nodes = ring_of(20)
    net.run(15.0)
    mover, asked = sorted(nodes)[3], sorted(nodes)[12]
    net.cut = lambda sender, peer: (sender, peer) == (asked, mover)
    nodes[mover].places.ask(asked)
    net.run(net.now + 0.5)
    net.cut = lambda sender, peer: False
    net.run(net.now + 2.0)
    nodes[mover].places.give_up()
    net.run(net.now + 10.0)
    assert out_of_place(nodes) == []
    believed = {
        contact.position
        for node in nodes.values()
        for contact in [*node.ring.near, *node.ring.fingers.values()]
        if contact.id == mover
    }
    assert believed == {nodes[mover].ring.here[0]}


def test_an_introduction_is_handed_on_once_per_period() -> None:
    """Else copies that a network makes would multiply wherever tables disagree and the way is a circle."""
    net, nodes = ring_of(20)
    net.run(15.0)
    node = nodes[min(nodes)]
    far = Contact(7, node.ring.table.places[-1][0] + b"\x01", 1)
    heard: list[tuple[int, Introduce]] = []
    for _ in range(5):
        net.listen()
        node.world.receivers[Introduce](8, Introduce(0, far))
        heard += [(to, it) for _, _, to, it in net.log if isinstance(it, Introduce) and it.contact.id == 7]
    assert len(heard) == 1
    net.run(net.now + 1.0)
    net.listen()
    node.world.receivers[Introduce](8, Introduce(0, far))
    assert [to for _, _, to, it in net.log if isinstance(it, Introduce)] == [heard[0][0]]


def test_what_cannot_be_is_ignored() -> None:
    net, nodes = ring_of(10)
    net.run(10.0)
    node = next(iter(nodes.values()))
    table = list(node.ring.table)
    other = next(number for number in nodes if number != node.id)
    for contact in (
        Contact(7, b"\x01\x00", 1 << 40),
        Contact(-1, b"\x01", 1 << 40),
        Contact(7, b"x" * 65, 1 << 40),
        Contact(7, b"\x01", -3),
    ):
        node.world.receivers[Near](other, Near(0, Contact(other, b"x", 5), (contact,) * 65))
        node.world.receivers[Introduce](other, Introduce(0, contact))
        node.world.receivers[Near](7, Near(0, contact, ()))
    assert node.ring.table.places == table


def far_apart() -> tuple[VirtualNetwork, RingNode, RingNode]:
    """A ring of 16 on which the first node holds the one opposite as a finger, and nobody has another finger."""
    net = VirtualNetwork(0)
    nodes = [RingNode(net, number * (RING_SIZE // 16)) for number in range(16)]
    for node in nodes:
        node.links = HarmonicLinks(node.world, node.ring, 0, 6)
        node.ring.join(position_of(node.id), [other.id for other in nodes])
    net.run(10.0)
    one, other = nodes[0], nodes[8]
    assert other.ring.own is not None
    one.ring.set_fingers([other.ring.own])
    net.run(30.0)
    assert one.id in other.ring.long.fans
    net.listen()
    return net, one, other


def test_a_finger_and_its_holder_hear_of_each_other_once_per_term() -> None:
    net, one, other = far_apart()
    net.run_for(20.0)
    term = PARAMETERS.signs_every * PARAMETERS.period
    for source, kind in ((one, Hold), (other, Held)):
        times = [
            sent.time for sent in net.log if sent.sender == source.id and sent.receiver in (one.id, other.id)
        ]
        assert max(late - early for early, late in pairwise(times)) <= term + 0.1
        assert 8 <= len(net.sent(kind, source.id)) <= 10


def test_who_speaks_to_a_finger_anyway_gives_a_sign_of_life_now_and_then_only() -> None:
    net, one, other = far_apart()

    def talk() -> None:
        one.ring.send(other.id, Find(0, one.id, other.id))
        net.at(net.now + 0.9, talk)

    talk()
    net.run_for(40.0)
    holds = net.sent(Hold, one.id, other.id)
    assert 4 <= len(holds) <= 6
    assert not any(hold.ask for hold in net.sent(Held, other.id, one.id))
    assert one.id in other.ring.long.fans


@pytest.mark.parametrize("talks", [False, True])
def test_a_dead_finger_is_found_out_as_soon_if_it_spoke_of_other_things(talks: bool) -> None:
    net, one, other = far_apart()
    if talks:
        other.ring.send(one.id, Find(0, other.id, one.id))
    net.kill([other.id])
    net.run_for(PARAMETERS.suspect_after + PARAMETERS.period + 0.1)
    assert other.id not in one.ring.fingers


def test_who_is_no_finger_any_more_says_so_should_the_word_be_lost() -> None:
    net, one, other = far_apart()
    net.lose = lambda sent: isinstance(sent.message, Release)
    one.ring.set_fingers([])
    net.run_for(0.1)
    assert one.id in other.ring.long.fans
    net.lose = lambda sent: False
    net.run_for(PARAMETERS.signs_every * PARAMETERS.period + 0.1)
    assert one.id not in other.ring.long.fans


def test_a_lost_word_of_a_move_is_made_good_though_there_is_other_talk() -> None:
    """The next sign of life is none of those that other words stand for."""
    net, one, other = far_apart()
    net.lose = lambda sent: sent.receiver == other.id and isinstance(sent.message, Near | Hold)
    position = position_of(one.id + 5)
    one.ring.shift(position)
    net.run_for(0.5)
    net.lose = lambda sent: False

    def talk() -> None:
        one.ring.send(other.id, Find(0, one.id, other.id))
        net.at(net.now + 0.3, talk)

    talk()
    net.run_for(2.0)
    assert other.ring.long.fans[one.id].position == position
