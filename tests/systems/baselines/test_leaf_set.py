"""Leaf sets: neighbours find each other, and the dead are not passed on."""

from __future__ import annotations

from topicweave.model.ids import NodeId
from topicweave.systems.baselines.leaf_set import (
    MOST_CALLED,
    MOST_NAMED,
    SILENT_FOR,
    SPOKEN_FOR,
    Beside,
    LeafSet,
)
from topicweave.testing import VirtualNetwork


def leaf_set(net: VirtualNetwork, own: NodeId, asked: list[NodeId], count: int = 1) -> LeafSet:
    leaves = LeafSet(net.world(own), own, count, asked.append)
    net.worlds[own].use(leaves)
    return leaves


def test_one_that_was_named_becomes_a_leaf_when_it_has_spoken() -> None:
    net = VirtualNetwork(record=True)
    asked: list[NodeId] = []
    leaves = leaf_set(net, 20, asked)
    leaves.arrange([10, 40])
    net.worlds[20].receive(40, Beside((30, 10)))
    assert asked == [30]
    assert sorted(leaves) == [10, 40], "hearsay is not enough"
    leaves.heard(30)
    assert leaves.changed
    leaves.arrange([10, 40])
    assert sorted(leaves) == [10, 30]
    assert leaves.neighbours() == [30, 10]


def test_who_lacks_a_leaf_is_told() -> None:
    net = VirtualNetwork(record=True)
    leaves = leaf_set(net, 20, [])
    leaves.arrange([10, 30])
    net.worlds[20].receive(10, Beside((30,)))
    net.worlds[20].receive(30, Beside((20, 10)))
    net.worlds[20].receive(10, Beside((), answer=True))
    assert net.sent(Beside, 20) == [Beside((10, 30), answer=True)], "an answer is not answered"


def test_the_silent_are_not_taken_up_by_hearsay_until_they_speak_or_time_has_passed() -> None:
    net = VirtualNetwork(record=True)
    asked: list[NodeId] = []
    leaves = leaf_set(net, 20, asked)
    leaves.arrange([10, 30])
    leaves.lost(30)
    assert leaves.arrange([10, 30]) == [10]
    net.worlds[20].receive(10, Beside((20, 30)))
    assert asked == []
    leaves.heard(30)
    assert leaves.arrange([10, 30]) == [10, 30]
    leaves.lost(30)
    net.run(SILENT_FOR)
    assert leaves.arrange([10, 30]) == [10, 30]


def test_one_that_only_spoke_is_asked_again_and_then_forgotten() -> None:
    net = VirtualNetwork(record=True)
    leaves = leaf_set(net, 20, [])
    leaves.arrange([10])
    net.worlds[20].receive(30, Beside((10,)))
    leaves.arrange([10])
    assert leaves.unheard() == []
    net.run(SPOKEN_FOR / 2)
    assert leaves.unheard() == [30]
    net.run(SPOKEN_FOR)
    leaves.tell()
    assert leaves.changed
    assert leaves.arrange([10]) == [10]


def test_a_neighbour_of_an_earlier_format_is_asked_for_a_sign_of_life_instead() -> None:
    net = VirtualNetwork(record=True)
    net.earlier.add(30)
    asked: list[NodeId] = []
    leaves = leaf_set(net, 20, asked)
    leaves.arrange([10, 30])
    leaves.tell()
    assert net.sent(Beside, 20, 10)
    assert not net.sent(Beside, 20, 30)
    assert asked == [30]


def test_what_is_too_long_or_no_identifier_is_ignored() -> None:
    net = VirtualNetwork(record=True)
    asked: list[NodeId] = []
    leaf_set(net, 20, asked)
    net.worlds[20].receive(10, Beside(tuple(range(100, 101 + MOST_NAMED))))
    net.worlds[20].receive(10, Beside((-1, 2**64)))
    assert asked == []


def test_made_up_names_are_called_within_bounds() -> None:
    net = VirtualNetwork(record=True)
    asked: list[NodeId] = []
    leaf_set(net, 20, asked)
    for start in range(1000, 1_000_000, 100_000):
        net.worlds[20].receive(10, Beside(tuple(range(start, start + MOST_NAMED))))
    assert len(asked) == MOST_CALLED
