"""Events by way of a topic's home: a branch that comes a little late gets them too."""

from __future__ import annotations

from typing import Any

from topicweave.blocks.home_publishing import HomePublishing
from topicweave.blocks.late_neighbours import LATE
from topicweave.model.event import Event
from topicweave.port import EventMessage
from topicweave.testing.bench import NEWS, Bench

HOME, EARLY, NEW = 1, 2, 3


class Home:
    """The publishing part of a home whose children the test says."""

    def __init__(self) -> None:
        self.bench: Bench[Any] = Bench("magnet")
        node = self.bench.add(HOME, NEWS)
        self.children: list[int] = []
        self.part = HomePublishing(
            self.bench.worlds[HOME],
            node.control,
            lambda _topic: True,
            lambda _topic: self.children,
            lambda _event, _age: None,
        )

    def publish(self) -> int:
        return self.part.publish(Event(HOME, NEWS, 0, 0, b"hello"))

    def handed_to(self) -> list[int]:
        return [sent.receiver for sent in self.bench.log if isinstance(sent.message, EventMessage)]


def test_a_home_that_has_no_children_yet_serves_them_when_they_come() -> None:
    home = Home()
    assert home.publish() == 0
    home.part.beat()
    home.children = [NEW]
    home.part.beat()
    assert home.handed_to() == [NEW]
    home.part.beat()
    assert home.handed_to() == [NEW], "once is enough"


def test_whoever_got_it_does_not_get_it_again() -> None:
    home = Home()
    home.children = [EARLY]
    assert home.publish() == 1
    home.children = [EARLY, NEW]
    home.part.beat()
    assert home.handed_to() == [EARLY, NEW]


def test_what_is_old_is_not_brought_up_again() -> None:
    home = Home()
    home.publish()
    home.bench.run_for(LATE + 1.0)
    home.children = [NEW]
    home.part.beat()
    assert home.handed_to() == []
