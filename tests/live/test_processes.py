"""Nodes in as many real processes: everybody is served, some are killed, the survivors are served again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.live.crowd import kill_some, kill_thirty_percent
from tests.live.together import local
from topicweave.systems.registry import SYSTEMS
from topicweave.workloads.catalogue import build

SERVED_WITHIN = 60.0
"""Seconds after a kill -9 of 30 % within which all survivors must be served again: the stated time."""

Record = Callable[[str, object], None]


@pytest.mark.live
@pytest.mark.parametrize("system", [name for name in SYSTEMS if SYSTEMS[name].connects_topics])
def test_kill_nine_of_thirty_percent(system: str, record_property: Record) -> None:
    """How long it took is in the report (`--junit-xml`)."""
    nodes = 50 if system == "spidercast" else 25
    took = kill_thirty_percent(local(system=system, cache=0), nodes, 10, 4, SERVED_WITHIN)
    record_property("took", took._asdict())


@pytest.mark.live
def test_two_hundred_processes(record_property: Record) -> None:
    """With slow timers: two hundred nodes of the quick ones are more than a small machine keeps up with."""
    took = kill_thirty_percent(local(preset="wan", cache=0), 200, 10, 2, 300.0)
    record_property("took", took._asdict())


@pytest.mark.live
def test_rare_topics_among_a_hundred_processes(record_property: Record) -> None:
    """A view knows a fifth of the nodes: only homes know the two others who want a rare topic."""
    workload = build("rare", 1, nodes=100)
    interests = [
        [workload.topic_names[topic] for topic in workload.interests(node).tolist()]
        for node in range(workload.nodes)
    ]
    took = kill_some(local(preset="lan", view=20, cache=0), interests, 0.1, 120.0)
    record_property("took", took._asdict())


def test_a_third_of_the_processes_is_killed() -> None:
    kill_thirty_percent(local(cache=0), 12, 3, 2, SERVED_WITHIN)
