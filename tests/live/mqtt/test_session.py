"""What a door owes one client: order, windows, answers, what happens when connections end. Held to a client
that forgets nothing.
"""

from __future__ import annotations

import random

import pytest

from topicweave.live.mqtt.envelope import MAGIC, MqttHead, unwrap, wrap
from topicweave.live.mqtt.packets import (
    V5,
    V311,
    MqttError,
    Packet,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Reason,
)
from topicweave.live.mqtt.session import Parcel, Session


def session(window: int = 10, aliases: int = 0, most: int = 100) -> Session:
    made = Session("me", most)
    assert made.connect(window, aliases, 0.0) == []
    return made


def parcel(text: str, qos: int = 1) -> Parcel:
    return Parcel("t", text.encode(), qos)


def payloads(packets: list[Publish]) -> list[str]:
    return [packet.payload.decode() for packet in packets]


def test_no_more_are_on_their_way_than_the_client_takes() -> None:
    one = session(window=2)
    for text in "abcd":
        one.put(parcel(text))
    first = one.take(0.0)
    assert payloads(first) == ["a", "b"]
    assert one.take(0.0) == []
    assert one.answered(Puback(first[0].packet_id), V5) == []
    assert payloads(one.take(0.0)) == ["c"]


def test_qos_2_is_two_exchanges() -> None:
    one = session()
    one.put(parcel("a", 2))
    (sent,) = one.take(0.0)
    assert one.answered(Pubrec(sent.packet_id), V5) == [Pubrel(sent.packet_id)]
    assert one.answered(Pubcomp(sent.packet_id), V5) == []
    assert len(one) == 0


def test_a_wrong_answer_is_an_error_and_an_unknown_one_is_none() -> None:
    one = session()
    one.put(parcel("a", 1))
    (sent,) = one.take(0.0)
    assert one.answered(Puback(77), V5) == []
    with pytest.raises(MqttError):
        one.answered(Pubcomp(sent.packet_id), V5)


def test_a_refused_message_of_qos_2_is_done() -> None:
    one = session()
    one.put(parcel("a", 2))
    (sent,) = one.take(0.0)
    assert one.answered(Pubrec(sent.packet_id, Reason.NOT_AUTHORIZED), V5) == []
    assert len(one) == 0


def test_what_was_on_its_way_goes_again() -> None:
    one = session()
    for text, qos in (("a", 1), ("b", 2), ("c", 2), ("d", 0)):
        one.put(parcel(text, qos))
    sent = one.take(0.0)
    one.answered(Pubrec(sent[1].packet_id), V5)
    one.disconnect(0.0)
    one.put(parcel("e", 0))
    one.put(parcel("f", 1))
    again = one.connect(10, 0, 0.0)
    assert [type(packet) for packet in again] == [Publish, Pubrel, Publish]
    assert all(packet.duplicate for packet in again if isinstance(packet, Publish))
    assert payloads(one.take(0.0)) == ["f"]


def test_a_release_is_answered() -> None:
    one = session()
    one.received.add(5)
    assert one.answered(Pubrel(5), V5) == [Pubcomp(5)]
    assert one.answered(Pubrel(5), V5) == [Pubcomp(5, Reason.ID_NOT_FOUND)]
    assert one.answered(Pubrel(5), V311) == [Pubcomp(5)]


def test_beyond_its_bound_the_oldest_of_qos_0_goes_then_the_oldest() -> None:
    one = session(window=1, most=3)
    one.put(parcel("first"))
    one.take(0.0)
    for text, qos in (("a", 1), ("b", 0), ("c", 1), ("d", 1), ("e", 1)):
        one.put(parcel(text, qos))
    assert one.dropped == 2
    one.answered(Puback(1), V5)
    assert payloads(one.take(0.0)) == ["c"]


def test_messages_expire_and_say_what_is_left() -> None:
    one = session()
    one.put(Parcel("t", b"late", 1, expires=5.0))
    one.put(Parcel("t", b"in time", 1, expires=15.0))
    (sent,) = one.take(10.0)
    assert (sent.payload, sent.properties["message_expiry"]) == (b"in time", 5)


