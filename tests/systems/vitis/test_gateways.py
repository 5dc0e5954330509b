"""The election's bookkeeping: columns in and out, changes of interest, nonsense from peers."""

from __future__ import annotations

import numpy as np

from topicweave.blocks.descriptors import Descriptor
from topicweave.systems.vitis.gateways import GatewayElection
from topicweave.systems.vitis.messages import Profile


def profile(node: int, topics: set[int], proposals: bytes) -> Profile:
    return Profile(Descriptor(node, 0.0, 1, frozenset(topics)), True, proposals)


def columns(*proposals: tuple[int, int, int]) -> bytes:
    """Proposals by growing topic, as they travel."""
    return np.array(proposals, dtype="<u8").T.tobytes()


def elected(own: int, topics: set[int]) -> GatewayElection:
    election = GatewayElection(own, 5)
    election.set_topics(topics)
    return election


def test_two_nodes_agree_topic_by_topic() -> None:
    low, high = elected(10, {1, 2, 90}), elected(95, {2, 90, 99})
    for _ in range(2):
        low_said, high_said = low.packed(), high.packed()
        low.hear(95, profile(95, {2, 90, 99}, high_said))
        high.hear(10, profile(10, {1, 2, 90}, low_said))
        low.hold()
        high.hold()
    assert low.gateway_topics == [1, 2]
    assert high.gateway_topics == [90, 99]
    assert low.proposal(90) == (95, 95, 1)
    assert high.proposal(2) == (10, 10, 1)


def test_without_news_no_election_is_held() -> None:
    election = elected(10, {90})
    election.hear(95, profile(95, {90}, columns((95, 95, 0))))
    assert election.hold()
    election.hear(95, profile(95, {90}, columns((95, 95, 0))))
    assert not election.hold()


def test_a_forgotten_gateway_is_replaced() -> None:
    election = elected(10, {90})
    election.hear(95, profile(95, {90}, columns((95, 95, 0))))
    election.hold()
    assert election.gateway_topics == []
    election.forget(95)
    assert election.hold()
    assert election.gateway_topics == [90]
    assert election.known_peers() == set()


def test_a_new_topic_leaves_the_others_as_they_are() -> None:
    election = elected(10, {90})
    election.hear(95, profile(95, {80, 90}, columns((95, 95, 0), (95, 95, 0))))
    election.hold()
    election.set_topics({50, 80, 90})
    assert election.proposal(90) == (95, 95, 1)
    election.hold()
    assert election.proposal(80) == election.proposal(90) == (95, 95, 1)
    assert election.gateway_topics == [50]


def test_columns_of_a_wrong_length_say_nothing() -> None:
    election = elected(10, {90})
    for nonsense in (b"", b"x", columns((95, 95, 0))[:-1], columns((95, 95, 0), (95, 95, 0))):
        election.hear(95, profile(95, {90}, nonsense))
        election.hold()
        assert election.gateway_topics == [90]
