"""Whole Vitis networks in the simulator: everybody is reached, tables stay bounded, links serve both ways."""

from __future__ import annotations

import msgspec
import pytest

from tests.systems.vitis.virtual import VirtualNetwork, small_workload
from topicweave.errors import BadInput
from topicweave.model.ids import NodeId, distance
from topicweave.systems.vitis import VITIS, VitisNode
from topicweave.systems.vitis.messages import Profile, Refused
from topicweave.systems.vitis.rendezvous import RendezvousNode

SETTLED = 30.0


@pytest.fixture(scope="module")
def settled() -> VirtualNetwork:
    network = VirtualNetwork("vitis", table_size=6)
    network.sim.run(SETTLED)
    return network


def test_every_event_reaches_every_subscriber(settled: VirtualNetwork) -> None:
    assert settled.missed() == []


def test_large_payloads_arrive_as_well_and_small_ones_inline() -> None:
    network = VirtualNetwork("vitis", table_size=6, spreading={"inline": 10})
    network.sim.run(SETTLED)
    assert network.missed(b"x" * 1000) == []
    assert network.missed(b"x") == []


def test_the_table_is_bounded_and_links_are_known_at_both_ends(settled: VirtualNetwork) -> None:
    nodes = settled.nodes()
    for own, node in nodes.items():
        assert sum(neighbour.chosen for _, neighbour in node.table.items()) <= 6
        for peer, neighbour in node.table.items():
            if neighbour.chosen:
                other = nodes[peer].table.get(own)
                assert other is not None
                assert other.fan
        kinds = [link.kind for link in node.links()]
        assert kinds.count("successor") == kinds.count("predecessor") == 1


def test_the_ring_is_right_and_lookups_are_consistent(settled: VirtualNetwork) -> None:
    assert settled.ring_share() == 1.0
    for topic in settled.workload.topic_ids[:10]:
        closest = min(settled.nodes(), key=lambda node: (distance(node, topic), node))
        assert settled.rendezvous(topic) == {closest}


def test_topics_fall_into_clusters_and_have_gateways(settled: VirtualNetwork) -> None:
    """With tables this small some topic has several clusters: relay paths are what joins them."""
    gateways = dict.fromkeys(settled.workload.topic_ids, 0)
    for node in settled.nodes().values():
        assert isinstance(node, VitisNode)
        for topic in node.election.gateway_topics:
            gateways[topic] += 1
            gateway, parent, hops = node.election.proposal(topic)
            assert (gateway, parent, hops) == (node.id, node.id, 0)
    assert min(gateways.values()) >= 1
    assert max(gateways.values()) >= 2


def test_ring_partners_make_the_ring_right_sooner() -> None:
    """The paper's uniformly random partners know little of one's place on the ring."""
    shares = {}
    for ring_partners in (0.0, 0.5):
        network = VirtualNetwork(
            "vitis",
            small_workload(300),
            table_size=15,
            ring_partners=ring_partners,
            heartbeat_period=4.0,
            suspect_after=9.0,
        )
        network.sim.run(7.0)
        shares[ring_partners] = network.ring_share()
    assert shares[0.5] > shares[0.0]
    assert shares[0.5] > 0.8


def test_a_node_that_does_not_want_a_topic_can_publish_on_it(settled: VirtualNetwork) -> None:
    topic = 3
    topic_id = settled.workload.topic_ids[topic]
    subscribers = set(settled.subscribers(topic_id))
    expected = {}
    for outsider in [index for index in settled.sim.up() if index not in subscribers][:10]:
        receipt = settled.sim.publish(outsider, topic)
        expected[receipt.event.id] = subscribers
    settled.sim.run(settled.sim.now + 5.0)
    assert settled.log.missed(expected) == []


def test_subscribe_and_unsubscribe_at_run_time() -> None:
    network = VirtualNetwork("vitis", table_size=6)
    network.sim.run(SETTLED)
    topic_id = network.workload.topic_ids[5]
    newcomers = [index for index in network.sim.up() if index not in network.subscribers(topic_id)][:8]
    leavers = network.subscribers(topic_id)[:2]
    for index in newcomers:
        network.sim.subscribe(index, 5)
    for index in leavers:
        network.sim.unsubscribe(index, 5)
    network.sim.run(network.sim.now + 10.0)
    assert network.missed() == []
    got = {index for index in network.sim.up() if index in newcomers}
    assert got == set(newcomers)


def test_given_rates_decide_who_are_friends() -> None:
    """All events on one topic: its subscribers become each other's friends, and need one gateway."""
    workload = small_workload(80)
    hot = max(
        workload.topic_ids, key=lambda topic: len(workload.subscribers(workload.topic_ids.index(topic)))
    )
    networks = {}
    for rates in ("equal", "given"):
        network = VirtualNetwork("vitis", workload, table_size=6, rates=rates, topic_rates={hot: 1.0})
        network.sim.run(SETTLED)
        networks[rates] = sum(
            1
            for index in network.subscribers(hot)
            for peer, neighbour in network.node(index).table.items()
            if neighbour.chosen and hot in neighbour.descriptor.profile
        )
    assert networks["given"] > 1.5 * networks["equal"]


@pytest.mark.parametrize("system", ["vitis", "rvr"])
def test_nobody_who_lives_is_taken_for_dead(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often links change hands: silence over a link that both ends gave up is no sign of death."""
    lost: list[NodeId] = []
    told = RendezvousNode.peer_lost

    def overhear(node: RendezvousNode, peer: NodeId) -> None:
        lost.append(peer)
        told(node, peer)

    monkeypatch.setattr(RendezvousNode, "peer_lost", overhear)
    network = VirtualNetwork(system, small_workload(150), table_size=6)
    network.sim.run(SETTLED)
    assert lost == []
    assert all(network.node(index).table.fans() for index in network.sim.up()[:5])


def test_a_node_serves_only_so_many_who_chose_it() -> None:
    """So few are served here that ring neighbours are refused, too, until enough others went elsewhere: that
    takes longer.
    """
    network = VirtualNetwork("vitis", table_size=6, most_fans=3)
    network.sim.run(2 * SETTLED)
    assert max(node.degree for node in network.nodes().values()) <= 9
    assert network.missed() == []


def test_all_messages_survive_the_wire(settled: VirtualNetwork) -> None:
    node = settled.node(0)
    union = msgspec.msgpack.Decoder(tuple_union(node.message_types))
    for message in (node._profile(True), Refused()):
        assert union.decode(msgspec.msgpack.encode(message)) == message
    assert Profile in node.message_types


def tuple_union(types: tuple[type, ...]) -> object:
    result: object = types[0]
    for one in types[1:]:
        result = result | one
    return result


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(BadInput, match="small_world"):
        VITIS.settings(table_size=5, small_world=4)