def test_the_first_topics_get_short_names() -> None:
    one = session(aliases=1)
    for topic in ("a", "b", "a"):
        one.put(Parcel(topic, b""))
    assert [(packet.topic, packet.properties.get("alias")) for packet in one.take(0.0)] == [
        ("a", 1),
        ("b", None),
        ("", 1),
    ]


@pytest.mark.parametrize("seed", range(30))
def test_through_lost_connections_qos_1_comes_at_least_once_and_qos_2_once(seed: int) -> None:
    """A client that may vanish at any moment, with all that is on its way to it."""
    rng = random.Random(seed)
    one = session(window=rng.randint(1, 5), most=1000)
    got: dict[int, list[str]] = {1: [], 2: []}
    unreleased: dict[int, str] = {}
    sent = {1: 0, 2: 0}
    to_client: list[Packet] = []
    to_door: list[Packet] = []

    def client(packet: Packet) -> None:
        if isinstance(packet, Publish) and packet.qos == 1:
            got[1].append(packet.payload.decode())
            to_door.append(Puback(packet.packet_id))
        elif isinstance(packet, Publish):
            unreleased.setdefault(packet.packet_id, packet.payload.decode())
            to_door.append(Pubrec(packet.packet_id))
        elif isinstance(packet, Pubrel):
            if packet.packet_id in unreleased:
                got[2].append(unreleased.pop(packet.packet_id))
            to_door.append(Pubcomp(packet.packet_id))

    for step in range(400):
        if step < 200 and rng.random() < 0.5:
            qos = rng.randint(1, 2)
            one.put(parcel(f"{qos}-{sent[qos]}", qos))
            sent[qos] += 1
        if step < 300 and rng.random() < 0.05:
            to_client.clear()
            to_door.clear()
            one.disconnect(0.0)
            to_client += one.connect(rng.randint(1, 5), 0, 0.0)
        to_client += one.take(0.0)
        for _ in range(rng.randint(0, 4) if step < 300 else 10):
            if to_client:
                client(to_client.pop(0))
            if to_door:
                answer = to_door.pop(0)
                assert isinstance(answer, Puback | Pubrec | Pubcomp)
                to_client += one.answered(answer, V5)
    assert len(one) == 0
    assert sorted(got[2]) == sorted(f"2-{number}" for number in range(sent[2]))
    assert set(got[1]) == {f"1-{number}" for number in range(sent[1])}


def test_an_envelope_only_where_one_is_needed() -> None:
    assert wrap(b"plain") == b"plain"
    assert unwrap(b"plain") == (b"plain", MqttHead())
    pairs = {"user_property": [("a", "b"), ("a", "c")], "correlation_data": b"\0\1", "message_expiry": 7}
    assert unwrap(wrap(b"x", pairs, 3.5)) == (b"x", MqttHead(pairs, 3.5))
    assert unwrap(wrap(MAGIC + b"x")) == (MAGIC + b"x", MqttHead())


def headed(head: bytes) -> bytes:
    return MAGIC + len(head).to_bytes(4, "big") + head + b"x"


@pytest.mark.parametrize(
    "data",
    [
        MAGIC,
        MAGIC + b"\xff\xff\xff\xff",
        MAGIC + b"\0\0\0\1\xc1",
        wrap(b"x", {"content_type": "a\0b"}),
        wrap(b"x", {"content_type": "a" * 70_000}),
        wrap(b"x", {"payload_format": 9}),
        headed(b"\x93\x80\x00\xa1\xff"),
        headed(b"\x93\x81\xa1a" + b"\x91" * 100_000 + b"\xc0\x00\xa0"),
    ],
)
def test_a_head_that_cannot_be_passed_on_is_somebodys_own_bytes(data: bytes) -> None:
    assert unwrap(data) == (data, MqttHead())
