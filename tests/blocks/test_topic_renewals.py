"""Renewals: what nobody waits for takes the place of signs of life, and keepers learn that all is as it was."""

from __future__ import annotations

import doctest
import random

import msgspec
import pytest

from tests.blocks.directory_swarm import Swarm
from topicweave.blocks.topic_directory import DirectoryParameters, copies
from topicweave.blocks.topic_directory.announcer import PATIENCE, Announcer
from topicweave.blocks.topic_directory.home import Home
from topicweave.blocks.topic_directory.messages import (
    LEADS,
    SLICES,
    WANTS_CONTACTS,
    Announcement,
    Carry,
    Got,
    OtherRecords,
    SameRecords,
    SlowCarry,
    Told,
)
from topicweave.blocks.topic_directory.ring import HomesRing
from topicweave.blocks.topic_directory.slow import SlowCarrier
from topicweave.model.ids import NodeId, TopicId, in_interval
from topicweave.model.workload import Workload
from topicweave.port import InFormat, Message
from topicweave.sim.churn import Change
from topicweave.sim.faults import lossy
from topicweave.sim.host import Host
from topicweave.sim.network import Network
from topicweave.testing import VirtualNetwork

PARAMETERS = DirectoryParameters()
TOPIC = 77
TERM = PARAMETERS.lasts * PARAMETERS.renew


def everything(_topic: TopicId) -> bool:
    return True


# What is calm.


def test_renewals_are_calm_and_what_is_new_is_not() -> None:
    network = VirtualNetwork(seed=1)
    announcer = Announcer(network.world(5), 5, PARAMETERS, known=lambda _topic: PARAMETERS.enough)
    announcer.lifetime = 8.0
    announcer.set_topics(frozenset({TOPIC}))
    led: list[TopicId] = []
    announcer.leading = lambda: led
    calm: list[tuple[int, int, bool]] = []

    def run(until: int) -> None:
        for second in range(int(network.now), until):
            network.run(until=float(second))
            calm.extend((second, one.flags[0], announcer.calm(one)) for one in announcer.due())

    run(200)
    assert [one for *_, one in calm] == [False, *[True] * (len(calm) - 1)]
    assert len(calm) >= 4
    calm.clear()
    led.append(TOPIC)
    run(600)
    assert [flags for _, flags, _ in calm if flags] == [LEADS] * len([0 for _, flags, _ in calm if flags])
    first, *_, last = [one for one in calm if one[1]]
    assert not first[2], "homes wait for leaders"
    assert last[2], "but not when it is an old story"
    calm.clear()
    led.clear()
    run(620)
    assert calm[0][1:] == (0, False), "it leads no more"


def test_who_loses_somebody_does_not_wait_for_the_answer_to_a_calm_question() -> None:
    network = VirtualNetwork(seed=1)
    announcer = Announcer(network.world(5), 5, PARAMETERS, known=lambda _topic: 2)
    announcer.set_topics(frozenset({TOPIC}))
    asked_calmly = None
    for second in range(2000):
        network.run(until=float(second))
        for one in announcer.due():
            if one.flags[0] & WANTS_CONTACTS and announcer.calm(one):
                asked_calmly = second
            elif one.flags[0] & WANTS_CONTACTS:
                announcer.told(Told(5, TOPIC, (), 2, PARAMETERS.renew))
        if asked_calmly is not None:
            break
    assert asked_calmly is not None
    network.run(until=network.now + PATIENCE / 2)
    assert not [one for one in announcer.due() if one.flags[0] & WANTS_CONTACTS], "it may be on its way"
    announcer.lacks(TOPIC)
    [urgent] = announcer.due()
    assert urgent.flags[0] & WANTS_CONTACTS
    assert not announcer.calm(urgent)


# Keepers.


def test_the_examples_in_the_docstrings() -> None:
    assert doctest.testmod(copies).failed == 0


class Pair:
    """A home and one that keeps its records."""

    def __init__(self) -> None:
        self.home, self.keeper = (Home(node, PARAMETERS, random.Random(node), 30.0) for node in (1, 2))

    def announce(self, subscriber: NodeId, now: float, *topics: TopicId, epoch: int = 1) -> None:
        self.home.announced(Announcement(subscriber, epoch, TERM, topics, bytes(len(topics))), now)

    def copy(self, now: float) -> None:
        self.keeper.learn(self.home.take_changed(now), now, is_home=everything)

    def compare(self, now: float) -> list[int]:
        """Which slices differ."""
        theirs = self.home.marks(self.home.topics(), now)
        other = copies.differing(self.keeper.marks(self.keeper.topics(), now, copied=True), theirs)
        self.keeper.compared(self.keeper.topics(), other, now)
        return list(other)


