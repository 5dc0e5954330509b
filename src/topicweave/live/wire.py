"""What frames hold: the hello, and messages in batches. See docs/wire-format.md.

Everything is MessagePack, decoded into typed structs by msgspec; nothing is ever unpickled. A frame that
does not decode is a `ProtocolError` of its link.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, NamedTuple, Union, cast

import msgspec

from topicweave.live.frames import Kind, ProtocolError, frame
from topicweave.live.interests import (
    HearingInterests,
    InterestNames,
    InterestsTold,
    NamedInterest,
    Shape,
    shape_of,
)
from topicweave.live.memory import Memory
from topicweave.live.settings import LONGEST_NAME, Address
from topicweave.model.event import EventId
from topicweave.model.ids import RING_SIZE, Interest, NodeId
from topicweave.port import EventMessage, Message

MAGIC = "topicweave"
VERSIONS = (5, 6, 7, 8, 9)
"""The versions of the wire format that this code speaks."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]


class Hello(msgspec.Struct, frozen=True, array_like=True):
    """The first frame on a connection, from either side; the one who dialled speaks first.

    `versions` holds what the dialler speaks; the answer holds the one that was chosen. `instance` is drawn at
    each start of a node, so that a restarted peer is not mistaken for a second connection to the same one.
    `time` is the sender's wall clock; `issued` and `signature` prove `address` to whoever is told of it later
    (see `AddressOf`).
    """

    magic: Annotated[str, msgspec.Meta(max_length=16)]
    versions: Annotated[tuple[int, ...], msgspec.Meta(max_length=16)]
    swarm: Name
    system: Name
    id: NodeId
    name: Name
    address: Address
    instance: int
    time: float = 0.0
    issued: int = 0
    signature: Annotated[bytes, msgspec.Meta(max_length=128)] = b""

    def answer(self, version: int) -> Hello:
        return msgspec.structs.replace(self, versions=(version,))


class AddressOf(msgspec.Struct, frozen=True, array_like=True):
    """Where a peer listens, as the sender knows it; in a swarm with keys signed by that peer, at `issued`
    (Unix time).
    """

    id: NodeId
    address: Address
    issued: int = 0
    signature: Annotated[bytes, msgspec.Meta(max_length=128)] = b""


class Bye(msgspec.Struct, frozen=True, array_like=True):
    """The last frame on a connection. `reason` is for people; `leaving` says that the node stops for good."""

    reason: Annotated[str, msgspec.Meta(max_length=400)]
    leaving: bool = False


class Pong(NamedTuple):
    """The answer to a ping: its number, and the wall clock here."""

    number: int
    time: float


class Ask(msgspec.Struct, frozen=True, array_like=True):
    """Say of these events whether you accepted them."""

    events: Annotated[tuple[EventId, ...], msgspec.Meta(max_length=1024)]


class VerdictOn(msgspec.Struct, frozen=True, array_like=True):
    """`refusal` is empty for an event that was accepted, else the reason's name; `epoch` is the highest epoch
    known of the publisher.
    """

    event: EventId
    refusal: Annotated[str, msgspec.Meta(max_length=40)] = ""
    epoch: int = 0


_encode = msgspec.msgpack.Encoder().encode
_decode_hello = msgspec.msgpack.Decoder(Hello).decode
_decode_addresses = msgspec.msgpack.Decoder(Annotated[list[AddressOf], msgspec.Meta(max_length=4096)]).decode
_decode_bye = msgspec.msgpack.Decoder(Bye).decode
_decode_interests = msgspec.msgpack.Decoder(InterestsTold).decode
_decode_ask = msgspec.msgpack.Decoder(Ask).decode
_decode_verdicts = msgspec.msgpack.Decoder(Annotated[list[VerdictOn], msgspec.Meta(max_length=1024)]).decode
_PONG = struct.Struct(">Qd")


def hello_frame(hello: Hello) -> bytes:
    return frame(Kind.HELLO, _encode(hello))


def addresses_frame(addresses: Sequence[AddressOf]) -> bytes:
    return frame(Kind.ADDRESSES, _encode(addresses))


def interests_frame(told: InterestsTold) -> bytes:
    return frame(Kind.INTERESTS, _encode(told))


def bye_frame(bye: Bye) -> bytes:
    return frame(Kind.BYE, _encode(bye))


def number_frame(kind: Kind, number: int) -> bytes:
    """A PING or an EPOCH: its body is 8 bytes."""
    return frame(kind, number.to_bytes(8, "big"))


def pong_frame(pong: Pong) -> bytes:
    return frame(Kind.PONG, _PONG.pack(*pong))


def read_pong(body: bytes) -> Pong:
    if len(body) != _PONG.size:
        raise ProtocolError(f"a pong of {len(body)} bytes instead of {_PONG.size}")
    return Pong(*_PONG.unpack(body))


def ask_frame(events: Sequence[EventId]) -> bytes:
    return frame(Kind.ASK, _encode(Ask(tuple(events))))


def read_ask(body: bytes) -> Ask:
    ask: Ask = _checked(_decode_ask, body, "ask")
    return ask


def verdicts_frame(verdicts: Sequence[VerdictOn]) -> bytes:
    return frame(Kind.VERDICTS, _encode(verdicts))


def read_verdicts(body: bytes) -> list[VerdictOn]:
    verdicts: list[VerdictOn] = _checked(_decode_verdicts, body, "verdicts")
    return verdicts


