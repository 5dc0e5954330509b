"""What MQTT packets say, of both versions: plain data. Properties are MQTT 5's; in 3.1.1 there are none."""

from __future__ import annotations

import enum
from typing import Any

import msgspec

Properties = dict[str, Any]
"""By the names of `codec.PROPERTIES`. `user_property` is a list of pairs, `subscription_id` a list of numbers."""
NO_PROPERTIES: Properties = {}

V311, V5 = 4, 5


class Reason(enum.IntEnum):
    """MQTT 5's reason codes, those that a door uses or understands."""

    SUCCESS = 0x00
    QOS_1 = 0x01
    QOS_2 = 0x02
    WITH_WILL = 0x04
    NO_SUBSCRIBERS = 0x10
    NO_SUBSCRIPTION = 0x11
    UNSPECIFIED = 0x80
    MALFORMED = 0x81
    PROTOCOL_ERROR = 0x82
    NOT_ACCEPTED = 0x83
    BAD_VERSION = 0x84
    BAD_CLIENT_ID = 0x85
    BAD_PASSWORD = 0x86
    NOT_AUTHORIZED = 0x87
    UNAVAILABLE = 0x88
    BUSY = 0x89
    SHUTTING_DOWN = 0x8B
    BAD_AUTH_METHOD = 0x8C
    KEEP_ALIVE = 0x8D
    TAKEN_OVER = 0x8E
    BAD_FILTER = 0x8F
    BAD_TOPIC = 0x90
    ID_IN_USE = 0x91
    ID_NOT_FOUND = 0x92
    RECEIVE_MAXIMUM = 0x93
    BAD_ALIAS = 0x94
    TOO_LARGE = 0x95
    RATE = 0x96
    QUOTA = 0x97
    BAD_PAYLOAD = 0x99
    NO_SHARED = 0x9E
    NO_WILDCARDS = 0xA2


class MqttError(Exception):
    """What a client did against the protocol, or is not allowed; its connection ends with the reason."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class MqttMessage(msgspec.Struct, frozen=True):
    """The words of this protocol."""


class Will(msgspec.Struct, frozen=True):
    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: Properties = NO_PROPERTIES


class Connect(MqttMessage, frozen=True):
    client_id: str
    version: int = V5
    clean_start: bool = True
    keep_alive: int = 0
    username: str | None = None
    password: bytes | None = None
    will: Will | None = None
    properties: Properties = NO_PROPERTIES


class Connack(MqttMessage, frozen=True):
    reason: int = 0
    session_present: bool = False
    properties: Properties = NO_PROPERTIES


class Publish(MqttMessage, frozen=True):
    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    duplicate: bool = False
    packet_id: int = 0
    properties: Properties = NO_PROPERTIES
    unread: int = 0
    """Bytes of a payload that is too large: nobody has read them."""


class Puback(MqttMessage, frozen=True):
    """To a Publish of QoS 1."""

    packet_id: int
    reason: int = 0
    properties: Properties = NO_PROPERTIES


class Pubrec(MqttMessage, frozen=True):
    """To a Publish of QoS 2: it came. What follows are its release and the end."""

    packet_id: int
    reason: int = 0
    properties: Properties = NO_PROPERTIES


class Pubrel(MqttMessage, frozen=True):
    packet_id: int
    reason: int = 0
    properties: Properties = NO_PROPERTIES


class Pubcomp(MqttMessage, frozen=True):
    packet_id: int
    reason: int = 0
    properties: Properties = NO_PROPERTIES


class Wish(msgspec.Struct, frozen=True):
    """One subscription of a Subscribe."""

    filter: str
    qos: int = 0
    no_local: bool = False
    as_published: bool = False
    """Whether the retain flag is passed on as its publisher set it."""
    handling: int = 0
    """Retained values: 0 send them, 1 send them if the subscription is new, 2 do not."""


class Subscribe(MqttMessage, frozen=True):
    packet_id: int
    wishes: tuple[Wish, ...]
    properties: Properties = NO_PROPERTIES


class Suback(MqttMessage, frozen=True):
    packet_id: int
    reasons: tuple[int, ...]
    properties: Properties = NO_PROPERTIES


class Unsubscribe(MqttMessage, frozen=True):
    packet_id: int
    filters: tuple[str, ...]
    properties: Properties = NO_PROPERTIES


class Unsuback(MqttMessage, frozen=True):
    packet_id: int
    reasons: tuple[int, ...] = ()
    properties: Properties = NO_PROPERTIES


class Pingreq(MqttMessage, frozen=True):
    pass


class Pingresp(MqttMessage, frozen=True):
    pass


class Disconnect(MqttMessage, frozen=True):
    reason: int = 0
    properties: Properties = NO_PROPERTIES


class Auth(MqttMessage, frozen=True):
    reason: int = 0
    properties: Properties = NO_PROPERTIES


Packet = (
    Connect
    | Connack
    | Publish
    | Puback
    | Pubrec
    | Pubrel
    | Pubcomp
    | Subscribe
    | Suback
    | Unsubscribe
    | Unsuback
    | Pingreq
    | Pingresp
    | Disconnect
    | Auth
)
Answer = Puback | Pubrec | Pubrel | Pubcomp
"""Those that carry a packet's number and a reason."""