def test_a_keeper_that_has_the_same_keeps_it_for_another_term() -> None:
    pair = Pair()
    pair.announce(7, 0.0, 3, 4)
    pair.copy(0.0)
    for now in range(30, 600, 30):
        pair.announce(7, float(now), 3, 4)
        pair.copy(float(now))
        assert pair.compare(float(now)) == []
        pair.keeper.sweep(float(now))
        assert sorted(pair.keeper.topics()) == [3, 4]
    # The home is gone. The subscriber speaks to another one within a term of its own.
    pair.keeper.sweep(570.0 + PARAMETERS.renew + copies.SLACK - 1.0)
    assert sorted(pair.keeper.topics()) == [3, 4]
    pair.keeper.sweep(570.0 + TERM)
    assert pair.keeper.topics() == []


@pytest.mark.parametrize("lost", ["a newcomer", "a departure", "a new life"])
def test_what_a_keeper_missed_it_gets_with_its_slice(lost: str) -> None:
    pair = Pair()
    pair.announce(7, 0.0, 3, 4)
    pair.announce(8, 0.0, 3)
    pair.copy(0.0)
    if lost == "a newcomer":
        pair.announce(9, 1.0, 4)
    elif lost == "a departure":
        pair.home.announced(Announcement(8, 1, TERM, (3,), bytes([2])), 1.0)
    else:
        pair.announce(7, 1.0, 4, epoch=2)
    pair.home.take_changed(1.0)  # It got lost.
    differing = pair.compare(10.0)
    assert differing == [3 if lost == "a departure" else 4]
    of_slice = [topic for topic in pair.home.topics() if copies.slice_of(topic) in differing]
    pair.keeper.learn(pair.home.records(of_slice, 10.0), 10.0, is_home=everything)
    assert pair.compare(20.0) == []
    for now in (60.0, 119.0, 130.0):
        for subscriber, topics in ((7, (3, 4)), *(((9, (4,)),) if lost == "a newcomer" else ())):
            pair.announce(subscriber, now, *topics, epoch=2 if lost == "a new life" and 4 in topics else 1)
        pair.copy(now)
        pair.compare(now)
    pair.keeper.sweep(130.0)
    kept = {topic: set(pair.keeper.subscribers(topic)) for topic in (3, 4)}
    assert kept[4] == ({7, 9} if lost == "a newcomer" else {7})
    assert kept[3] == ({7} if lost == "a departure" else {7, 8} & kept[3])


def test_records_that_end_at_the_home_end_at_its_keepers() -> None:
    pair = Pair()
    pair.announce(7, 0.0, 3)
    pair.copy(0.0)
    assert pair.compare(TERM - 5.0) == []
    pair.home.sweep(TERM)
    pair.copy(TERM)
    assert pair.keeper.topics() == []


def test_a_mark_is_of_what_a_record_says_at_that_time() -> None:
    """Records keep their marks; a home that has said nothing else has the same as one that was asked before."""
    pair, other = Pair(), Pair()
    for now, epoch, term in ((0.0, 1, TERM), (10.0, 1, TERM), (20.0, 1, 2 * TERM), (30.0, 2, TERM)):
        for one in (pair, other):
            one.home.announced(Announcement(7, epoch, term, (3,), bytes(1)), now)
            one.copy(now)
        assert pair.compare(now) == []
    assert pair.home.marks([3], 30.0) == other.home.marks([3], 30.0)
    assert pair.keeper.marks([3], 30.0) == other.keeper.marks([3], 30.0)
    # The home says of what the keeper has already that it lasts for another term.
    [record] = pair.home.records([3], 30.0)
    longer = msgspec.structs.replace(record, left=1.0, term=500)
    before = pair.keeper.marks([3], 30.0)
    pair.keeper.learn([longer], 30.0, is_home=everything)
    assert pair.keeper.marks([3], 30.0) != before


def test_the_arc_of_a_neighbour_is_what_it_is_home_to() -> None:
    network = VirtualNetwork(seed=1)
    ring = HomesRing(network.world(50), 50, PARAMETERS, lambda: None, lambda: None, lambda _peer: None)
    ring.before = [40, 30, 20]
    for home in ring.before:
        for point in range(100):
            assert in_interval(point, ring.start_of(home), home) == (ring.home_before(point) == home)


# Carrying.


def lists(nodes: int, topics: int) -> Workload:
    rng = random.Random(5)
    return Workload.from_lists(
        {f"n{number}": [f"t{topic}" for topic in rng.sample(range(topics), 6)] for number in range(nodes)}
    )


def sent_by_all(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, NodeId, NodeId, Message]]:
    sent: list[tuple[float, NodeId, NodeId, Message]] = []
    send = Network.send

    def noting(network: Network, source: Host, peer: NodeId, message: Message) -> None:
        sent.append((network.kernel.now, source.name, peer, message))
        send(network, source, peer, message)

    monkeypatch.setattr(Network, "send", noting)
    return sent


