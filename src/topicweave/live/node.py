"""A live node, whole: what applications hold in their hands.

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
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from topicweave.blocks.membership import Membership
from topicweave.errors import BadInput
from topicweave.live import catch_up
from topicweave.live.application import Feed, Receipt, Received
from topicweave.live.clock import Clock
from topicweave.live.names import TopicNames
from topicweave.live.publisher import SIGNATURE_ROOM, Publisher
from topicweave.live.settings import Address, Settings
from topicweave.live.transport import Transport
from topicweave.live.wire import Codec
from topicweave.live.world import LiveWorld
from topicweave.model.event import Event
from topicweave.model.ids import NodeId, TopicId, ring_id
from topicweave.port import Node
from topicweave.systems.registry import find_system

if TYPE_CHECKING:
    from topicweave.live.http import HttpPort
    from topicweave.live.keyring import Keyring
    from topicweave.live.recorder import Recorder
    from topicweave.live.store import Store

log = logging.getLogger("topicweave.live")

JOIN_PATIENCE = 1.0
"""Seconds a node waits for a first contact before it begins alone; it goes on trying."""
SAVE_EVERY = 5.0
STORED_PEERS = 256


class LiveNode:
    """One node of a swarm. Made by `connect`, or by hand with `start` and `stop`."""

    def __init__(self, settings: Settings, *, keep_events: bool = True, seed: str | None = None) -> None:
        self.settings = settings
        self.system = find_system(settings.system)
        self._seed = seed
        self._keep_events = keep_events
        self._cache_sizes: dict[TopicId, int] = {
            ring_id(topic): size for topic, size in settings.caches.items()
        }
        self._feeds: list[Feed] = []
        self._joining: asyncio.Task[None] | None = None
        self._saver: asyncio.Task[None] | None = None
        self._contacts: set[NodeId] = set()
        self._started = False
        self._stopped = False
        self.store: Store | None = None
        self.keyring: Keyring | None = None
        self.http: HttpPort | None = None
        self.recorder: Recorder | None = None

    # Life.

    async def start(self) -> None:
        """Listen, join, and be a node of the overlay."""
        settings = self.settings
        parameters = settings.system_parameters(self.system)
        if settings.keys:
            from topicweave.live.keyring import Keyring

            self.keyring = Keyring(settings.keys, settings.limits.credentials)
        if settings.data:
            from topicweave.live.store import Store

            self.store = Store(settings.data)
        try:
            await self._start(parameters)
        except BaseException:
            await self.stop()
            raise

    async def _start(self, parameters: Any) -> None:
        settings = self.settings
        self.name = self._settle_name()
        self.id = ring_id(self.name)
        earlier = float(self.store.fact("now") or 0.0) if self.store else 0.0
        self.clock = Clock(not_before=earlier + SAVE_EVERY + 1.0 if earlier else 0.0)
        rng = random.Random(self._seed if self._seed is not None else secrets.randbits(128))
        self.world = LiveWorld(
            self.clock,
            rng,
            self._hand_out,
            lambda topic: self._cache_sizes.get(topic, settings.cache),
            settings.limits.cache_bytes,
            settings.pace.catch_up_period,
            self.store,
            self.keyring,
        )
        topics = dict.fromkeys([*settings.subscribe, *(self.store.subscriptions() if self.store else ())])
        self.topics = TopicNames(topics)
        if self.store:
            for topic in topics:
                self.store.add_subscription(topic)
        interest = frozenset(map(self.topics.id_of, topics))
        view = Membership(capacity=settings.view).view(self.world, self.id, interest, None)
        self.node: Node = self.system.build(self.world, self.id, interest, view, parameters)
        codec = Codec(
            [*self.node.message_types, *catch_up.TYPES],
            settings.limits.topics_per_peer,
            settings.limits.payload_bytes,
        )
        self.transport = Transport(
            self.name,
            settings.swarm,
            settings.system,
            codec,
            settings.limits,
            settings.pace,
            rng,
            self.world,
            self.keyring,
        )
        self.counters = self.transport.counters
        self.feed = self.open_feed() if self._keep_events else None
        self._publisher = Publisher(self)
        advertise = Address.parse(settings.advertise) if settings.advertise else None
        try:
            self.transport.listen(Address.parse(settings.listen), advertise)
        except OSError as error:
            raise BadInput(f"cannot listen on {settings.listen}: {error.strerror or error}") from None
        self.world.power_on(self.node, self.transport)
        if self.store:
            self._resume(self.store)
        if settings.telemetry:
            from topicweave.live.recorder import Recorder

            self.recorder = Recorder(self, settings.telemetry)
            self.recorder.start()
        if settings.http:
            from topicweave.live.http import HttpPort

            self.http = HttpPort(self)
            await self.http.start()
        await self._join()
        if self.store:
            self._saver = asyncio.create_task(self._keep_saving(self.store))

    async def stop(self) -> None:
        """Leave in order: say goodbye, send what waits, keep what is to be kept."""
        if self._stopped:
            return
        self._stopped = True
        for task in (self._joining, self._saver):
            if task is not None:
                task.cancel()
        if self.http is not None:
            await self.http.stop()
        if self._started:
            self.world.guarded(self.node.leave)
        if hasattr(self, "transport"):
            if self.store is not None:
                self._save(self.store)
            await self.transport.close()
            self.world.power_off()
        if self.recorder is not None:
            self.recorder.stop()
        for feed in self._feeds:
            feed.close()
        if self.store is not None:
            self.store.close()

    def _settle_name(self) -> str:
        given = self.settings.name
        name = given or (str(self.store.fact("name") or "") if self.store else "")
        if self.keyring is not None:
            name = self.keyring.name
            if given and given != name:
                raise BadInput(f"the keys in {self.settings.keys} are {name!r}'s, not {given!r}'s")
        name = name or f"node-{secrets.token_hex(6)}"
        if self.store is not None:
            for fact, value in (("name", name), ("swarm", self.settings.swarm)):
                kept = self.store.fact(fact)
                if kept is not None and kept != value:
                    raise BadInput(f"the data in {self.settings.data} are of {fact} {kept!r}, not {value!r}")
                self.store.set_fact(fact, value)
            self.store.commit()
        return name

    # Joining.

    @property
    def address(self) -> Address:
        return self.transport.address

    async def _join(self) -> None:
        """Begin with the first contacts that answer; without any, alone, and go on trying."""
        stored = self.store.peers() if self.store else {}
        for peer, address in stored.items():
            self.transport.book.hear(peer, address)
        addresses = [Address.parse(text) for text in self.settings.join]
        addresses += [address for address in stored.values() if address not in addresses]
        if not addresses:
            self._start_node()
            return
        met = asyncio.Event()
        self._joining = asyncio.create_task(self._meet(addresses, met))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(met.wait(), JOIN_PATIENCE)
        self._start_node()

    async def _meet(self, addresses: list[Address], met: asyncio.Event) -> None:
        """Dial all given addresses, with growing pauses, until one has answered; those that never do are tried again."""
        pause = self.settings.pace.first_backoff
        while not self._contacts:
            results = await asyncio.gather(*(self._try(address) for address in addresses))
            self._contacts = {peer for peer in results if peer is not None} - {self.id}
            if self._contacts:
                met.set()
                if self._started:
                    # It began alone: now there is somebody.
                    self._start_node()
                return
            await asyncio.sleep(pause * self.world.random.uniform(0.5, 1.5))
            pause = min(2 * pause, 5.0)

    async def _try(self, address: Address) -> NodeId | None:
        try:
            return await self.transport.meet(address)
        except (OSError, ssl.SSLError, TimeoutError) as error:
            self.counters.dials_failed += 1
            log.info("%s: %s does not answer: %s", self.name, address, str(error) or type(error).__name__)
            return None

    def _start_node(self) -> None:
        self._started = True
        self.world.guarded(self.node.start, sorted(self._contacts))

    @property
    def joined(self) -> bool:
        """Whether anybody is connected."""
        return bool(self.transport.connected)

    # What applications do.

    async def subscribe(self, topic: str) -> None:
        """Want a topic from now on, and what neighbours still hold of it."""
        topic_id = self.topics.id_of(topic)
        if topic_id in self.node.subscriptions:
            return
        if self.store is not None:
            self.store.add_subscription(topic)
            self.store.commit()
        self.node.subscribe(topic_id)
        self.world.catch_up.changed(topic_id)

    async def unsubscribe(self, topic: str) -> None:
        """Want a topic no more; its cache is dropped."""
        topic_id = self.topics.id_of(topic)
        self.node.unsubscribe(topic_id)
        self.world.log.drop(topic_id)
        if self.store is not None:
            self.store.remove_subscription(topic)
            self.store.commit()

    @property
    def subscriptions(self) -> list[str]:
        return sorted(self.topics.of(topic) for topic in self.node.subscriptions)

    def publish(
        self, topic: str, payload: bytes, *, wait_for: int = 0, timeout: float = 5.0
    ) -> Coroutine[Any, Any, Receipt]:
        """Send an event to everybody who wants the topic.

        Waits, but not for long, while a neighbour's queue is more than half full. With `wait_for=k`, returns when k
        neighbours have said that they have it, or when the time is over.
        """
        return self._publisher.publish(self.topics.id_of(topic), payload, wait_for, timeout)

    def events(self) -> AsyncIterator[Received]:
        """Events as they come; for one reader. Others open feeds of their own."""
        return self._own_feed()

    async def batches(self) -> AsyncIterator[list[Received]]:
        """The same, all that are there at a time: for those who read very many."""
        feed = self._own_feed()
        while events := await feed.get_all():
            yield events

    def _own_feed(self) -> Feed:
        if self.feed is None:
            raise BadInput("this node keeps no events for its application: open a feed")
        return self.feed

    def open_feed(self, topics: Iterable[str] | None = None) -> Feed:
        """One more reader of all events, or of those of some topics, from now on."""
        limits = self.settings.limits
        feed = Feed(
            self.counters,
            limits.application_events,
            limits.application_bytes,
            None if topics is None else frozenset(topics),
        )
        self._feeds.append(feed)
        return feed

    def close_feed(self, feed: Feed) -> None:
        feed.close()
        with contextlib.suppress(ValueError):
            self._feeds.remove(feed)

    # Names.

    def name_of_node(self, node: NodeId) -> str:
        if node == self.id:
            return self.name
        if self.keyring is not None and (credential := self.keyring.credential(node)) is not None:
            return credential.name
        known = self.transport.introduction(node)
        return known[0] if known else f"{node:016x}"

    def _hand_out(self, events: list[Event]) -> None:
        if not self._feeds:
            return
        skip = len(SIGNATURE_ROOM) if self.keyring is not None else 0
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
            received.append(Received(topic_name, payload, publisher_name, event.epoch, event.sequence))
        for feed in self._feeds:
            feed.put(received)

    # The data folder.

    def _resume(self, store: Store) -> None:
        epoch = store.fact("epoch")
        if isinstance(epoch, int):
            self.node.resume(epoch, store.sequences())

    def _save(self, store: Store) -> None:
        connected = self.transport.connected
        first = [peer for peer in connected if self.world.linked(peer)] + connected
        addresses = ((peer, self.transport.book.get(peer)) for peer in dict.fromkeys(first))
        known = {peer: address for peer, address in addresses if address is not None}
        if known:
            store.set_peers(dict(list(known.items())[:STORED_PEERS]))
        store.set_fact("now", self.clock.now)
        store.commit()

    async def _keep_saving(self, store: Store) -> None:
        while True:
            self._save(store)
            await asyncio.sleep(SAVE_EVERY)


@asynccontextmanager
async def connect(settings: Settings | None = None, **changes: Any) -> AsyncIterator[LiveNode]:
    """A running node for the length of a `with` block.

    Takes `Settings`, or its fields as keywords, or both (the keywords win).
    """
    try:
        if settings is None:
            settings = Settings(**changes)
        elif changes:
            settings = msgspec.structs.replace(settings, **changes)
        settings = msgspec.convert(msgspec.to_builtins(settings), Settings, strict=False)
    except (TypeError, msgspec.ValidationError) as error:
        raise BadInput(f"settings: {error}") from None
    node = LiveNode(settings)
    await node.start()
    try:
        yield node
    finally:
        await node.stop()


def run(main: Callable[[], Any]) -> None:
    """Run a coroutine function on the fastest event loop there is."""
    try:
        import uvloop
    except ImportError:  # Windows
        asyncio.run(main())
    else:
        uvloop.run(main())
