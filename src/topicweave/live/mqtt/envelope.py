"""An MQTT message as the payload of an event: the bytes as they are, if that says all; else behind a head.

Other applications of the mesh see plain payloads as they are, and send them so. The head carries what MQTT 5
publishers add (content type, where to answer, their own pairs, when it expires), and of retained values the
time.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from topicweave.live.mqtt.packets import NO_PROPERTIES, Properties

MAGIC = b"\x00mqtt\x01"
CARRIED = (
    "payload_format",
    "message_expiry",
    "content_type",
    "response_topic",
    "correlation_data",
    "user_property",
)
MOST_TEXT = 65_535
ROOM = 440
"""Bytes that a head takes beyond what a packet takes for the same properties. A client's name of more than about
300 letters, or thousands of properties, may take more.
"""


class MqttHead(msgspec.Struct, frozen=True, array_like=True):
    properties: Properties = NO_PROPERTIES
    retained_at: float = 0.0
    """Of a retained value: when it was published, in Unix time."""
    origin: str = ""
    """The client, if it does not want to hear itself."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(MqttHead).decode
_TYPES: dict[str, Any] = {
    "payload_format": Annotated[int, msgspec.Meta(ge=0, le=1)],
    "message_expiry": Annotated[int, msgspec.Meta(ge=0, le=0xFFFF_FFFF)],
    "content_type": str,
    "response_topic": str,
    "correlation_data": bytes,
    "user_property": list[tuple[str, str]],
}


def wrap(
    payload: bytes, properties: Properties = NO_PROPERTIES, retained_at: float = 0.0, origin: str = ""
) -> bytes:
    """
    >>> wrap(b"21.5")
    b'21.5'
    >>> unwrap(wrap(b"21.5", {"content_type": "text/plain"}))[1].properties
    {'content_type': 'text/plain'}
    """
    carried = {name: properties[name] for name in CARRIED if name in properties}
    if not (carried or retained_at or origin or payload.startswith(MAGIC)):
        return payload
    head = _encode(MqttHead(carried, retained_at, origin))
    return MAGIC + len(head).to_bytes(4, "big") + head + payload


def unwrap(data: bytes) -> tuple[bytes, MqttHead]:
    """The payload and what its head says. A head that cannot be read is part of a payload: somebody's own bytes."""
    if not data.startswith(MAGIC):
        return data, MqttHead()
    start = len(MAGIC) + 4
    end = start + int.from_bytes(data[len(MAGIC) : start], "big")
    try:
        head = _decode(data[start:end])
        properties = {name: _sane(name, value) for name, value in head.properties.items() if name in _TYPES}
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return data, MqttHead()
    return data[end:], MqttHead(properties, head.retained_at, head.origin)


def _sane(name: str, value: Any) -> Any:
    """A property that a client can be sent: it came from another machine."""
    value = msgspec.convert(value, _TYPES[name])
    texts = [text for pair in value for text in pair] if name == "user_property" else [value]
    for text in texts:
        written = text.encode() if isinstance(text, str) else text
        if isinstance(written, bytes) and (
            len(written) > MOST_TEXT or (written != text and b"\0" in written)
        ):
            raise msgspec.ValidationError(f"{name} cannot be sent")
    return value
