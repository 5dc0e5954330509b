"""What a door owes one client, connected or not: subscriptions, messages that wait, messages on their way. No
I/O, no clock.

A message of QoS 1 or 2 is on its way from when it is sent until the client has answered. No more messages are
on their way than the client's receive maximum. Messages that are on their way when a connection ends are sent
again on the next. Waiting messages are bounded in number and in bytes: beyond that the oldest of QoS 0 is
dropped, then the oldest of all. Both are counted.
"""

from __future__ import annotations

from collections import deque

import msgspec

from topicweave.live.memory import EVENT, Memory
from topicweave.live.mqtt.packets import (
    NO_PROPERTIES,
    V5,
    Answer,
    MqttError,
    Packet,
    Properties,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Reason,
    Wish,
)

LAST_ID = 0xFFFF
FOR_EVER = 0xFFFF_FFFF
"""A session expiry that says never."""


class Parcel(msgspec.Struct, frozen=True):
    """A message for one client."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: Properties = NO_PROPERTIES
    expires: float | None = None
    """By the node's clock."""
    share: str = ""
    """The shared subscription that it came by, if any: another of its group may have it if this client never
    takes it.
    """

    @property
    def size(self) -> int:
        return len(self.payload) + EVENT

    def publish(self, packet_id: int, now: float, duplicate: bool = False) -> Publish:
        properties = self.properties
        if self.expires is not None:
            properties = {**properties, "message_expiry": max(1, round(self.expires - now))}
        return Publish(self.topic, self.payload, self.qos, self.retain, duplicate, packet_id, properties)


class _OnItsWay:
    __slots__ = ("parcel", "released")

    def __init__(self, parcel: Parcel) -> None:
        self.parcel = parcel
        self.released = False
        """Of QoS 2: the client has it, and was told that it may forget the number."""


class Kept(msgspec.Struct, frozen=True):
    """A subscription."""

    wish: Wish
    subscription_id: int = 0
    since: float = 0.0
    """By the node's clock. Earlier events are not for this client, except for the retained value."""


class SavedSession(msgspec.Struct, frozen=True, array_like=True):
    """A session as it outlives the process."""

    client_id: str
    expiry: int
    left: float
    """When its connection ended, by the node's clock."""
    subscriptions: list[Kept]
    waiting: list[Parcel]
    on_their_way: list[tuple[int, Parcel, bool]]
    received: list[int]
    last_id: int
    username: str = ""


