"""Who comes later gets what is published from then on; the past is for those who ask for it."""

from __future__ import annotations

from typing import Any

import pytest

from topicweave.systems.registry import SYSTEMS
from topicweave.testing.bench import NEWS, SPORT, Bench

PULLS_THE_PAST = {"rappel", "gossipsub"}
"""Their rules: a node pulls from a new parent what that keeps (Rappel §4.1); the events of the last
heartbeats are announced to everybody.
"""
SETTLED = 30.0


@pytest.mark.parametrize(
    "system", sorted({n for n in SYSTEMS if SYSTEMS[n].connects_topics} - PULLS_THE_PAST)
)
@pytest.mark.parametrize("joins", [True, False], ids=["joins", "subscribes"])
def test_events_from_before_it_came_are_not_pressed_on_a_newcomer(system: str, joins: bool) -> None:
    bench: Bench[Any] = Bench(system)
    members = [bench.add(number << 60, NEWS) for number in range(1, 9)]
    newcomer = None if joins else bench.add(9 << 60, SPORT)
    bench.run_for(SETTLED)
    for member in members:
        member.publish(NEWS, b"past")
    bench.run_for(1.0)
    assert all(len(bench.delivered(member.id)) == len(members) for member in members)
    if newcomer is None:
        newcomer = bench.add(9 << 60, NEWS)
    else:
        newcomer.subscribe(NEWS)
    bench.run_for(SETTLED)
    assert bench.delivered(newcomer.id) == []
    members[0].publish(NEWS, b"present")
    bench.run_for(5.0)
    assert [event.payload for event in bench.delivered(newcomer.id)] == [b"present"]
