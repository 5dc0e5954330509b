"""MQTT packets to bytes and back: every packet of both versions, other people's encoder, and bytes that are none."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paho.mqtt import properties as paho_properties
from paho.mqtt.packettypes import PacketTypes

from topicweave.live.mqtt.codec import PROPERTIES, Reader, encode, write_properties
from topicweave.live.mqtt.packets import (
    V5,
    V311,
    Auth,
    Connack,
    Connect,
    Disconnect,
    MqttError,
    Packet,
    Pingreq,
    Pingresp,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Reason,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    Will,
    Wish,
)

MOST = 1 << 20
PahoProperties: Any = paho_properties.Properties  # It has no types.
FEW = settings(max_examples=40)

text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
data = st.binary(max_size=40)
number = st.integers(1, 0xFFFF)
qos = st.integers(0, 2)
FORMS: dict[int, st.SearchStrategy[Any]] = {
    0: st.integers(0, 1),
    1: number,
    2: st.integers(1, 0xFFFF_FFFF),
    3: st.integers(1, 268_435_455),
    4: text,
    5: data,
    6: st.tuples(text, text),
}


def properties(where: type) -> st.SearchStrategy[dict[str, Any]]:
    choices = {
        one.name: st.lists(
            FORMS[one.form], min_size=1, max_size=1 if where is Subscribe and one.form == 3 else 3
        )
        if one.name in ("user_property", "subscription_id")
        else FORMS[one.form]
        for one in PROPERTIES.values()
        if where in one.where
    }
    return st.fixed_dictionaries({}, optional=choices)


def packets(version: int) -> st.SearchStrategy[Packet]:
    def has(where: type) -> st.SearchStrategy[dict[str, Any]]:
        return properties(where) if version == V5 else st.just({})

    reason = st.integers(0, 255) if version == V5 else st.just(0)
    options = (qos, st.booleans(), st.booleans(), st.integers(0, 2)) if version == V5 else (qos,)
    wishes = st.lists(st.builds(Wish, text, *options), min_size=1, max_size=4).map(tuple)
    reasons = st.lists(st.integers(0, 255), max_size=4).map(tuple)
    wills = st.none() | st.builds(Will, text, data, qos, st.booleans(), has(Will))
    publishes = st.one_of(
        st.builds(Publish, text, data, st.just(0), st.booleans(), properties=has(Publish)),
        st.builds(Publish, text, data, st.integers(1, 2), st.booleans(), st.booleans(), number, has(Publish)),
    )
    return st.one_of(
        st.builds(
            Connect,
            text,
            st.just(version),
            st.booleans(),
            st.integers(0, 0xFFFF),
            text,
            st.none() | data,
            wills,
            has(Connect),
        ),
        st.builds(Connack, st.integers(0, 255), st.booleans(), has(Connack)),
        publishes,
        *(st.builds(kind, number, reason, has(kind)) for kind in (Puback, Pubrec, Pubrel, Pubcomp)),
        st.builds(Subscribe, number, wishes, has(Subscribe)),
        st.builds(Suback, number, reasons, has(Suback)),
        st.builds(Unsubscribe, number, st.lists(text, min_size=1, max_size=4).map(tuple), has(Unsubscribe)),
        st.builds(Unsuback, number, reasons if version == V5 else st.just(()), has(Unsuback)),
        st.just(Pingreq()),
        st.just(Pingresp()),
        st.builds(Disconnect, reason, has(Disconnect)),
        *([st.builds(Auth, reason, has(Auth))] if version == V5 else []),
    )


@FEW
@given(st.data(), st.sampled_from([V311, V5]))
def test_what_is_written_is_read_again_however_it_is_cut(draw: st.DataObject, version: int) -> None:
    sent = draw.draw(st.lists(packets(version), max_size=4))
    written = b"".join(encode(packet, version) for packet in sent)
    reader = Reader(MOST, version)
    read: list[Packet] = []
    while written:
        cut = draw.draw(st.integers(1, len(written)))
        read += reader.feed(written[:cut])
        written = written[cut:]
    assert read == sent


@FEW
@given(st.binary(max_size=200), st.sampled_from([0, V311, V5]))
def test_any_bytes_are_packets_or_one_named_error(written: bytes, version: int) -> None:
    with contextlib.suppress(MqttError):
        list(Reader(MOST, version).feed(written))


@FEW
@given(st.data(), st.sampled_from([V311, V5]))
def test_a_changed_byte_is_a_packet_or_one_named_error(draw: st.DataObject, version: int) -> None:
    written = bytearray(encode(draw.draw(packets(version)), version))
    written[draw.draw(st.integers(0, len(written) - 1))] = draw.draw(st.integers(0, 255))
    with contextlib.suppress(MqttError):
        list(Reader(MOST, version).feed(bytes(written)))


PAHO_NAMES = {
    "payload_format": "PayloadFormatIndicator",
    "message_expiry": "MessageExpiryInterval",
    "content_type": "ContentType",
    "response_topic": "ResponseTopic",
    "correlation_data": "CorrelationData",
    "subscription_id": "SubscriptionIdentifier",
    "alias": "TopicAlias",
    "user_property": "UserProperty",
}


@FEW
@given(properties(Publish))
def test_paho_reads_the_properties_that_we_write_and_writes_those_that_we_read(ours: dict[str, Any]) -> None:
    theirs = PahoProperties(PacketTypes.PUBLISH)
    theirs.unpack(write_properties(ours))
    read = {name: getattr(theirs, paho) for name, paho in PAHO_NAMES.items() if hasattr(theirs, paho)}
    if "subscription_id" in read and not isinstance(read["subscription_id"], list):
        read["subscription_id"] = [read["subscription_id"]]
    assert read == ours
    body = b"\0\1t" + theirs.pack()
    (packet,) = Reader(MOST, V5).feed(bytes([0x30]) + _length(len(body)) + body)
    assert isinstance(packet, Publish)
    assert packet.properties == ours


def _length(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 0x7F | 0x80, value >> 7])


@pytest.mark.parametrize(
    ("written", "version", "reason"),
    [
        ("100c00044d5154540402003c0000", 0, None),  # Connect of 3.1.1, as in the standard's section 3.1
        ("100e00064d514973647003 02003c0000".replace(" ", ""), 0, Reason.BAD_VERSION),  # MQTT 3.1
        ("c000", 0, Reason.PROTOCOL_ERROR),  # a ping first
        ("3600", V5, Reason.MALFORMED),  # QoS 3
        ("8203000100", V311, Reason.MALFORMED),  # cut inside a filter
        ("82020001", V311, Reason.PROTOCOL_ERROR),  # no filter
        ("8005000100016100", V311, Reason.MALFORMED),  # Subscribe without its flags
        ("30ffffffff01", V5, Reason.MALFORMED),  # a length of five bytes
        ("30ffffff7f", V5, Reason.TOO_LARGE),
        ("3003000161", V311, None),
        ("30030001ff", V311, Reason.MALFORMED),  # not UTF-8
        ("3003000100", V311, Reason.MALFORMED),  # a null character
        ("40020000", V311, Reason.PROTOCOL_ERROR),  # number 0
        ("f000", V311, Reason.MALFORMED),  # Auth is MQTT 5's
        ("300700016103230000", V5, Reason.BAD_ALIAS),  # alias 0
        ("30080001610401000101", V5, Reason.PROTOCOL_ERROR),  # a property twice
    ],
)
def test_the_rules_of_the_format(written: str, version: int, reason: Reason | None) -> None:
    reader = Reader(MOST, version)
    if reason is None:
        assert len(list(reader.feed(bytes.fromhex(written)))) == 1
    else:
        with pytest.raises(MqttError) as caught:
            list(reader.feed(bytes.fromhex(written)))
        assert caught.value.reason is reason


@FEW
@given(st.data())
def test_a_message_of_3_1_1_that_is_too_large_is_passed_over(draw: st.DataObject) -> None:
    messages = st.builds(
        Publish, st.sampled_from(["t", "é/7"]), st.binary(max_size=60), st.sampled_from([0, 1, 2])
    )
    sent = [
        msgspec.structs.replace(one, packet_id=7 if one.qos else 0)
        for one in draw.draw(st.lists(messages, max_size=5))
    ]
    written = b"".join(encode(packet, V311) for packet in sent)
    reader = Reader(30, V311)
    read: list[Packet] = []
    while written:
        cut = draw.draw(st.integers(1, len(written)))
        read += reader.feed(written[:cut])
        written = written[cut:]
    assert read == [
        one
        if len(encode(one, V311)) <= 30
        else msgspec.structs.replace(one, payload=b"", unread=len(one.payload))
        for one in sent
    ]


def test_packets_in_front_of_a_broken_one_are_read() -> None:
    reader = Reader(MOST, V311)
    packets = reader.feed(encode(Pingreq(), V311) + b"\xff\x00")
    assert next(packets) == Pingreq()
    with pytest.raises(MqttError):
        next(packets)
