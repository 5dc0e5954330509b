"""Links made by introductions go once there is another way, and never before."""

from __future__ import annotations

import random
from functools import partial

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from topicweave.blocks.label_table import LabelTable
from topicweave.blocks.other_ways import REST, LastNews, OtherWays
from topicweave.blocks.topic_beacons import TopicBeacons
from topicweave.model.ids import NodeId
from topicweave.testing import VirtualNetwork

NEWS, SPORT = 1, 2
TOLD = 2.0
LIFETIME = 4 * TOLD
TOPICS = frozenset({NEWS})
Edge = frozenset[NodeId]


class Swarm:
    """Nodes of one topic that tell labels every two seconds. Some links are watched, and end by the rule."""

    def __init__(self, graph: nx.Graph, watched: set[Edge], seed: int, alone: bool = False) -> None:
        """alone: ends do not ask each other"""
        self.net = VirtualNetwork(seed)
        self.graph, self.watched, self.alone = graph.copy(), set(watched), alone
        self.draw = random.Random(seed)
        self.parted: list[tuple[float, Edge]] = []
        self.beacons = {
            node: TopicBeacons(
                *(self.net.world(node), node, lambda: TOPICS, lambda _topic: None, lambda _peer: None),
                told_every=TOLD,
            )
            for node in graph
        }
        for node in graph:
            self.net.at(self.draw.random() * TOLD, partial(self._beat, node))

    def _beat(self, node: NodeId) -> None:
        if node not in self.graph:
            return
        self.net.at(self.net.now + TOLD, partial(self._beat, node))
        beacons = self.beacons[node]
        links = [peer for peer in self.graph[node] if frozenset((node, peer)) in self.watched]
        beacons.watch(dict.fromkeys(links, TOPICS))
        for peer in self.draw.sample(links, len(links)):
            if self._may_end(node, peer):
                self._end(frozenset((node, peer)))
        for peer in self.graph[node]:
            table = beacons.tell(TOPICS)
            delay = self.draw.uniform(0.01, 0.1)
            self.net.at(self.net.now + delay, partial(self._hear, peer, node, table))

    def _hear(self, node: NodeId, sender: NodeId, table: LabelTable) -> None:
        if self.graph.has_edge(node, sender):
            self.beacons[node].hear(TOPICS, table, sender)

    def _may_end(self, node: NodeId, peer: NodeId) -> bool:
        if self.alone:
            return self.beacons[node].ways.needless_to_both(peer)
        return self.beacons[node].ways.needless(peer) and self.beacons[peer].ways.needless(node)

    def _end(self, edge: Edge) -> None:
        before = nx.number_connected_components(self.graph)
        self.graph.remove_edge(*edge)
        self.watched.discard(edge)
        if nx.number_connected_components(self.graph) > before:
            self.parted.append((self.net.now, edge))

    def kill(self, node: NodeId) -> None:
        self.graph.remove_node(node)
        self.net.kill([node])


