"""The door of one node for MQTT clients: their sessions, the values they retained, their wills, and what they may do.

Everything goes through the node: what a client publishes is an event of the node's, and comes back through
the node's feed to clients of the same door as to those of others. `listeners` says who gets it. A retained
value is published twice: to those who listen, and on a topic of its own that keeps its last event: see
`retaining`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from collections import Counter
from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any

from topicweave import __version__
from topicweave.errors import TopicweaveError
from topicweave.live.application import Receipt, Received
from topicweave.live.mqtt.accounts import Accounts
from topicweave.live.mqtt.client import MqttClient
from topicweave.live.mqtt.envelope import MqttHead, unwrap, wrap
from topicweave.live.mqtt.keeping import DoorFolder, KeptSession
from topicweave.live.mqtt.listeners import Listeners, Recipient
from topicweave.live.mqtt.packets import (
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
from topicweave.live.mqtt.retaining import DoorTopics, RetainedValue, RetainedValues
from topicweave.live.mqtt.session import FOR_EVER, Kept, Parcel, Session
from topicweave.live.mqtt.topics import (
    SHARE,
    SYSTEM,
    Wishes,
    check_topic,
    refusal_of,
    share_of,
    speakable,
    too_long,
)
from topicweave.live.mqtt.wills import Wills
from topicweave.live.names import RETAINED
from topicweave.live.publisher import NOT_PERMANENT, SEAL_ROOM
from topicweave.model.patterns import is_pattern

if TYPE_CHECKING:
    from topicweave.live.node import LiveNode

log = logging.getLogger("topicweave.live")

MOST_WAITING = 10_000
"""Messages for one client."""
MOST_SESSIONS = 20_000
MOST_SUBSCRIPTIONS = 10_000
"""Of one client."""
MOST_RETAINED = 100_000
COMPLAIN_EVERY = 1.0
"""Seconds between two lines of the log about the same reason."""
SETTLE = 0.1
"""Seconds between the first word of a retained value and its giving."""
VALUES_AT_ONCE = 1000
"""Retained values given to a client in one turn of the event loop."""
DISK_PATIENCE = 5.0
"""Seconds for which a message waits for a disk that takes nothing."""
WILL_PATIENCE = 2.0
"""Seconds for which a node that stops looks for somebody who wants a will."""
TELL_EVERY = 10.0
"""Seconds between the values below $SYS."""


class Door:
    def __init__(self, node: LiveNode, accounts: Accounts) -> None:
        self._node = node
        self.accounts = accounts
        self.sessions: dict[str, Session] = {}
        self.clients: dict[str, MqttClient] = {}
        self.counts: Counter[str] = Counter()
        self.most_bytes = node.settings.limits.payload_bytes - len(SEAL_ROOM)
        """Of an event's payload."""
        self._complaints: dict[Reason, float] = {}
        self._listeners = Listeners(self.clients.__contains__, self._may_have)
        self._values = RetainedValues(
            lambda: node.clock.now,
            self._listeners.plain,
            self._listeners.__contains__,
            node.clock.trusted,
        )
        self._feed = node.open_feed(())
        self._feed.topics = DoorTopics(self._listeners, self._values)
        self._settling: set[str] = set()
        """Topics whose values are about to be given to newcomers."""
        self._wills = Wills(self._publish_will)
        self._ends: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[object]] = set()
        self.loop = asyncio.get_running_loop()
        self._began = self.loop.time()
        self._folder = DoorFolder(node.disk)
        self._stopping = False

    async def start(self) -> None:
        for topic in await self._folder.retained():
            try:
                self._node.check_permission(RETAINED + topic)
            except TopicweaveError as error:
                log.error("mqtt: the retained value of %s is let go: %s", topic, error)
                self._folder.let_go(topic)
                continue
            self._values.restore(topic, self._node.cached(RETAINED + topic, 1))
            self._node.world.retained.add(self._node.topics.id_of(RETAINED + topic))
            self._node.patterns.keeps(RETAINED + topic)
        await self._node.wanting.more([RETAINED + topic for topic in self._values.keeping], last=1)
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
        for one in session.subscriptions.values():
            self._listeners.put(session.client_id, one)
        try:
            await self._want(Wishes.of(session.subscriptions), kept.at)
        except TopicweaveError as error:
            log.error("mqtt: the session of %s ends: %s", session.client_id, error)
            for filter_ in session.subscriptions:
                self._listeners.remove(session.client_id, filter_)
            session.subscriptions.clear()
            self._forget(session)
            return
        if not kept.connected:
            self._repeat(session, kept.at)
        if session.expiry != FOR_EVER:
            left = max(0.0, session.left + session.expiry - now)
            self._ends[session.client_id] = self.loop.call_later(left, self._forget, session)

    def _repeat(self, session: Session, since: float) -> None:
        """Give a session what the node's own cache holds of its topics from a moment on."""
        gate = self._node.world.gate
        for topic in self._node.subscriptions:
            mine = [one for one in self._listeners.plain(topic) if one[1] == session.client_id]
            for event in self._node.cached(topic, MOST_WAITING, since) if mine else ():
                payload, head = unwrap(event.payload)
                qos = max(kept.wish.qos for _, _, kept in mine)
                numbers = tuple(kept.subscription_id for _, _, kept in mine if kept.subscription_id)
                if self._give(
                    Recipient(session.client_id, qos, numbers), topic, payload, head.properties, False
                ):
                    gate.acknowledge(self._node.event_id(event))

    async def stop(self) -> None:
        self._stopping = True
        for client in list(self.clients.values()):
            client.end(Reason.SHUTTING_DOWN, "the node stops")
        # Sessions go on from here: what comes from here on, such as wills, they get from the node's cache.
        self._take_all(self._feed.take())
        for session in self.sessions.values():
            self._save(session)
        for end in self._ends.values():
            end.cancel()
        await self._wills.stop()
        self._node.close_feed(self._feed)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _run(self, work: Coroutine[Any, Any, object]) -> asyncio.Task[object]:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # Coming and going.

    def enter(self, client: MqttClient, connect: Connect) -> tuple[Session, bool]:
        """A client that was let in. Its session, and whether that was there before."""
        if self._stopping:
            raise MqttError(Reason.UNAVAILABLE, "the node stops")
        client_id = client.client_id
        old = self.clients.get(client_id)
        if old is not None:
            old.end(Reason.TAKEN_OVER, "another connection came with the same client id")
        if (end := self._ends.pop(client_id, None)) is not None:
            end.cancel()
        self._wills.back(client_id, connect.clean_start)
        session = self.sessions.get(client_id)
        if session is not None and connect.clean_start:
            self._forget(session)
            session = None
        present = session is not None
        if session is None:
            if len(self.sessions) >= MOST_SESSIONS:
                raise MqttError(Reason.QUOTA, f"{MOST_SESSIONS} sessions are kept")
            session = self._new_session(client_id)
        self.clients[client_id] = client
        if connect.version == V5:
            session.expiry = connect.properties.get("session_expiry", 0)
        else:
            session.expiry = 0 if connect.clean_start else FOR_EVER
        session.connected = True
        session.username = client.username or ""
        self._save(session)
        self.counts["connections"] += 1
        return session, present

    def _new_session(self, client_id: str) -> Session:
        limits = self._node.settings.limits
        session = Session(client_id, MOST_WAITING, limits.application_bytes, self._node.world.memory)
        self.sessions[client_id] = session
        return session

    def _save(self, session: Session) -> None:
        """Unless it has ended: the client may have another one."""
        if self.sessions.get(session.client_id) is session:
            self._folder.save(session, self._node.world.gate.handed_out_until())

    def left(self, client: MqttClient, will: Will | None) -> None:
        """A connection has ended; with a will if it did not end in order."""
        client_id = client.client_id
        if self.clients.get(client_id) is not client:
            return  # Somebody else has its place.
        del self.clients[client_id]
        session = self.sessions[client_id]
        session.disconnect(self._node.clock.now)
        if will is not None:
            delay = 0 if self._stopping else min(will.properties.get("will_delay", 0), session.expiry)
            self._wills.leave(client, will, delay)
        if not session.expiry:
            self._forget(session)
            return
        self._save(session)
        if session.expiry != FOR_EVER and not self._stopping:
            self._ends[client_id] = self.loop.call_later(session.expiry, self._forget, session)

    def _forget(self, session: Session) -> None:
        """A session ends."""
        self._ends.pop(session.client_id, None)
        self.sessions.pop(session.client_id, None)
        self._folder.forget(session.client_id)
        self.counts["dropped"] += session.dropped
        for parcel in session.forget():
            other = self._listeners.another(parcel.share, parcel.topic, session.client_id)
            if other is not None:
                self._give(other, parcel.topic, parcel.payload, parcel.properties, False)
        # At once: the client's next session may already name the same filters.
        gone = self._strike(session, list(session.subscriptions))
        self._run(self._want_less(Wishes.of(gone)))

    async def _publish_will(self, client: MqttClient, packet: Publish) -> None:
        # A node that stops must not go before there is a link to somebody who wants it.
        patience = WILL_PATIENCE if self._stopping and self._node.joined else 0.0
        reason = await self.publish(client, packet, patience)
        if reason >= Reason.UNSPECIFIED:
            self.lost(client, packet, reason)

    # Publishing.

    async def publish(self, client: MqttClient, packet: Publish, patience: float = 0.0) -> Reason:
        """Publish for a client; what it is told. Done when the node has it, on disk where there is a data folder.

        `QUOTA` is for now: sent again, the message may be taken. All other refusals are for good. With `patience`
        it waits so long at most until somebody else has the message.
        """
        topic = check_topic(packet.topic)
        if too_long(topic):
            return Reason.BAD_TOPIC
        if not self.accounts.may(client.username, client.client_id, topic, write=True):
            return Reason.NOT_AUTHORIZED
        session = self.sessions.get(client.client_id)
        origin = client.client_id if session is not None and session.no_local else ""
        payload = wrap(packet.payload, packet.properties, origin=origin)
        value = wrap(packet.payload, packet.properties, self._node.clock.trusted()) if packet.retain else b""
        if packet.unread or max(len(payload), len(value)) > self.most_bytes:
            return Reason.NOT_ACCEPTED
        self.counts["received"] += 1
        try:
            if packet.retain:
                self._check_value(topic)
            waits = int(patience > 0), patience or DISK_PATIENCE
            receipt = await self._node.publish_any(topic, payload, *waits)
            kept = await self._retain(topic, value, *waits) if packet.retain else receipt
        except TopicweaveError as error:
            reason = Reason.NOT_AUTHORIZED if "certificate" in str(error) else Reason.QUOTA
            self.complain(reason, f"{client.client_id} may not publish on {topic[:80]}: {error}")
            return reason
        if any(one.reason.startswith(NOT_PERMANENT) for one in (receipt, kept)):
            return Reason.QUOTA  # The disk is full: it is not durable, so it is not taken.
        wanted = self._node.topics.id_of(topic) in self._node.node.subscriptions
        nobody = not receipt.neighbours and not wanted
        return Reason.NO_SUBSCRIBERS if nobody else Reason.SUCCESS

    def lost(self, client: MqttClient, packet: Publish, reason: Reason) -> None:
        """A message is not taken, and its client is not told so."""
        self.counts["dropped"] += 1
        self.complain(
            reason, f"a message of {client.client_id} on {packet.topic[:80]} is lost: {reason.name}"
        )

    def complain(self, reason: Reason, text: str) -> None:
        """Into the log, of each kind once in a while: a flood of clients must not become one of lines."""
        self.counts[f"refused: {reason.name}"] += 1
        now = self._node.clock.now
        if now - self._complaints.get(reason, -math.inf) >= COMPLAIN_EVERY:
            self._complaints[reason] = now
            log.warning("mqtt: %s", text)

    def _check_value(self, topic: str) -> None:
        """Whether a value can be kept here, before anything is published."""
        self._node.check_permission(RETAINED + topic)
        if topic not in self._values.keeping and self._values.kept >= MOST_RETAINED:
            raise TopicweaveError(f"{MOST_RETAINED} values are retained at this door")

    async def _retain(self, topic: str, value: bytes, wait_for: int, timeout: float) -> Receipt:
        name = RETAINED + topic
        if topic not in self._values.keeping:
            self._values.keeping.add(topic)
            self._folder.retain(topic)
            await self._node.wanting.more([name], last=1)
        return await self._node.publish_any(name, value, wait_for, timeout, retain=True)

    async def _let_go(self) -> None:
        """Of topics that were cleared."""
        gone = self._values.let_go()
        for topic in gone:
            self._folder.let_go(topic)
            self._node.world.retained.discard(self._node.topics.id_of(RETAINED + topic))
        if gone:
            await self._node.wanting.less([RETAINED + topic for topic in gone])

    # Subscribing.

    async def subscribe(self, client: MqttClient, session: Session, packet: Subscribe) -> list[int]:
        """What is said to each wish. `give_values` follows."""
        numbers = packet.properties.get("subscription_id", [0])
        reasons: list[int] = []
        before: dict[str, Kept | None] = {}
        for wish in packet.wishes:
            refusal = self._refusal(client, session, wish)
            if refusal is not None:
                reasons.append(int(refusal))
                continue
            filter_ = wish.filter
            known = session.subscriptions.get(filter_)
            before.setdefault(filter_, known)
            since = self._node.clock.now if known is None else known.since
            self._put(session, Kept(wish, numbers[0], since))
            shared = filter_.startswith(SHARE)
            if not shared and (wish.handling == 0 or (wish.handling == 1 and known is None)):
                self._values.welcome(session.client_id, filter_)
            reasons.append(wish.qos)
        session.look_for_no_local()
        refused = await self._begin(client, session, before)
        return [
            int(Reason.QUOTA) if wish.filter in refused and reason < Reason.UNSPECIFIED else reason
            for wish, reason in zip(packet.wishes, reasons, strict=True)
        ]

    def _put(self, session: Session, kept: Kept) -> None:
        session.subscriptions[kept.wish.filter] = kept
        self._listeners.put(session.client_id, kept)

    async def _begin(self, client: MqttClient, session: Session, before: dict[str, Kept | None]) -> set[str]:
        """Of subscriptions that were put into a session, in the place of others or of none: those that cannot be had,
        or not be kept. They are as before.
        """
        new = [filter_ for filter_, known in before.items() if known is None]
        now = session.subscriptions
        changed = {filter_: now[filter_] for filter_, known in before.items() if now[filter_] != known}
        refused: set[str] = set()
        try:
            await self._want(Wishes.of(new))
        except TopicweaveError as error:
            self.complain(Reason.QUOTA, f"{client.client_id} may not subscribe: {error}")
            self._strike(session, new)
            refused.update(new)
        self._save(session)
        if session.expiry and not await self._folder.permanent():
            why = "its session cannot be kept on disk"
            self.complain(Reason.QUOTA, f"{client.client_id} may not subscribe: {why}")
            for filter_, kept in changed.items():
                known = before[filter_]
                # The client may have ended or changed it from elsewhere since.
                if known is not None and now.get(filter_) is kept:
                    self._put(session, known)
            await self.unsubscribe(session, new)
            refused.update(changed)
        return refused

    async def _want(self, wishes: Wishes, since: float | None = None) -> None:
        """All of it or nothing. It is counted at once and begun whatever becomes of the client: the session may end,
        or go on elsewhere, before all is begun.
        """
        node = self._node
        watched = [*wishes.patterns, *wishes.value_patterns]
        node.patterns.check_all(watched)
        topics = node.wanting.count([*wishes.names, *wishes.values])
        patterns = node.patterns.count(watched)

        async def begin() -> None:
            names, filters = len(wishes.names), len(wishes.patterns)
            await node.wanting.begin(topics[:names])
            await node.wanting.begin(topics[names:], last=1)
            await node.patterns.begin(patterns[:filters], since=since)
            await node.patterns.begin(patterns[filters:], last=1)

        await asyncio.shield(self._run(begin()))

    async def _want_less(self, wishes: Wishes) -> None:
        await self._node.wanting.less([*wishes.names, *wishes.values])
        await self._node.patterns.less([*wishes.patterns, *wishes.value_patterns])

    def _refusal(self, client: MqttClient, session: Session, wish: Wish) -> Reason | None:
        refusal = refusal_of(wish.filter)
        group, named = share_of(wish.filter)
        if group and wish.no_local:
            raise MqttError(Reason.PROTOCOL_ERROR, "a shared subscription cannot be without its own messages")
        pattern = is_pattern(named) and not named.startswith(SYSTEM)
        if refusal is None and pattern and not self._node.patterns.available:
            refusal = Reason.NO_WILDCARDS
        if refusal is None and not self._may_subscribe(client, named):
            refusal = Reason.NOT_AUTHORIZED
        if refusal is None and len(session.subscriptions) >= MOST_SUBSCRIPTIONS:
            refusal = Reason.QUOTA
        return refusal

    def _may_subscribe(self, client: MqttClient, named: str) -> bool:
        """A pattern is refused if there is nothing below it that the client may read; each message is looked
        at when it comes.
        """
        if not named.startswith(SYSTEM):
            try:
                self._node.check_permission(named)
            except TopicweaveError as error:
                self.complain(Reason.NOT_AUTHORIZED, f"{client.client_id} may not subscribe: {error}")
                return False
        if is_pattern(named):
            return self.accounts.may_read_some(client.username, client.client_id, named)
        return self.accounts.may(client.username, client.client_id, named, write=False)

    def _may_have(self, client_id: str, topic: str) -> bool:
        session = self.sessions.get(client_id)
        return session is not None and self.accounts.may(session.username, client_id, topic, write=False)

    def _strike(self, session: Session, filters: Iterable[str]) -> list[str]:
        """Subscriptions end here; those that there were."""
        gone = [filter_ for filter_ in filters if session.subscriptions.pop(filter_, None) is not None]
        for filter_ in gone:
            self._listeners.remove(session.client_id, filter_)
        self._values.leave(session.client_id, gone)
        session.look_for_no_local()
        return gone

    async def unsubscribe(self, session: Session, filters: list[str]) -> list[int]:
        known = [filter_ in session.subscriptions for filter_ in filters]
        gone = self._strike(session, filters)
        await asyncio.shield(self._run(self._want_less(Wishes.of(gone))))
        self._save(session)
        return [int(Reason.SUCCESS if one else Reason.NO_SUBSCRIPTION) for one in known]

    # What comes out of the mesh.

    async def _read(self) -> None:
        while events := await self._feed.get_all():
            self._take_all(events)

    def _take_all(self, events: Iterable[Received]) -> None:
        gate = self._node.world.gate
        for event in events:
            if event.again and not gate.awaits(self._node.event_id(event)):
                continue  # It was acknowledged while this copy waited here.
            taken = self._take(event)
            # What none of its clients got is the application's, if that wants the topic.
            if gate.at_least_once and (taken or not self._node.wanting.of_its_own(event.topic)):
                gate.acknowledge(self._node.event_id(event))

    def _take(self, event: Received) -> bool:
        """Whether any client got it."""
        if event.topic.startswith(RETAINED):
            topic = self._values.learn(event)
            if topic and topic not in self._settling:
                # Of several that come together the last one is given.
                self._settling.add(topic)
                self.loop.call_later(SETTLE, self._give_value, topic)
            return True
        if not speakable(event.topic):
            self.counts["dropped"] += 1
            return False
        payload, head = unwrap(event.payload)
        born = self._node.clock.now - event.age if event.age else math.inf
        own = event.publisher_id == self._node.id
        return self._hand_out(event.topic, payload, head, head.origin if own else "", born)

    def _hand_out(
        self, topic: str, payload: bytes, head: MqttHead, origin: str = "", born: float = math.inf
    ) -> bool:
        recipients = self._listeners.recipients(topic, origin, born)
        taken = [self._give(one, topic, payload, head.properties, False) for one in recipients]
        return any(taken)

    def _give(
        self, to: Recipient, topic: str, payload: bytes, properties: Properties, retained: bool
    ) -> bool:
        """Whether its session takes it."""
        session = self.sessions.get(to.client_id)
        if session is None:
            return False
        expires = None
        if (seconds := properties.get("message_expiry")) is not None:
            expires = self._node.clock.now + seconds
        if to.numbers:
            properties = {**properties, "subscription_id": list(to.numbers)}
        taken = session.put(Parcel(topic, payload, to.qos, retained, properties, expires, to.share))
        self.counts["sent"] += taken
        client = self.clients.get(to.client_id)
        if client is not None:
            client.wake()
        return taken

    async def give_values(self, packet: Subscribe) -> None:
        """Retained values of all topics that new subscriptions name."""
        for wish in packet.wishes:
            system = wish.filter.startswith(SYSTEM)
            topics = list(self._system_values()) if system else self._values.matching(wish.filter)
            if is_pattern(wish.filter):
                await asyncio.sleep(0)
            for number, topic in enumerate(topics, start=1):
                self._give_value(topic)
                if number % VALUES_AT_ONCE == 0:
                    await asyncio.sleep(0)

    def _give_value(self, topic: str) -> None:
        self._settling.discard(topic)
        value = self._system_values().get(topic) if topic.startswith(SYSTEM) else self._values.get(topic)
        if value is None or not value.payload or not speakable(topic):
            return
        ahead = self._node.clock.trusted() - self._node.clock.now
        for client_id, kept in self._values.due(topic, value, ahead):
            if not is_pattern(kept.wish.filter) or self._may_have(client_id, topic):
                numbers = (kept.subscription_id,) if kept.subscription_id else ()
                recipient = Recipient(client_id, kept.wish.qos, numbers)
                self._give(recipient, topic, value.payload, value.properties, True)

    # What the door tells of itself.

    def _system_values(self) -> dict[str, RetainedValue]:
        waiting = sum(map(len, self.sessions.values()))
        dropped = self.counts["dropped"] + sum(session.dropped for session in self.sessions.values())
        values = {
            "version": f"topicweave {__version__}",
            "uptime": f"{self.loop.time() - self._began:.0f} seconds",
            "clients/connected": str(len(self.clients)),
            "clients/disconnected": str(len(self.sessions) - len(self.clients)),
            "subscriptions/count": str(len(self._listeners)),
            "retained messages/count": str(len(self._values)),
            "messages/received": str(self.counts["received"]),
            "messages/sent": str(self.counts["sent"]),
            "messages/stored": str(waiting),
            "publish/messages/dropped": str(dropped),
            "patterns/incomplete": str(len(self._node.patterns.lacking())),
            "mesh/degree": str(self._node.node.degree),
        }
        return {
            f"{SYSTEM}broker/{name}": RetainedValue(0.0, "", text.encode()) for name, text in values.items()
        }

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(TELL_EVERY)
            for topic, value in self._system_values().items():
                self._hand_out(topic, value.payload, MqttHead())
            await self._let_go()


def new_client_id() -> str:
    return f"topicweave-{secrets.token_hex(8)}"
