"""Relay paths: requests meet at the rendezvous, and what is not asked for again goes away."""

from __future__ import annotations

from topicweave.blocks.relay_paths import RelayAgain, RelayEnd, RelayParameters, RelayPaths, RelayRequest
from topicweave.blocks.small_world import Router
from topicweave.model.ids import NodeId, TopicId
from topicweave.testing import VirtualNetwork

LINE = [0, 100, 200, 300, 400]
TOPIC = 405


class Relay:
    """A node on a line, each linked to the next."""

    def __init__(self, net: VirtualNetwork, node: NodeId, parameters: RelayParameters | None = None) -> None:
        self.wanted: list[TopicId] = []
        self.links = [peer for peer in LINE if abs(peer - node) == 100]
        world = net.world(node)
        self.heard: list[NodeId] = []
        self.paths = RelayPaths(
            world,
            node,
            lambda: Router(node, self.links),
            lambda: self.wanted,
            parameters,
            lambda _topic, peer: self.heard.append(peer),
        )
        world.use(self.paths)
        self.paths.start()

    def ask(self, topic: TopicId) -> None:
        self.wanted.append(topic)
        self.paths.request([topic])


def line(net: VirtualNetwork) -> dict[NodeId, Relay]:
    return {node: Relay(net, node) for node in LINE}


def test_a_request_makes_a_path_up_to_the_rendezvous() -> None:
    net = VirtualNetwork()
    nodes = line(net)
    nodes[0].ask(TOPIC)
    net.run(0.1)
    assert [nodes[node].paths.parent(TOPIC) for node in LINE] == [100, 200, 300, 400, None]
    assert nodes[200].paths.neighbours(TOPIC) == [100, 300]
    assert nodes[400].paths.neighbours(TOPIC) == [300]


def test_paths_meet_and_the_second_stops_where_the_first_runs() -> None:
    net = VirtualNetwork()
    nodes = line(net)
    nodes[0].ask(TOPIC)
    net.run(0.1)
    net.listen()
    nodes[100].ask(TOPIC)
    net.run(0.15)
    assert [peer for _, _, peer, message in net.log if isinstance(message, RelayRequest)] == [200]


def test_paths_stay_while_they_are_wanted_and_expire_afterwards() -> None:
    net = VirtualNetwork()
    nodes = line(net)
    nodes[0].ask(TOPIC)
    net.run(60.0)
    assert all(nodes[node].paths.relays(TOPIC) for node in LINE)
    nodes[0].wanted.clear()
    net.run(120.0)
    assert not any(node.paths.relays(TOPIC) for node in nodes.values())
    assert not any(node.paths.known_peers() for node in nodes.values())


def test_the_same_request_again_keeps_all_its_topics_and_another_only_its_own() -> None:
    net = VirtualNetwork()
    relay = Relay(net, 400)
    both, one = RelayRequest((TOPIC, TOPIC + 1)), RelayRequest((TOPIC + 1,))
    for time, request in ((1.0, both), (4.0, both), (8.0, one), (14.0, one)):
        net.run(time)
        net.send(300, 400, request)
        net.run(time + 0.1)
        assert 300 in relay.paths.neighbours(TOPIC + 1)
        assert (300 in relay.paths.neighbours(TOPIC)) == (time < 14.0)
    net.run(30.0)
    assert relay.paths.topics == 0


def test_what_has_not_changed_is_asked_for_in_a_word_and_who_forgot_asks() -> None:
    net = VirtualNetwork()
    nodes = line(net)
    router = Router(0, nodes[0].links)
    nodes[0].paths._router = lambda: router
    nodes[0].ask(TOPIC)
    net.run(10.0)
    net.listen()
    net.run(20.0)
    assert {type(message) for _, sender, _, message in net.log if sender == 0} == {RelayAgain}
    nodes[100] = Relay(net, 100)
    net.run(25.0)
    assert nodes[100].paths.neighbours(TOPIC) == [0, 200]
    assert len(net.sent(RelayRequest, sender=0)) == 1


def test_what_is_asked_for_follows_links_and_wishes() -> None:
    """The plan of the last refresh is used again only as long as nothing it rests on has changed."""
    net = VirtualNetwork()
    nodes = line(net)
    nodes[100].ask(TOPIC)
    net.run(10.0)
    nodes[100].links = [0, 300]
    net.run(20.0)
    assert nodes[100].paths.parent(TOPIC) == 300
    assert 100 not in nodes[200].paths.neighbours(TOPIC)
    nodes[100].wanted.append(TOPIC - 1)
    net.run(25.0)
    assert nodes[300].paths.relays(TOPIC - 1)
    nodes[100].wanted.remove(TOPIC)
    net.run(60.0)
    assert nodes[300].paths.relays(TOPIC - 1)
    assert not nodes[300].paths.relays(TOPIC)


def test_a_path_that_nobody_wants_is_gone_within_a_few_hops_time() -> None:
    net = VirtualNetwork()
    nodes = line(net)
    nodes[0].ask(TOPIC)
    nodes[200].ask(TOPIC)
    net.run(10.0)
    nodes[0].wanted.clear()
    net.run(13.0)  # the next refresh, and a few hops
    assert not nodes[100].paths.relays(TOPIC)
    assert nodes[200].paths.neighbours(TOPIC) == [300]  # wants it itself
    nodes[200].wanted.clear()
    net.run(16.0)
    assert not any(node.paths.relays(TOPIC) for node in nodes.values())


def test_an_old_parent_is_told_once_the_new_one_had_time_to_take_over() -> None:
    net = VirtualNetwork()
    nodes = line(net)
    nodes[100].ask(TOPIC)
    net.run(10.0)
    nodes[100].links = [0, 300]
    net.run(12.1)
    assert nodes[100].paths.parent(TOPIC) == 300
    net.run(15.0)
    assert not nodes[200].paths.relays(TOPIC)
    assert nodes[300].paths.neighbours(TOPIC) == [100, 400]


def test_only_a_child_can_end_its_own_path() -> None:
    net = VirtualNetwork()
    nodes = line(net)
    nodes[0].ask(TOPIC)
    net.run(1.0)
    net.send(400, 200, RelayEnd((TOPIC, -1, 1 << 64)))
    net.run(1.2)
    assert nodes[200].paths.neighbours(TOPIC) == [100, 300]


def test_a_dead_parent_is_replaced_at_once() -> None:
    net = VirtualNetwork()
    nodes = line(net)
    nodes[0].ask(TOPIC)
    net.run(0.1)
    nodes[100].links = [0, 300]
    nodes[100].paths.lost(200)
    net.run(0.2)
    assert nodes[100].paths.parent(TOPIC) == 300
    assert 100 in nodes[300].paths.neighbours(TOPIC)


def test_what_a_peer_may_fill_is_bounded() -> None:
    net = VirtualNetwork()
    node = Relay(net, 200, RelayParameters(most_children=5))
    net.send(100, 200, RelayRequest(tuple(range(1000))))
    net.send(300, 200, RelayRequest((-1, 1 << 64)))
    net.run(0.1)
    assert node.paths.topics == 5


def test_new_neighbours_in_a_tree_are_heard_of_once_at_both_ends() -> None:
    net = VirtualNetwork()
    nodes = line(net)
    nodes[200].ask(TOPIC)
    net.run(10.0)
    assert [nodes[node].heard for node in LINE] == [[], [], [300], [400, 200], [300]]
    nodes[200].links = [100, 400]
    net.run(20.0)
    assert [nodes[node].heard for node in LINE] == [[], [], [300, 400], [400, 200], [300, 200]]
