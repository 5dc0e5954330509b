"""Sockets and clocks around the door: one connection per client, packets in their order, bounded both ways."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from topicweave.errors import BadInput
from topicweave.live.admission import HalfOpen
from topicweave.live.mqtt.accounts import Accounts
from topicweave.live.mqtt.client import MqttClient
from topicweave.live.mqtt.codec import Reader, encode
from topicweave.live.mqtt.door import Door, new_client_id
from topicweave.live.mqtt.envelope import ROOM
from topicweave.live.mqtt.packets import (
    V5,
    V311,
    Answer,
    Connack,
    Connect,
    Disconnect,
    MqttError,
    Packet,
    Pingreq,
    Pingresp,
    Properties,
    Puback,
    Publish,
    Pubrec,
    Reason,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    Will,
)
from topicweave.live.mqtt.session import LAST_ID, Session
from topicweave.live.settings import Address

if TYPE_CHECKING:
    from topicweave.live.http_crowd import Guesses
    from topicweave.live.node import LiveNode

log = logging.getLogger("topicweave.live")

HELLO_TIMEOUT = 10.0
MOST_CLIENTS = 4096
MOST_STRANGERS = 1024
"""Connections without a Connect; for one more, the oldest of the address with most of them goes."""
RECEIVE_MAXIMUM = 256
"""Messages of QoS 1 and 2 of one client that are on their way into the mesh."""
ALIAS_MAXIMUM = 64
MOST_PACKETS = 1024
MOST_UNSERVED = 1024 * 1024
"""Packets of one client that wait their turn, and bytes that came with them; then its socket is not read
until they are served.
"""
MOST_HELLO = 128 * 1024
"""Bytes of a first packet: nobody knows yet who sends it."""
GOODBYE = 2.0
"""Seconds for which a client may take what was sent to it last, before it is cut off."""
LAST_WORDS = 30.0
"""Seconds for which the door goes on with what a client said before it left."""
LEAST_PACKET = 1024
"""Bytes that a packet may have, however small an event may be."""
MOST_UNSENT = 1024 * 1024
"""Bytes that wait in a client's socket; then its session keeps the rest."""
_V311_REASONS = {
    Reason.BAD_VERSION: 1,
    Reason.BAD_CLIENT_ID: 2,
    Reason.UNAVAILABLE: 3,
    Reason.BUSY: 3,
    Reason.QUOTA: 3,
    Reason.BAD_PASSWORD: 4,
    Reason.NOT_AUTHORIZED: 5,
}


