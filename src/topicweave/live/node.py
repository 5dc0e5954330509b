"""A live node, as applications use it.

async with topicweave.connect(insecure=True, join=["127.0.0.1:7000"]) as node:
    await node.subscribe("news")
    await node.publish("news", b"hello")
    async for event in node.events():
        ...
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import secrets
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from topicweave.blocks.membership import Membership
from topicweave.client.words import Gap, Incomplete, Payload
from topicweave.errors import BadInput, NotKept
from topicweave.live import catch_up_messages
from topicweave.live.application import Feed, Receipt, Received
from topicweave.live.clock import Clock
from topicweave.live.gaps import Missed
from topicweave.live.names import TopicNames, UserTopics, refuse_reserved, reserved
from topicweave.live.patterns import LivePatterns, split
from topicweave.live.publisher import SEAL_ROOM, Publisher
from topicweave.live.seeds import Resolver, Seeds, resolve
from topicweave.live.settings import Address, SeedName, Settings, settings_from
from topicweave.live.transport import Transport, Who
from topicweave.live.wanting import MOST_HISTORY, Wanting
from topicweave.live.wire import AddressOf, Codec
from topicweave.live.world import LiveWorld
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId, ring_id
from topicweave.model.pattern_tree import ReaderTopics
from topicweave.model.patterns import is_pattern, literal_of, matches
from topicweave.systems.registry import find_system

if TYPE_CHECKING:
    from topicweave.blocks.topic_names import NameDirectory
    from topicweave.blocks.views import InterestView
    from topicweave.live.disk import Disk
    from topicweave.live.http import HttpPort
    from topicweave.live.keyring import Keyring
    from topicweave.live.mqtt.server import MqttPort
    from topicweave.live.recorder import Recorder
    from topicweave.live.store import Store
    from topicweave.port import Node
    from topicweave.systems.system import System

log = logging.getLogger("topicweave.live")

JOIN_PATIENCE = 1.0
"""How many seconds a node waits for a first contact before it starts alone. It keeps trying."""
SAVE_EVERY = 5.0
STORED_PEERS = 256


class LiveNode:
    """One node of a swarm. Make it in a running event loop with `connect`, or by hand with `start` and `stop`.

    `wall` is the wall clock, `resolver` looks up seeds' names. Experiments may replace both.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        keep_events: bool = True,
        seed: str | None = None,
        wall: Callable[[], float] | None = None,
        resolver: Resolver = resolve,
    ) -> None:
        self.settings = settings
        self.system = find_system(settings.system)
        parameters = settings.system_parameters(self.system)
        self.keyring = _open_keyring(settings)
        store = _open_store(settings)
        try:
            self.name = _settle_name(settings, self.keyring, store)
            self.id = ring_id(self.name)
            earlier = float(store.fact("now") or 0.0) if store else 0.0
            self.clock = Clock(earlier + SAVE_EVERY + 1.0 if earlier else 0.0, wall)
            names, patterns = self._wanted(store)
            self.topics = TopicNames(names)
            stored = store.peers() if store else {}
        except BaseException:
            if store is not None:
                store.close()
            raise
        rng = random.Random(seed if seed is not None else secrets.randbits(128))
        self.world = LiveWorld(
            settings, self.clock, rng, self.topics, self._hand_out, self._announce, self.keyring
        )
        self.counters = self.world.counters
        interest = frozenset(map(self.topics.id_of, self.topics))
        membership = Membership(
            capacity=settings.view, directory=settings.membership == "directory", live=True
        )
        view = membership.view(self.world, self.id, interest, None, self.system.needs)
        self.world.contacts = view.contacts
        self.node = self.system.build(self.world, self.id, interest, view, parameters)
        found = _attach_names(settings, self.system, self.node, view)  # and its messages
        codec = Codec(
            [*self.node.message_types, *catch_up_messages.TYPES],
            settings.limits.topics_per_peer,
            settings.limits.payload_bytes,
            self.world.memory,
        )
        self.transport = Transport(
            Who(self.name, settings.swarm, settings.spoken_system(self.system)),
            codec,
            settings.limits,
            settings.pace,
            rng,
            self.world,
            self.clock,
            self.counters,
            self.world.memory,
            self.keyring,
        )
        for peer, address in stored.items():
            self.transport.book.remember(AddressOf(peer, address))
        self.disk = _open_disk(store, self.world)
        seeds, known = [SeedName.parse(text) for text in settings.join], list(stored.values())
        self._seeds = Seeds(self.transport, seeds, known, self._met, resolver)
        self._may_join = bool(seeds or known)
        self._somebody = asyncio.Event()
        self._feeds: list[Feed] = []
        self._readers: weakref.WeakSet[Feed] = weakref.WeakSet()
        self._claimed = False
        self.feed = self.open_feed() if keep_events else None
        self._publisher = Publisher(self)
        self._tasks: list[asyncio.Task[None]] = []
        self._contacts: set[NodeId] = set()
        self._started = False
        self._stopped = False
        self._on_gaps: list[Callable[[Gap], None]] = []
        self.wanting = Wanting(self, interest)
        self.patterns = LivePatterns(self, found, patterns, earlier or None)
        self.http: HttpPort | None = None
        self.mqtt: MqttPort | None = None
        self.recorder: Recorder | None = None

    def _wanted(self, store: Store | None) -> tuple[list[str], list[str]]:
        """Names and patterns, from the settings and from an earlier life."""
        wanted = [*self.settings.subscribe, *(store.subscriptions() if store else ())]
        for topic in wanted:
            self.check_permission(topic)
        if store is not None:
            for topic in wanted:
                store.add_subscription(topic)
            store.commit()
        return split(wanted)

    # Life.

    async def start(self) -> None:
        """Listen, join, and take part in the overlay."""
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        settings = self.settings
        advertise = Address.parse(settings.advertise) if settings.advertise else None
        try:
            self.transport.listen(Address.parse(settings.listen), advertise)
        except OSError as error:
            raise BadInput(f"cannot listen on {settings.listen}: {error.strerror or error}") from None
        self.world.power_on(self.node, self.transport, self.disk)
        await self.patterns.load()
        if settings.telemetry:
            from topicweave.live.recorder import Recorder

            self.recorder = Recorder(self, settings.telemetry)
            self.recorder.start()
        if settings.http:
            from topicweave.live.http import HttpPort

            self.http = HttpPort(self)
            await self.http.start()
        if settings.mqtt:
            from topicweave.live.mqtt.server import MqttPort

            self.mqtt = MqttPort(self)
            await self.mqtt.start()
        if self._may_join:
            self._tasks.append(asyncio.create_task(self._seeds.keep_meeting()))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._somebody.wait(), JOIN_PATIENCE)
        self._start_node()
        await self.patterns.start()
        if self.disk is not None:
            self._tasks.append(asyncio.create_task(self._keep_saving(self.disk)))

    async def stop(self) -> None:
        """Leave in order: say goodbye, send what waits, write what has to be kept."""
        if self._stopped:
            return
        self._stopped = True
        for task in self._tasks:
            task.cancel()
        self.patterns.stop()
        async with contextlib.AsyncExitStack() as then:
            # The last one first; whatever fails, the rest is done.
            then.callback(self._close_feeds)
            if self.disk is not None:
                then.push_async_callback(self.disk.close)
            if self.recorder is not None:
                then.callback(self.recorder.stop)
            then.callback(self.world.power_off)
            then.push_async_callback(self.transport.close)
            then.callback(self._leave)
            if self.mqtt is not None:
                then.push_async_callback(self.mqtt.stop)
            if self.http is not None:
                then.push_async_callback(self.http.stop)

    def _leave(self) -> None:
        if self._started:
            self.world.guarded(self.node.leave)
            if self.disk is not None:
                self._save(self.disk)

    def _close_feeds(self) -> None:
        for feed in [*self._feeds, *self._readers]:
            feed.close()

    def reload_keys(self) -> None:
        """Read the key folder again: new certificates, and revoked ones."""
        if self.keyring is None:
            raise BadInput("this node has no keys to read again")
        self.keyring.reload()
        self.transport.use_keys()
        log.warning("%s: the keys were read again", self.name)

    # Joining.

    @property
    def address(self) -> Address:
        return self.transport.address

    def _met(self, peers: set[NodeId]) -> None:
        """Seeds answered. A node that began alone, or lost everybody, begins anew with them."""
        alone = not self._contacts & set(self.transport.connected) or not self.node.degree
        self._contacts |= peers
        self._somebody.set()
        if self._started and alone:
            self._start_node()

    def _start_node(self) -> None:
        self._started = True
        self.world.guarded(self.node.start, sorted(self._contacts))

    @property
    def joined(self) -> bool:
        """Whether anybody is connected."""
        return bool(self.transport.connected)

    # What applications do.

    async def subscribe(
        self,
        topic: str | Iterable[str],
        *,
        last: int | None = None,
        since: float | None = None,
        lasting: bool = True,
    ) -> None:
        """Subscribe to a topic, to a pattern such as `zone/+/door` or `zone/7/#`, or to many. Events in
        neighbours' caches come, too.

        `last=N` also asks for the last N events that neighbours keep, on disk too. `since` (Unix time) asks
        for those that came to them later than that. Both give only events that the node has not had. A
        `lasting` subscription survives a restart with the same data folder: the call returns when it is on disk.
        If the disk fails, the call raises `NotKept`; the node subscribes all the same.
        """
        names, patterns = self._named(topic)
        await self.patterns.take(patterns, last=last, since=since, lasting=lasting)
        await self.wanting.take(names, last=last, since=since, lasting=lasting)
        if lasting:
            await self._until_kept()

    async def unsubscribe(self, topic: str | Iterable[str]) -> None:
        """Unsubscribe from a topic, a pattern, or many. When no client wants the topic either, its cache is dropped.

        As with `subscribe`, a restart does not forget this.
        """
        names, patterns = self._named(topic)
        await self.patterns.drop(patterns)
        await self.wanting.drop(names)
        await self._until_kept()

    async def _until_kept(self) -> None:
        if self.disk is not None and not await self.disk.keeps(self.disk.committed()):
            reason = f"the data folder takes nothing ({self.disk.error}); make room"
            raise NotKept(
                f"done, but a restart may forget it: {reason if self.disk.error else 'the node stops'}"
            )

    def _named(self, topic: str | Iterable[str]) -> tuple[list[str], list[str]]:
        """The names and the patterns that an application says."""
        topics = [topic] if isinstance(topic, str) else list(topic)
        refuse_reserved(topics)
        return split(topics)

    def check_permission(self, topic: str) -> None:
        """Refuse a topic that the certificate does not allow. A pattern needs permission for all that it can match."""
        if self.keyring is not None and not self.keyring.own.permissions.may_subscribe(literal_of(topic)):
            raise BadInput(
                f"the certificate of {self.keyring.name!r} does not allow to subscribe to {topic!r}"
            )

    @property
    def subscriptions(self) -> list[str]:
        """The node's topics, with those that patterns found; not those on which MQTT doors keep retained values."""
        names = map(self.topics.of, self.node.subscriptions)
        return sorted(name for name in names if not reserved(name))

    def publish(
        self, topic: str, payload: Payload, *, wait_for: int = 0, timeout: float = 5.0, retain: bool = False
    ) -> Coroutine[Any, Any, Receipt]:
        """Send an event to every subscriber of the topic.

        The call waits, but not for long, while a neighbour's queue is more than half full. With `wait_for=k`
        it returns when k neighbours have accepted the event, or after `timeout` seconds. `retain` keeps the
        topic's last event at this node for later subscribers, whatever the limits of the log say.
        """
        refuse_reserved((topic,))
        return self.publish_any(topic, payload, wait_for, timeout, retain)

    def publish_any(
        self, topic: str, payload: Payload, wait_for: int = 0, timeout: float = 5.0, retain: bool = False
    ) -> Coroutine[Any, Any, Receipt]:
        """The same on any topic, for the node's own doors."""
        if self.keyring is not None and not self.keyring.own.permissions.may_publish(topic):
            raise BadInput(f"the certificate of {self.keyring.name!r} does not allow to publish on {topic!r}")
        checked = self._publisher.checked(payload)  # First: what is refused announces no name.
        number = self.topics.id_of(topic)
        self.patterns.published(topic)
        if retain:
            self.patterns.keeps(topic)
        return self._publisher.publish(number, checked, wait_for, timeout, retain)

    @property
    def refusals(self) -> dict[str, int]:
        """How many of this node's own events neighbours refused, by reason."""
        return dict(self._publisher.refusals)

    async def acknowledge(self, event: Received) -> None:
        """Acknowledge an event, with delivery at least once. It does not come again."""
        self.world.gate.acknowledge(self.event_id(event))

    def event_id(self, event: Received) -> EventId:
        return EventId(event.publisher_id, self.topics.id_of(event.topic), event.epoch, event.sequence)

    def events(self) -> Feed:
        """Events as they come. The first reader gets all events since the start, further readers all from now on."""
        if self.feed is None:
            raise BadInput("this node keeps no events for its application: open a feed")
        if not self._claimed:
            self._claimed = True
            return self.feed
        feed = self._make_feed(None, None)
        self._readers.add(feed)  # Weakly: a reader that went away must not fill up.
        return feed

    async def batches(self) -> AsyncIterator[list[Received]]:
        """The same, as lists of all events that wait. This is faster for very many events."""
        feed = self.events()
        while events := await feed.get_all():
            yield events

    def open_feed(
        self,
        topics: Iterable[str] | None = None,
        *,
        last: int = 0,
        since: float | None = None,
        on_gap: Callable[[Gap], None] | None = None,
    ) -> Feed:
        """A further reader, of all events or of some topics, from now on.

        The reader first gets the last events of these topics that the node's cache holds, or those that came
        after `since`. `on_gap` is called with events that will not come.
        """
        topics = None if topics is None else list(topics)
        feed = self._make_feed(topics, on_gap)
        self._feeds.append(feed)
        for topic in topics or () if last or since is not None else ():
            self.replay(feed, topic, last or MOST_HISTORY, since or 0.0)
        return feed

    def replay(self, feed: Feed, topic: str, last: int, since: float = 0.0) -> None:
        """Give a reader the events that the node's cache holds of a topic, or of the topics that a pattern matches."""
        names = self.subscriptions if is_pattern(topic) else [topic]
        for name in names:
            if name == topic or matches(topic, name):
                feed.put(self.cached(name, last, since))

    def cached(self, topic: str, last: int, since: float = 0.0) -> list[Received]:
        """The events that the node's cache holds of a topic: the last ones, or those that came after a moment."""
        logged = self.world.log.history(self.topics.id_of(topic), last, since)
        return self._received([one.event for one in logged], again=False)

    def _make_feed(self, topics: Iterable[str] | None, on_gap: Callable[[Gap], None] | None) -> Feed:
        limits = self.settings.limits
        # Without a door there are none but the user's topics.
        everything = UserTopics() if self.settings.mqtt else None
        return Feed(
            self.counters,
            limits.application_events,
            limits.application_bytes,
            everything if topics is None else ReaderTopics(topics),
            on_gap,
            on_gap or self._tell_gap,
            self.world.memory,
        )

    def close_feed(self, feed: Feed) -> None:
        feed.close()
        with contextlib.suppress(ValueError):
            self._feeds.remove(feed)

    def on_gap(self, tell: Callable[[Gap], None]) -> None:
        """From now on, call `tell` with events that will not come, and with events that a reader without its
        own `on_gap` did not read in time.
        """
        self._on_gaps.append(tell)

    def on_incomplete(self, tell: Callable[[Incomplete], None]) -> Callable[[], None]:
        """From now on, call `tell` with patterns some of whose topics are unknown. Returns a function that
        ends this.
        """
        return self.patterns.on_incomplete(tell)

    # Names.

    def name_of_node(self, node: NodeId) -> str:
        if node == self.id:
            return self.name
        if self.keyring is not None and (credential := self.keyring.credential(node)) is not None:
            return credential.name
        known = self.transport.introduction(node)
        return known[0] if known else f"{node:016x}"

    def _hand_out(self, events: list[Event], again: bool) -> None:
        if self._feeds or self._readers:
            received = self._received(events, again)
            for feed in [*self._feeds, *self._readers]:
                feed.put(received)

    def _received(self, events: Sequence[Event], again: bool) -> list[Received]:
        skip = len(SEAL_ROOM) if self.keyring is not None else 0
        gate = self.world.gate
        ages = gate.ages
        received = []
        # Of a burst, most events are of one publisher and one topic: their names are looked up once.
        publisher, topic = -1, -1
        publisher_name = topic_name = ""
        for event in events:
            if event.publisher != publisher:
                publisher = event.publisher
                publisher_name = self.name_of_node(publisher)
            if event.topic != topic:
                topic = event.topic
                topic_name = self.topics.of(topic)
            payload = event.payload[skip:] if skip else event.payload
            received.append(
                Received(
                    topic_name,
                    payload,
                    publisher_name,
                    event.epoch,
                    event.sequence,
                    publisher,
                    again,
                    gate.waited(event.id) if again else ages.take(event.id) if len(ages) else 0.0,
                )
            )
        return received

    def _announce(self, missed: list[Missed]) -> None:
        gaps = []
        for stream, first, last, reason in missed:
            topic, publisher = self.topics.of(stream.topic), self.name_of_node(stream.publisher)
            gaps.append(Gap(topic, publisher, stream.epoch, first, last, reason))
            if reason != "before":
                log.warning(
                    "%s: missed %d to %d of %s on %s (%s)", self.name, first, last, publisher, topic, reason
                )
        for feed in [*self._feeds, *self._readers]:
            feed.missed(gaps)
        for gap in gaps:
            self._tell_gap(gap)

    def _tell_gap(self, gap: Gap) -> None:
        for tell in self._on_gaps if not reserved(gap.topic) else ():
            tell(gap)

    # The data folder.

    def _save(self, disk: Disk) -> None:
        connected = self.transport.connected
        first = [peer for peer in connected if self.world.linked(peer)] + connected
        addresses = ((peer, self.transport.book.get(peer)) for peer in dict.fromkeys(first))
        known = {peer: address for peer, address in addresses if address is not None}
        if known:
            disk.do(disk.store.set_peers, dict(list(known.items())[:STORED_PEERS]))
        disk.do(disk.store.set_fact, "now", self.clock.now)
        disk.committed()

    async def _keep_saving(self, disk: Disk) -> None:
        while True:
            self._save(disk)
            # A disk that takes nothing is not given more of the same. Others wait for the same promise: who stops
            # waiting must not cancel it.
            await asyncio.wait([disk.committed()])
            await asyncio.sleep(SAVE_EVERY)