def read_number(body: bytes) -> int:
    if len(body) != 8:
        raise ProtocolError(f"a number of {len(body)} bytes instead of 8")
    return int.from_bytes(body, "big")


def read_hello(body: bytes) -> Hello:
    hello: Hello = _checked(_decode_hello, body, "hello")
    if hello.magic != MAGIC:
        raise ProtocolError(f"not a Topicweave hello but {hello.magic!r}")
    if not 0 <= hello.id < RING_SIZE:
        raise ProtocolError(f"a node id of {hello.id}")
    if not hello.address.valid():
        raise ProtocolError(f"a node that listens at {hello.address.host!r}")
    return hello


def read_addresses(body: bytes) -> list[AddressOf]:
    """Those that could be true; the rest is left out."""
    told = _checked(_decode_addresses, body, "addresses")
    return [entry for entry in told if 0 <= entry.id < RING_SIZE and entry.address.valid()]


def read_interests(body: bytes) -> InterestsTold:
    told: InterestsTold = _checked(_decode_interests, body, "interests")
    return told


def read_bye(body: bytes) -> Bye:
    bye: Bye = _checked(_decode_bye, body, "bye")
    return bye


def _checked(decode: Callable[[bytes], Any], body: bytes, what: str) -> Any:
    try:
        return decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ProtocolError(f"{what}: {error}") from None


def array_header(length: int) -> bytes:
    """The first bytes of a MessagePack array.

    >>> array_header(3).hex(), array_header(300).hex(), array_header(70000).hex()
    ('93', 'dc012c', 'dd00011170')
    """
    if length < 16:
        return bytes((0x90 | length,))
    if length < 1 << 16:
        return b"\xdc" + length.to_bytes(2, "big")
    return b"\xdd" + length.to_bytes(4, "big")


class Codec:
    """Encodes and decodes the messages of one system, and of the services that every live node has."""

    def __init__(
        self,
        types: Iterable[type[Message]],
        topics_per_peer: int,
        payload_bytes: int,
        memory: Memory | None = None,
    ) -> None:
        self.types = tuple(dict.fromkeys(types))
        self._shapes: dict[type, Shape] = {
            type_: shape for type_ in self.types if (shape := shape_of(type_)) is not None
        }
        self._twins = {shape.twin: shape for shape in self._shapes.values()}
        decoded = [self._shapes[type_].twin if type_ in self._shapes else type_ for type_ in self.types]
        any_of_them: Any = Union[tuple(decoded)]  # noqa: UP007 - made of whatever the system has
        self._decode = msgspec.msgpack.Decoder(list[any_of_them]).decode
        self.names = InterestNames(memory)
        self._topics_per_peer = topics_per_peer
        self._payload_bytes = payload_bytes
        self.introducing = frozenset(
            type_ for type_ in self.types if type_.introduces is not Message.introduces
        )
        """Those that may name peers whose addresses must be told first."""
        self.proving = frozenset(type_ for type_ in self.types if type_.vouchers is not Message.vouchers)
        """Those that may bring proofs, for which certificates must be told first."""
        # A broadcast sends one object many times; it is encoded once.
        self._last: Message | None = None
        self._last_bytes = b""
        self._last_burst: Sequence[Message] = ()
        self._last_burst_bytes: tuple[list[bytes], int] = ([], 0)
        self._last_short: Message | None = None
        self._last_short_bytes = b""

    def encode(self, message: Message) -> bytes:
        if message is not self._last:
            self._last, self._last_bytes = message, _encode(message)
        return self._last_bytes

    def encode_burst(self, messages: Sequence[Message]) -> tuple[list[bytes], int]:
        """Several messages, and how many bytes they are together; what goes to several peers is encoded once."""
        if messages is not self._last_burst:
            encoded = [_encode(message) for message in messages]
            self._last_burst, self._last_burst_bytes = messages, (encoded, sum(map(len, encoded)))
        return self._last_burst_bytes

    def mentioned(self, message: Message) -> dict[bytes, NamedInterest]:
        """The interests in a message that may go by their names."""
        shape = self._shapes.get(type(message))
        if shape is None:
            return {}
        named = (self.names.of(interest) for interest in shape.interests(message))
        return {one.name: one for one in named if one is not None}

    def encode_short(self, message: Message) -> bytes:
        """With the names of interests instead of themselves."""
        if message is not self._last_short:
            short = self._shapes[type(message)].shortened(message, self.names.of)
            self._last_short, self._last_short_bytes = message, _encode(short)
        return self._last_short_bytes

    def batch(self, encoded: Sequence[bytes]) -> bytes:
        """One frame that carries messages already encoded."""
        return frame(Kind.MESSAGES, array_header(len(encoded)) + b"".join(encoded))

    def decode(self, body: bytes, told: HearingInterests | None = None) -> list[Message]:
        """`told`: the interests that the sender told, by name."""
        messages: list[Message] = _checked(self._decode, body, "messages")
        if not self._twins.keys().isdisjoint(map(type, messages)):
            full = (told or HearingInterests(self.names, self._topics_per_peer)).full
            messages = [self._restored(message, full) for message in messages]
        if len(body) > self._payload_bytes:
            for message in messages:
                if isinstance(message, EventMessage) and len(message.event.payload) > self._payload_bytes:
                    raise ProtocolError(f"an event of {len(message.event.payload)} bytes")
        return messages

    def _restored(self, message: Message, full: Callable[[Interest | bytes], Interest]) -> Message:
        shape = self._twins.get(type(message))
        if shape is None:
            return message
        return cast(Message, shape.restored(message, full))
