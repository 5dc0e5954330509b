"""What neighbours are told of a changed interest, and that whoever missed something catches up."""

from __future__ import annotations

import doctest
import random

import msgspec
import pytest

from topicweave.blocks import interest_news
from topicweave.blocks.interest_news import MORE, InterestChange, InterestNews, change_between, mark_of
from topicweave.model.ids import RING_SIZE, Interest, NodeId, ring_id
from topicweave.port import Message
from topicweave.testing import VirtualNetwork


class Whole(Message, frozen=True, array_like=True, tag="whole"):
    version: int
    interest: Interest


class Query(Message, frozen=True, array_like=True, tag="query"):
    pass


class Party:
    """One that tells its neighbours, and learns what they tell."""

    def __init__(self, network: VirtualNetwork, own_id: NodeId, interest: Interest) -> None:
        self.world = network.world(own_id)
        self.version, self.interest = 0, interest
        self.knows: dict[NodeId, tuple[int, Interest]] = {}
        self.news = InterestNews(
            self.world, lambda: (self.version, self.interest), self.knows.get, self.learn, Whole, Query()
        )
        self.world.use(self.news)
        self.world.receivers |= {Whole: self.receive_whole, Query: lambda peer, _: self.news.tell_all(peer)}

    def learn(self, peer: NodeId, version: int, interest: Interest) -> None:
        self.knows[peer] = (version, interest)

    def receive_whole(self, sender: NodeId, message: Whole) -> None:
        self.news.heard_all(sender)
        self.learn(sender, message.version, message.interest)

    def want(self, interest: Interest, *peers: NodeId) -> None:
        before, self.interest = self.interest, interest
        self.version += 1
        self.news.tell(peers, before)


LONG = frozenset(ring_id(f"topic-{number}") for number in range(1000))


def two(interest: Interest = LONG) -> tuple[VirtualNetwork, Party, Party]:
    network = VirtualNetwork(record=True)
    one, other = Party(network, 1, interest), Party(network, 2, frozenset())
    other.knows[1] = (0, interest)
    return network, one, other


def test_the_examples_in_the_docstrings() -> None:
    assert doctest.testmod(interest_news).failed == 0


def test_a_change_is_told_as_what_came_and_went() -> None:
    network, one, other = two()
    gone = min(LONG)
    one.want(LONG | {5}, 2)
    network.run_for(1.0)
    one.want(one.interest - {gone}, 2)
    network.run_for(1.0)
    assert other.knows[1] == (2, LONG - {gone} | {5})
    assert [type(sent.message) for sent in network.log] == [InterestChange] * 2
    assert max(len(msgspec.msgpack.encode(sent.message)) for sent in network.log) < 50


@pytest.mark.parametrize("before", [frozenset(), frozenset({1, 2}), frozenset(range(10, 40))])
def test_all_is_told_where_that_is_shorter(before: Interest) -> None:
    network, one, other = two(before)
    one.want(frozenset({7}), 2)
    network.run_for(1.0)
    assert other.knows[1] == (1, frozenset({7}))
    assert [type(sent.message) for sent in network.log] == [Whole]


def test_one_that_speaks_an_earlier_format_gets_all() -> None:
    network, one, other = two()
    later = Party(network, 3, frozenset())
    later.knows[1] = (0, LONG)
    network.earlier.add(2)
    one.want(LONG | {5}, 2, 3)
    network.run_for(1.0)
    assert other.knows[1] == later.knows[1] == (1, LONG | {5})
    assert len(network.sent(Whole, receiver=2)) == len(network.sent(InterestChange, receiver=3)) == 1
    assert len(network.log) == 2


def test_who_missed_a_change_asks_and_catches_up() -> None:
    network, one, other = two()
    network.lose = lambda sent: isinstance(sent.message, InterestChange) and sent.message.version == 1
    one.want(LONG | {5}, 2)
    one.want(LONG | {5, 6}, 2)
    network.run_for(1.0)
    assert other.knows[1] == (2, LONG | {5, 6})
    assert len(network.sent(Query)) == len(network.sent(Whole)) == 1


def test_changes_that_overtake_each_other_are_asked_about_once() -> None:
    network, one, other = two()
    network.lose = lambda sent: isinstance(sent.message, InterestChange)
    for topic in range(8):
        one.want(one.interest | {topic}, 2)
    for change in reversed(network.sent(InterestChange)):
        network.tell(1, 2, change)
    network.run_for(1.0)
    assert other.knows[1] == (8, LONG | set(range(8)))
    assert len(network.sent(Query)) == 1
    for change in network.sent(InterestChange):
        network.tell(1, 2, change)
    assert other.knows[1] == (8, LONG | set(range(8))), "what comes late or again changes nothing"


def test_another_interest_of_the_same_version_is_found_out() -> None:
    """One that lost its memory counts from the same version on."""
    network, one, other = two()
    other.knows[1] = (0, LONG | {9})
    one.want(LONG | {5}, 2)
    network.run_for(1.0)
    assert other.knows[1] == (1, LONG | {5})


def test_what_a_liar_says_is_bounded() -> None:
    """It makes nobody hold more than twice what came whole, and a bit; and it is asked once per second."""
    network, _, other = two()
    del network.worlds[1]
    for second in range(20):
        for number in range(50):
            version, interest = other.knows[1]
            added = frozenset(range(100 * number + 10_000 * second, 100 * (number + 1) + 10_000 * second))
            mark = mark_of(interest | added)
            network.tell(1, 2, InterestChange(version, version + 1, added, frozenset(), mark))
            assert len(other.knows[1][1]) <= 2 * len(LONG) + MORE
        network.run_for(1.0)
    assert 10 <= len(network.sent(Query)) <= 20
    known = other.knows[1]
    bad = frozenset({-1}), frozenset({RING_SIZE})
    for added in bad:
        mark = mark_of(known[1] | added)
        network.tell(1, 2, InterestChange(known[0], known[0] + 1, added, frozenset(), mark))
    network.tell(3, 2, InterestChange(0, 1, frozenset({1}), frozenset(), 1))
    assert other.knows == {1: known}
    assert other.news.known_peers() == {1}
    other.news.heard_all(1)
    assert other.news.known_peers() == set()


def test_any_sequence_of_changes_arrives_whatever_is_lost() -> None:
    """The last one has to arrive, as a heartbeat would see to."""
    rng = random.Random(4)
    for seed in range(20):
        network = VirtualNetwork(seed=seed, loss=0.3)
        one, other = Party(network, 1, frozenset(range(50))), Party(network, 2, frozenset())
        other.knows[1] = (0, one.interest)
        for _ in range(60):
            one.want(one.interest ^ frozenset(rng.sample(range(100), rng.randrange(1, 5))), 2)
            network.run_for(0.5)
        network.loss = 0.0
        network.run_for(2.0)
        one.want(one.interest ^ {1}, 2)
        network.run_for(1.0)
        assert other.knows[1] == (one.version, one.interest)


def test_a_change_fits_what_it_was_made_of() -> None:
    change = change_between(LONG, LONG | {5}, 3)
    assert change == InterestChange(2, 3, frozenset({5}), frozenset(), mark_of(LONG | {5}))
