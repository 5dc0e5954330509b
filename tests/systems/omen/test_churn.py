"""exeQ and standbyL (Algorithm 5)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from topicweave.systems.omen.churn import GIVE_UP, ChurnEvents
from topicweave.testing import VirtualNetwork

OWN = 50


class Successor:
    """A node with nothing but its churn events."""

    def __init__(self, limit: int = 4) -> None:
        self.net = VirtualNetwork()
        self.world = self.net.world(OWN)
        self.in_range: set[int] = set(range(100))
        self.dropped: list[int] = []
        self.events = ChurnEvents(
            self.world, OWN, limit, 10.0, lambda node: node in self.in_range, self.dropped.append
        )
        self.world.use(self.events)


def test_the_coordinator_executes_and_the_others_stand_by() -> None:
    node = Successor()
    node.events.handle(40, coordinator=OWN)
    node.events.handle(30, coordinator=45)
    assert list(node.events.executing) == [40]
    assert list(node.events.standby) == [30]
    node.events.handled(30)
    node.events.handled(40)
    assert node.dropped == [30, 40]
    assert not node.world.pending


def test_whoever_succeeds_a_dead_coordinator_takes_its_events_over() -> None:
    """Alg. 5, lines 2 to 5: 45 was to handle 30; 45 leaves, too."""
    node = Successor()
    node.events.handle(30, coordinator=45)
    node.events.handle(45, coordinator=OWN)
    assert set(node.events.executing) == {30, 45}
    assert not node.events.standby
    first = node.events.next()
    assert first is not None
    assert first.node == 30  # the older first, so that none is put off for ever


def test_an_event_nobody_reports_as_handled_is_taken_over_in_time() -> None:
    node = Successor()
    node.events.handle(30, coordinator=45)
    node.net.run(10.5)
    assert list(node.events.executing) == [30]


def test_what_leaves_the_range_goes_back_to_standby_and_is_given_up_in_the_end() -> None:
    node = Successor()
    node.events.handle(40, coordinator=OWN)
    node.in_range.clear()
    assert node.events.next() is None
    assert list(node.events.standby) == [40]
    node.net.run(10.0 * GIVE_UP + 1)
    assert node.dropped == [40]
    assert not node.world.pending


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=40))
def test_there_are_never_more_than_the_limit(departures: list[tuple[int, int]]) -> None:
    node = Successor(limit=4)
    for churned, coordinator in departures:
        node.events.handle(churned, OWN if coordinator % 2 else coordinator)
        assert len(node.events.executing) + len(node.events.standby) <= 4
        assert not node.events.executing.keys() & node.events.standby
        assert len(node.world.pending) <= 4
    node.net.run(10.0 * GIVE_UP + 1)
    assert not node.events.standby
    assert not node.events.executing
