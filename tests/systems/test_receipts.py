"""What a publisher that does not subscribe is told: nobody wants the topic, or it is not known yet; in the
simulator, as live.
"""

from __future__ import annotations

import pytest

from topicweave.blocks.broadcast_tree import NOBODY
from topicweave.blocks.membership import DIRECTORY
from topicweave.model.workload import Workload
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system

NODES = 16


@pytest.mark.parametrize("system", ["spidercast", "omen", "gossipsub"])
def test_nobody_wants_it_is_told_from_not_known_yet(system: str) -> None:
    # Two nodes want "wanted", and of the one that wants "unwanted" nobody is left when node 0 publishes on both.
    wants = {f"n{node}": ["other"] for node in range(NODES)} | {"n3": ["wanted"], "n4": ["wanted"]}
    workload = Workload.from_lists({**wants, "n5": ["other", "unwanted"]})
    nodes, topics = (
        workload.node_names.index,
        [workload.topic_names.index(name) for name in ("wanted", "unwanted")],
    )
    publisher = nodes("n0")
    found = find_system(system)
    simulation = Simulation(workload, found, found.settings(), seed=1, membership=DIRECTORY)
    got: list[str] = []
    simulation.on_delivery(lambda host, _event: got.append(workload.node_names[host.index]))
    simulation.run(15.0)
    simulation.stop(nodes("n5"), orderly=True)
    simulation.run(20.0)
    first = [simulation.publish(publisher, topic) for topic in topics]
    assert [receipt.sent_to for receipt in first] == [0, 0]
    # Nothing is known yet, and nothing else is said.
    assert all(receipt.reason and receipt.reason != NOBODY for receipt in first)
    simulation.run(40.0)
    assert sorted(got) == ["n3", "n4"]  # The event waited for those who want it.
    wanted_now, unwanted = (simulation.publish(publisher, topic) for topic in topics)
    assert wanted_now.sent_to > 0
    assert not wanted_now.reason
    assert (unwanted.sent_to, unwanted.reason) == (0, NOBODY)