def _open_keyring(settings: Settings) -> Keyring | None:
    if not settings.keys:
        return None
    from topicweave.live.keyring import Keyring

    return Keyring(settings.keys, settings.limits.credentials)


def _open_store(settings: Settings) -> Store | None:
    if not settings.data:
        return None
    from topicweave.live.store import Store

    return Store(settings.data, signed=bool(settings.keys))


def _open_disk(store: Store | None, world: LiveWorld) -> Disk | None:
    if store is None:
        return None
    from topicweave.live.disk import Disk

    return Disk(store, world.counters, world.gate.disk_failed)


def _attach_names(settings: Settings, system: System, node: Node, view: InterestView) -> NameDirectory | None:
    """The directory of names, if this swarm has one."""
    if not settings.has_names(system):
        return None
    from topicweave.blocks.topic_names import attach_names

    return attach_names(node, view, private=settings.private_names)


def _settle_name(settings: Settings, keyring: Keyring | None, store: Store | None) -> str:
    given = settings.name
    name = given or (str(store.fact("name") or "") if store else "")
    if keyring is not None:
        name = keyring.name
        if given and given != name:
            raise BadInput(f"the keys in {settings.keys} are {name!r}'s, not {given!r}'s")
    name = name or f"node-{secrets.token_hex(6)}"
    if store is not None:
        for fact, value in (("name", name), ("swarm", settings.swarm)):
            kept = store.fact(fact)
            if kept is not None and kept != value:
                raise BadInput(f"the data in {settings.data} are of {fact} {kept!r}, not {value!r}")
            store.set_fact(fact, value)
        store.commit()
    return name


@asynccontextmanager
async def connect(settings: Settings | None = None, **changes: Any) -> AsyncIterator[LiveNode]:
    """Run a node for the length of an `async with` block.

    Takes `Settings`, or its fields as keywords, or both; keywords win.
    """
    given = msgspec.structs.asdict(settings) if settings is not None else {}
    node = LiveNode(settings_from({**given, **changes}))
    await node.start()
    try:
        yield node
    finally:
        await node.stop()


def run(main: Callable[[], Any]) -> None:
    """Run a coroutine function on uvloop, or on asyncio's own loop if there is no uvloop."""
    try:
        import uvloop
    except ImportError:  # Windows
        asyncio.run(main())
    else:
        uvloop.run(main())
