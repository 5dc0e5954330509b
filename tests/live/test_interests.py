"""Long interests go over a connection once, and by name from then on."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.live.together import until_served
from topicweave.blocks.descriptors import Descriptor
from topicweave.blocks.peer_sampling import Offer
from topicweave.live import Settings
from topicweave.live import interests as module
from topicweave.live.frames import ProtocolError
from topicweave.live.interests import (
    HELD,
    LONG,
    HearingInterests,
    InterestNames,
    InterestsTold,
    NamedInterest,
    TellingInterests,
    name_of,
    shape_of,
)
from topicweave.live.node import run
from topicweave.live.swarm import run_swarm
from topicweave.live.wire import Codec, read_interests
from topicweave.model.ids import Interest
from topicweave.port import Message
from topicweave.systems.omen.messages import Heartbeat, Links, Report
from topicweave.systems.spidercast.messages import Connect, InterestUpdate

TYPES: list[type[Message]] = [Offer, Connect, InterestUpdate, Links, Report, Heartbeat]

LONG_ONE = frozenset(range(1000, 1000 + LONG))
OTHER = frozenset(random.Random(1).sample(range(2**62), 500))
SHORT = frozenset(range(LONG - 1))


class Connection:
    """Two codecs, and what the one told the other."""

    def __init__(self) -> None:
        self.sender, self.receiver = Codec(TYPES, 20_000, 1000), Codec(TYPES, 20_000, 1000)
        self.telling = TellingInterests()
        self.hearing = HearingInterests(self.receiver.names, 20_000)

    def send(self, *messages: Message) -> list[Message]:
        """What arrives, after what had to be told first."""
        mentioned: dict[bytes, NamedInterest] = {}
        for message in messages:
            mentioned |= self.sender.mentioned(message)
        for told in self.telling.news(mentioned.values()):
            self.hearing.hear(read_interests(msgspec.msgpack.encode(told)))
        batch = self.sender.batch([self.sender.encode_short(message) for message in messages])
        return self.receiver.decode(batch[5:], self.hearing)


MESSAGES = [
    Offer((Descriptor(1, 0.5, 2, LONG_ONE), Descriptor(2, 1.5, 3, SHORT), Descriptor(3, 0.0, 1, OTHER))),
    Connect("greedy", 1, 2, 3, OTHER),
    InterestUpdate(7, LONG_ONE),
    Links(1, OTHER, (5, 6), LONG_ONE, SHORT),
    Report(9, 3, LONG_ONE, (1, 2), ((4, 5),), frozenset()),
]


def test_messages_arrive_as_they_were_sent_by_name_or_in_full() -> None:
    connection = Connection()
    assert connection.send(*MESSAGES) == MESSAGES
    for message in MESSAGES:
        arrived = connection.send(message)
        assert arrived == [message]
        assert type(arrived[0]) is type(message)
        full = connection.sender.batch([connection.sender.encode(message)])
        assert connection.receiver.decode(full[5:]) == [message]


def test_equal_interests_become_one_object() -> None:
    one, other = Connection(), Connection()
    other.receiver, other.hearing = one.receiver, HearingInterests(one.receiver.names, 20_000)
    (first,), (second,) = one.send(InterestUpdate(1, OTHER)), other.send(InterestUpdate(2, frozenset(OTHER)))
    assert isinstance(first, InterestUpdate)
    assert isinstance(second, InterestUpdate)
    assert first.interest is second.interest


def test_an_interest_is_told_once() -> None:
    connection = Connection()
    message = Offer(tuple(Descriptor(peer, 0.0, 1, OTHER) for peer in range(20)))
    mentioned = connection.sender.mentioned(message).values()
    (told,) = connection.telling.news(mentioned)
    assert len(told.topics) == 1
    assert connection.telling.news(mentioned) == []
    assert len(connection.sender.encode_short(message)) < 1000 < len(connection.sender.encode(message))


@given(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=6), max_size=40), st.integers(100, 400))
@settings(max_examples=60)
def test_both_ends_agree_on_what_is_held_however_much_comes_and_goes(
    rounds: list[list[int]], room: int
) -> None:
    """With room for a few interests only, names are taken back all the time, and never one that is mentioned."""
    held, module.HELD = module.HELD, 6 * room
    try:
        sizes = random.Random(room)
        interests = [frozenset(range(n, n + sizes.randint(LONG, room))) for n in range(31)]
        connection = Connection()
        for numbers in rounds:
            messages: list[Message] = [InterestUpdate(number, interests[number]) for number in numbers]
            assert connection.send(*messages) == messages
            assert sum(map(len, connection.hearing.held.values())) <= 6 * room
            assert set(connection.hearing.held) == set(connection.telling.names)
    finally:
        module.HELD = held


def packed(topics: Iterable[int]) -> bytes:
    return b"".join(topic.to_bytes(8, "big") for topic in topics)


@pytest.mark.parametrize(
    ("topics", "why"),
    [
        ([packed(range(LONG))[:-1]], "bytes"),
        ([packed(range(LONG - 1))], "bytes"),
        ([packed(range(101))], "topics_per_peer"),
        ([b""], "bytes"),
        ([packed(reversed(range(LONG)))], "order"),
        ([packed([5] * LONG)], "order"),
    ],
)
def test_interests_that_cannot_be_are_refused(topics: list[bytes], why: str) -> None:
    hearing = HearingInterests(InterestNames(), 100)
    with pytest.raises(ProtocolError, match=why):
        hearing.hear(InterestsTold((), tuple(topics)))


def test_nobody_can_make_a_connection_hold_more_than_is_allowed() -> None:
    hearing = HearingInterests(InterestNames(), 16_384)
    for number in range(HELD // 16_384):
        hearing.hear(InterestsTold((), (packed(range(number, number + 16_384)),)))
    with pytest.raises(ProtocolError, match=str(HELD)):
        hearing.hear(InterestsTold((), (packed(range(LONG)),)))


def test_a_name_that_was_not_told_or_was_taken_back_is_refused() -> None:
    connection = Connection()
    short = connection.sender.batch([connection.sender.encode_short(InterestUpdate(1, OTHER))])
    with pytest.raises(ProtocolError, match="never told"):
        connection.receiver.decode(short[5:], connection.hearing)
    assert connection.send(InterestUpdate(1, OTHER)) == [InterestUpdate(1, OTHER)]
    connection.hearing.hear(InterestsTold((name_of(packed(sorted(OTHER))),), ()))
    with pytest.raises(ProtocolError, match="never told"):
        connection.receiver.decode(short[5:], connection.hearing)


def test_what_is_no_topic_goes_in_full() -> None:
    odd: Interest = LONG_ONE | {-1}
    connection = Connection()
    assert connection.sender.mentioned(InterestUpdate(1, odd)) == {}
    assert connection.sender.encode_short(InterestUpdate(1, odd)) == connection.sender.encode(
        InterestUpdate(1, odd)
    )


def test_messages_without_interests_have_no_twin() -> None:
    assert shape_of(Heartbeat) is None
    assert shape_of(Offer) is not None


@pytest.mark.parametrize("system", ["spidercast", "omen", "vitis"])
def test_live_nodes_with_thousands_of_topics_tell_them_once_per_connection(system: str) -> None:
    """And then serve them; also a topic that all of them came to want later."""
    wanted = [f"topic-{number}" for number in range(2000)]

    async def main() -> None:
        preset = Settings(insecure=True, preset="local", system=system)
        async with run_swarm([wanted] * 4, preset, seed=1) as nodes:
            await until_served(nodes, "topic-7")
            await asyncio.gather(*(node.subscribe("late") for node in nodes))
            await until_served(nodes, "late")
            assert sum(node.counters.protocol_errors + node.counters.node_errors for node in nodes) == 0
            links = [peer.link for node in nodes for peer in node.transport.peers.values()]
            assert any(link.told_interests.names for link in links if link is not None)

    run(main)
