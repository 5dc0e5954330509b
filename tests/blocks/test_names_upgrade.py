"""Names beside nodes of an earlier wire format, which read over them."""

from __future__ import annotations

from tests.blocks.names_swarm import NODES, NamesSwarm
from topicweave.blocks.topic_directory.messages import Carry
from topicweave.blocks.topic_names.watching import EARLIER
from topicweave.testing.network import Sent

PATTERNS = ("zone/3/#", "zone/+/light", "#")


def mixed(earlier: int, nodes: int) -> NamesSwarm:
    """Every third node, or so, is of an earlier format."""
    swarm = NamesSwarm(nodes, settle=5.0)
    for number in range(earlier):
        swarm.add_earlier(NODES[100 + number], NODES[:3])
    swarm.run_for(20.0)
    return swarm


def test_names_go_past_nodes_that_do_not_know_them_and_watchers_are_told() -> None:
    swarm = mixed(earlier=8, nodes=16)
    carried: list[Sent] = []

    def look(sent: Sent) -> bool:
        if sent.receiver in swarm.earlier:
            carried.append(sent)
        return False

    swarm.lose = look
    watcher = swarm.members[NODES[0]]
    watcher.watch(*PATTERNS)
    for number, node in enumerate(swarm.members):
        swarm.publishes(node, f"zone/{number % 5}/light", f"own{number}/x")
    swarm.run_for(10.0)
    assert swarm.wrong() == []
    assert {(pattern, why) for pattern, _, why in watcher.incomplete} == {
        (pattern, EARLIER) for pattern in PATTERNS
    }
    swarm.run_for(200.0)  # Renewals and all.
    assert swarm.wrong() == []
    assert watcher.flaps == 0
    assert carried
    assert not any(isinstance(sent.message, Carry) and sent.message.parcels for sent in carried)


def test_watchers_are_told_when_the_last_of_them_is_gone() -> None:
    swarm = mixed(earlier=3, nodes=8)
    watcher = swarm.members[NODES[0]]
    watcher.watch("zone/#")
    swarm.run_for(5.0)
    assert [why for _, _, why in watcher.incomplete] == [EARLIER]
    for node, ring in list(swarm.elders.items()):
        ring.leave()
        swarm.run_for(1.0)
        swarm.kill([node])
        del swarm.elders[node]
    swarm.run_for(20.0)
    assert watcher.complete == [("zone/#", "")]
    swarm.publishes(NODES[5], "zone/1/light")
    swarm.run_for(5.0)
    assert swarm.wrong() == []


def test_a_node_that_is_upgraded_keeps_names() -> None:
    swarm = mixed(earlier=3, nodes=8)
    watcher = swarm.members[NODES[0]]
    watcher.watch("#")
    for number, node in enumerate(list(swarm.members)):
        swarm.publishes(node, f"zone/{number}/light")
    swarm.run_for(10.0)
    for node, ring in list(swarm.elders.items()):
        ring.leave()
        swarm.run_for(1.0)
        swarm.kill([node])
        del swarm.elders[node]
        swarm.earlier.discard(node)
        swarm.add(node, NODES[:3])
        swarm.publishes(node, f"late/{node}")
        swarm.run_for(20.0)
        assert swarm.wrong() == []
    assert watcher.complete == [("#", "")]
    assert watcher.flaps == 0
