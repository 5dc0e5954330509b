"""MQTT packets to bytes and back, for 3.1.1 and 5.0, without I/O.

A `Reader` is fed whatever arrives and gives whole packets. The first packet of a connection, Connect, says
the version; it holds for all that follow. A packet that breaks a rule of the format raises `MqttError` with
the reason that MQTT 5 has for it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import msgspec

from topicweave.live.mqtt.packets import (
    NO_PROPERTIES,
    V5,
    V311,
    Answer,
    Auth,
    Connack,
    Connect,
    Disconnect,
    MqttError,
    Packet,
    Pingreq,
    Pingresp,
    Properties,
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

MOST_BYTES = 268_435_460
"""The largest packet that the format can say."""
KINDS: dict[int, type[Packet]] = {
    1: Connect,
    2: Connack,
    3: Publish,
    4: Puback,
    5: Pubrec,
    6: Pubrel,
    7: Pubcomp,
    8: Subscribe,
    9: Suback,
    10: Unsubscribe,
    11: Unsuback,
    12: Pingreq,
    13: Pingresp,
    14: Disconnect,
    15: Auth,
}
NUMBERS = {kind: number for number, kind in KINDS.items()}
FLAGS = {6: 2, 8: 2, 10: 2}
"""The lower half of a packet's first byte is fixed: 0, but for these, and for Publish, which uses it."""

ONE, TWO, FOUR, NUMBER, TEXT, BYTES, PAIR = range(7)
"""How a property's value is written."""
_ANSWERS = (Puback, Pubrec, Pubrel, Pubcomp)
_ALL = (
    Connack,
    *_ANSWERS,
    Suback,
    Unsuback,
    Disconnect,
    Auth,
    Connect,
    Publish,
    Subscribe,
    Unsubscribe,
    Will,
)


class Property(NamedTuple):
    name: str
    form: int
    where: tuple[type, ...]


PROPERTIES: dict[int, Property] = {
    1: Property("payload_format", ONE, (Publish, Will)),
    2: Property("message_expiry", FOUR, (Publish, Will)),
    3: Property("content_type", TEXT, (Publish, Will)),
    8: Property("response_topic", TEXT, (Publish, Will)),
    9: Property("correlation_data", BYTES, (Publish, Will)),
    11: Property("subscription_id", NUMBER, (Publish, Subscribe)),
    17: Property("session_expiry", FOUR, (Connect, Connack, Disconnect)),
    18: Property("assigned_client_id", TEXT, (Connack,)),
    19: Property("server_keep_alive", TWO, (Connack,)),
    21: Property("auth_method", TEXT, (Connect, Connack, Auth)),
    22: Property("auth_data", BYTES, (Connect, Connack, Auth)),
    23: Property("request_problems", ONE, (Connect,)),
    24: Property("will_delay", FOUR, (Will,)),
    25: Property("request_response", ONE, (Connect,)),
    26: Property("response_information", TEXT, (Connack,)),
    28: Property("server_reference", TEXT, (Connack, Disconnect)),
    31: Property("reason_text", TEXT, (Connack, *_ANSWERS, Suback, Unsuback, Disconnect, Auth)),
    33: Property("receive_maximum", TWO, (Connect, Connack)),
    34: Property("alias_maximum", TWO, (Connect, Connack)),
    35: Property("alias", TWO, (Publish,)),
    36: Property("maximum_qos", ONE, (Connack,)),
    37: Property("retain_available", ONE, (Connack,)),
    38: Property("user_property", PAIR, _ALL),
    39: Property("maximum_packet", FOUR, (Connect, Connack)),
    40: Property("wildcards_available", ONE, (Connack,)),
    41: Property("subscription_ids_available", ONE, (Connack,)),
    42: Property("shared_available", ONE, (Connack,)),
}
_NUMBER_OF = {one.name: number for number, one in PROPERTIES.items()}
_SWITCHES = frozenset(
    {"payload_format", "request_problems", "request_response", "maximum_qos", "retain_available"}
    | {"wildcards_available", "subscription_ids_available", "shared_available"}
)
_NOT_ZERO = frozenset({"receive_maximum", "maximum_packet", "alias", "subscription_id"})


def malformed(text: str) -> MqttError:
    return MqttError(Reason.MALFORMED, text)


def wrong(text: str) -> MqttError:
    return MqttError(Reason.PROTOCOL_ERROR, text)


# Bytes to packets.


