"""The door of one node for MQTT clients: their sessions, the values they retained, their wills, and what they may do.

Everything goes through the node: what a client publishes is an event of the node's, and comes back through the node's feed to clients of the
same door as to those of others. A retained value is published twice: to those who listen, and on a topic of its own that keeps its last event
(`topics.RETAINED`). A door that has such a value keeps it for others; of two values of one topic the later one stays, by the time
their publishers gave them, then by the publishers' names.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import secrets
from collections import Counter
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec

from topicweave import __version__
from topicweave.errors import TopicweaveError
from topicweave.live.application import Received
from topicweave.live.mqtt.accounts import Accounts
from topicweave.live.mqtt.envelope import MqttHead, unwrap, wrap
from topicweave.live.mqtt.keeping import DoorFolder, KeptSession
from topicweave.live.mqtt.packets import (
    NO_PROPERTIES,
    V5,
    Connect,
    MqttError,
    Properties,
    Publish,
    Reason,
    Subscribe,
    Will,
    Wish,
)
from topicweave.live.mqtt.session import FOR_EVER, Kept, Parcel, Session
from topicweave.live.mqtt.topics import SYSTEM, check_topic, refusal_of
from topicweave.live.names import RETAINED
from topicweave.live.publisher import NOT_PERMANENT

if TYPE_CHECKING:
    from topicweave.live.node import LiveNode

log = logging.getLogger("topicweave.live")

MOST_WAITING = 10_000
"""Messages for one client."""
MOST_SESSIONS = 20_000
MOST_SUBSCRIPTIONS = 10_000
"""Of one client."""
MOST_RETAINED = 100_000
SETTLE = 0.1
"""Seconds between the first word of a retained value and its giving."""
TELL_EVERY = 10.0
"""Seconds between the values below $SYS."""


class MqttClient(Protocol):
    """A connection, as a door sees it."""

    client_id: str
    username: str | None
    will: Will | None

    def wake(self) -> None:
        """Its session has something for it."""

    def end(self, reason: Reason, text: str) -> None:
        """It is sent away."""


class RetainedValue(msgspec.Struct, frozen=True):
    """A retained value."""

    at: float
    publisher: str
    payload: bytes
    properties: Properties = NO_PROPERTIES
    born: float = 0.0
    """When it was published by this node's clock, as far as is known; `at` is by its publisher's."""

    @property
    def rank(self) -> tuple[float, str]:
        """Of two values of a topic the higher one stays."""
        return self.at, self.publisher


class Door:
    def __init__(self, node: LiveNode, accounts: Accounts) -> None:
        self._node = node
        self.accounts = accounts
        self.sessions: dict[str, Session] = {}
        self.clients: dict[str, MqttClient] = {}
        self.counts: Counter[str] = Counter()
        self._topics: set[str] = set()
        self._feed = node.open_feed(())
        self._feed.topics = self._topics
        self._listeners: dict[str, dict[str, Kept]] = {}
        """Topic to client to subscription."""
        self._retained: dict[str, RetainedValue] = {}
        self._keeping: set[str] = set()
        """Topics whose retained value came in through this door."""
        self._newcomers: dict[str, dict[str, tuple[float, tuple[float, str] | None]]] = {}
        """Topic to client to when it subscribed, and the rank of the retained value that it was given."""
        self._settling: set[str] = set()
        """Topics whose values are about to be given to newcomers."""
        self._wills: dict[str, tuple[asyncio.TimerHandle, MqttClient, Will]] = {}
        self._ends: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[object]] = set()
        self.loop = asyncio.get_running_loop()
        self._began = self.loop.time()
        self._folder = DoorFolder(node.disk)
        self._stopping = False

    async def start(self) -> None:
        for topic in await self._folder.retained():
            self._keeping.add(topic)
            self._node.world.retained.add(self._node.topics.id_of(RETAINED + topic))
            self._topics.add(RETAINED + topic)
            for event in self._node.cached(RETAINED + topic, 1):
                self._keep_value(event)
        await self._node.wanting.more([RETAINED + topic for topic in self._keeping], last=1)
        for kept in await self._folder.sessions():
            await self._restore(kept)
        self._run(self._read())
        self._run(self._tell())

    async def _restore(self, kept: KeptSession) -> None:
        """A session of an earlier life goes on. What came after it was written, it gets from the node's cache."""
        now, saved = self._node.clock.now, kept.session
        session = self._new_session(saved.client_id)
        session.restore(saved)
        if kept.connected:
            session.left = now
        for topic, one in session.subscriptions.items():
            self._listeners.setdefault(topic, {})[session.client_id] = one
        mesh = [topic for topic in session.subscriptions if not topic.startswith(SYSTEM)]
        self._topics.update(mesh, [RETAINED + topic for topic in mesh])
        try:
            await self._node.wanting.more(mesh)
            await self._node.wanting.more([RETAINED + topic for topic in mesh], last=1)
        except TopicweaveError as error:
            log.error("mqtt: the session of %s ends: %s", session.client_id, error)
            self._forget(session)
            return
        for topic in mesh if not kept.connected else ():
            for event in self._node.cached(topic, MOST_WAITING, kept.at):
                payload, head = unwrap(event.payload)
                one = session.subscriptions[topic]
                self._give(
                    session.client_id, one, Parcel(topic, payload, one.wish.qos, False, head.properties)
                )
        if session.expiry != FOR_EVER:
            left = max(0.0, session.left + session.expiry - now)
            self._ends[session.client_id] = self.loop.call_later(left, self._forget, session)

    async def stop(self) -> None:
        self._stopping = True
        for client in list(self.clients.values()):
            client.end(Reason.SHUTTING_DOWN, "the node stops")
            self.left(client, None)
        for session in self.sessions.values():
            self._folder.save(session, self._node.clock.wall())
        for timer in [*(timer for timer, *_ in self._wills.values()), *self._ends.values()]:
            timer.cancel()
        self._node.close_feed(self._feed)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _run(self, work: Coroutine[Any, Any, object]) -> None:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Coming and going.

    def enter(self, client: MqttClient, connect: Connect) -> tuple[Session, bool]:
        """A client that was let in. Its session, and whether that was there before."""
        client_id = client.client_id
        old = self.clients.get(client_id)
        if old is not None:
            will = old.will
            old.end(Reason.TAKEN_OVER, "another connection came with the same client id")
            self.left(old, will)
        self.clients[client_id] = client
        if (end := self._ends.pop(client_id, None)) is not None:
            end.cancel()
        if (pending := self._wills.pop(client_id, None)) is not None:
            # It came back in time, unless its session ends with this.
            pending[0].cancel()
            if connect.clean_start:
                self._execute(*pending[1:])
        session = self.sessions.get(client_id)
        if session is not None and connect.clean_start:
            self._forget(session)
            session = None
        present = session is not None
        if session is None:
            if len(self.sessions) >= MOST_SESSIONS:
                raise MqttError(Reason.QUOTA, f"{MOST_SESSIONS} sessions are kept")
            session = self._new_session(client_id)
        if connect.version == V5:
            session.expiry = connect.properties.get("session_expiry", 0)
        else:
            session.expiry = 0 if connect.clean_start else FOR_EVER
        session.connected = True
        self._folder.save(session, self._node.clock.wall())
        self.counts["connections"] += 1
        return session, present

    def _new_session(self, client_id: str) -> Session:
        limits = self._node.settings.limits
        session = Session(client_id, MOST_WAITING, limits.application_bytes, self._node.world.memory)
        self.sessions[client_id] = session
        return session

    def left(self, client: MqttClient, will: Will | None) -> None:
        """A connection has ended; with a will if it did not end in order."""
        client_id = client.client_id
        if self.clients.get(client_id) is not client:
            return  # Somebody else has its place.
        del self.clients[client_id]
        session = self.sessions[client_id]
        session.disconnect(self._node.clock.now)
        if will is not None and not self._stopping:
            delay = min(will.properties.get("will_delay", 0), session.expiry)
            if delay:
                timer = self.loop.call_later(delay, self._execute, client, will)
                self._wills[client_id] = (timer, client, will)
            else:
                self._execute(client, will)
        if not session.expiry:
            self._forget(session)
            return
        self._folder.save(session, self._node.clock.wall())
        if session.expiry != FOR_EVER and not self._stopping:
            self._ends[client_id] = self.loop.call_later(session.expiry, self._forget, session)

    def _forget(self, session: Session) -> None:
        """A session ends."""
        self._ends.pop(session.client_id, None)
        self.sessions.pop(session.client_id, None)
        self._folder.forget(session.client_id)
        session.forget()
        self._run(self.unsubscribe(session, list(session.subscriptions)))

    def _execute(self, client: MqttClient, will: Will) -> None:
        """Publish a will."""
        self._wills.pop(client.client_id, None)
        packet = Publish(will.topic, will.payload, will.qos, will.retain, properties=will.properties)

        async def publish() -> None:
            with contextlib.suppress(MqttError, TopicweaveError):
                await self.publish(client, packet)

        self._run(publish())

    # Publishing.

    async def publish(self, client: MqttClient, packet: Publish) -> Reason:
        """Publish for a client; what it is told. Done when the node has it, on disk where there is a data folder."""
        topic = check_topic(packet.topic)
        if not self.accounts.may(client.username, client.client_id, topic, write=True):
            self.counts["refused"] += 1
            return Reason.NOT_AUTHORIZED
        self.counts["received"] += 1
        try:
            own = self._listeners.get(topic, {}).get(client.client_id)
            origin = client.client_id if own is not None and own.wish.no_local else ""
            receipt = await self._node.publish(topic, wrap(packet.payload, packet.properties, origin=origin))
            if packet.retain:
                await self._retain(topic, packet)
        except TopicweaveError as error:
            log.warning("mqtt: %s may not publish on %s: %s", client.client_id, topic, error)
            return Reason.NOT_AUTHORIZED if "certificate" in str(error) else Reason.QUOTA
        if receipt.reason.startswith(NOT_PERMANENT):
            return Reason.QUOTA  # The disk is full: it is not durable, so it is not taken.
        nobody = not receipt.neighbours and topic not in self._listeners
        return Reason.NO_SUBSCRIBERS if nobody else Reason.SUCCESS

    async def _retain(self, topic: str, packet: Publish) -> None:
        name = RETAINED + topic
        if topic not in self._keeping:
            if len(self._keeping) >= MOST_RETAINED:
                raise TopicweaveError(f"{MOST_RETAINED} values are retained at this door")
            self._keeping.add(topic)
            self._folder.retain(topic)
            self._topics.add(name)
            await self._node.wanting.more([name], last=1)
        await self._node.publish(
            name, wrap(packet.payload, packet.properties, self._node.clock.trusted()), retain=True
        )

    # Subscribing.

    async def subscribe(self, client: MqttClient, session: Session, packet: Subscribe) -> list[int]:
        """What is said to each wish. Retained values follow."""
        numbers = packet.properties.get("subscription_id", [0])
        reasons, new = [], []
        for wish in packet.wishes:
            refusal = self._refusal(client, session, wish)
            if refusal is not None:
                reasons.append(int(refusal))
                continue
            topic = wish.filter
            known = session.subscriptions.get(topic)
            since = self._node.clock.now if known is None else known.since
            session.subscriptions[topic] = kept = Kept(wish, numbers[0], since)
            self._listeners.setdefault(topic, {})[session.client_id] = kept
            if known is None:
                new.append(topic)
            if wish.handling == 0 or (wish.handling == 1 and known is None):
                self._newcomers.setdefault(topic, {})[session.client_id] = (self._node.clock.now, None)
            reasons.append(wish.qos)
        mesh = [topic for topic in new if not topic.startswith(SYSTEM)]
        values = [RETAINED + topic for topic in mesh]
        self._topics.update(mesh, values)
        try:
            await self._node.wanting.more(mesh)
            await self._node.wanting.more(values, last=1)
        except TopicweaveError as error:
            log.warning("mqtt: %s may not subscribe: %s", client.client_id, error)
            await self.unsubscribe(session, new)
            return [
                int(Reason.NOT_AUTHORIZED) if wish.filter in new else reason
                for wish, reason in zip(packet.wishes, reasons, strict=True)
            ]
        self._folder.save(session, self._node.clock.wall())
        if session.expiry and not await self._folder.permanent():
            log.warning("mqtt: the subscriptions of %s are not on disk yet", client.client_id)
        for wish in packet.wishes:
            self._give_value(wish.filter)
        return reasons

    def _refusal(self, client: MqttClient, session: Session, wish: Wish) -> Reason | None:
        refusal = refusal_of(wish.filter)
        if refusal is None and not self.accounts.may(
            client.username, client.client_id, wish.filter, write=False
        ):
            refusal = Reason.NOT_AUTHORIZED
        if refusal is None and len(session.subscriptions) >= MOST_SUBSCRIPTIONS:
            refusal = Reason.QUOTA
        if refusal is not None:
            self.counts["refused"] += 1
        return refusal

    async def unsubscribe(self, session: Session, filters: list[str]) -> list[int]:
        reasons, gone = [], []
        for topic in filters:
            known = session.subscriptions.pop(topic, None)
            reasons.append(int(Reason.SUCCESS if known else Reason.NO_SUBSCRIPTION))
            if known is None:
                continue
            gone.append(topic)
            for table in (self._listeners, self._newcomers):
                clients = cast("dict[str, object] | None", table.get(topic))
                if clients is not None:
                    clients.pop(session.client_id, None)
                    if not clients:
                        del table[topic]
        mesh = [topic for topic in gone if not topic.startswith(SYSTEM)]
        for topic in mesh:
            if topic not in self._listeners:
                self._topics.discard(topic)
                if topic not in self._keeping:
                    self._topics.discard(RETAINED + topic)
                    self._retained.pop(topic, None)
        await self._node.wanting.less([*mesh, *(RETAINED + topic for topic in mesh)])
        if session.client_id in self.sessions:
            self._folder.save(session, self._node.clock.wall())
        return reasons

    # What comes out of the mesh.

    async def _read(self) -> None:
        while events := await self._feed.get_all():
            for event in events:
                if event.topic.startswith(RETAINED):
                    self._keep_value(event)
                else:
                    payload, head = unwrap(event.payload)
                    born = self._node.clock.now - event.age if event.age else math.inf
                    own = event.publisher_id == self._node.id
                    self._hand_out(event.topic, payload, head, head.origin if own else "", born)

    def _hand_out(
        self, topic: str, payload: bytes, head: MqttHead, origin: str = "", born: float = math.inf
    ) -> None:
        """To those who subscribed before it was published; not to its publisher, if that does not want to hear itself."""
        for client_id, kept in self._listeners.get(topic, {}).items():
            if born < kept.since or (origin == client_id and kept.wish.no_local):
                continue
            self._give(client_id, kept, Parcel(topic, payload, kept.wish.qos, properties=head.properties))

    def _give(self, client_id: str, kept: Kept, parcel: Parcel) -> None:
        session = self.sessions.get(client_id)
        if session is None:
            return
        properties = parcel.properties
        expires = None
        if (seconds := properties.get("message_expiry")) is not None:
            expires = self._node.clock.now + seconds
        if kept.subscription_id:
            properties = {**properties, "subscription_id": [kept.subscription_id]}
        session.put(msgspec.structs.replace(parcel, properties=properties, expires=expires))
        self.counts["sent"] += 1
        client = self.clients.get(client_id)
        if client is not None:
            client.wake()

    def _keep_value(self, event: Received) -> None:
        topic = event.topic.removeprefix(RETAINED)
        payload, head = unwrap(event.payload)
        born = self._node.clock.now - event.age
        value = RetainedValue(head.retained_at, event.publisher, payload, head.properties, born)
        known = self._retained.get(topic)
        if known is None or known.rank < value.rank:
            self._retained[topic] = value
            if topic in self._newcomers and topic not in self._settling:
                # Of several that come together the last one is given.
                self._settling.add(topic)
                self.loop.call_later(SETTLE, self._give_value, topic)

    def _give_value(self, topic: str) -> None:
        """Newcomers get the retained value; one that is younger than their subscription reaches them as an event.

        If neighbours tell of a later one after that, they get that one too."""
        self._settling.discard(topic)
        value = self._system_values().get(topic) if topic.startswith(SYSTEM) else self._retained.get(topic)
        if value is None or not value.payload:
            return
        newcomers = self._newcomers.get(topic, {})
        ahead = self._node.clock.trusted() - self._node.clock.now
        for client_id, (since, given) in newcomers.items():
            kept = self._listeners.get(topic, {}).get(client_id)
            older = value.born < since or value.at < since + ahead
            if kept is not None and older and (given is None or given < value.rank):
                newcomers[client_id] = (since, value.rank)
                parcel = Parcel(topic, value.payload, kept.wish.qos, True, value.properties)
                self._give(client_id, kept, parcel)

    # What the door tells of itself.

    def _system_values(self) -> dict[str, RetainedValue]:
        waiting = sum(map(len, self.sessions.values()))
        dropped = self.counts["dropped"] + sum(session.dropped for session in self.sessions.values())
        values = {
            "version": f"topicweave {__version__}",
            "uptime": f"{self.loop.time() - self._began:.0f} seconds",
            "clients/connected": str(len(self.clients)),
            "clients/disconnected": str(len(self.sessions) - len(self.clients)),
            "subscriptions/count": str(sum(map(len, self._listeners.values()))),
            "retained messages/count": str(sum(bool(value.payload) for value in self._retained.values())),
            "messages/received": str(self.counts["received"]),
            "messages/sent": str(self.counts["sent"]),
            "messages/stored": str(waiting),
            "publish/messages/dropped": str(dropped),
            "mesh/degree": str(self._node.node.degree),
        }
        return {
            f"{SYSTEM}broker/{name}": RetainedValue(0.0, "", text.encode()) for name, text in values.items()
        }

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(TELL_EVERY)
            if any(topic.startswith(SYSTEM) for topic in self._listeners):
                for topic, value in self._system_values().items():
                    self._hand_out(topic, value.payload, MqttHead())


def new_client_id() -> str:
    return f"topicweave-{secrets.token_hex(8)}"
