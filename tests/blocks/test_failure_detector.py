"""Failure detection: the silent once, the talking never, no timer for nothing."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicweave.blocks.failure_detector import FailureDetector
from topicweave.model.ids import NodeId
from topicweave.testing import VirtualNetwork

PERIOD, TIMEOUT = 1.0, 3.5


class Watcher:
    def __init__(self, seed: int = 0) -> None:
        self.net = VirtualNetwork(seed)
        self.world = self.net.world(0)
        self.beats: list[tuple[float, list[NodeId]]] = []
        self.suspected: list[tuple[float, NodeId]] = []
        self.detector = FailureDetector(self.world, PERIOD, TIMEOUT, self.beat, self.suspect)
        self.world.use(self.detector)

    def beat(self, peers: list[NodeId]) -> None:
        self.beats.append((self.net.now, peers))

    def suspect(self, peer: NodeId) -> None:
        self.suspected.append((self.net.now, peer))

    def hears(self, peer: NodeId, start: float, end: float, every: float) -> None:
        times = [start + every * i for i in range(int((end - start) / every) + 1)]
        for time in times:
            self.net.at(time, lambda: self.detector.heard(peer))


@pytest.mark.parametrize("seed", range(20))
def test_the_silent_are_suspected_once_and_in_time_and_the_talking_never(seed: int) -> None:
    watcher = Watcher(seed)
    for peer in (1, 2, 3):
        watcher.detector.watch(peer)
    watcher.hears(1, 0.0, 100.0, every=TIMEOUT - 0.01)
    watcher.hears(2, 0.0, 20.0, every=0.5)
    watcher.net.run(100.0)
    assert [peer for _, peer in watcher.suspected] == [3, 2]
    (third, _), (second, _) = watcher.suspected
    assert TIMEOUT < third <= TIMEOUT + PERIOD
    assert 20.0 + TIMEOUT < second <= 20.0 + TIMEOUT + PERIOD
    assert watcher.detector.watched == [1]


def test_beats_go_to_all_watched_once_per_period_from_a_random_phase() -> None:
    phases = set()
    for seed in range(5):
        watcher = Watcher(seed)
        watcher.detector.watch(1)
        watcher.detector.watch(2)
        watcher.net.run(3.0)
        times = [time for time, _ in watcher.beats]
        assert all(peers == [1, 2] for _, peers in watcher.beats)
        assert 0.0 <= times[0] < PERIOD
        assert [round(b - a, 9) for a, b in pairwise(times)] == [PERIOD] * (len(times) - 1)
        phases.add(times[0])
    assert len(phases) == 5


def test_no_timer_while_nobody_is_watched() -> None:
    watcher = Watcher()
    assert watcher.world.pending == {}
    watcher.detector.start()
    watcher.detector.heard(1)
    watcher.detector.unwatch(1)
    assert watcher.world.pending == {}
    watcher.detector.watch(1)
    watcher.detector.watch(2)
    assert len(watcher.world.pending) == 1
    watcher.detector.unwatch(1)
    assert len(watcher.world.pending) == 1
    watcher.detector.unwatch(2)
    assert watcher.world.pending == {}
    watcher.detector.watch(3)
    watcher.net.run(10.0)  # 3 is suspected, and was the last
    assert watcher.suspected
    assert watcher.world.pending == {}
    beats = len(watcher.beats)
    watcher.net.run(20.0)
    assert len(watcher.beats) == beats


def test_watching_again_does_not_give_a_new_term_but_watching_anew_does() -> None:
    watcher = Watcher()
    watcher.detector.watch(1)
    watcher.net.at(3.0, lambda: watcher.detector.watch(1))
    watcher.net.run(TIMEOUT + PERIOD)
    assert [peer for _, peer in watcher.suspected] == [1]
    watcher.detector.watch(1)
    watcher.net.run(watcher.net.now + TIMEOUT)
    assert len(watcher.suspected) == 1
    watcher.net.run(watcher.net.now + PERIOD)
    assert len(watcher.suspected) == 2


def test_a_node_that_slept_suspects_nobody() -> None:
    watcher = Watcher()
    watcher.detector.watch(1)
    watcher.hears(1, 0.0, 5.0, every=1.0)
    watcher.net.run(5.0)
    watcher.net.now = 100.0  # nothing ran in between; the overdue timer fires now
    watcher.world.set_timer(("heartbeat",), 0.0)
    watcher.net.run(100.0 + TIMEOUT)
    assert watcher.suspected == []
    watcher.net.run(100.0 + TIMEOUT + PERIOD)
    assert [peer for _, peer in watcher.suspected] == [1]


def test_a_restart_with_memory_gives_a_new_term() -> None:
    watcher = Watcher()
    watcher.detector.watch(1)
    watcher.net.run(3.0)
    watcher.world.pending.clear()  # the timer died with the process
    watcher.net.run(50.0)
    watcher.detector.start()
    watcher.net.run(50.0 + TIMEOUT)
    assert watcher.suspected == []
    watcher.net.run(50.0 + TIMEOUT + PERIOD)
    assert [peer for _, peer in watcher.suspected] == [1]


def test_callbacks_may_watch_and_unwatch() -> None:
    watcher = Watcher()

    def suspect(peer: NodeId) -> None:
        watcher.suspected.append((watcher.net.now, peer))
        watcher.detector.unwatch(2)
        watcher.detector.watch(peer + 10)

    detector = watcher.detector = FailureDetector(watcher.world, PERIOD, TIMEOUT, watcher.beat, suspect)
    watcher.world.use(detector)
    detector.watch(1)
    detector.watch(2)
    watcher.net.run(TIMEOUT + PERIOD)
    assert [peer for _, peer in watcher.suspected] == [1]
    assert detector.watched == [11]
    assert len(watcher.world.pending) == 1
    detector.watch(12)

    def give_up(peers: list[NodeId]) -> None:
        for peer in peers:
            detector.unwatch(peer)

    detector._beat = give_up
    watcher.net.run(watcher.net.now + PERIOD)
    assert detector.watched == []
    assert watcher.world.pending == {}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["watch", "unwatch", "heard"]), st.integers(1, 3), st.floats(0.0, 2.5, width=32)
        ),
        max_size=60,
    )
)
def test_agrees_with_the_definition(calls: list[tuple[str, NodeId, float]]) -> None:
    """Whatever is called when: suspected means silent for `timeout`, watched means heard within it and a period."""
    watcher = Watcher()
    detector = watcher.detector
    heard: dict[NodeId, float] = {}
    told = 0

    def take_away_the_suspected() -> None:
        nonlocal told
        for time, peer in watcher.suspected[told:]:
            assert time - heard.pop(peer) > TIMEOUT
        told = len(watcher.suspected)

    for call, peer, pause in calls:
        getattr(detector, call)(peer)
        if call == "watch":
            heard.setdefault(peer, watcher.net.now)
        elif call == "unwatch":
            heard.pop(peer, None)
        elif peer in heard:
            heard[peer] = watcher.net.now
        watcher.net.run(watcher.net.now + pause)
        take_away_the_suspected()
        assert set(detector.watched) == set(heard)
        assert all(watcher.net.now - last <= TIMEOUT + PERIOD for last in heard.values())
        assert len(watcher.world.pending) == bool(heard)


@pytest.mark.parametrize(("period", "timeout"), [(0.0, 1.0), (2.0, 2.0), (-1.0, 3.0)])
def test_times_are_checked(period: float, timeout: float) -> None:
    world = VirtualNetwork().world(0)
    with pytest.raises(ValueError, match="period"):
        FailureDetector(world, period, timeout, lambda peers: None, lambda peer: None)


class Asker(Watcher):
    """One that asks the late; peer 2 speaks only when it is asked."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.asked: list[tuple[float, list[NodeId]]] = []
        self.detector = FailureDetector(self.world, 2.0, 4.0, self.beat, self.suspect, ask=self.ask)
        self.world.use(self.detector)

    def ask(self, peers: list[NodeId]) -> None:
        self.asked.append((self.net.now, peers))
        if 2 in peers:
            self.net.at(self.net.now + 0.1, lambda: self.detector.heard(2))


@pytest.mark.parametrize("seed", range(10))
def test_the_late_are_asked_before_they_are_suspected_and_the_dead_are_found_no_later(seed: int) -> None:
    watcher = Asker(seed)
    for peer in (1, 2, 3):
        watcher.detector.watch(peer)
    watcher.hears(1, 0.0, 60.0, every=2.0)
    watcher.net.run(60.0)
    assert [peer for _, peer in watcher.suspected] == [3]
    assert 4.0 < watcher.suspected[0][0] <= 4.5
    assert all(1 not in peers for _, peers in watcher.asked)
    assert sum(3 in peers for _, peers in watcher.asked) == 3
    assert {round(b - a, 9) for (a, _), (b, _) in pairwise(watcher.beats)} == {2.0}
    assert set(watcher.detector.watched) == {1, 2}
