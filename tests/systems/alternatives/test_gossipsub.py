"""GossipSub: meshes within their bounds, gossip that makes up for lost events, islands that find together."""

from __future__ import annotations

import doctest
import random

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.systems.overlays import asymmetric, graph_of, publish_everywhere, settle
from topicweave.blocks.membership import Membership
from topicweave.errors import BadInput
from topicweave.model.event import Event
from topicweave.model.workload import Workload
from topicweave.sim.churn import Churn
from topicweave.sim.faults import Loss, Partition
from topicweave.sim.simulation import Simulation
from topicweave.systems.alternatives.gossipsub import GOSSIPSUB, GossipSubNode, rules
from topicweave.systems.alternatives.gossipsub.message_cache import MessageCache
from topicweave.systems.alternatives.gossipsub.messages import Control, Greeting
from topicweave.testing import draw_scenario, run_scenario
from topicweave.testing.invariants import DeliveryLog
from topicweave.workloads import generate


def gossipsub(simulation: Simulation, index: int) -> GossipSubNode:
    node = simulation.node(index)
    assert isinstance(node, GossipSubNode)
    return node


def test_examples_of_the_rules() -> None:
    assert doctest.testmod(rules).failed == 0


@given(
    st.sets(st.integers(0, 60), max_size=40), st.sets(st.integers(0, 60)), st.integers(0, 3), st.integers(0)
)
def test_a_mesh_cut_back_keeps_d_and_its_outbound_share(
    mesh: set[int], outbound: set[int], d_out: int, seed: int
) -> None:
    pruned = rules.to_prune(sorted(mesh), outbound, 6, 12, d_out, random.Random(seed))
    staying = mesh - set(pruned)
    assert len(pruned) == len(set(pruned))
    assert len(staying) == (len(mesh) if len(mesh) <= 12 else 6)
    assert len(staying & outbound) >= min(d_out, len(mesh & outbound))


def test_the_cache_announces_for_three_heartbeats_and_keeps_for_five() -> None:
    cache = MessageCache(length=5, gossip=3, retransmissions=2)
    event = Event(1, 2, 0, 0)
    cache.put(event, hops=4)
    for heartbeat in range(5):
        assert event.id in cache
        assert cache.to_announce() == ({2: [event.id]} if heartbeat < 3 else {})
        cache.shift()
    assert event.id not in cache
    assert cache.message(event.id) is None


def test_the_cache_answers_a_peer_so_often_and_others_as_well() -> None:
    cache = MessageCache(length=5, gossip=3, retransmissions=2)
    event = Event(1, 2, 0, 0)
    cache.put(event, hops=4)
    answers = [cache.answer(9, event.id) for _ in range(3)]
    assert [answer and answer.hops for answer in answers] == [5, 5, None]
    assert cache.answer(8, event.id) is not None


@pytest.mark.parametrize("membership", ["full", "gossip"])
def test_meshes_keep_their_bounds_and_connect_every_topic(membership: str) -> None:
    workload = generate(120, 20, "zipf1", min_size=5, max_size=5, seed=4)
    simulation = settle("gossipsub", workload, until=60.0, membership=membership)
    for index, topic_id in enumerate(workload.topic_ids):
        subscribers = workload.subscribers(index).tolist()
        ids = {simulation.hosts[node].name: node for node in subscribers}
        mesh = nx.DiGraph()
        mesh.add_nodes_from(subscribers)
        for node in subscribers:
            peers = gossipsub(simulation, node).mesh[topic_id]
            assert min(5, len(subscribers) - 1) <= len(peers) <= 13, (node, index)
            mesh.add_edges_from((node, ids[peer]) for peer in peers)
        assert asymmetric(mesh) == []
        assert nx.is_connected(mesh.to_undirected())
    assert asymmetric(graph_of(simulation)) == []
    expected, got = publish_everywhere(simulation)
    assert got == expected


def test_what_the_mesh_lost_is_fetched_after_an_announcement() -> None:
    workload = generate(60, 6, "uniform", min_size=3, max_size=3, seed=1)
    simulation = Simulation(
        workload, GOSSIPSUB, GOSSIPSUB.settings(flood_publish=False), seed=2, faults=[Loss(30.0, 31.5, 0.4)]
    )
    log = DeliveryLog(simulation)
    simulation.run(30.1)
    expected = {}
    for topic in range(workload.topics):
        subscribers = set(workload.subscribers(topic).tolist())
        expected[simulation.publish(min(subscribers), topic).event.id] = subscribers
    simulation.run(31.0)
    assert log.missed(expected)  # at a loss of 40 % pushing alone does not reach everybody
    simulation.run(36.0)
    assert log.missed(expected) == []
    assert log.violations == []


