"""Void updates of all feeds that a node leads, by one timer."""

from __future__ import annotations

from topicweave.model.ids import TopicId
from topicweave.systems.rappel.messages import Void
from topicweave.systems.rappel.parameters import RappelParameters
from topicweave.systems.rappel.rules import ROOT, Child
from topicweave.systems.rappel.tree import Tree
from topicweave.systems.rappel.updates import VOID, Updates
from topicweave.testing.network import VirtualNetwork

SELF, CHILD = 1, 2
FEEDS: list[TopicId] = list(range(10, 20))
PERIOD = RappelParameters().void_period


class Leader:
    """A node that leads trees, with one child in each."""

    def __init__(self) -> None:
        self.net = VirtualNetwork(record=True)
        self.world = self.net.world(SELF)
        self.trees: dict[TopicId, Tree] = {}
        self.updates = Updates(self.world, SELF, RappelParameters(), self.trees, lambda _: SELF)
        self.world.use(self.updates)

    def lead(self, feed: TopicId) -> None:
        tree = self.trees[feed] = Tree(feed)
        tree.publisher = (0.0,) * 5
        tree.children[CHILD] = Child(ROOT, (0.0,) * 5)
        self.updates.joined(tree)

    def voids(self) -> list[tuple[float, TopicId]]:
        return [
            (round(sent.time, 2), sent.message.feed)
            for sent in self.net.log
            if isinstance(sent.message, Void)
        ]


def test_each_feed_has_its_turn_once_in_a_period() -> None:
    leader = Leader()
    for number, feed in enumerate(FEEDS):
        leader.net.run(float(number))
        leader.lead(feed)
        assert [key for key in leader.world.pending if key[0] == VOID] == [(VOID,)], "one timer for all"
    leader.net.run(2 * PERIOD + 20.0)
    assert leader.voids() == [
        (round(turn * PERIOD + number, 2), feed) for turn in (1, 2) for number, feed in enumerate(FEEDS)
    ]


def test_a_feed_that_was_left_or_has_another_root_has_none() -> None:
    leader = Leader()
    for feed in FEEDS[:3]:
        leader.lead(feed)
    del leader.trees[FEEDS[0]]
    leader.updates.forget(FEEDS[0])
    leader.trees[FEEDS[1]].publisher = None
    leader.net.run(2.5 * PERIOD)
    assert leader.voids() == [(PERIOD, FEEDS[2]), (2 * PERIOD, FEEDS[2])]
    leader.trees.clear()
    leader.net.run(5 * PERIOD)
    assert not leader.world.pending, "no timer for nothing"


def test_a_new_session_begins_anew() -> None:
    leader = Leader()
    leader.lead(FEEDS[0])
    leader.net.run(1.0)
    leader.world.pending.clear()  # timers are lost with a life
    leader.updates.begin()
    leader.lead(FEEDS[1])
    leader.net.run(PERIOD + 2.0)
    assert leader.voids() == [(PERIOD + 1.0, FEEDS[1])]
