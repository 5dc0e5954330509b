"""What a publisher that does not subscribe is told: nobody wants the topic, or it is not known yet; in the
simulator, as live.
"""

from __future__ import annotations

import pytest

from topicweave.blocks.membership import DIRECTORY
from topicweave.model.workload import Workload
from topicweave.sim.churn import Change, Churn
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system

NODES = 16
NOBODY = "nobody else wants this "


@pytest.mark.parametrize("system", ["spidercast", "weave", "omen", "gossipsub", "rappel", "ring-per-topic"])
def test_nobody_wants_it_is_told_from_not_known_yet(system: str) -> None:
    # Two nodes want "wanted" and come just now; the one that wants "unwanted" has left, or never came. (Rappel
    # calls whom gossip names, also for a while after it left.) Node 0 publishes on both.
    wants = {f"n{node}": ["other"] for node in range(NODES)} | {"n3": ["wanted"], "n4": ["wanted"]}
    workload = Workload.from_lists({**wants, "n5": ["other", "unwanted"]})
    nodes, topics = (
        workload.node_names.index,
        [workload.topic_names.index(name) for name in ("wanted", "unwanted")],
    )
    publisher, readers, absent = nodes("n0"), (nodes("n3"), nodes("n4")), nodes("n5")
    late = (*readers, absent) if system == "rappel" else readers
    changes = (Change(15.0, absent, up=False), *(Change(19.0, reader, up=True) for reader in readers))
    churn = Churn(frozenset(range(workload.nodes)).difference(late), changes, start_window=1.0)
    found = find_system(system)
    simulation = Simulation(workload, found, found.settings(), seed=1, membership=DIRECTORY, churn=churn)
    got: list[str] = []
    simulation.on_delivery(lambda host, _event: got.append(workload.node_names[host.index]))
    simulation.run(20.0)
    first = [simulation.publish(publisher, topic) for topic in topics]
    assert [receipt.sent_to for receipt in first] == [0, 0]
    # Nothing is known yet, and nothing else is said.
    assert all(receipt.reason and not receipt.reason.startswith(NOBODY) for receipt in first)
    simulation.run(40.0)
    assert sorted(got) == ["n3", "n4"]  # The event waited for those who want it.
    wanted_now, unwanted = (simulation.publish(publisher, topic) for topic in topics)
    assert wanted_now.sent_to > 0
    assert not wanted_now.reason
    assert unwanted.sent_to == 0
    assert unwanted.reason.startswith(NOBODY)