def test_islands_find_together_again() -> None:
    workload = generate(60, 4, "uniform", min_size=2, max_size=2, seed=3)
    island = frozenset(range(30))
    simulation = Simulation(workload, GOSSIPSUB, seed=5, faults=[Partition(20.0, 60.0, island)])
    simulation.run(59.0)
    graph = graph_of(simulation).to_undirected()
    assert not any((a in island) != (b in island) for a, b in graph.edges)
    simulation.run(150.0)
    expected, got = publish_everywhere(simulation)
    assert got == expected


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.seeds) for seed in range(1, 6))])
def test_who_joins_with_many_and_meets_full_meshes_goes_on_to_others(seed: int) -> None:
    workload = Workload.from_lists({f"n{number}": ["news"] for number in range(300)})
    settings = GOSSIPSUB.settings(**GOSSIPSUB.paced("lan", {}))
    swarm = Simulation(
        workload,
        GOSSIPSUB,
        settings,
        seed=seed,
        membership=Membership.parse("directory:100"),
        churn=Churn(frozenset(range(300)), (), start_window=10.0),
    )
    swarm.seeds = (0, 1, 2)
    swarm.run(20.0)
    [topic] = workload.topic_ids
    assert [index for index in swarm.up() if not gossipsub(swarm, index).mesh[topic]] == []


def test_a_publisher_that_does_not_subscribe_reaches_all_through_its_fanout() -> None:
    workload = Workload.from_lists({"pen": ["other"], **{f"reader{i}": ["news"] for i in range(30)}})
    simulation = settle("gossipsub", workload, until=15.0)
    log = DeliveryLog(simulation)
    news, pen = workload.topic_names.index("news"), workload.node_names.index("pen")
    first = simulation.publish(pen, news)
    assert first.sent_to == 0
    assert "first that is" in first.reason
    simulation.run(20.0)
    second = simulation.publish(pen, news)
    assert second.sent_to >= 6
    simulation.run(25.0)
    readers = set(range(workload.nodes)) - {pen}
    assert log.missed({first.event.id: readers, second.event.id: readers}) == []
    assert log.violations == []


def test_unsubscribing_leaves_the_mesh() -> None:
    workload = generate(40, 3, "uniform", min_size=2, max_size=2, seed=1)
    simulation = settle("gossipsub", workload, until=20.0)
    topic = int(workload.interests(0)[0])
    simulation.unsubscribe(0, topic)
    simulation.run(25.0)
    topic_id, leaver = workload.topic_ids[topic], simulation.hosts[0].name
    members = [gossipsub(simulation, node) for node in workload.subscribers(topic).tolist() if node]
    assert all(leaver not in node.mesh[topic_id] for node in members)
    assert topic_id not in gossipsub(simulation, 0).mesh


@pytest.mark.parametrize("seed", [1, 2])
def test_campaign(seed: int) -> None:
    assert run_scenario(GOSSIPSUB, draw_scenario(seed, nodes=30)).violations == ()


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(BadInput, match="d_low <= d <= d_high"):
        GOSSIPSUB.settings(d=3)


def test_a_full_mesh_takes_who_was_introduced_and_keeps_so_many() -> None:
    everybody = Workload.from_lists({f"n{number:02d}": ["all"] for number in range(24)})
    simulation = settle(
        "gossipsub", everybody, until=30.0, membership="directory", d=3, d_low=3, d_high=4, d_out=1
    )
    node, topic = gossipsub(simulation, 0), everybody.topic_ids[0]
    strangers = [host.name for host in simulation.hosts if host.name not in {node.id, *node.connections}]
    held = strangers[: node.parameters.d + 2]
    for peer in [*held, *strangers[-2:]]:
        if peer in held:
            node._introduced(topic, peer, None)
        node.receive(peer, Greeting(1, frozenset({topic}), answer=False))
        node.receive(peer, Control(graft=(topic,)))
    assert set(held) <= node.mesh[topic].keys()
    assert len(node.mesh[topic]) >= node.parameters.d_high
    assert not node.mesh[topic].keys() & set(strangers[-2:])
    assert [peer for _, peer in node._held] == held[2:], "the latest, as many as a mesh should have"
    node._maintain(topic, node.mesh[topic])
    assert set(node.mesh[topic]) == set(held[2:])