class MqttPort:
    """Serves one node's clients."""

    def __init__(self, node: LiveNode) -> None:
        self._node = node
        settings = node.settings
        self.door = Door(node, Accounts(settings.mqtt_passwords, settings.mqtt_permissions))
        self.address = Address("127.0.0.1", 0)
        # What fits into a packet fits into an event.
        self.most_bytes = max(self.door.most_bytes - ROOM, LEAST_PACKET)
        self.connections: set[MqttConnection] = set()
        self.strangers: HalfOpen[MqttConnection] = HalfOpen(MOST_STRANGERS)
        self._server: asyncio.Server | None = None
        self.guesses: Guesses | None = None
        if settings.mqtt_passwords:
            from topicweave.live.http_crowd import Guesses

            self.guesses = Guesses()

    @property
    def now(self) -> float:
        return self._node.clock.now

    @property
    def wildcards(self) -> bool:
        return self._node.patterns.available

    async def start(self) -> None:
        settings = self._node.settings
        wanted = Address.parse(settings.mqtt, "mqtt")
        context = None
        if settings.mqtt_certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            try:
                context.load_cert_chain(settings.mqtt_certificate, settings.mqtt_key or None)
            except (OSError, ssl.SSLError) as error:
                raise BadInput(f"mqtt: cannot use {settings.mqtt_certificate}: {error}") from None
        loop = asyncio.get_running_loop()
        await self.door.start()
        try:
            self._server = await loop.create_server(
                lambda: MqttConnection(self), wanted.host, wanted.port, ssl=context, backlog=1024
            )
        except OSError as error:
            raise BadInput(f"cannot serve MQTT on {wanted}: {error.strerror or error}") from None
        self.address = Address(wanted.host, self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        await self.door.stop()
        for connection in list(self.connections):
            connection.end(Reason.SHUTTING_DOWN, "the node stops")
        await asyncio.gather(*(one.lost for one in list(self.connections)))


class MqttConnection(asyncio.Protocol):
    """One client's."""

    def __init__(self, port: MqttPort) -> None:
        self._port = port
        self._door = port.door
        self._reader = Reader(min(MOST_HELLO, port.most_bytes))
        self._session: Session | None = None
        self._introducing = False
        """Whether the first packet came and is not answered yet."""
        self.will: Will | None = None
        self._waiting: deque[Packet] = deque()
        self._unserved = 0
        self._paused = False
        self._some = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._acknowledging: set[asyncio.Task[None]] = set()
        self._last_answer: asyncio.Future[None] | None = None
        self._publishing = 0
        """Bytes of messages that are on their way into the mesh."""
        self._aliases: dict[int, str] = {}
        self._ended = False
        self._gone = False
        """Whether the socket is closed. What was read from it may still be served."""
        self._alarm: asyncio.TimerHandle | None = None
        self._heard = 0.0
        self._patience = HELLO_TIMEOUT
        self._unread = 0
        self._loop = asyncio.get_running_loop()
        self.lost = self._loop.create_future()
        """Done when the socket is closed: at most `GOODBYE` after the end of the connection."""
        self.client_id = ""
        self.username: str | None = None
        self._most_packet = LAST_ID**2

    @property
    def _address(self) -> str:
        return str((self._transport.get_extra_info("peername") or ("",))[0])

    @property
    def _leaves(self) -> bool:
        """Whether its client has left, though not all is served that it said before."""
        return self._gone or any(isinstance(packet, Disconnect) for packet in self._waiting)

    # Told by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have another base.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(MOST_UNSENT)
        self._serving = self._loop.create_task(self._serve())
        self._port.connections.add(self)
        self._heard = self._loop.time()
        self._watch()
        goes = self._port.strangers.add(self, self._address)
        if goes is not None:
            goes.end(Reason.BUSY, f"{MOST_STRANGERS} connections have not said who they are")
        if len(self._port.connections) > MOST_CLIENTS:
            self.end(Reason.BUSY, f"{MOST_CLIENTS} clients are connected")

    def data_received(self, data: bytes) -> None:
        if self._ended:
            return
        self._heard = self._loop.time()
        try:
            self._read(self._reader.feed(data))
        except MqttError as error:
            if self._session is None:
                self._refuse(error.reason, str(error))
            else:
                self.end(error.reason, str(error))
            return
        self._unserved += len(data)
        much = len(self._waiting) > MOST_PACKETS or self._unserved > MOST_UNSERVED
        if not self._paused and (much or self._introducing):
            self._paused = True
            self._transport.pause_reading()
        self._some.set()

    def _read(self, packets: Iterator[Packet]) -> None:
        """The first packet alone: those behind it may be larger, once it is known who sends them."""
        if self._session is not None:
            self._waiting.extend(packets)
        elif not self._introducing and (first := next(packets, None)) is not None:
            self._introducing = True
            self._waiting.append(first)

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()
        self.wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._gone = True
        if self._alarm is not None:
            self._alarm.cancel()
        self._port.strangers.remove(self)
        self.lost.set_result(None)
        if self._ended:
            self._port.connections.discard(self)
            self._serving.cancel()
            return
        self._alarm = self._loop.call_later(LAST_WORDS, self._close)
        self._room.set()
        self._some.set()

    # Time.

    def _watch(self) -> None:
        """Ends a connection on which nothing came for one and a half times its keep-alive."""
        if self._patience and not self._gone:
            unread = self._transport.get_write_buffer_size()
            if self._paused and (self._room.is_set() or unread != self._unread):
                self._heard = self._loop.time()  # It may have said something: nobody looks.
            self._unread = unread
            left = self._heard + self._patience - self._loop.time()
            if left <= 0:
                self.end(Reason.KEEP_ALIVE, f"nothing came for {self._patience:.0f} s")
                return
            self._alarm = self._loop.call_later(left, self._watch)

    # One packet after the other.

    async def _serve(self) -> None:
        try:
            while True:
                while not self._waiting:
                    self._unserved = 0
                    if self._gone:
                        self._close()
                        return
                    if self._paused and not self._ended:
                        self._paused = False
                        self._heard = self._loop.time()
                        self._transport.resume_reading()
                    self._some.clear()
                    await self._some.wait()
                packet = self._waiting.popleft()
                await self._room.wait()
                if self._ended:
                    return
                await self._take(packet)
        except MqttError as error:
            self.end(error.reason, str(error))
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("mqtt: client %s", self.client_id)
            self.end(Reason.UNSPECIFIED, "an error of the door")

    async def _take(self, packet: Packet) -> None:
        session = self._session
        if session is None:
            if not isinstance(packet, Connect):
                raise MqttError(Reason.PROTOCOL_ERROR, "the first packet is not a Connect")
            await self._connect(packet)
        elif isinstance(packet, Publish):
            await self._publish(session, packet)
        elif isinstance(packet, Answer):
            for answer in session.answered(packet, self._reader.version):
                self._send(answer)
            self.wake()
        elif isinstance(packet, Subscribe):
            reasons = await self._door.subscribe(self, session, packet)
            if self._reader.version == V311:
                reasons = [min(reason, 0x80) for reason in reasons]
            self._send(Suback(packet.packet_id, tuple(reasons)))
            await self._door.give_values(packet)
            self.wake()
        elif isinstance(packet, Unsubscribe):
            reasons = await self._door.unsubscribe(session, list(packet.filters))
            self._send(Unsuback(packet.packet_id, tuple(reasons)))
        elif isinstance(packet, Pingreq):
            self._send(Pingresp())
        elif isinstance(packet, Disconnect):
            self._disconnect(session, packet)
        else:
            raise MqttError(Reason.PROTOCOL_ERROR, f"{type(packet).__name__} is not for a door")

    async def _connect(self, packet: Connect) -> None:
        self._port.strangers.remove(self)
        self._patience = 0.0
        self.username = packet.username
        self.client_id = packet.client_id or new_client_id()
        try:
            if not packet.client_id and not packet.clean_start and packet.version == V311:
                raise MqttError(Reason.BAD_CLIENT_ID, "a session that stays needs a client id")
            if "auth_method" in packet.properties:
                raise MqttError(Reason.BAD_AUTH_METHOD, "only user names and passwords are known")
            await self._identify(packet)
            await self._let_finish(self._door.clients.get(self.client_id))
            if self._ended:
                return
            session, present = self._door.enter(self, packet)
        except MqttError as error:
            self._refuse(error.reason, str(error))
            return
        self._session, self.will = session, packet.will
        self._reader.most_bytes = self._port.most_bytes
        self._introducing = False
        self._patience = packet.keep_alive * 1.5
        if self._alarm is not None and not self._gone:
            self._alarm.cancel()
        self._watch()
        self._most_packet = packet.properties.get("maximum_packet", self._most_packet)
        told: Properties = {
            "receive_maximum": RECEIVE_MAXIMUM,
            "alias_maximum": ALIAS_MAXIMUM,
            "maximum_packet": self._port.most_bytes,
            "wildcards_available": int(self._port.wildcards),
            "shared_available": 1,
        }
        if not packet.client_id:
            told["assigned_client_id"] = self.client_id
        self._send(Connack(0, present, told))
        window = packet.properties.get("receive_maximum", LAST_ID)
        aliases = packet.properties.get("alias_maximum", 0)
        for again in session.connect(window, aliases, self._port.now):
            self._send(again)
        self.wake()
        self._read(self._reader.feed(b""))

    async def _let_finish(self, earlier: MqttClient | None) -> None:
        """An earlier connection of this client that it left already has a moment for what it said before."""
        if isinstance(earlier, MqttConnection) and earlier._leaves:
            await asyncio.wait([earlier._serving], timeout=GOODBYE)

    async def _identify(self, packet: Connect) -> None:
        """Passwords take a while to check, on purpose; whoever guesses wrong many times waits before the next
        is looked at.
        """
        guesses = self._port.guesses
        if guesses is None:
            return
        if not guesses.may_try(self._address, self._loop.time()):
            raise MqttError(Reason.RATE, "too many wrong passwords from this address: wait")
        if not await asyncio.to_thread(self._door.accounts.known, packet.username, packet.password):
            guesses.wrong(self._address, self._loop.time())
            raise MqttError(Reason.BAD_PASSWORD, "unknown user, or a wrong password")

    async def _publish(self, session: Session, packet: Publish) -> None:
        packet = self._with_topic(packet)
        if packet.qos == 2 and packet.packet_id in session.received:
            self._send(Pubrec(packet.packet_id))  # It came before; its release did not.
            return
        if not packet.qos:
            if self._acknowledging:
                await asyncio.sleep(0)  # Those in front of it have begun then.
            reason = await self._door.publish(self, packet)
            if reason >= Reason.UNSPECIFIED:
                self._door.lost(self, packet, reason)
            return
        full = len(self._acknowledging) >= RECEIVE_MAXIMUM
        if full and self._reader.version == V5:
            raise MqttError(Reason.RECEIVE_MAXIMUM, f"more than {RECEIVE_MAXIMUM} messages without an answer")
        # 3.1.1 knows no such bound: its clients wait.
        while self._last_answer is not None and (full or self._publishing > MOST_UNSERVED):
            await asyncio.shield(self._last_answer)
            full = False
        if packet.qos == 2:
            session.received.add(packet.packet_id)
        self._publishing += len(packet.payload)
        # Answers go out in the order of their messages, but messages do not wait for each other's answers.
        before, self._last_answer = self._last_answer, self._loop.create_future()
        task = self._loop.create_task(self._acknowledge(session, packet, before, self._last_answer))
        self._acknowledging.add(task)
        task.add_done_callback(self._acknowledging.discard)

    async def _acknowledge(
        self,
        session: Session,
        packet: Publish,
        before: asyncio.Future[None] | None,
        done: asyncio.Future[None],
    ) -> None:
        try:
            reason = await self._door.publish(self, packet)
            if before is not None:
                await before
            failed = reason >= Reason.UNSPECIFIED
            if failed and self._reader.version == V311 and reason is not Reason.QUOTA:
                # 3.1.1 has no answer that says no: without one, the client sends it again for ever.
                self._door.lost(self, packet, reason)
                failed, reason = False, Reason.SUCCESS
            if failed:
                session.received.discard(packet.packet_id)
            if failed and self._reader.version == V311:
                self.end(reason, f"{packet.topic[:80]} is not taken: {reason.name}")
                return
            self._send((Puback if packet.qos == 1 else Pubrec)(packet.packet_id, reason))
        except MqttError as error:
            self.end(error.reason, str(error))
        finally:
            self._publishing -= len(packet.payload)
            if not done.done():
                done.set_result(None)

    def _with_topic(self, packet: Publish) -> Publish:
        alias = packet.properties.get("alias")
        if alias is None:
            return packet
        if alias > ALIAS_MAXIMUM:
            raise MqttError(Reason.BAD_ALIAS, f"alias {alias}; at most {ALIAS_MAXIMUM} are kept")
        if packet.topic:
            self._aliases[alias] = packet.topic
            return packet
        if alias not in self._aliases:
            raise MqttError(Reason.PROTOCOL_ERROR, f"alias {alias} stands for nothing")
        return Publish(
            self._aliases[alias],
            packet.payload,
            packet.qos,
            packet.retain,
            packet.duplicate,
            packet.packet_id,
            packet.properties,
        )

    def _disconnect(self, session: Session, packet: Disconnect) -> None:
        expiry = packet.properties.get("session_expiry")
        if expiry is not None:
            if expiry and not session.expiry:
                raise MqttError(Reason.PROTOCOL_ERROR, "a session that was to end cannot be kept")
            session.expiry = expiry
        if packet.reason != Reason.WITH_WILL:
            self.will = None
        self._close()

    # Sending.

    def wake(self) -> None:
        """Send what the session has, as long as the client takes it."""
        if self._session is None or self._ended or self._gone:
            return
        while self._room.is_set() and (packets := self._session.take(self._port.now)):
            for packet in packets:
                self._send(packet)

    def _send(self, packet: Packet) -> None:
        if self._ended or self._gone:
            return
        data = encode(packet, self._reader.version or V5)
        if len(data) > self._most_packet:
            self._door.counts["dropped"] += 1
            return
        self._transport.write(data)

    def _refuse(self, reason: Reason, text: str) -> None:
        """Before a session began."""
        self._door.complain(reason, f"a client at {self._address} was sent away: {text}")
        if self._reader.version == V5:
            self._send(Connack(reason, False, {"reason_text": text}))
        elif not self._gone and (self._reader.version == V311 or reason is Reason.BAD_VERSION):
            self._transport.write(bytes([0x20, 2, 0, _V311_REASONS.get(reason, 3)]))
        self._close()

    def end(self, reason: Reason, text: str) -> None:
        """Send the client away; in 3.1.1 that is said by closing."""
        if self._ended:
            return
        if reason not in (Reason.SHUTTING_DOWN, Reason.TAKEN_OVER, Reason.KEEP_ALIVE):
            who = self.client_id or "without a name"
            self._door.complain(reason, f"client {who} was sent away: {text}")
        if self._session is not None and self._reader.version == V5:
            self._send(Disconnect(reason, {"reason_text": text}))
        self._close()

    def _close(self) -> None:
        """The connection ends here and at once. Its socket follows when the client has read what it was sent, or
        does not, unless it is closed already.
        """
        self._ended = True
        if self._alarm is not None:
            self._alarm.cancel()
        if self._gone:
            self._port.connections.discard(self)
            if self._serving is not asyncio.current_task():
                self._serving.cancel()
        else:
            self._transport.close()
            self._alarm = self._loop.call_later(GOODBYE, self._transport.abort)
        if self._session is not None:
            self._door.left(self, self.will)