class _Body:
    """The bytes of one packet, taken from the front."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise malformed("a packet ends in the middle of a field")
        self._at += count
        return self._data[self._at - count : self._at]

    def one(self) -> int:
        return self.take(1)[0]

    def two(self) -> int:
        return int.from_bytes(self.take(2), "big")

    def four(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def number(self) -> int:
        value = 0
        for place in range(4):
            byte = self.one()
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                if place and not byte:
                    raise malformed("a number takes more bytes than it needs")
                return value
        raise malformed("a number takes more than four bytes")

    def data(self) -> bytes:
        return self.take(self.two())

    def text(self) -> str:
        try:
            text = self.data().decode()
        except UnicodeDecodeError:
            raise malformed("a text is not UTF-8") from None
        if "\0" in text:
            raise malformed("a text holds the null character")
        return text

    def rest(self) -> bytes:
        return self.take(self.left)

    def pair(self) -> tuple[str, str]:
        return self.text(), self.text()

    def packet_id(self) -> int:
        number = self.two()
        if not number:
            raise wrong("a packet has the number 0")
        return number

    def properties(self, where: type) -> Properties:
        length = self.number()
        if not length:
            return NO_PROPERTIES
        body = _Body(self.take(length))
        found: Properties = {}
        while body.left:
            number = body.number()
            known = PROPERTIES.get(number)
            if known is None or where not in known.where:
                raise malformed(f"{where.__name__} has no property {number}")
            value = _READ[known.form](body)
            _check_property(known.name, value)
            if known.name == "user_property" or (known.name == "subscription_id" and where is Publish):
                found.setdefault(known.name, []).append(value)
            elif known.name in found:
                raise wrong(f"the property {known.name} comes twice")
            else:
                found[known.name] = [value] if known.name == "subscription_id" else value
        return found


_READ: dict[int, Callable[[_Body], Any]] = {
    ONE: _Body.one,
    TWO: _Body.two,
    FOUR: _Body.four,
    NUMBER: _Body.number,
    TEXT: _Body.text,
    BYTES: _Body.data,
    PAIR: _Body.pair,
}


def _check_property(name: str, value: Any) -> None:
    if name in _SWITCHES and value > 1:
        raise wrong(f"the property {name} is {value}")
    # An alias of 0 is told apart: MQTT 5 has a reason of its own for it.
    if name in _NOT_ZERO and not value:
        raise MqttError(Reason.BAD_ALIAS if name == "alias" else Reason.PROTOCOL_ERROR, f"{name} is 0")


class Reader:
    """Collects bytes of one connection and gives the packets in them."""

    def __init__(self, most_bytes: int, version: int = 0) -> None:
        self.version = version
        """0 until a Connect has told it."""
        self.most_bytes = most_bytes
        self._data = bytearray()
        self._cut: Publish | None = None
        """A message of which nothing but its head is read, and the bytes of it that are still to come."""
        self._left = 0

    def feed(self, data: bytes) -> Iterator[Packet]:
        """The packets that are whole. Each is read when it is asked for, so that a broken one does not hide
        those in front of it.
        """
        self._data += data
        return self._packets()

    def _packets(self) -> Iterator[Packet]:
        while (packet := self._next()) is not None:
            yield packet

    def _next(self) -> Packet | None:
        if self._cut is None:
            found = self._split()
            if found is not None:
                return self._packet(*found)
        if self._cut is None:
            return None
        passed = min(self._left, len(self._data))
        del self._data[:passed]
        self._left -= passed
        if self._left:
            return None
        cut, self._cut = self._cut, None
        return cut

    def _split(self) -> tuple[int, bytes] | None:
        data = self._data
        length, at = 0, 1
        while True:
            if at >= len(data):
                return None
            byte = data[at]
            length |= (byte & 0x7F) << (7 * (at - 1))
            at += 1
            if byte < 0x80:
                break
            if at == 5:
                raise malformed("a packet's length takes more than four bytes")
        if at + length > self.most_bytes:
            if self.version == V311 and data[0] >> 4 == 3:
                self._begin_cut(at, length)
                return None
            raise MqttError(
                Reason.TOO_LARGE, f"a packet of {at + length} bytes; at most {self.most_bytes} are taken"
            )
        if len(data) < at + length:
            return None
        first, body = data[0], bytes(data[at : at + length])
        del data[: at + length]
        return first, body

    def _begin_cut(self, at: int, length: int) -> None:
        """Clients of 3.1.1 are not told what is too large. Without an answer they send it again for ever: so its
        head is read, and what follows is passed over.
        """
        data = self._data
        if len(data) < at + 2:
            return
        head = 2 + int.from_bytes(data[at : at + 2], "big") + (2 if data[0] & 6 else 0)
        if head > length:
            raise malformed("a packet ends within a text")
        if len(data) >= at + head:
            publish = _read_publish(_Body(bytes(data[at : at + head])), data[0] & 15, V311)
            self._left = length - head
            self._cut = msgspec.structs.replace(publish, unread=self._left)
            del data[: at + head]

    def _packet(self, first: int, data: bytes) -> Packet:
        number, flags = first >> 4, first & 15
        kind = KINDS.get(number)
        if kind is None or (kind is Auth and self.version == V311):
            raise malformed(f"packets of kind {number} are unknown")
        if not self.version and kind is not Connect:
            raise wrong("the first packet is not a Connect")
        if kind is not Publish and flags != FLAGS.get(number, 0):
            raise malformed(f"{kind.__name__} has the flags {flags}")
        body = _Body(data)
        packet: Packet
        if kind is Publish:
            packet = _read_publish(body, flags, self.version)
        elif kind is Connect:
            packet = connect = _read_connect(body)
            self.version = connect.version
        else:
            packet = _READERS[kind](body, self.version)
        if body.left:
            raise malformed(f"{kind.__name__} is followed by {body.left} bytes")
        return packet


def _read_connect(body: _Body) -> Connect:
    name, version = body.text(), body.one()
    if (name, version) not in (("MQTT", V311), ("MQTT", V5)):
        raise MqttError(
            Reason.BAD_VERSION, f"protocol {name[:20]!r} level {version}: MQTT 3.1.1 and 5.0 are spoken"
        )
    flags = body.one()
    clean, has_will, qos = bool(flags & 2), bool(flags & 4), flags >> 3 & 3
    has_password, has_name = bool(flags & 0x40), bool(flags & 0x80)
    if flags & 1 or qos == 3 or (not has_will and flags & 0x38):
        raise malformed(f"Connect has the flags {flags:#x}")
    if has_password and not has_name and version == V311:
        raise malformed("Connect has a password and no user name")
    keep_alive = body.two()
    properties = body.properties(Connect) if version == V5 else NO_PROPERTIES
    client_id = body.text()
    will = None
    if has_will:
        will_properties = body.properties(Will) if version == V5 else NO_PROPERTIES
        will = Will(body.text(), body.data(), qos, bool(flags & 0x20), will_properties)
    username = body.text() if has_name else None
    password = body.data() if has_password else None
    return Connect(client_id, version, clean, keep_alive, username, password, will, properties)


def _read_connack(body: _Body, version: int) -> Connack:
    flags, reason = body.one(), body.one()
    if flags > 1:
        raise malformed(f"Connack has the flags {flags}")
    return Connack(reason, bool(flags), body.properties(Connack) if version == V5 else NO_PROPERTIES)


def _read_publish(body: _Body, flags: int, version: int) -> Publish:
    qos = flags >> 1 & 3
    if qos == 3 or (not qos and flags & 8):
        raise malformed(f"Publish has the flags {flags}")
    topic = body.text()
    packet_id = body.packet_id() if qos else 0
    properties = body.properties(Publish) if version == V5 else NO_PROPERTIES
    return Publish(topic, body.rest(), qos, bool(flags & 1), bool(flags & 8), packet_id, properties)


def _reader_of_answers(kind: Any) -> Callable[[_Body, int], Packet]:
    def read(body: _Body, version: int) -> Packet:
        packet_id = body.packet_id()
        if version != V5 or not body.left:
            return cast("Packet", kind(packet_id))
        reason = body.one()
        return cast("Packet", kind(packet_id, reason, body.properties(kind) if body.left else NO_PROPERTIES))

    return read


def _read_subscribe(body: _Body, version: int) -> Subscribe:
    packet_id = body.packet_id()
    properties = body.properties(Subscribe) if version == V5 else NO_PROPERTIES
    wishes = []
    while body.left:
        filter_, options = body.text(), body.one()
        if options & (0xC0 if version == V5 else 0xFC) or options & 3 == 3 or options >> 4 & 3 == 3:
            raise malformed(f"Subscribe has the options {options:#x}")
        wishes.append(Wish(filter_, options & 3, bool(options & 4), bool(options & 8), options >> 4 & 3))
    if not wishes:
        raise wrong("Subscribe names no filter")
    return Subscribe(packet_id, tuple(wishes), properties)


def _read_suback(body: _Body, version: int) -> Suback:
    packet_id = body.packet_id()
    properties = body.properties(Suback) if version == V5 else NO_PROPERTIES
    return Suback(packet_id, tuple(body.rest()), properties)


def _read_unsubscribe(body: _Body, version: int) -> Unsubscribe:
    packet_id = body.packet_id()
    properties = body.properties(Unsubscribe) if version == V5 else NO_PROPERTIES
    filters = []
    while body.left:
        filters.append(body.text())
    if not filters:
        raise wrong("Unsubscribe names no filter")
    return Unsubscribe(packet_id, tuple(filters), properties)


def _read_unsuback(body: _Body, version: int) -> Unsuback:
    packet_id = body.packet_id()
    if version != V5:
        return Unsuback(packet_id)
    properties = body.properties(Unsuback)
    return Unsuback(packet_id, tuple(body.rest()), properties)


def _reader_of_endings(kind: Any) -> Callable[[_Body, int], Packet]:
    def read(body: _Body, version: int) -> Packet:
        if version != V5 or not body.left:
            return cast("Packet", kind())
        reason = body.one()
        return cast("Packet", kind(reason, body.properties(kind) if body.left else NO_PROPERTIES))

    return read


_READERS: dict[type, Callable[[_Body, int], Packet]] = {
    Connack: _read_connack,
    **{kind: _reader_of_answers(kind) for kind in _ANSWERS},
    Subscribe: _read_subscribe,
    Suback: _read_suback,
    Unsubscribe: _read_unsubscribe,
    Unsuback: _read_unsuback,
    Pingreq: lambda body, version: Pingreq(),
    Pingresp: lambda body, version: Pingresp(),
    Disconnect: _reader_of_endings(Disconnect),
    Auth: _reader_of_endings(Auth),
}


# Packets to bytes.


def _number(value: int) -> bytes:
    written = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        written.append(low | 0x80 if value else low)
        if not value:
            return bytes(written)


def _bytes(value: bytes) -> bytes:
    return struct.pack(">H", len(value)) + value


def _text(value: str) -> bytes:
    return _bytes(value.encode())


_WRITE: dict[int, Callable[[Any], bytes]] = {
    ONE: lambda value: struct.pack(">B", value),
    TWO: lambda value: struct.pack(">H", value),
    FOUR: lambda value: struct.pack(">I", value),
    NUMBER: _number,
    TEXT: _text,
    BYTES: _bytes,
    PAIR: lambda value: _text(value[0]) + _text(value[1]),
}


def write_properties(properties: Properties) -> bytes:
    if not properties:
        return b"\0"
    parts = []
    for name, value in properties.items():
        number = _NUMBER_OF[name]
        write = _WRITE[PROPERTIES[number].form]
        several = value if name in ("user_property", "subscription_id") else [value]
        parts += [bytes([number]) + write(one) for one in several]
    written = b"".join(parts)
    return _number(len(written)) + written


def encode(packet: Packet, version: int) -> bytes:
    """A packet as it goes over the wire."""
    number = NUMBERS[type(packet)]
    flags, body = FLAGS.get(number, 0), b""
    if isinstance(packet, Publish):
        flags = packet.duplicate << 3 | packet.qos << 1 | packet.retain
        body = _text(packet.topic)
        if packet.qos:
            body += struct.pack(">H", packet.packet_id)
        if version == V5:
            body += write_properties(packet.properties)
        body += packet.payload
    elif isinstance(packet, Connect):
        body = _write_connect(packet)
    elif isinstance(packet, Connack):
        body = bytes([packet.session_present, packet.reason])
        if version == V5:
            body += write_properties(packet.properties)
    elif isinstance(packet, Answer):
        body = struct.pack(">H", packet.packet_id) + _write_ending(packet, version)
    elif isinstance(packet, Disconnect | Auth):
        body = _write_ending(packet, version)
    elif not isinstance(packet, Pingreq | Pingresp):
        body = struct.pack(">H", packet.packet_id)
        if version == V5:
            body += write_properties(packet.properties)
        body += _write_list(packet, version)
    return bytes([number << 4 | flags]) + _number(len(body)) + body


def _write_connect(packet: Connect) -> bytes:
    will = packet.will
    flags = packet.clean_start << 1 | (packet.password is not None) << 6 | (packet.username is not None) << 7
    if will is not None:
        flags |= 4 | will.qos << 3 | will.retain << 5
    body = _text("MQTT") + struct.pack(">BBH", packet.version, flags, packet.keep_alive)
    if packet.version == V5:
        body += write_properties(packet.properties)
    body += _text(packet.client_id)
    if will is not None:
        if packet.version == V5:
            body += write_properties(will.properties)
        body += _text(will.topic) + _bytes(will.payload)
    if packet.username is not None:
        body += _text(packet.username)
    return body + _bytes(packet.password) if packet.password is not None else body


def _write_ending(packet: Answer | Disconnect | Auth, version: int) -> bytes:
    """The reason and the properties, left out where there is nothing to say."""
    if version != V5 or (not packet.reason and not packet.properties):
        return b""
    return bytes([packet.reason]) + (write_properties(packet.properties) if packet.properties else b"")


def _write_list(packet: Subscribe | Suback | Unsubscribe | Unsuback, version: int) -> bytes:
    if isinstance(packet, Subscribe):
        return b"".join(
            _text(wish.filter)
            + bytes([wish.qos | wish.no_local << 2 | wish.as_published << 3 | wish.handling << 4])
            for wish in packet.wishes
        )
    if isinstance(packet, Unsubscribe):
        return b"".join(map(_text, packet.filters))
    return bytes(packet.reasons) if version == V5 or isinstance(packet, Suback) else b""