def test_what_nobody_waits_for_takes_the_place_of_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """One message each way per contact and pause between two signs of life, however much there is to renew."""
    swarm = Swarm(lists(24, 60))
    swarm.run(150.0)
    sent = sent_by_all(monkeypatch)
    swarm.run(60.0)
    slow: dict[tuple[NodeId, NodeId], list[float]] = {}
    for now, source, peer, message in sent:
        if isinstance(message, SlowCarry):
            slow.setdefault((source, peer), []).append(now)
    assert slow
    for moments in slow.values():
        assert len(moments) <= 60.0 / PARAMETERS.near_period + 1
    kinds = [type(message) for *_, message in sent]
    assert kinds.count(Carry) < kinds.count(SlowCarry)
    assert kinds.count(OtherRecords) == 0, "nothing changes"
    assert kinds.count(SameRecords) == 24 * 3 * 2


class Watch:
    """For how long the home of a topic did not know of a living subscriber, at the longest and at the end."""

    def __init__(self, swarm: Swarm) -> None:
        self.swarm = swarm
        self.lacking: dict[tuple[NodeId, TopicId], float] = {}
        self.longest = 0.0

    def run(self, seconds: int) -> None:
        for _ in range(seconds):
            self.swarm.run(1.0)
            now, missing = self.swarm.simulation.now, set[tuple[NodeId, TopicId]]()
            for topic, wanting in self.swarm.subscribers().items():
                known = self.swarm.home_of(topic).directory.home.subscribers(topic)
                missing.update((node, topic) for node in wanting.difference(known))
            self.lacking = {one: self.lacking.get(one, now) for one in missing}
            self.longest = max([self.longest, *(now - since for since in self.lacking.values())])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("fault", ["home crashes", "home restarts", "homes join", "messages are lost"])
def test_no_record_of_a_living_subscriber_lapses(fault: str, seed: int) -> None:
    """Of all topics, at every second, at the node that is home at that time; but for the moments in which it finds
    its place. Keepers have what it lacks: without them it would wait for renewals.
    """
    swarm = Swarm(lists(20, 50), seed=seed)
    rng, simulation = random.Random(seed), swarm.simulation
    late = rng.sample(range(3, 20), 4) if fault == "homes join" else []
    for index in late:
        simulation.stop(index, orderly=False)
    swarm.run(90.0)
    watch = Watch(swarm)
    for round_number in range(4):
        now, index = simulation.now, rng.choice(simulation.up())
        if fault == "home crashes":
            simulation.stop(index, orderly=False)
        elif fault == "home restarts":
            simulation.stop(index, orderly=False)
            simulation.plan([Change(now + 2.0, index, up=True)])
        elif fault == "homes join":
            simulation.plan([Change(now + 1.0, late[round_number], up=True)])
        elif not round_number:
            for loss in lossy(0.05):
                simulation._network.faults.begin(loss)
        watch.run(45)
    assert watch.longest <= 2 * PARAMETERS.near_silence
    watch.run(60)
    assert watch.longest <= 2 * PARAMETERS.near_silence
    assert fault == "messages are lost" or not watch.lacking


def test_renewals_go_past_nodes_of_an_earlier_format(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second node knows nothing of what is new here. Nobody is forgotten, and none of it is sent to them."""
    swarm = Swarm(lists(20, 50))
    earlier = {host.name for host in swarm.simulation.hosts[::2]}

    def understands(host: Host, peer: NodeId, kind: type[InFormat]) -> bool:
        return kind.wire < SlowCarry.wire or not {host.name, peer} & earlier

    monkeypatch.setattr(Host, "understands", understands)
    swarm.run(90.0)
    sent = sent_by_all(monkeypatch)
    watch = Watch(swarm)
    watch.run(150)
    assert not watch.longest
    newer = [(source, peer) for _, source, peer, message in sent if type(message).wire == SlowCarry.wire]
    assert newer
    assert not [pair for pair in newer if earlier.intersection(pair)]


# What peers may do.


def test_acknowledgements_of_strangers_and_endless_numbers_change_nothing() -> None:
    network = VirtualNetwork(seed=1)
    world = network.world(5)
    ring = HomesRing(world, 5, PARAMETERS, lambda: None, lambda: None, lambda _peer: None)
    slow = SlowCarrier(world, ring, PARAMETERS, lambda *_: None, lambda _carry: None)
    for number in range(1000):
        slow._receive(99, SlowCarry(number + 1, got=(number,)))
    assert slow.known_peers() == set()
    assert Got not in slow.receivers()
    assert len(copies.marks([0] * SLICES)) == SLICES * 4
