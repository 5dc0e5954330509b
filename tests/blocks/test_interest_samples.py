"""Samples of subscribers: uniform whatever the tree's shape; how views travel; and whom to ask for which tree."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from tests.blocks.ring.test_ring import RingNode, ring_of
from topicweave.blocks.growing_ids import position_of
from topicweave.blocks.harmonic_links import as_point
from topicweave.blocks.interest_samples import (
    Interested,
    InterestSamples,
    SampleParameters,
    SampleReport,
    SampleTell,
    SampleView,
    choose_guides,
    combine,
)
from topicweave.blocks.ring.messages import Contact
from topicweave.model.ids import RING_SIZE, TopicId
from topicweave.port import Message, TimerKey
from topicweave.testing import VirtualNetwork


def person(number: int) -> Interested:
    return Interested(Contact(number, b"", 0), frozenset({number}))


def test_all_are_kept_while_there_is_room() -> None:
    people = [person(number) for number in range(4)]
    assert set(combine([(2, people[:2]), (2, people[2:])], 4, random.Random(1))) == set(people)


def test_everybody_is_equally_likely_in_the_end_though_branches_differ() -> None:
    """A thick branch of 90 whose own sample holds 5, a thin one of 3, and a node of its own; by way of
    truncated samples.
    """
    draw = random.Random(7)
    people = [person(number) for number in range(94)]
    tally: Counter[int] = Counter()
    trials = 6000
    for _ in range(trials):
        inner = combine([(1, [one]) for one in people[:40]], 5, draw)
        thick = combine([(40, inner), *((1, [one]) for one in people[40:90])], 5, draw)
        sample = combine([(90, thick), (3, people[90:93]), (1, [people[93]])], 5, draw)
        assert len(sample) == 5
        tally.update(one.contact.id for one in sample)
    expected = trials * 5 / 94
    square = sum((tally[number] - expected) ** 2 / expected for number in range(94))
    # 93 degrees of freedom: mean 93, deviation 13.6. Ignoring the counts gives several thousand.
    assert square < 93 + 5 * 13.6


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=6), st.integers(1, 6), st.randoms(use_true_random=False)
)
def test_a_sample_is_of_its_size_and_of_the_groups(sizes: list[int], size: int, draw: random.Random) -> None:
    number, groups = 0, []
    for members in sizes:
        everybody = [person(number + index) for index in range(members)]
        number += members
        groups.append((members, draw.sample(everybody, min(size, members))))
    sample = combine(groups, size, draw)
    assert len({one.contact.id for one in sample}) == len(sample) == min(size, sum(sizes))
    assert set(sample) <= {one for _, group in groups for one in group}


def test_few_are_asked_for_much() -> None:
    known = {1: frozenset({10, 11, 12}), 2: frozenset({12, 13}), 3: frozenset({13}), 4: frozenset({99})}
    assert choose_guides([10, 11, 12, 13, 14], known) == {1: [10, 11, 12], 2: [13]}
    assert choose_guides([10, 13], known, most=1) == {1: [10]}
    assert choose_guides([10], {}) == {}


def test_first_views_are_passed_down_at_once_and_newer_ones_together() -> None:
    """Each topic has a home of its own, and each home sends its view when it is ready."""
    net, nodes = ring_of(20)
    net.run(15.0)
    node = nodes[min(nodes)]
    by_hop = {
        node.ring.table.next_hop(as_point(topic)): topic for topic in range(0, RING_SIZE, RING_SIZE // 97)
    }
    up = {topic: hop for hop, topic in by_hop.items() if hop != node.id}
    here, there = list(up)[:2]
    samples = InterestSamples(node.world, node.ring, {here, there}, lambda: None, SampleParameters(), 100)
    receive = samples.receivers()
    child = 12345
    receive[SampleReport](child, SampleReport((here, there), (1, 1), ((0,), (0,)), (person(1),)))

    def passed_down(act: Callable[[], object]) -> list[tuple[TopicId, ...]]:
        net.listen()
        act()
        return [it.topics for _, _, to, it in net.log if to == child and isinstance(it, SampleView)]

    def view(topic: TopicId, of: int) -> Callable[[], object]:
        return lambda: receive[SampleView](up[topic], SampleView((topic,), ((0,),), (person(of),)))

    assert passed_down(view(here, 2)) == [(here,)]
    assert passed_down(view(there, 2)) == [(there,)]
    samples.beat()
    assert passed_down(view(here, 3)) == []
    assert passed_down(view(there, 3)) == []
    assert passed_down(samples.beat) == [(here, there)], "in one message"
    assert passed_down(samples.beat) == []
    assert passed_down(view(here, 3)) == []
    assert passed_down(samples.beat) == [], "the child has it already"


class SampleNode(RingNode):
    """On a ring, and a subscriber of some topics."""

    def __init__(self, net: VirtualNetwork, number: int, wanted: set[TopicId]) -> None:
        super().__init__(net, number)
        self.wanted = wanted
        self.samples = InterestSamples(
            self.world, self.ring, wanted, self._own, SampleParameters(size=3, fresh_rounds=2.0), 100
        )
        self.world.receivers.update(self.samples.receivers())
        self.person: Interested | None = None

    def _own(self) -> Interested | None:
        if self.person is None and self.ring.own is not None:
            self.person = Interested(self.ring.own, frozenset(self.wanted))
        return self.person

    def _beat(self, key: TimerKey) -> None:
        super()._beat(key)
        self.samples.beat()


def samplers(
    lose: Callable[[Message], bool] = lambda message: False,
) -> tuple[VirtualNetwork, list[SampleNode]]:
    net, rng = VirtualNetwork(5), random.Random(3)
    topics = [rng.getrandbits(64) for _ in range(6)]
    nodes = [SampleNode(net, rng.getrandbits(64), set(rng.sample(topics, 3))) for _ in range(24)]
    names = [node.id for node in nodes]
    for node in nodes:
        node.ring.join(position_of(node.id), rng.sample(names, 3))
    net.lose = lambda sent: lose(sent.message)
    net.run(60.0)
    return net, nodes


def everybody_knows(nodes: list[SampleNode]) -> bool:
    """Whether each has a full sample, of subscribers only, of each of its topics."""
    wanting = {
        topic: {node.id for node in nodes if topic in node.wanted} for node in nodes for topic in node.wanted
    }
    return all(
        (known := {person.contact.id for person in node.samples.sample(topic)}) <= wanting[topic]
        and len(known) == min(3, len(wanting[topic]))
        for node in nodes
        for topic in node.wanted
    )


def test_what_was_said_is_not_said_again() -> None:
    net, nodes = samplers()
    assert everybody_knows(nodes)
    net.listen()
    net.run(80.0)
    said = [it for _, _, _, it in net.log if isinstance(it, SampleReport | SampleView | SampleTell)]
    assert said, "a word now and then"
    assert all(isinstance(it, SampleReport) and not it.topics and it.since == it.number for it in said)


def test_what_is_lost_is_asked_for() -> None:
    """A report or view that goes missing leaves a number out."""
    draw = random.Random(4)
    net, nodes = samplers(
        lambda message: isinstance(message, SampleReport | SampleView | SampleTell) and draw.random() < 0.3
    )
    net.lose = lambda sent: False
    net.run(90.0)
    assert everybody_knows(nodes)
    topic = sorted(nodes[0].wanted)[0]
    newcomer = next(node for node in nodes if topic not in node.wanted)
    newcomer.wanted.add(topic)
    newcomer.person = None
    net.run(120.0)
    assert everybody_knows(nodes)


def test_a_view_that_was_not_taken_does_not_count_as_known() -> None:
    """For a moment a topic's way home leads elsewhere. When it leads back, the sender must not think that its
    newest view has arrived.
    """
    net, nodes = samplers()
    node, topic, hop = next(
        (node, topic, hop)
        for node in nodes
        for topic in sorted(node.wanted)
        if (hop := node.ring.table.next_hop(as_point(topic))) != node.id
    )
    other = next(one.id for one in nodes if one.id not in (hop, node.id))
    known = node.samples._hops[hop].views
    before = node.samples.sample(topic)
    news = SampleView((topic,), ((0,),), (person(2),), known + 1, known)
    with patch.object(node.ring.table, "next_hop", return_value=other):
        node.world.receivers[SampleView](hop, news)
    assert node.samples.sample(topic) == before
    net.listen()
    node.samples.hurry()
    node.samples.beat()
    assert [report.views for report in net.sent(SampleReport, node.id, hop)] == [known]
    node.world.receivers[SampleView](hop, news)
    assert node.samples.sample(topic) == (person(2),)
    node.samples.hurry()
    node.samples.beat()
    assert [report.views for report in net.sent(SampleReport, node.id, hop)] == [known, known + 1]