def islands(parts: int, size: int, bridges: int, seed: int) -> tuple[nx.Graph, set[Edge]]:
    """Parts that are connected in themselves, and the links between them, which join all."""
    draw = random.Random(seed)
    graph: nx.Graph = nx.Graph()
    names = draw.sample(range(1, 10**6), parts * size)
    members = [names[part * size : (part + 1) * size] for part in range(parts)]
    for part in members:
        graph.add_edges_from((one, draw.choice(part[:place])) for place, one in enumerate(part) if place)
        graph.add_edges_from(draw.sample(part, 2) for _ in range(size // 2))
    pairs = [(part, draw.randrange(part)) for part in range(1, parts)]
    for _ in range(bridges):
        one, other = draw.sample(range(parts), 2)
        pairs.append((one, other))
    watched = {frozenset((draw.choice(members[one]), draw.choice(members[other]))) for one, other in pairs}
    graph.add_edges_from(tuple(edge) for edge in watched)
    return graph, watched


@settings(max_examples=60, deadline=None)
@given(
    parts=st.integers(1, 5),
    size=st.integers(2, 6),
    bridges=st.integers(0, 12),
    seed=st.integers(0, 10**6),
    alone=st.booleans(),
)
def test_however_many_links_end_the_topic_stays_in_one_piece(
    parts: int, size: int, bridges: int, seed: int, alone: bool
) -> None:
    graph, watched = islands(parts, size, bridges if parts > 1 else 0, seed)
    swarm = Swarm(graph, watched, seed, alone)
    swarm.net.run(40 * LIFETIME)
    assert swarm.parted == []
    assert nx.is_connected(swarm.graph)


@settings(max_examples=40, deadline=None)
@given(size=st.integers(3, 7), bridges=st.integers(1, 12), seed=st.integers(0, 10**6))
def test_a_leaders_death_parts_nothing_either(size: int, bridges: int, seed: int) -> None:
    """Its news goes on from hand to hand for a while, and proves nothing."""
    graph, watched = islands(2, size, bridges, seed)
    swarm = Swarm(graph, watched, seed)
    swarm.net.run(2 * LIFETIME)
    leader = min(graph)
    swarm.kill(leader)
    swarm.watched = {edge for edge in swarm.watched if leader not in edge}
    died = swarm.net.now
    swarm.net.run(died + 30 * LIFETIME)
    # For half a lifetime nobody can know of the death.
    assert [when for when, _ in swarm.parted if when > died + LIFETIME / 2] == []


def test_of_many_links_between_two_parts_few_stay() -> None:
    """Those over which news comes first stay: they shorten the way."""
    graph, watched = islands(2, 12, 24, seed=3)
    assert len(watched) > 20
    swarm = Swarm(graph, watched, seed=3)
    swarm.net.run(40 * LIFETIME)
    assert 1 <= len(swarm.watched) <= len(watched) / 2
    assert nx.is_connected(swarm.graph)


def test_the_only_link_stays() -> None:
    graph, watched = islands(2, 8, 0, seed=1)
    swarm = Swarm(graph, watched, seed=1)
    swarm.net.run(100 * LIFETIME)
    assert swarm.watched == watched


def test_two_links_that_are_each_the_others_other_way_do_not_both_end() -> None:
    """1 leads; 8 and 9 are linked to it and to each other. Two of the three links are watched."""
    graph = nx.Graph([(1, 8), (1, 9), (8, 9)])
    swarm = Swarm(graph, {frozenset((1, 8)), frozenset((1, 9))}, seed=5)
    swarm.net.run(100 * LIFETIME)
    assert swarm.parted == []


def news(leader: NodeId, came: float) -> dict[int, LastNews]:
    return {NEWS: LastNews(leader, came)}


def tried(ways: OtherWays, until: float, leader: NodeId = 1, start: float = 0.0) -> None:
    """News of the leader comes from 5 every two seconds; the link to 7 is watched."""
    now = start
    while now <= until:
        ways.review({7: [NEWS]}, news(leader, now), now)
        ways.told(5, [NEWS], now)
        now += TOLD


def test_a_trial_lasts_a_lifetime() -> None:
    ways = OtherWays(9, LIFETIME)
    tried(ways, LIFETIME - TOLD)
    assert not ways.needless(7)
    tried(ways, LIFETIME, start=LIFETIME)
    assert ways.needless(7)


def test_all_topics_of_a_link_need_another_way() -> None:
    ways = OtherWays(9, LIFETIME)
    for now in range(0, 40, 2):
        known = {NEWS: LastNews(1, now), SPORT: LastNews(2, now)}
        ways.review({7: [NEWS, SPORT]}, known, now)
        ways.told(5, [NEWS], now)
        ways.told(7, [SPORT], now)
    assert list(ways.tried(7)) == [NEWS]
    assert not ways.needless(7)


def test_another_leader_begins_everything_anew() -> None:
    ways = OtherWays(9, LIFETIME)
    tried(ways, LIFETIME)
    assert ways.needless(7)
    ways.review({7: [NEWS]}, news(0, LIFETIME + TOLD), LIFETIME + TOLD)
    assert not ways.needless(7)
    assert not ways.tried(7)


def test_who_leads_needs_nobody_once_it_has_led_for_a_while() -> None:
    ways = OtherWays(9, LIFETIME)
    for now, needless in ((0.0, False), (LIFETIME - TOLD, False), (LIFETIME, True)):
        ways.review({7: [NEWS]}, news(9, now), now)
        assert ways.needless(7) is needless
        assert not ways.needless_to_both(7), "the other end may need it"


def test_after_a_trial_that_failed_there_is_a_pause() -> None:
    ways = OtherWays(9, LIFETIME)
    tried(ways, TOLD)
    failed = TOLD + LIFETIME / 2 + 0.1
    ways.review({7: [NEWS]}, news(1, TOLD), failed)
    assert not ways.tried(7)
    for later, again in ((REST * LIFETIME - 0.1, False), (REST * LIFETIME + 0.1, True)):
        ways.review({7: [NEWS]}, news(1, failed + later), failed + later)
        ways.told(5, [NEWS], failed + later)
        assert bool(ways.tried(7)) is again


def test_a_link_that_is_tried_is_no_way_for_another() -> None:
    ways = OtherWays(9, LIFETIME)
    ways.review({7: [NEWS], 8: [NEWS]}, news(1, 0.0), 0.0)
    ways.told(8, [NEWS], 0.0)
    ways.told(7, [NEWS], 0.0)
    assert (list(ways.tried(7)), list(ways.tried(8))) == ([NEWS], [])


def test_an_end_decides_alone_only_if_the_other_was_nearer_all_the_time() -> None:
    ways = OtherWays(9, LIFETIME)
    for now in range(0, 20, 2):
        ways.review({7: [NEWS]}, news(1, now), now)
        ways.told(5, [NEWS], now)
        ways.told(7, [NEWS] if now != 10 else [], now)
    assert ways.needless(7)
    assert not ways.needless_to_both(7)
    tried(ways, 20.0, start=20.0)
    assert ways.needless_to_both(7)


def test_links_that_are_gone_are_forgotten() -> None:
    ways = OtherWays(9, LIFETIME)
    tried(ways, LIFETIME)
    ways.review({}, {}, LIFETIME)
    assert not ways
    assert not ways.needless(7)
    assert not ways.tried(7)
    assert ways.known_peers() == set()
