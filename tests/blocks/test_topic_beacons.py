"""Beacons: each part of a topic knows its lowest member, and notices that it is not the whole."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import partial

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topicweave.blocks.label_table import STEPS, LabelTable, Lifetime, labels_of
from topicweave.blocks.topic_beacons import TIMER, BeaconParameters, TopicBeacons
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.testing import VirtualNetwork, VirtualWorld

NEWS, SPORT = 1, 2
DEFAULTS = BeaconParameters()
PERIOD, PATIENCE, MAX_AGE = DEFAULTS.period, DEFAULTS.patience, DEFAULTS.max_age
STEP = MAX_AGE / STEPS


class Swarm:
    """Nodes with beacons that beat once a second over the links of a graph, as systems do."""

    def __init__(
        self,
        graph: nx.Graph,
        wants: dict[NodeId, Interest] | None = None,
        seed: int = 0,
        latency: float = 0.05,
        known: Callable[[NodeId, TopicId], NodeId | None] = lambda _node, _topic: None,
    ) -> None:
        self.net = VirtualNetwork(seed)
        self.graph = graph.copy()
        self.latency = latency
        self.wants = wants or dict.fromkeys(graph, frozenset({NEWS}))
        self.alarms: list[tuple[float, NodeId, NodeId]] = []
        self.beacons: dict[NodeId, TopicBeacons] = {}
        phases = random.Random(seed)
        for node in graph:
            world = self.net.world(node)
            self.beacons[node] = TopicBeacons(
                world,
                node,
                lambda node=node: self.wants[node],  # type: ignore[misc]  # what the loop had
                lambda topic, node=node: known(node, topic),  # type: ignore[misc]  # what the loop had
                lambda peer, node=node: self.alarms.append((self.net.now, node, peer)),  # type: ignore[misc]  # what the loop had
            )
            world.use(self.beacons[node])
            self.beacons[node].start()
            self.net.at(phases.random(), partial(self._beat, node))

    def _beat(self, node: NodeId) -> None:
        if node not in self.graph:
            return
        self.net.at(self.net.now + 1.0, lambda: self._beat(node))
        for peer in list(self.graph[node]):
            table = self.beacons[node].tell(self.wants[peer])
            self.net.at(self.net.now + self.latency, partial(self._hear, peer, node, table))

    def _hear(self, node: NodeId, sender: NodeId, table: LabelTable) -> None:
        if node in self.graph:
            self.beacons[node].hear(self.wants[sender], table)

    def kill(self, node: NodeId) -> None:
        self.graph.remove_node(node)
        self.net.kill([node])

    def parts(self, topic: TopicId) -> list[set[NodeId]]:
        members = [node for node in self.graph if topic in self.wants[node]]
        return list(nx.connected_components(self.graph.subgraph(members)))

    def labels(self, topic: TopicId) -> dict[NodeId, NodeId]:
        return {node: self.beacons[node].leader(topic) for part in self.parts(topic) for node in part}

    def true_labels(self, topic: TopicId) -> dict[NodeId, NodeId]:
        return {node: min(part) for part in self.parts(topic) for node in part}


# Labels.


@given(st.integers(2, 16), st.floats(0.05, 0.5), st.integers(0, 10_000))
@settings(max_examples=40)
def test_labels_come_to_be_the_lowest_member_of_each_part(nodes: int, density: float, seed: int) -> None:
    graph = nx.gnp_random_graph(nodes, density, seed=seed)
    draw = random.Random(seed)
    wants = {node: frozenset(topic for topic in (NEWS, SPORT) if draw.random() < 0.7) for node in graph}
    swarm = Swarm(graph, wants, seed)
    swarm.net.run(20.0)
    for topic in (NEWS, SPORT):
        assert swarm.labels(topic) == swarm.true_labels(topic)
    swarm.net.run(100.0)
    for topic in (NEWS, SPORT):
        assert swarm.labels(topic) == swarm.true_labels(topic), "and stay so"


def test_alone_one_leads_oneself() -> None:
    swarm = Swarm(nx.empty_graph(1))
    swarm.net.run(60.0)
    assert swarm.beacons[0].leader(NEWS) == 0
    assert swarm.beacons[0].label(NEWS) == (0, 0.0)


def test_a_label_crosses_a_long_path() -> None:
    swarm = Swarm(nx.path_graph(25))
    swarm.net.run(60.0)
    assert set(swarm.labels(NEWS).values()) == {0}


@pytest.mark.parametrize("latency", [0.01, 0.1, 0.3])
@pytest.mark.parametrize("degree", [2, 6, 14])
def test_a_departed_leader_is_forgotten_however_quickly_its_label_is_passed_round(
    latency: float, degree: int
) -> None:
    """Labels do not age under way, and with many links and long ways would be so nearly all the time."""
    swarm = Swarm(nx.circulant_graph(15, range(1, degree // 2 + 1)), seed=1, latency=latency)
    swarm.net.run(20.0)
    assert set(swarm.labels(NEWS).values()) == {0}
    swarm.kill(0)
    swarm.net.run(20.0 + 1.5 * MAX_AGE)
    assert set(swarm.labels(NEWS).values()) == {1}
    assert all(0 not in beacons.known_peers() for node, beacons in swarm.beacons.items() if node)


def test_a_part_that_splits_gets_two_labels_and_one_again_when_it_is_joined() -> None:
    swarm = Swarm(nx.path_graph(8))
    swarm.net.run(20.0)
    swarm.graph.remove_edge(3, 4)
    swarm.net.run(100.0)
    assert swarm.labels(NEWS) == {node: 0 if node < 4 else 4 for node in range(8)}
    swarm.graph.add_edge(2, 6)
    swarm.net.run(120.0)
    assert set(swarm.labels(NEWS).values()) == {0}


# One node by itself.


class Single:
    """Node 50, which wants news; `lowest` is the lowest subscriber that its view knows."""

    def __init__(self, seed: int = 0, parameters: BeaconParameters | None = None) -> None:
        self.net = VirtualNetwork(seed)
        self.world: VirtualWorld = self.net.world(50)
        self.topics: Interest = frozenset({NEWS})
        self.lowest: NodeId | None = None
        self.alarms: list[tuple[float, NodeId]] = []
        self.beacons = TopicBeacons(
            self.world,
            50,
            lambda: self.topics,
            lambda topic: self.lowest,
            lambda peer: self.alarms.append((self.net.now, peer)),
            parameters,
        )
        self.world.use(self.beacons)
        self.beacons.start()

    def first_tick(self) -> float:
        """When the first check is due: by the seed, within one period."""
        return VirtualNetwork(self.net.seed).world(50).random.random() * PERIOD

    def hears(self, leader: NodeId, age: float = 0.0, topic: TopicId = NEWS) -> None:
        """From a neighbour that wants this topic and no other, and tells ages rounded up."""
        theirs = frozenset({topic})
        digest = labels_of(theirs, 0, Lifetime(MAX_AGE)).tell(theirs, 0.0).shared
        steps = math.ceil(age / STEP)
        self.beacons.hear(theirs, LabelTable(digest, (leader,), bytes((0, 0, steps))))

    def hears_every_second(self, leader: NodeId, start: float, end: float) -> None:
        for second in range(math.ceil(start), math.floor(end)):
            self.net.at(float(second), lambda: self.hears(leader))


@pytest.mark.parametrize("seed", range(30))
def test_being_cut_off_is_noticed_after_patience_exactly_and_again_after_each(seed: int) -> None:
    """Checks are a period apart and patience is three periods: no rounding may make it four."""
    single = Single(seed)
    single.lowest = 7
    single.net.run(40.0)
    first = single.first_tick()
    assert [peer for _, peer in single.alarms] == [7] * len(single.alarms)
    times = [time for time, _ in single.alarms]
    assert times == pytest.approx([first + PATIENCE * (number + 1) for number in range(len(times))])
    assert len(times) == math.floor((40.0 - first) / PATIENCE)


def test_no_alarm_when_nobody_lower_is_known() -> None:
    single = Single()
    single.lowest = None
    single.net.run(20.0)
    single.lowest = 50
    single.net.run(40.0)
    single.lowest = 99
    single.net.run(60.0)
    assert single.alarms == []


def test_no_alarm_when_the_label_is_the_lowest_known_or_lower() -> None:
    single = Single()
    single.hears_every_second(7, 0.0, 60.0)
    for lowest in (7, 8):
        single.lowest = lowest
        single.net.run(single.net.now + 25.0)
    assert single.alarms == []
    single.lowest = 6
    single.net.run(58.0)
    assert single.alarms
    assert {peer for _, peer in single.alarms} == {6}


def test_patience_begins_anew_for_another_one_missing() -> None:
    single = Single()
    first = single.first_tick()
    single.lowest = 7
    single.net.run(first + PATIENCE - PERIOD)
    single.lowest = 5
    single.net.run(first + 2 * PATIENCE - 0.1)
    assert single.alarms == []
    single.net.run(first + 2 * PATIENCE + 0.1)
    assert [peer for _, peer in single.alarms] == [5]


def test_patience_begins_anew_after_all_was_well() -> None:
    single = Single()
    first = single.first_tick()
    single.lowest = 7
    single.net.run(first + PATIENCE - PERIOD)
    single.lowest = None
    single.net.run(first + PATIENCE)
    single.lowest = 7
    single.net.run(first + 2 * PATIENCE + PERIOD - 0.1)
    assert single.alarms == []
    single.net.run(first + 2 * PATIENCE + PERIOD + 0.1)
    assert len(single.alarms) == 1


def test_a_restart_begins_with_patience() -> None:
    single = Single()
    single.lowest = 7
    single.net.run(single.first_tick() + PATIENCE - 0.1)
    assert single.beacons.known_peers() == {7}
    single.world.pending.clear()
    single.beacons.start()
    assert single.beacons.known_peers() == set()
    single.net.run(single.net.now + PATIENCE - 0.1)
    assert single.alarms == []
    single.net.run(single.net.now + PERIOD + 0.2)
    assert len(single.alarms) == 1


def test_all_of_many_topics_are_looked_at_in_time() -> None:
    single = Single()
    single.topics = frozenset(range(40))
    missing = {topic: topic + 1 for topic in range(40)}
    single.beacons._lowest_known = missing.get
    single.net.run(300.0)
    assert {peer for _, peer in single.alarms} == set(missing.values())


@pytest.mark.parametrize("seed", range(5))
def test_a_topic_under_suspicion_is_looked_at_every_time(seed: int) -> None:
    """Though few of the many topics are looked at each time."""
    single = Single(seed)
    single.topics = frozenset(range(100))
    looked: list[float] = []

    def lowest_known(topic: TopicId) -> NodeId | None:
        if topic == 17:
            looked.append(single.net.now)
        return 7 if topic == 17 else None

    single.beacons._lowest_known = lowest_known
    single.net.run(400.0)
    (time, peer), *_ = single.alarms
    assert peer == 7
    assert time == pytest.approx(looked[0] + PATIENCE)


@pytest.mark.parametrize("age", [MAX_AGE - DEFAULTS.per_link + STEP, MAX_AGE, MAX_AGE + STEP, 255 * STEP])
def test_old_labels_are_not_believed(age: float) -> None:
    """One of just `max_age` is too old, too, once the link it came over is counted."""
    single = Single()
    single.hears(7, age)
    assert single.beacons.leader(NEWS) == 50
    assert single.beacons.known_peers() == set()
    single.hears(7, MAX_AGE - DEFAULTS.per_link)
    assert single.beacons.leader(NEWS) == 7


def test_labels_of_topics_not_wanted_are_not_kept() -> None:
    single = Single()
    single.hears(7, topic=SPORT)
    assert single.beacons.known_peers() == set()


def test_a_label_ages_with_time_and_with_links() -> None:
    single = Single()
    single.hears(7, age=2.0)
    single.net.run(3.0)
    leader, age = single.beacons.label(NEWS)
    assert leader == 7
    assert age == pytest.approx(5.0 + DEFAULTS.per_link)
    told = single.beacons.tell(single.topics)
    assert told.leaders == (7,)
    assert told.labels == bytes((0, 0, math.ceil((5.0 + DEFAULTS.per_link) / STEP)))


def test_only_news_makes_a_label_younger() -> None:
    single = Single()
    single.hears(7, age=2.0)
    single.hears(7, age=5.0)
    single.hears(9, age=0.0)
    single.hears(50, age=0.0)
    assert single.beacons.label(NEWS) == pytest.approx((7, 2.0 + DEFAULTS.per_link))
    single.hears(7, age=1.0)
    assert single.beacons.label(NEWS) == pytest.approx((7, 1.0 + DEFAULTS.per_link))
    single.hears(3, age=20.0)
    assert single.beacons.label(NEWS) == pytest.approx((3, 20.0 + DEFAULTS.per_link))


def test_after_a_label_got_too_old_the_next_best_takes_its_place() -> None:
    single = Single()
    single.hears(7)
    single.net.run(MAX_AGE)
    single.hears(9)
    assert single.beacons.leader(NEWS) == 9


def test_too_old_a_label_is_forgotten_even_if_nobody_asks_for_it() -> None:
    single = Single(parameters=BeaconParameters(topics_per_check=0))
    single.hears(7)
    single.net.run(MAX_AGE / 2)
    assert single.beacons.known_peers() == {7}
    single.net.run(MAX_AGE + PERIOD)
    assert single.beacons.known_peers() == set()
    assert single.beacons._labels.others() == []


def test_topics_given_up_are_forgotten() -> None:
    single = Single()
    single.hears(9)
    single.lowest = 7
    single.net.run(PERIOD)
    assert single.beacons.known_peers() == {7, 9}
    single.topics = frozenset()
    single.net.run(2 * PERIOD)
    assert single.beacons.known_peers() == set()
    single.net.run(60.0)
    assert single.alarms == []
    assert list(single.world.pending) == [(TIMER,)]


# Whole topics.


@pytest.mark.parametrize("seed", range(5))
def test_no_false_alarm_in_a_connected_part(seed: int) -> None:
    """Though all know from the first moment who is the lowest."""
    graph = nx.connected_watts_strogatz_graph(30, 4, 0.2, seed=seed)
    swarm = Swarm(graph, seed=seed, known=lambda node, _topic: 0 if node else 1)
    swarm.net.run(120.0)
    assert swarm.alarms == []


@pytest.mark.parametrize("seed", range(5))
def test_of_two_parts_the_one_without_the_lowest_notices(seed: int) -> None:
    graph = nx.disjoint_union(nx.cycle_graph(6), nx.cycle_graph(6))
    swarm = Swarm(graph, seed=seed, known=lambda node, _topic: 0 if node else 1)
    swarm.net.run(PATIENCE + 2 * PERIOD)
    assert {(node, peer) for _, node, peer in swarm.alarms} == {(node, 0) for node in range(6, 12)}
    assert all(time + 1e-9 >= PATIENCE for time, _, _ in swarm.alarms)
