"""Weave with a hard bound on links."""

from __future__ import annotations

from typing import cast

import pytest

from tests.systems.overlays import asymmetric, graph_of, publish_everywhere, settle
from topicweave.blocks.relay_paths import RelayRequest
from topicweave.errors import BadInput
from topicweave.model.ids import NodeId, ring_id
from topicweave.model.workload import Workload
from topicweave.port import EventMessage
from topicweave.sim.host import Host
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system
from topicweave.systems.spidercast.messages import ConnectOk
from topicweave.systems.weave import WEAVE
from topicweave.systems.weave.bounded import BoundedNode
from topicweave.systems.weave.messages import Meet
from topicweave.workloads import generate


def demo(seed: int) -> Workload:
    return generate(60, 30, "rss", min_size=8, max_size=8, seed=seed)


def run_and_look(simulation: Simulation, until: float, bound: int) -> None:
    """Look every quarter of a second."""
    while simulation.now < until:
        simulation.run(simulation.now + 0.25)
        for node in simulation.up():
            peers = {link.peer for link in simulation.node(node).links()}
            assert len(peers) <= bound


@pytest.mark.parametrize(
    ("seed", "bound", "membership"),
    [(0, 6, "directory"), (1, 6, "full"), (2, 8, "directory"), (3, 10, "full"), (4, 6, "gossip")],
)
def test_the_bound_holds_from_a_storm_of_joins_through_a_crash_and_everybody_is_served(
    seed: int, bound: int, membership: str
) -> None:
    simulation = settle("weave", demo(seed), seed, until=0.01, membership=membership, max_degree=bound)
    run_and_look(simulation, 45.0, bound)
    expected, got = publish_everywhere(simulation)
    assert got == expected
    for node in range(seed, 60, 5):
        simulation.stop(node, orderly=False)
    run_and_look(simulation, 95.0, bound)
    expected, got = publish_everywhere(simulation)
    assert got == expected
    assert asymmetric(graph_of(simulation)) == []


def test_links_come_to_rest() -> None:
    workload = generate(100, 40, "rss", min_size=10, max_size=10, seed=0)
    simulation = settle("weave", workload, 0, until=120.0, max_degree=12, heartbeat_period=2.0)
    before = set(graph_of(simulation).edges)
    simulation.run(160.0)
    assert set(graph_of(simulation).edges) == before


def unwanted(bound: int) -> int:
    """What is received by those who do not want it, with an event on each topic."""
    simulation = settle("weave", demo(1), 1, until=40.0, max_degree=bound)
    noise: list[int] = []

    def look(host: Host, _sender: NodeId, message: EventMessage) -> None:
        if message.event.topic not in simulation.node(host.index).subscriptions:
            noise.append(host.index)

    simulation.on_reception(look)
    publish_everywhere(simulation)
    return len(noise)


def test_a_bound_of_six_cannot_do_without_relays() -> None:
    """The topics need more links than that: somebody gets what it does not want."""
    assert unwanted(0) == 0
    assert unwanted(6) > 0


def test_carried_topics_are_let_go_when_nobody_needs_them() -> None:
    simulation = settle("weave", demo(2), 2, until=40.0, max_degree=6)
    nodes = [cast(BoundedNode, simulation.node(node)) for node in simulation.up()]
    assert any(node.carried() for node in nodes)
    topics = {topic_id: topic for topic, topic_id in enumerate(simulation.workload.topic_ids)}
    for index in simulation.up():
        for topic in sorted(simulation.node(index).subscriptions):
            simulation.unsubscribe(index, topics[topic])
    simulation.run(80.0)
    assert not any(node.carried() for node in nodes)


@pytest.mark.parametrize("bound", [1, 5])
def test_fewer_than_six_are_refused(bound: int) -> None:
    with pytest.raises((BadInput, ValueError), match="max_degree"):
        find_system("weave").settings(max_degree=bound)


def test_the_limit_that_campaigns_check_is_the_bound() -> None:
    simulation = settle("weave", demo(0), 0, until=1.0, max_degree=7)
    assert WEAVE.degree_limit is not None
    assert {WEAVE.degree_limit(simulation.node(node)) for node in simulation.up()} == {7}


def test_strangers_are_not_carried_for_and_made_up_topics_are_not_kept() -> None:
    simulation = settle("weave", demo(0), 0, until=20.0, max_degree=6)
    node = cast(BoundedNode, simulation.node(simulation.up()[0]))
    stranger = next(peer for peer in map(ring_id, "abc") if peer not in node.known_peers())
    before = node.carried()
    node.receive(stranger, RelayRequest(tuple(range(100, 200))))
    node.receive(stranger, Meet(tuple(range(100_000))))
    simulation.run(25.0)
    assert node.carried() <= before
    assert stranger not in {link.peer for link in node.links()}
    simulation.run(40.0)
    assert stranger not in node.known_peers()


def test_who_was_not_asked_takes_nobodys_place() -> None:
    simulation = settle("weave", demo(0), 0, until=20.0, max_degree=6)
    nodes = [cast(BoundedNode, simulation.node(node)) for node in simulation.up()]
    node = next(node for node in nodes if node.full and max(link.peer for link in node.links()) > node.id)
    before = {link.peer for link in node.links()}
    for task in ("cover", "stem", "bridge"):
        node.receive(0, ConnectOk(task, 1, 1, 0, frozenset(node.subscriptions)))
    assert {link.peer for link in node.links()} == before
