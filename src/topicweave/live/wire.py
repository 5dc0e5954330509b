"""What frames hold: the hello, and messages in batches. See docs/wire-format.md.

Everything is MessagePack, decoded into typed structs by msgspec; nothing is ever unpickled. What does not decode is a
`ProtocolError` of the link it came over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Union

import msgspec

from topicweave.live.frames import Kind, ProtocolError, frame
from topicweave.live.settings import Address
from topicweave.model.ids import RING_SIZE, NodeId
from topicweave.port import EventMessage, Message

MAGIC = "topicweave"
VERSIONS = (1,)
"""The versions of the wire format that this code speaks."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class Hello(msgspec.Struct, frozen=True, array_like=True):
    """The first frame on a connection, from either side; the one who dialled speaks first.

    `versions` holds what the dialler speaks; the answer holds the one that was chosen. `instance` is drawn at each start of a
    node, so that a restarted peer is not mistaken for a second connection to the same one.
    """

    magic: Annotated[str, msgspec.Meta(max_length=16)]
    versions: Annotated[tuple[int, ...], msgspec.Meta(max_length=16)]
    swarm: Name
    system: Name
    id: NodeId
    name: Name
    address: Address
    instance: int


class AddressOf(msgspec.Struct, frozen=True, array_like=True):
    """Where a peer listens, as the sender knows it."""

    id: NodeId
    address: Address


class Bye(msgspec.Struct, frozen=True, array_like=True):
    """The last frame on a connection. `reason` is for people; `leaving` says that the node stops for good."""

    reason: Annotated[str, msgspec.Meta(max_length=200)]
    leaving: bool = False


_encode = msgspec.msgpack.Encoder().encode
_decode_hello = msgspec.msgpack.Decoder(Hello).decode
_decode_addresses = msgspec.msgpack.Decoder(Annotated[list[AddressOf], msgspec.Meta(max_length=4096)]).decode
_decode_bye = msgspec.msgpack.Decoder(Bye).decode


def hello_frame(hello: Hello) -> bytes:
    return frame(Kind.HELLO, _encode(hello))


def addresses_frame(addresses: Sequence[AddressOf]) -> bytes:
    return frame(Kind.ADDRESSES, _encode(addresses))


def bye_frame(bye: Bye) -> bytes:
    return frame(Kind.BYE, _encode(bye))


def number_frame(kind: Kind, number: int) -> bytes:
    """A PING, a PONG or a NEED_CREDENTIAL: its body is 8 bytes."""
    return frame(kind, number.to_bytes(8, "big"))


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

    def __init__(self, types: Iterable[type[Message]], topics_per_peer: int, payload_bytes: int) -> None:
        self.types = tuple(dict.fromkeys(types))
        any_of_them: Any = Union[self.types]  # noqa: UP007 - made of whatever the system has
        self._decode = msgspec.msgpack.Decoder(list[any_of_them]).decode
        self._topics_per_peer = topics_per_peer
        self._payload_bytes = payload_bytes
        self._checks = {type_: check for type_ in self.types if (check := _interest_check(type_))}
        self.introducing = frozenset(
            type_ for type_ in self.types if type_.introduces is not Message.introduces
        )
        """Those that may name peers whose addresses must be told first."""
        # A broadcast sends one object many times; it is encoded once.
        self._last: Message | None = None
        self._last_bytes = b""

    def encode(self, message: Message) -> bytes:
        if message is not self._last:
            self._last, self._last_bytes = message, _encode(message)
        return self._last_bytes

    def batch(self, encoded: Sequence[bytes]) -> bytes:
        """One frame that carries messages already encoded."""
        return frame(Kind.MESSAGES, array_header(len(encoded)) + b"".join(encoded))

    def decode(self, body: bytes) -> list[Message]:
        messages: list[Message] = _checked(self._decode, body, "messages")
        if len(body) > self._payload_bytes:
            for message in messages:
                if isinstance(message, EventMessage) and len(message.event.payload) > self._payload_bytes:
                    raise ProtocolError(f"an event of {len(message.event.payload)} bytes")
        if not self._checks.keys().isdisjoint(map(type, messages)):
            for message in messages:
                check = self._checks.get(type(message))
                if check is not None and check(message, self._topics_per_peer):
                    raise ProtocolError(f"more than {self._topics_per_peer} topics of one node")
        return messages


Check = Callable[[Any, int], bool]


def _interest_check(type_: type[msgspec.Struct]) -> Check | None:
    """Tells whether a struct holds an interest of more topics than allowed; None if it holds no interest.

    Interests are the only sets in messages, so one rule covers the messages of all systems, also of those yet to come.
    """
    info = msgspec.inspect.type_info(type_)
    assert isinstance(info, msgspec.inspect.StructType)
    sets: list[str] = []
    nested: list[tuple[str, Check]] = []
    for field in info.fields:
        kind = field.type
        if isinstance(kind, msgspec.inspect.FrozenSetType | msgspec.inspect.SetType):
            sets.append(field.name)
        elif isinstance(kind, msgspec.inspect.VarTupleType | msgspec.inspect.ListType):
            item = kind.item_type
            if isinstance(item, msgspec.inspect.StructType) and (check := _interest_check(item.cls)):
                nested.append((field.name, check))
    if not sets and not nested:
        return None

    def too_many(struct: Any, limit: int) -> bool:
        if any(len(getattr(struct, name)) > limit for name in sets):
            return True
        return any(check(item, limit) for name, check in nested for item in getattr(struct, name))

    return too_many
