"""A node as a subscriber: when it announces its topics, and when it asks."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from topicweave.blocks.topic_directory import DirectoryParameters
from topicweave.blocks.topic_directory.announcer import SLOTS, Announcer
from topicweave.blocks.topic_directory.messages import CALL_ME, LEADS, WANTS_CONTACTS, Told
from topicweave.testing import VirtualNetwork

PARAMETERS = DirectoryParameters()
TOPIC = 77


def test_who_begins_to_lead_says_so_again_soon_and_then_as_seldom_as_others() -> None:
    """Its word may have gone to one that is not the home any more."""
    network = VirtualNetwork(seed=1)
    announcer = Announcer(network.world(5), 5, PARAMETERS, known=lambda _topic: PARAMETERS.enough)
    announcer.lifetime = 8.0
    announcer.set_topics(frozenset({TOPIC, TOPIC + 1}))
    announcer.leading = lambda: [TOPIC]
    announcer.told(Told(5, TOPIC, (), 4000, 1000.0))
    said: dict[int, list[float]] = {TOPIC: [], TOPIC + 1: []}
    for second in range(400):
        network.run(until=float(second))
        for one in announcer.due():
            for topic, flags in zip(one.topics, one.flags, strict=True):
                if topic != TOPIC or flags & LEADS:
                    said[topic].append(second)
    pauses = [later - earlier for earlier, later in pairwise(said[TOPIC])]
    assert pauses[0] <= announcer.lifetime + PARAMETERS.tick
    assert pauses[0] < pauses[1] < pauses[2]
    assert max(pauses) <= PARAMETERS.renew + PARAMETERS.tick, "however many others there are"
    assert len(said[TOPIC]) <= len(said[TOPIC + 1]) + 3, "and as seldom as others, but for the first few"


def renewed(announcers: int, topics: int, known: int, led: int = 0) -> tuple[list[int], list[int]]:
    """In each ten seconds after three minutes, of nodes that join together: how many topics are announced,
    and in how many seconds a node announces some.
    """
    network = VirtualNetwork(seed=1)
    said, spoke = Counter[int](), Counter[int]()
    nodes = [
        Announcer(network.world(number), number, PARAMETERS, known=lambda _topic: known)
        for number in range(announcers)
    ]
    for node in nodes:
        node.set_topics(frozenset(range(topics)))
        node.lifetime, node.leading = 8.0, lambda: range(led)
    for second in range(480):
        network.run(until=float(second))
        for number, node in enumerate(nodes):
            announcements = node.due()
            spoke[second // 10] += bool(announcements)
            for announcement in announcements:
                said[second // 10] += len(announcement.topics)
                for topic in announcement.topics:
                    node.told(Told(number, topic, (), 9, PARAMETERS.renew))
    return [said[part] for part in range(18, 48)], [spoke[part] for part in range(18, 48)]


@pytest.mark.parametrize("known", [PARAMETERS.enough, 0])
def test_nodes_that_joined_together_do_not_renew_in_waves(known: int) -> None:
    """Whether they go on asking for contacts or not."""
    said, _ = renewed(400, 2, known)
    mean = sum(said) / len(said)
    assert 800 * 10 / PARAMETERS.renew <= mean <= 1.25 * 800 * 10 / PARAMETERS.renew
    assert 0.6 * mean < min(said) <= max(said) < 1.4 * mean


@pytest.mark.parametrize("led", [0, 300])
def test_topics_of_a_node_are_renewed_about_together(led: int) -> None:
    """What is said in the same second travels in the same messages, also of topics whose parts the node leads."""
    _, spoke = renewed(1, 1000, PARAMETERS.enough, led)
    assert sum(spoke) <= SLOTS * (10 * len(spoke) / PARAMETERS.renew + 1)


@pytest.mark.parametrize(("audience", "asks"), [(3, (14, 20)), (2, (3, 5)), (0, (3, 5))])
def test_who_knows_all_that_there_are_asks_seldom_until_it_loses_one(
    audience: int, asks: tuple[int, int]
) -> None:
    network = VirtualNetwork(seed=1)
    announcer = Announcer(network.world(5), 5, PARAMETERS, known=lambda _topic: 2)
    announcer.set_topics(frozenset({TOPIC}))
    asked, said = list[float](), list[float]()
    for second in range(1200):
        network.run(until=float(second))
        for one in announcer.due():
            said.append(second)
            if one.flags[0] & WANTS_CONTACTS:
                asked.append(second)
                announcer.told(Told(5, TOPIC, (), audience, PARAMETERS.renew))
    least, most = asks
    assert least <= sum(moment > 300 for moment in asked) <= most
    assert max(later - earlier for earlier, later in pairwise(said)) <= PARAMETERS.renew + PARAMETERS.tick
    announcer.lacks(TOPIC)
    assert announcer.due()[0].flags[0] & WANTS_CONTACTS


@pytest.mark.parametrize("again", [1000.0, 3600.0])
def test_a_hot_topic_does_not_prolong_what_is_said_of_a_rare_one(again: float) -> None:
    """A record that outlives its subscriber is named in vain; and a home that lies speaks for its own topic only."""
    network = VirtualNetwork(seed=1)
    announcer = Announcer(network.world(5), 5, PARAMETERS, known=lambda _topic: PARAMETERS.enough)
    hot, rare = TOPIC, TOPIC + 1
    announcer.set_topics(frozenset({hot, rare}))
    announcer.told(Told(5, hot, (), 4000, again))
    said: dict[int, list[float]] = {hot: [], rare: []}
    terms: dict[int, set[float]] = {hot: set(), rare: set()}
    for second in range(9000):
        network.run(until=float(second))
        for one in announcer.due():
            for topic in one.topics:
                said[topic].append(second)
                terms[topic].add(one.term)
    assert terms[rare] == {PARAMETERS.lasts * PARAMETERS.renew}
    assert (
        max(later - earlier for earlier, later in pairwise(said[rare])) <= PARAMETERS.renew + PARAMETERS.tick
    )
    assert PARAMETERS.lasts * again <= min(terms[hot]) <= max(terms[hot]) <= 1.25 * PARAMETERS.lasts * again
    assert max(later - earlier for earlier, later in pairwise(said[hot])) < min(terms[hot])


def test_what_is_said_of_many_hot_topics_falls_into_few_announcements() -> None:
    """However different the times are that their homes named."""
    network = VirtualNetwork(seed=1)
    announcer = Announcer(network.world(5), 5, PARAMETERS, known=lambda _topic: PARAMETERS.enough)
    announcer.set_topics(frozenset(range(1000)))
    for topic in range(1000):
        announcer.told(Told(5, topic, (), 4 * topic, float(60 + topic)))
    said = announcer.due()
    assert sorted(topic for one in said for topic in one.topics) == list(range(1000))
    assert all(one.term >= PARAMETERS.lasts * (60 + topic) for one in said for topic in one.topics)
    assert len(said) <= 15


def test_who_could_not_reach_somebody_says_so_until_it_is_answered() -> None:
    network = VirtualNetwork(seed=1)
    announcer = Announcer(network.world(5), 5, PARAMETERS, known=lambda _topic: 0)
    announcer.set_topics(frozenset({TOPIC}))
    assert announcer.due()[0].flags[0] == WANTS_CONTACTS
    announcer.told(Told(5, TOPIC, (), 20, PARAMETERS.renew))
    announcer.lacks(TOPIC, unreached=True)
    assert announcer.due()[0].flags[0] == WANTS_CONTACTS | CALL_ME
    network.run(until=PARAMETERS.ask_timeout + 1.0)
    assert announcer.due()[0].flags[0] == WANTS_CONTACTS | CALL_ME, "the answer was lost"
    announcer.told(Told(5, TOPIC, (), 20, PARAMETERS.renew))
    announcer.lacks(TOPIC)
    assert announcer.due()[0].flags[0] == WANTS_CONTACTS