class Session:
    """One client's. `take` gives what can be sent; `answered` takes what the client says of it."""

    def __init__(
        self, client_id: str, most_waiting: int, most_bytes: int = 1 << 62, memory: Memory | None = None
    ) -> None:
        self.client_id = client_id
        self.username = ""
        self.left = 0.0
        self.bytes = 0
        self._most_bytes = most_bytes
        self._memory = memory or Memory()
        self.subscriptions: dict[str, Kept] = {}
        self.expiry = 0
        """Seconds that it outlives its connection."""
        self.dropped = 0
        self.received: set[int] = set()
        """Numbers of the client's own messages of QoS 2 that were published and are not released yet."""
        self._most_waiting = most_waiting
        self._waiting: deque[Parcel] = deque()
        self._on_their_way: dict[int, _OnItsWay] = {}
        self._last_id = 0
        self._window = LAST_ID
        self._aliases: dict[str, int] = {}
        self._most_aliases = 0
        self.connected = False
        self.no_local = False
        """Whether its client does not want to hear itself somewhere."""

    def __len__(self) -> int:
        return len(self._waiting) + len(self._on_their_way)

    # Its life.

    def save(self) -> SavedSession:
        on_their_way = [(number, one.parcel, one.released) for number, one in self._on_their_way.items()]
        return SavedSession(
            self.client_id,
            self.expiry,
            self.left,
            list(self.subscriptions.values()),
            [parcel for parcel in self._waiting if parcel.qos],
            on_their_way,
            sorted(self.received),
            self._last_id,
            self.username,
        )

    def restore(self, saved: SavedSession) -> None:
        self.expiry, self.left, self._last_id = saved.expiry, saved.left, saved.last_id
        self.username = saved.username
        self.subscriptions = {kept.wish.filter: kept for kept in saved.subscriptions}
        self.look_for_no_local()
        self.received = set(saved.received)
        for number, parcel, released in saved.on_their_way:
            one = self._on_their_way[number] = _OnItsWay(parcel)
            one.released = released
            self._hold(parcel.size)
        for parcel in saved.waiting:
            self.put(parcel)

    def forget(self) -> list[Parcel]:
        """It ends, and holds nothing any more; what others of its groups may have in its place: not what is
        of QoS 2 and on its way.
        """
        shared = [one.parcel for one in self._on_their_way.values() if one.parcel.qos == 1]
        shared = [parcel for parcel in (*shared, *self._waiting) if parcel.share]
        self._hold(-self.bytes)
        self._waiting.clear()
        self._on_their_way.clear()
        return shared

    def look_for_no_local(self) -> None:
        """Subscriptions have changed."""
        self.no_local = any(kept.wish.no_local for kept in self.subscriptions.values())

    def _hold(self, more: int) -> None:
        self.bytes += more
        self._memory.settle("unread", 0, more)

    # The connection.

    def connect(self, receive_maximum: int, alias_maximum: int, now: float) -> list[Packet]:
        """A connection begins: what was on its way goes again, in its order."""
        self.connected = True
        self._window = receive_maximum
        self._aliases, self._most_aliases = {}, alias_maximum
        again: list[Packet] = []
        for packet_id, one in self._on_their_way.items():
            again.append(Pubrel(packet_id) if one.released else one.parcel.publish(packet_id, now, True))
        return again

    def disconnect(self, now: float) -> None:
        self.connected, self.left = False, now
        self._hold(-sum(parcel.size for parcel in self._waiting if not parcel.qos))
        self._waiting = deque(parcel for parcel in self._waiting if parcel.qos)

    # Messages to the client.

    def put(self, parcel: Parcel) -> bool:
        """Whether it is for this client."""
        if not self.connected and not parcel.qos:
            return False  # QoS 0 is for those who are there.
        self._waiting.append(parcel)
        self._hold(parcel.size)
        while len(self._waiting) > self._most_waiting or (
            len(self._waiting) > 1 and (self.bytes > self._most_bytes or self._memory.excess("unread"))
        ):
            self._drop_one()
        return True

    def _drop_one(self) -> None:
        self.dropped += 1
        place = next((place for place, parcel in enumerate(self._waiting) if not parcel.qos), 0)
        self._hold(-self._waiting[place].size)
        del self._waiting[place]

    def take(self, now: float) -> list[Publish]:
        """What can be sent at once."""
        taken = []
        while self._waiting and (not self._waiting[0].qos or len(self._on_their_way) < self._window):
            parcel = self._waiting.popleft()
            if parcel.expires is not None and parcel.expires <= now:
                self._hold(-parcel.size)
                continue
            packet_id = 0
            if not parcel.qos:
                self._hold(-parcel.size)
            else:
                packet_id = self._next_id()
                self._on_their_way[packet_id] = _OnItsWay(parcel)
            taken.append(self._aliased(parcel.publish(packet_id, now)))
        return taken

    def _next_id(self) -> int:
        # There is a free one: the window is no larger than there are numbers.
        while True:
            self._last_id = self._last_id % LAST_ID + 1
            if self._last_id not in self._on_their_way:
                return self._last_id

    def _aliased(self, packet: Publish) -> Publish:
        """The first topics of a connection get short names, as many as the client takes."""
        if not self._most_aliases:
            return packet
        alias = self._aliases.get(packet.topic)
        topic = "" if alias else packet.topic
        if alias is None:
            if len(self._aliases) == self._most_aliases:
                return packet
            alias = self._aliases[packet.topic] = len(self._aliases) + 1
        return msgspec.structs.replace(packet, topic=topic, properties={**packet.properties, "alias": alias})

    def answered(self, packet: Answer, version: int) -> list[Packet]:
        """A client's answer to a message, or the release of one of its own; what is to be said to it."""
        if isinstance(packet, Pubrel):
            known = packet.packet_id in self.received
            self.received.discard(packet.packet_id)
            unknown = Reason.ID_NOT_FOUND if version == V5 else Reason.SUCCESS
            return [Pubcomp(packet.packet_id, Reason.SUCCESS if known else unknown)]
        one = self._on_their_way.get(packet.packet_id)
        if one is None:
            # An answer that crossed a lost connection: harmless, but a release wants its end.
            return [Pubrel(packet.packet_id, Reason.ID_NOT_FOUND)] if isinstance(packet, Pubrec) else []
        expected = Puback if one.parcel.qos == 1 else Pubcomp if one.released else Pubrec
        if isinstance(packet, Pubrec) and one.parcel.qos == 2 and packet.reason < Reason.UNSPECIFIED:
            one.released = True
            return [Pubrel(packet.packet_id)]
        if not isinstance(packet, expected):
            raise MqttError(
                Reason.PROTOCOL_ERROR,
                f"{type(packet).__name__} to {packet.packet_id}, not {expected.__name__}",
            )
        self._hold(-one.parcel.size)
        del self._on_their_way[packet.packet_id]
        return []
