"""Coverage-guided fuzzing of everything that reads bytes of a peer; test_fuzz.py does it for half a minute.

    python tests/live/fuzz_wire.py -max_total_time=300

Whatever comes, frames and their bodies give what they promise or a `ProtocolError`, never another exception.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

import atheris

with atheris.instrument_imports(include=["topicweave"]):
    from topicweave.blocks.broadcast_tree import Graft, IHave, Prepare, Prune, Push, Spill
    from topicweave.blocks.notify_pull import Notify, NotifyInline, Pull, Pulled
    from topicweave.blocks.peer_sampling import Answer, Offer
    from topicweave.blocks.topic_directory.messages import (
        Carry,
        OtherRecords,
        ProvenCarry,
        SameRecords,
        SlowCarry,
    )
    from topicweave.live import catch_up_messages
    from topicweave.live.frames import FrameSplitter, Kind, ProtocolError
    from topicweave.live.interests import LONG, HearingInterests, name_of
    from topicweave.live.wire import Codec, read_addresses, read_bye, read_hello, read_interests, read_number
    from topicweave.port import EventMessage
    from topicweave.systems.spidercast.messages import Connect, Heartbeat, InterestUpdate, Redirect
    from topicweave.systems.weave.messages import Carries, Meet
    from topicweave.systems.weave.nearness import HowFar, SoFar

TREE = (Push, IHave, Graft, Prune, Prepare, Spill)
PULL = (Notify, NotifyInline, Pull, Pulled)
OVERLAY = (Offer, Answer, Connect, Heartbeat, InterestUpdate, Redirect, Meet, Carries, HowFar, SoFar)
DIRECTORY = (Carry, ProvenCarry, SlowCarry, SameRecords, OtherRecords)
MOST_TOPICS, MOST_PAYLOAD = 100, 1000
CODEC = Codec([*TREE, *PULL, *OVERLAY, *DIRECTORY, *catch_up_messages.TYPES], MOST_TOPICS, MOST_PAYLOAD)


def hear_interests(body: bytes) -> None:
    HearingInterests(CODEC.names, MOST_TOPICS).hear(read_interests(body))


READERS: dict[Kind, Callable[[bytes], object]] = {
    Kind.HELLO: read_hello,
    Kind.ADDRESSES: read_addresses,
    Kind.BYE: read_bye,
    Kind.PING: read_number,
    Kind.INTERESTS: hear_interests,
}
NAMED = frozenset(range(LONG))
HEARD = HearingInterests(CODEC.names, MOST_TOPICS)
HEARD.held[name_of(b"".join(topic.to_bytes(8, "big") for topic in range(LONG)))] = NAMED


def read_frame(kind: int, body: bytes) -> None:
    if kind != Kind.MESSAGES:
        if kind in READERS:
            READERS[Kind(kind)](body)
        return
    for message in CODEC.decode(body, HEARD):
        assert type(message) in CODEC.types
        if isinstance(message, EventMessage):
            event = message.event
            assert len(event.payload) <= MOST_PAYLOAD
            assert 0 <= event.publisher < 1 << 64
            assert 0 <= event.sequence < 1 << 63
            assert 0 < message.hops < 1 << 31


def feed(data: bytes) -> None:
    # The first byte says in what pieces the rest arrives.
    splitter = FrameSplitter(1 << 16)
    step = max(1, data[0]) if data else 1
    with contextlib.suppress(ProtocolError):
        for start in range(1, len(data), step):
            splitter.feed(data[start : start + step])
            while (found := splitter.next()) is not None:
                read_frame(*found)
    # And as the body of each kind, so that lengths need not be guessed.
    for kind in (Kind.MESSAGES, *READERS):
        with contextlib.suppress(ProtocolError):
            read_frame(kind, data[1:])


if __name__ == "__main__":
    atheris.Setup(sys.argv, feed)
    atheris.Fuzz()
