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
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from topicweave.blocks.membership import Membership
from topicweave.errors import BadInput
from topicweave.live import catch_up
from topicweave.live.application import Feed, Receipt, Received
from topicweave.live.clock import Clock
from topicweave.live.settings import Address, Settings
from topicweave.live.transport import Transport
from topicweave.live.wire import Codec
from topicweave.live.world import LiveWorld
from topicweave.model.event import Event
from topicweave.model.ids import NodeId, TopicId, ring_id
from topicweave.port import EventMessage, Node
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
CONGESTION_PATIENCE = 1.0
"""Seconds `publish` waits for a slow neighbour; after that its queue may fill up, and the receipt tells."""
STORED_PEERS = 256
SIGNATURE_ROOM = bytes(64)
"""In front of a payload that will be signed; see `keyring`."""


class LiveNode:
    """One node of a swarm. Made by `connect`, or by hand with `start` and `stop`."""

    def __init__(self, settings: Settings, *, keep_events: bool = True, seed: str | None = None) -> None:
        self.settings = settings
        self.system = find_system(settings.system)
        self._seed = seed
        self._keep_events = keep_events
        self._topic_names: dict[TopicId, str] = {}
        self._cache_sizes: dict[TopicId, int] = {
            ring_id(topic): size for topic, size in settings.caches.items()
        }
        self._feeds: list[Feed] = []
        self._watches: dict[Any, set[NodeId]] = {}
        self._refused = 0
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
        for topic in topics:
            self._topic_names[ring_id(topic)] = topic
            if self.store:
                self.store.add_subscription(topic)
        interest = frozenset(self._topic_names)
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
        self.world.on_sent = self._own_event_sent
        self.world.on_refused = self._own_event_refused
        advertise = Address.parse(settings.advertise) if settings.advertise else None
        try:
            await self.transport.listen(Address.parse(settings.listen), advertise)
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
            pause = min(2 * pause, 30.0)

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
        topic_id = self._known(topic)
        if topic_id in self.node.subscriptions:
            return
        if self.store is not None:
            self.store.add_subscription(topic)
            self.store.commit()
        self.node.subscribe(topic_id)
        self.world.catch_up.changed(topic_id)

    async def unsubscribe(self, topic: str) -> None:
        """Want a topic no more; its cache is dropped."""
        topic_id = self._known(topic)
        self.node.unsubscribe(topic_id)
        self.world.log.drop(topic_id)
        if self.store is not None:
            self.store.remove_subscription(topic)
            self.store.commit()

    @property
    def subscriptions(self) -> list[str]:
        return sorted(self._topic_names[topic] for topic in self.node.subscriptions)

    async def publish(
        self, topic: str, payload: bytes, *, wait_for: int = 0, timeout: float = 5.0
    ) -> Receipt:
        """Send an event to everybody who wants the topic.

        Waits, but not for long, while a neighbour's queue is more than half full. With `wait_for=k`, returns when k
        neighbours have said that they have it, or when the time is over.
        """
        if len(payload) + len(SIGNATURE_ROOM) > self.settings.limits.payload_bytes:
            raise BadInput(
                f"a payload of {len(payload)} bytes; at most {self.settings.limits.payload_bytes - 64} are sent"
            )
        if self.transport.congested:
            await self._room()
        topic_id = self._known(topic)
        body = SIGNATURE_ROOM + payload if self.keyring is not None else payload
        self._refused = 0
        sent: set[NodeId] = set()
        self._sending = sent
        try:
            system_receipt = self.node.publish(topic_id, body)
        finally:
            self._sending = None
        event = system_receipt.event
        self.counters.publishes += 1
        if self.store is not None:
            # Before the event leaves (sending waits for the loop's next turn): its number is never used again.
            self.store.set_fact("epoch", event.epoch)
            self.store.set_sequence(topic_id, event.sequence + 1)
        self.world.note_own(event)
        self.world.flush()
        if self.recorder is not None:
            self.recorder.published(event)
        reason = "" if sent else self._why_nobody(system_receipt.reason)
        if not wait_for:
            return Receipt(event.id, len(sent), 0, reason)
        return await self._wait_for(event, sent, wait_for, timeout, reason)

    async def _room(self) -> None:
        """A publisher faster than its neighbours is slowed down before their queues are full; one dead neighbour must not stop it."""
        deadline = self.clock.now + CONGESTION_PATIENCE
        while self.transport.congested and self.clock.now < deadline:
            await asyncio.sleep(0.001)

    _sending: set[NodeId] | None = None

    def _own_event_sent(self, peer: NodeId, message: EventMessage) -> None:
        if self._sending is not None:
            self._sending.add(peer)
        if (watch := self._watches.get(message.event.id)) is not None:
            watch.add(peer)

    def _own_event_refused(self, peer: NodeId, message: EventMessage) -> None:
        self._refused += 1

    def _why_nobody(self, system_reason: str) -> str:
        if self._refused:
            return "queue full: every interested neighbour is too slow to take it"
        if not self.joined:
            return "not joined: no other node is connected"
        return f"nobody interested known ({system_reason})" if system_reason else "nobody interested known"

    async def _wait_for(
        self, event: Event, sent: set[NodeId], wanted: int, timeout: float, reason: str
    ) -> Receipt:
        """Ask every neighbour that gets the event, now or later, whether it has read that far."""
        watch = self._watches[event.id] = set(sent)
        confirmed: set[NodeId] = set()
        enough = asyncio.Event()

        def passed(peer: NodeId) -> None:
            confirmed.add(peer)
            if len(confirmed) >= wanted:
                enough.set()

        asked: set[NodeId] = set()
        barriers: list[int] = []
        try:
            async with asyncio.timeout(timeout):
                while not enough.is_set():
                    if news := watch - asked:
                        asked |= news
                        barriers.append(self.transport.barrier(sorted(news), passed))
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(enough.wait(), 0.05)
        except TimeoutError:
            reason = (
                reason if not watch else f"only {len(confirmed)} of {wanted} neighbours confirmed in time"
            )
        else:
            reason = ""
        finally:
            del self._watches[event.id]
            for barrier in barriers:
                self.transport.end_barrier(barrier)
        return Receipt(event.id, len(watch), len(confirmed), reason)

    def events(self) -> AsyncIterator[Received]:
        """Events as they come; for one reader. Others open feeds of their own."""
        if self.feed is None:
            raise BadInput("this node keeps no events for its application: open a feed")
        return self.feed.__aiter__()

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

    def _known(self, topic: str) -> TopicId:
        if not topic or len(topic) > 1000:
            raise BadInput("a topic's name has 1 to 1000 characters")
        topic_id = ring_id(topic)
        if topic_id not in self._topic_names:
            if len(self._topic_names) > 1_000_000:
                raise BadInput("this node has used a million topics; restart it")
            self._topic_names[topic_id] = topic
        return topic_id

    def name_of_topic(self, topic: TopicId) -> str:
        return self._topic_names.get(topic, f"{topic:016x}")

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
        for event in events:
            received = Received(
                self.name_of_topic(event.topic),
                event.payload[skip:],
                self.name_of_node(event.publisher),
                event.epoch,
                event.sequence,
            )
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
