"""The wire format: test vectors of docs/wire-format.md, and whatever else may come over a socket."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicweave.blocks.broadcast_tree import EventRun, Graft, IHave, Prune, Push
from topicweave.blocks.descriptors import Descriptor
from topicweave.blocks.peer_sampling import Offer
from topicweave.live import catch_up_messages
from topicweave.live.frames import FrameSplitter, Kind, ProtocolError, frame
from topicweave.live.interests import TellingInterests
from topicweave.live.settings import Address
from topicweave.live.wire import (
    AddressOf,
    Bye,
    Codec,
    Hello,
    Pong,
    VerdictOn,
    addresses_frame,
    ask_frame,
    bye_frame,
    hello_frame,
    interests_frame,
    number_frame,
    pong_frame,
    read_addresses,
    read_ask,
    read_bye,
    read_hello,
    read_interests,
    read_pong,
    read_verdicts,
    verdicts_frame,
)
from topicweave.model.event import Event, EventId
from topicweave.model.ids import ring_id
from topicweave.port import Message

TYPES: list[type[Message]] = [Push, IHave, Graft, Prune, Offer, *catch_up_messages.TYPES]
HELLO = Hello(
    *("topicweave", (6,), "demo", "spidercast", ring_id("alice"), "alice", Address("127.0.0.1", 7001), 42),
    *(1.5, 1, b""),
)


def codec(topics: int = 100, payload: int = 1000) -> Codec:
    return Codec(TYPES, topics, payload)


OFFER = Offer((Descriptor(1, 0.5, 2, frozenset(range(1, 33))),))
VECTORS = {
    "hello": hello_frame(HELLO),
    "messages": codec().batch(
        [codec().encode(Push(Event(1, 2, 3, 4, b"hi"), 1)), codec().encode(Prune(ring_id("news")))]
    ),
    "addresses": addresses_frame([AddressOf(ring_id("bob"), Address("127.0.0.1", 7002))]),
    "ping": number_frame(Kind.PING, 7),
    "pong": pong_frame(Pong(7, 1.5)),
    "ask": ask_frame([EventId(1, 2, 3, 4)]),
    "verdicts": verdicts_frame([VerdictOn(EventId(1, 2, 3, 4), "old-epoch", 9)]),
    "epoch": number_frame(Kind.EPOCH, 9),
    "bye": bye_frame(Bye("leaving", leaving=True)),
    "interests": interests_frame(*TellingInterests().news(codec().mentioned(OFFER).values())),
    "named": codec().batch([codec().encode_short(OFFER)]),
}


@pytest.mark.parametrize("name", VECTORS)
def test_the_documented_vectors_are_what_is_sent(name: str) -> None:
    page = Path(__file__).parents[2].joinpath("docs/wire-format.md").read_text()
    found = re.search(rf"^{name}:\n((?:    [0-9a-f ]+\n)+)", page, re.MULTILINE)
    assert found, f"docs/wire-format.md has no vector {name!r}"
    assert bytes.fromhex(found.group(1).replace("\n", " ")) == VECTORS[name]


def frames_of(data: bytes, limit: int = 1 << 16, step: int | None = None) -> list[tuple[int, bytes]]:
    splitter, found = FrameSplitter(limit), []
    for start in range(0, len(data), step or len(data) or 1):
        splitter.feed(data[start : start + (step or len(data))])
        while (one := splitter.next()) is not None:
            found.append(one)
    return found


@given(st.lists(st.tuples(st.sampled_from(list(Kind)), st.binary(max_size=300))), st.integers(1, 64))
def test_frames_come_out_as_they_went_in_however_they_are_cut(
    sent: list[tuple[Kind, bytes]], step: int
) -> None:
    data = b"".join(frame(kind, body) for kind, body in sent)
    assert frames_of(data, step=step) == [(int(kind), body) for kind, body in sent]


@pytest.mark.parametrize("length", [0, 1001, 1 << 31, (1 << 32) - 1])
def test_frames_of_no_or_too_many_bytes_are_refused_before_they_are_held(length: int) -> None:
    splitter = FrameSplitter(1000)
    splitter.feed(length.to_bytes(4, "big"))
    with pytest.raises(ProtocolError, match=f"{length} bytes"):
        splitter.next()


@given(st.binary(max_size=400))
def test_no_bytes_make_a_reader_fail_otherwise_than_by_a_protocol_error(data: bytes) -> None:
    readers = (read_hello, read_addresses, read_bye, read_interests, read_pong, read_ask, read_verdicts)
    for read in (*readers, codec().decode):
        with contextlib.suppress(ProtocolError):
            read(data)


SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=20)
TREES = st.recursive(
    SCALARS | st.binary(max_size=40) | st.sampled_from([str(type_.__struct_config__.tag) for type_ in TYPES]),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=30,
)


@given(st.lists(TREES, max_size=5))
def test_well_formed_nonsense_is_a_protocol_error_or_messages_of_the_right_types(tree: list[object]) -> None:
    try:
        messages = codec().decode(msgspec.msgpack.encode(tree))
    except ProtocolError:
        return
    assert all(type(message) in TYPES for message in messages)


IDS = st.integers(0, 2**64 - 1)
EVENTS = st.builds(Event, IDS, IDS, st.integers(0, 2**53), st.integers(0, 2**40), st.binary(max_size=100))
MESSAGES = st.one_of(
    st.builds(Push, EVENTS, st.integers(1, 99)),
    st.builds(Prune, IDS),
    st.builds(Graft, st.tuples(st.builds(EventRun, IDS, IDS, *[st.integers(0, 9)] * 3))),
)


@given(st.lists(MESSAGES, max_size=40))
def test_messages_survive_the_way(messages: list[object]) -> None:
    one = codec()
    framed = one.batch([one.encode(message) for message in messages])  # type: ignore[arg-type]  # messages of any kind
    ((kind, body),) = frames_of(framed)
    assert kind == Kind.MESSAGES
    assert one.decode(body) == messages


@given(st.lists(MESSAGES, min_size=1, max_size=5), st.data())
def test_damaged_messages_never_do_more_than_fail_to_decode(
    messages: list[object], data: st.DataObject
) -> None:
    one = codec()
    whole = bytearray(one.batch([one.encode(message) for message in messages])[5:])  # type: ignore[arg-type]  # messages of any kind
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ProtocolError):
        one.decode(bytes(whole))


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (Push(Event(1, 2, 3, 4, bytes(1001)), 1), "1001 bytes"),
        (Push(Event(-1, 2, 3, 4), 1), ">= 0"),
        (Push(Event(1, -2, 3, 4), 1), ">= 0"),
        (Push(Event(1, 2, 2**63, 4), 1), "<= 9223372036854775807"),
        (Push(Event(1, 2, 3, -4), 1), ">= 0"),
        (Push(Event(1, 2, 3, 4), 0), ">= 1"),
        (Push(Event(1, 2, 3, 4), 2**31), "<= 2147483647"),
        (Offer((Descriptor(1, 0.0, 1, frozenset(range(101))),)), "100 topics"),
    ],
)
def test_what_no_node_would_send_is_refused(message: Push, why: str) -> None:
    one = codec()
    with pytest.raises(ProtocolError, match=why):
        one.decode(one.batch([one.encode(message)])[5:])


def test_a_deep_nest_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError):
        codec().decode(b"\x91" * 100_000)


@pytest.mark.parametrize(
    "hello",
    [
        msgspec.structs.replace(HELLO, magic="http"),
        msgspec.structs.replace(HELLO, id=-5),
        msgspec.structs.replace(HELLO, address=Address("example.org", 80)),
        msgspec.structs.replace(HELLO, name="x" * 201),
    ],
)
def test_a_hello_that_cannot_be_is_refused(hello: Hello) -> None:
    with pytest.raises(ProtocolError):
        read_hello(hello_frame(hello)[5:])


def test_addresses_that_cannot_be_are_left_out() -> None:
    told = [AddressOf(1, Address("127.0.0.1", 80)), AddressOf(2, Address("not an address", 80))]
    told += [AddressOf(3, Address("127.0.0.1", 70_000)), AddressOf(-1, Address("127.0.0.1", 80))]
    assert read_addresses(addresses_frame(told)[5:]) == told[:1]
