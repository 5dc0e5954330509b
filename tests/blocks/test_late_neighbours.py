"""Who comes a little later gets what was passed on before, once."""

from __future__ import annotations

from topicweave.blocks.late_neighbours import LATE, MOST_PASSED, PassedOn
from topicweave.blocks.notify_pull import LateNotify, Notify, aged
from topicweave.model.event import EventId
from topicweave.testing import VirtualNetwork

HERE, EARLY, LATER, NEWS, SPORT = 1, 2, 3, 10, 11


def event(sequence: int, topic: int = NEWS) -> EventId:
    return EventId(HERE, topic, 0, sequence)


class Node:
    def __init__(self) -> None:
        self.net = VirtualNetwork()
        self.passed = PassedOn(self.net.world(HERE), aged)
        self.net.listen()

    def note(self, *events: EventId) -> None:
        for one in events:
            self.passed.note(one, Notify(one, 1), [EARLY])

    def told(self, topic: int, *peers: int) -> list[tuple[int, int]]:
        """Who is told of which events when these are neighbours."""
        before = len(self.net.log)
        self.passed.serve(topic, peers)
        sent = [(peer, message) for _, _, peer, message in self.net.log[before:]]
        return [
            (peer, message.event.sequence)
            for peer, message in sent
            if isinstance(message, Notify | LateNotify)
        ]


def test_a_new_neighbour_is_told_once_and_an_old_one_never() -> None:
    node = Node()
    node.note(event(0), event(1), event(0, SPORT))
    assert node.told(NEWS, EARLY, LATER) == [(LATER, 0), (LATER, 1)]
    assert node.told(NEWS, EARLY, LATER) == []
    assert node.told(SPORT, LATER) == [(LATER, 0)]


def test_what_comes_late_says_how_late() -> None:
    node = Node()
    node.note(event(0))
    node.passed.note(event(1), Notify(event(1), 2), [EARLY], age=3.0)
    node.net.run(1.0)
    node.passed.serve(NEWS, [LATER])
    assert [message for *_, message in node.net.log] == [
        LateNotify(event(0), 1, 1.0),
        LateNotify(event(1), 2, 4.0),
    ]


def test_who_has_it_from_elsewhere_is_not_told() -> None:
    node = Node()
    node.note(event(0))
    node.passed.has(event(0), LATER)
    assert node.told(NEWS, LATER) == []


def test_what_is_old_is_forgotten_and_so_is_what_is_too_much() -> None:
    node = Node()
    node.note(*(event(number) for number in range(MOST_PASSED + 1)))
    assert len(node.told(NEWS, LATER)) == MOST_PASSED
    node.net.run(LATE + 1.0)
    assert node.told(NEWS, LATER + 1) == []
    assert node.passed.topics == []
