"""What all systems' nodes have in common: numbers, interest and its version, publishing without wanting,
restart with memory.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from topicweave.blocks.interest_node import InterestNode
from topicweave.model.event import Event
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import Link
from topicweave.testing import VirtualNetwork, VirtualWorld

NEWS, SPORT = 1, 2
LINGERS = 10.0


class Loner(InterestNode):
    """Knows nobody; writes down how its interest changes."""

    def __init__(self, world: VirtualWorld, publisher_interest: float | None = LINGERS) -> None:
        super().__init__(world, world.id, [NEWS], publisher_interest)
        self.history: list[tuple[Interest, int, Interest]] = []
        self.reach = 0
        world.timers.update(self._timers)

    def _interest_changed(self, before: Interest) -> None:
        self.history.append((before, *self._own_interest()))

    def _spread(self, event: Event) -> int:
        return self.reach

    def _reached_nobody(self, topic: TopicId) -> str:
        return f"nobody wants {topic}"

    def peer_lost(self, peer: NodeId) -> None:
        pass

    def leave(self) -> None:
        pass

    def links(self) -> Iterable[Link]:
        return ()

    def known_peers(self) -> Iterable[NodeId]:
        return ()


@pytest.fixture
def world() -> VirtualWorld:
    return VirtualNetwork().world(7)


def test_an_interest_has_a_version_that_grows_with_each_change(world: VirtualWorld) -> None:
    node = Loner(world)
    node.subscribe(NEWS)
    assert node.history == []
    node.subscribe(SPORT)
    node.unsubscribe(NEWS)
    node.unsubscribe(NEWS)
    only_news, both, only_sport = frozenset({NEWS}), frozenset({NEWS, SPORT}), frozenset({SPORT})
    assert node.history == [(only_news, 1, both), (both, 2, only_sport)]


def test_a_receipt_says_to_how_many_an_event_went_and_why_to_nobody(world: VirtualWorld) -> None:
    node = Loner(world)
    node.start([])
    assert node.publish(NEWS).reason == "nobody wants 1"
    node.reach = 3
    receipt = node.publish(NEWS, b"x")
    assert (receipt.sent_to, receipt.reason) == (3, "")
    assert [event.sequence for event in world.delivered] == [0, 1]


def test_who_publishes_takes_part_for_a_while_after_the_last_event(world: VirtualWorld) -> None:
    node = Loner(world)
    node.start([])
    node.publish(SPORT)
    assert node.history == [(frozenset({NEWS}), 1, frozenset({NEWS, SPORT}))]
    assert world.delivered == []
    world.net.run(LINGERS - 1)
    node.publish(SPORT)
    world.net.run(2 * LINGERS - 2)
    assert node._takes_part_in(SPORT)
    world.net.run(2 * LINGERS)
    assert not node._takes_part_in(SPORT)
    assert not world.pending
    assert [version for _, version, _ in node.history] == [1, 2]


def test_a_topic_that_is_subscribed_to_meanwhile_stays(world: VirtualWorld) -> None:
    node = Loner(world)
    node.start([])
    node.publish(SPORT)
    node.subscribe(SPORT)
    world.net.run(5 * LINGERS)
    assert node._takes_part_in(SPORT)
    assert len(node.history) == 1


def test_without_a_time_for_it_publishing_is_no_interest(world: VirtualWorld) -> None:
    node = Loner(world, publisher_interest=None)
    node.start([])
    node.publish(SPORT)
    assert node.history == []
    assert not world.pending


def test_a_restart_with_memory_numbers_on_and_begins_the_time_of_publishing_anew(world: VirtualWorld) -> None:
    node = Loner(world)
    node.start([])
    first = node.publish(SPORT).event
    world.pending.clear()  # timers die with a life
    world.net.run(3 * LINGERS)
    node.start([])
    assert node._takes_part_in(SPORT)
    second = node.publish(SPORT).event
    assert (second.epoch, second.sequence) == (first.epoch, 1)
    world.net.run(4 * LINGERS + 0.1)
    assert not node._takes_part_in(SPORT)


def test_a_new_life_told_of_the_last_one_numbers_on(world: VirtualWorld) -> None:
    node = Loner(world)
    node.resume(44, {NEWS: 5})
    node.start([])
    event = node.publish(NEWS).event
    assert (event.epoch, event.sequence) == (44, 5)


def test_what_comes_late_is_not_handed_over_if_it_is_older_than_the_interest(world: VirtualWorld) -> None:
    node = Loner(world)
    world.net.run(5.0)
    node.start([])
    world.net.run(8.0)
    node.subscribe(SPORT)
    world.net.run(10.0)
    for topic, age in ((NEWS, 4.0), (NEWS, 6.0), (SPORT, 1.0), (SPORT, 3.0), (SPORT, 0.0)):
        node._hand_over(Event(1, topic, 1, int(age)), age)
    assert [(event.topic, event.sequence) for event in world.delivered] == [(NEWS, 4), (SPORT, 1), (SPORT, 0)]
