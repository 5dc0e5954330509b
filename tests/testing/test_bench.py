"""Nodes on a bench: every system makes a pair, and a node can crash, leave and come back."""

from __future__ import annotations

from typing import Any

import pytest

from topicweave.port import EventMessage
from topicweave.systems.registry import SYSTEMS
from topicweave.testing import NEWS, SPORT, Bench, pair


@pytest.mark.parametrize("system", sorted(SYSTEMS))
def test_two_nodes_of_any_system_find_each_other_and_hear_each_other(system: str) -> None:
    bench = pair(system, NEWS, SPORT)
    found = SYSTEMS[system]
    bench.run_for(max(30.0, found.settles_within))
    assert True in bench.linked(1, 2)
    receipt = bench.nodes[1].publish(NEWS, b"hello")
    bench.nodes[2].publish(SPORT, b"goal")
    bench.run_for(10.0)
    assert receipt.sent_to == 1
    for node in (1, 2):
        assert sorted(event.payload for event in bench.delivered(node)) == [b"goal", b"hello"]
    assert bench.noise == []


def test_a_restart_with_memory_goes_on_and_one_without_begins_anew() -> None:
    bench = pair("spidercast")
    bench.run_for(5.0)
    first = bench.nodes[1].publish(NEWS).event
    memory = bench.crash(1)
    assert bench.linked(1, 2) == (False, True)
    bench.run_for(1.0)
    bench.restart(memory)
    second = bench.nodes[1].publish(NEWS).event
    assert (second.epoch, second.sequence) == (first.epoch, first.sequence + 1)
    bench.crash(1)
    bench.add(1, NEWS)
    third = bench.nodes[1].publish(NEWS).event
    assert third.epoch > second.epoch
    assert third.sequence == 0
    bench.run_for(10.0)
    assert bench.linked(1, 2) == (True, True)


def test_timers_of_the_last_life_do_not_end_in_the_next() -> None:
    bench = pair("spidercast")
    bench.run_for(5.0)
    old = dict(bench.worlds[1].pending)
    memory = bench.crash(1)
    assert old
    assert not memory.world.pending
    bench.run_for(1.0)
    bench.restart(memory)
    for key, number in bench.worlds[1].pending.items():
        assert old.get(key) != number


def test_who_leaves_says_so() -> None:
    bench = pair("spidercast")
    bench.run_for(5.0)
    bench.leave(1)
    bench.run_for(0.2)
    assert bench.linked(1, 2) == (False, False)
    assert set(bench.nodes) == {2}


def test_noise_is_written_down() -> None:
    bench: Bench[Any] = Bench("strawman")
    for number in range(1, 9):
        bench.add(number, NEWS if number < 8 else SPORT)
    bench.run_for(60.0)
    for node in bench.nodes.values():
        node.publish(SPORT)
    bench.run_for(5.0)
    assert bench.noise
    topics = {sent.message.event.topic for sent in bench.noise if isinstance(sent.message, EventMessage)}
    assert topics == {SPORT}
