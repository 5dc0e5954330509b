"""Connections to peers: made when there is something to send, kept while they are used, one per pair of nodes.

Rules kept
----------
1. A message for a peer without a connection waits in its outbox while the transport dials, with growing and random pauses. If the
   peer can't be reached, what waits is dropped and counted, and the node is told.
2. When both ends dial at once, the connection made by the node with the lower id stays. The other is retired, not cut: what is
   under way on it arrives. Of two connections made by the same end the newer stays: the older one's other end is gone.
3. A broken connection is made anew if the overlay has a link there or something waits; only if that fails is the peer lost.
4. Silence is asked after, and ends a connection when it lasts; so does a peer that takes nothing for as long.
5. What peers can make this hold is bounded: connections, half-open ones, waiting bytes, addresses.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import secrets
import socket
import ssl
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from topicweave.live.addresses import AddressBook
from topicweave.live.congestion import ENOUGH, Congestion
from topicweave.live.counters import Counters
from topicweave.live.frames import Kind, ProtocolError, frame
from topicweave.live.link import MOST_TOLD, WRITE_BUFFER, Link
from topicweave.live.outbox import Outbox
from topicweave.live.settings import Address, Limits, Pace
from topicweave.live.wire import (
    MAGIC,
    VERSIONS,
    AddressOf,
    Bye,
    Codec,
    Hello,
    addresses_frame,
    bye_frame,
    hello_frame,
    number_frame,
)
from topicweave.model.ids import NodeId, ring_id
from topicweave.port import EventMessage, Message

if TYPE_CHECKING:
    from topicweave.live.keyring import Keyring

log = logging.getLogger("topicweave.live")

BATCH = 64 * 1024
"""Messages of about so many bytes go into one frame; a node that must stop reading stops between two frames."""


class Peer:
    """Somebody we are connected to, or about to be."""

    __slots__ = ("addresses", "credentials", "dialling", "id", "link", "outbox")

    def __init__(self, peer: NodeId, outbox: Outbox) -> None:
        self.id = peer
        self.outbox = outbox
        self.link: Link | None = None
        self.dialling: asyncio.Task[None] | None = None
        self.addresses: dict[NodeId, None] = {}
        """Whose addresses must arrive before what waits."""
        self.credentials: dict[NodeId, None] = {}


class Events:
    """What the transport tells; a world fills these in."""

    def received(self, sender: NodeId, message: Message) -> None: ...

    def lost(self, peer: NodeId) -> None: ...

    def linked(self, peer: NodeId) -> bool:
        """Whether the overlay has a link to the peer."""
        return False

    def failed(self, sender: NodeId, error: Exception) -> None:
        """A message made the node fail."""


class Transport:
    """All connections of one node."""

    def __init__(
        self,
        name: str,
        swarm: str,
        system: str,
        codec: Codec,
        limits: Limits,
        pace: Pace,
        rng: random.Random,
        events: Events,
        keyring: Keyring | None = None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.name, self.id = name, ring_id(name)
        self.codec, self.limits, self.pace = codec, limits, pace
        self.counters = Counters()
        self.keyring = keyring
        self.book = AddressBook(self.id, limits.addresses, loopback_only=keyring is None)
        self.address = Address("127.0.0.1", 0)
        self.delay: Callable[[NodeId], float] | None = None
        """Seconds by which what a peer sends is held back: for experiments."""
        self.blocked: Callable[[NodeId], bool] | None = None
        """Whether a peer is behind a firewall: for experiments."""
        self._swarm, self._system = swarm, system
        self._random = rng
        self._events = events
        self._instance = secrets.randbits(63)
        self._listening: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._server_context = keyring.context(server=True) if keyring else None
        self._client_context = keyring.context(server=False) if keyring else None
        self._peers: dict[NodeId, Peer] = {}
        self._links: set[Link] = set()
        self._half_open = 0
        self._dirty: dict[NodeId, Peer] = {}
        self.unflushed = 0
        """Bytes handed over since the event loop had its last turn."""
        self.congestion = Congestion(self.loop, self._hold_up)
        self._much = min(ENOUGH, limits.queue_bytes // 2)
        self._unreachable: dict[NodeId, float] = {}
        self._barriers: dict[int, Callable[[NodeId], None]] = {}
        self._barrier_number = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False

    # What the node's world does.

    async def listen(self, listen: Address, advertise: Address | None = None) -> None:
        family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
        self._listening = socket.socket(family, socket.SOCK_STREAM)
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listening.setblocking(False)
        self._listening.bind((listen.host, listen.port))
        self._listening.listen(256)
        self._accepting = self._spawn(self._accept(self._listening))
        port = self._listening.getsockname()[1]
        self.address = Address(listen.host, port)
        if advertise is not None:
            self.address = Address(advertise.host, advertise.port or port)
        self._sweep()

    def send(self, to: NodeId, message: Message, carries_event: bool = False) -> bool:
        """Whether the message was taken: it is sent, or waits for a connection."""
        peer = self._peers.get(to)
        if peer is None:
            peer = self._new_peer(to)
            if peer is None:
                if carries_event:
                    self.counters.events_dropped += 1
                self.counters.unroutable += 1
                return False
        codec = self.codec
        if type(message) in codec.introducing:
            for introduced in message.introduces():
                if len(peer.addresses) < MOST_TOLD:
                    peer.addresses[introduced] = None
        if (
            self.keyring is not None
            and isinstance(message, EventMessage)
            and len(peer.credentials) < MOST_TOLD
        ):
            peer.credentials[message.event.publisher] = None
        encoded = codec.encode(message)
        outbox = peer.outbox
        taken = outbox.put(encoded, carries_event)
        if taken:
            self.counters.messages_sent += 1
            if outbox.size > self._much:
                self.congestion.filled(to)
        if not self._dirty:
            self.loop.call_soon(self._flush_dirty)
        self._dirty[to] = peer
        self.unflushed += len(encoded)
        return taken

    async def meet(self, address: Address) -> NodeId:
        """Dial somebody whose id is not known yet."""
        link = await self._connect(address)
        assert link.peer is not None
        return link.peer

    def barrier(self, peers: Iterable[NodeId], passed: Callable[[NodeId], None]) -> int:
        """Calls `passed` for each peer that has read everything sent to it so far."""
        self._barrier_number += 1
        self._barriers[self._barrier_number] = passed
        for peer in peers:
            self.loop.call_soon(self._send_barrier, peer, self._barrier_number)
        return self._barrier_number

    def end_barrier(self, number: int) -> None:
        self._barriers.pop(number, None)

    @property
    def connected(self) -> list[NodeId]:
        return [peer.id for peer in self._peers.values() if peer.link is not None]

    @property
    def connections(self) -> int:
        return len(self._links)

    @property
    def waiting_bytes(self) -> int:
        return sum(peer.outbox.size for peer in self._peers.values())

    def introduction(self, peer: NodeId) -> tuple[str, Address] | None:
        """The name and the address that a connected peer gave."""
        entry = self._peers.get(peer)
        if entry is None or entry.link is None or entry.link.hello is None:
            return None
        return entry.link.hello.name, entry.link.hello.address

    async def close(self) -> None:
        """Send what waits, say goodbye, and be gone within a moment."""
        if self._closed:
            return
        self._flush_dirty()
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        self.congestion.close()
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.gather(self._accepting, return_exceptions=True)
        if self._listening is not None:
            self._listening.close()
        if tasks := list(self._tasks):
            # Handshakes under way may end; what takes longer is cut off.
            _, late = await asyncio.wait(tasks, timeout=0.5)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        for link in list(self._links):
            link.close(Bye("leaving", leaving=True))
        deadline = self.loop.time() + self.pace.dial_timeout
        while self._links and self.loop.time() < deadline:
            await asyncio.sleep(0.01)
        for link in list(self._links):
            link.abort()
        await asyncio.sleep(0)

    # Links.

    def hello(self) -> Hello:
        return Hello(
            MAGIC, VERSIONS, self._swarm, self._system, self.id, self.name, self.address, self._instance
        )

    def cut(self, peer: NodeId | None) -> bool:
        return self.blocked is not None and peer is not None and self.blocked(peer)

    def admit(self, link: Link) -> bool:
        """Whether there is room for one more connection."""
        full = len(self._links) >= self.limits.connections and not self._make_room()
        if self._closed or full or (not link.dialled and self._half_open >= self.limits.half_open):
            self.counters.connections_refused += 1
            return False
        self._links.add(link)
        self._half_open += 1
        return True

    async def _accept(self, listening: socket.socket) -> None:
        """Take connections; those beyond the limits are closed before anything is read from them."""
        while True:
            try:
                accepted, _ = await self.loop.sock_accept(listening)
            except OSError as error:
                # Out of file descriptors, most likely: let some be closed first.
                log.warning("%s: cannot accept a connection: %s", self.name, error)
                await asyncio.sleep(0.1)
                continue
            link = Link(self, dialled=False)
            if self.admit(link):
                self._spawn(self._greet(link, accepted))
            else:
                link.dismiss()
                accepted.close()

    async def _greet(self, link: Link, accepted: socket.socket) -> None:
        try:
            accepted.setblocking(False)
            await self.loop.connect_accepted_socket(
                lambda: link,
                accepted,
                ssl=self._server_context,
                ssl_handshake_timeout=self.pace.hello_timeout if self._server_context else None,
            )
        except (OSError, ssl.SSLError, TimeoutError) as error:
            self.counters.connections_refused += 1
            log.info("%s: a stranger failed the handshake: %s", self.name, error)
            link.error = str(error) or type(error).__name__
            accepted.close()
            link.dismiss()
            self.link_lost(link)

    def identify(self, link: Link, transport: asyncio.Transport) -> None:
        """Keep the certificate that the connection proves."""
        if self.keyring is not None:
            tls = transport.get_extra_info("ssl_object")
            link.credential = (tls.getpeercert(binary_form=True) if tls is not None else None) or b""
            link.peer = self.keyring.identify(link.credential)

    def greeted(self, link: Link, hello: Hello) -> None:
        """Hellos are exchanged: see whether the two fit together."""
        if hello.id != ring_id(hello.name):
            raise ProtocolError(f"{hello.name!r} claims another's id")
        if link.peer is not None and link.peer != hello.id:
            raise ProtocolError(f"a certificate that is not {hello.name!r}'s")
        if self.cut(hello.id):
            link.abort()
            return
        version = max(set(hello.versions) & set(VERSIONS), default=None)
        ours = (self._swarm, self._system)
        if version is None or (hello.swarm, hello.system) != ours or hello.id == self.id:
            reason = f"this is node {self.name!r} of swarm {ours[0]!r}, system {ours[1]!r}, wire {VERSIONS}"
            self.counters.connections_refused += 1
            if not link.dialled:
                # Without a hello of ours first: the answer to a hello that does not fit is a word of farewell.
                link.write(bye_frame(Bye(reason[:200])))
            link.error = f"{hello.name!r} does not fit: {reason}"
            link.close()
            return
        if not link.dialled:
            answer = self.hello()
            link.write(
                hello_frame(
                    Hello(
                        answer.magic,
                        (version,),
                        answer.swarm,
                        answer.system,
                        answer.id,
                        answer.name,
                        answer.address,
                        answer.instance,
                    )
                )
            )
        link.accept(hello)
        self._half_open -= 1
        link.told_credentials |= {self.id, hello.id}
        self.counters.connections_opened += 1
        self.book.confirm(hello.id, hello.address)
        self._unreachable.pop(hello.id, None)
        self._adopt(link, hello)

    def _adopt(self, link: Link, hello: Hello) -> None:
        peer = self._peers.get(hello.id)
        if peer is None:
            peer = self._peers[hello.id] = self._make_peer(hello.id)
        old = peer.link
        if old is not None and not old.closing and self._old_wins(old, link, hello):
            link.retire()
            return
        peer.link = link
        if old is not None:
            old.retire()
        self._flush(peer)

    def _old_wins(self, old: Link, new: Link, hello: Hello) -> bool:
        if old.hello is None or old.hello.instance != hello.instance or old.dialled == new.dialled:
            return False
        lower_dials = self.id < hello.id
        return old.dialled == lower_dials

    def link_lost(self, link: Link) -> None:
        if link not in self._links:
            return
        self._links.discard(link)
        if link.hello is None:
            self._half_open -= 1
            if not link.dialled and not link.error:
                self.counters.connections_refused += 1  # It went before it was anybody.
        peer = self._peers.get(link.peer) if link.peer is not None else None
        if peer is None or peer.link is not link:
            return
        peer.link = None
        if self._closed:
            return
        in_order = link.bye is not None
        if not in_order:
            self.counters.links_lost += 1
        if link.bye is not None and link.bye.leaving:
            self._drop(peer)
        elif len(peer.outbox) or (not in_order and self._events.linked(peer.id)):
            self._dial(peer)
        else:
            del self._peers[peer.id]

    def said_bye(self, link: Link) -> None:
        """The other end closes in order; what we have for it needs another connection."""
        if link.bye is not None and link.bye.leaving and link.peer is not None:
            self.book.failed(link.peer)

    def protocol_error(self, link: Link, error: str) -> None:
        self.counters.protocol_errors += 1
        who = link.hello.name if link.hello else "a stranger"
        log.warning("%s: %s broke the protocol: %s", self.name, who, error[:200])

    def received(self, sender: NodeId, messages: Sequence[Message]) -> None:
        self.counters.messages_received += len(messages)
        if self.delay is None:
            self._hand_over(sender, messages)
            return
        for message in messages:
            self.loop.call_later(self.delay(sender), self._hand_over, sender, (message,))

    def _hand_over(self, sender: NodeId, messages: Sequence[Message]) -> None:
        if self._closed or self.cut(sender):
            return
        receive = self._events.received
        for message in messages:
            try:
                receive(sender, message)
            except Exception as error:
                # Whatever a message does to a node, the others are served on; the link it came over is not.
                self._events.failed(sender, error)
                peer = self._peers.get(sender)
                if peer is not None and peer.link is not None:
                    peer.link.abort()

    def ponged(self, peer: NodeId, number: int) -> None:
        if (passed := self._barriers.get(number)) is not None:
            passed(peer)

    def tell_credential(self, link: Link, publisher: NodeId) -> None:
        if self.keyring is not None and (credential := self.keyring.credential(publisher)) is not None:
            link.write(frame(Kind.CREDENTIAL, credential.der))
            link.told_credentials.add(publisher)

    def ask_for_credential(self, peer: NodeId, publisher: NodeId) -> None:
        entry = self._peers.get(peer)
        if entry is not None and entry.link is not None:
            entry.link.write(number_frame(Kind.NEED_CREDENTIAL, publisher))

    def close_link(self, peer: NodeId) -> None:
        """End a connection as if it broke: for peers that misbehave."""
        entry = self._peers.get(peer)
        if entry is not None and entry.link is not None:
            entry.link.abort()

    def writable(self, link: Link) -> None:
        peer = self._peers.get(link.peer) if link.peer is not None else None
        if peer is not None and peer.link is link:
            self._flush(peer)

    # Sending.

    def _hold_up(self) -> None:
        """Peers that take too little became others: read from those who may send."""
        for link in self._links:
            link.hold(self.congestion.holds_up(link.peer))

    def _flush_dirty(self) -> None:
        dirty, self._dirty = self._dirty, {}
        self.unflushed = 0
        for peer in dirty.values():
            if peer.link is not None:
                self._flush(peer)
            elif peer.dialling is None and self._peers.get(peer.id) is peer:
                self._dial(peer)

    def _flush(self, peer: Peer) -> None:
        link = peer.link
        if link is None or not link.open or not len(peer.outbox):
            return
        if link.paused_since is None:
            self._tell_first(peer, link)
            link.last_message = self.loop.time()
        while len(peer.outbox) and link.paused_since is None:
            link.write(self.codec.batch(peer.outbox.take(BATCH)))
        if peer.outbox.size <= self._much // 2:
            self.congestion.drained(peer.id)

    def _tell_first(self, peer: Peer, link: Link) -> None:
        """The addresses and credentials that what waits speaks of."""
        news = []
        for introduced in peer.addresses:
            address = self.book.get(introduced)
            if (
                address is not None
                and introduced != peer.id
                and link.told_addresses.get(introduced) != address
            ):
                if len(link.told_addresses) >= MOST_TOLD:
                    link.told_addresses.clear()
                link.told_addresses[introduced] = address
                news.append(AddressOf(introduced, address))
        peer.addresses.clear()
        for start in range(0, len(news), 1000):
            link.write(addresses_frame(news[start : start + 1000]))
        if len(link.told_credentials) >= MOST_TOLD:
            link.told_credentials = {self.id, peer.id}
        for publisher in peer.credentials:
            if publisher not in link.told_credentials:
                self.tell_credential(link, publisher)
        peer.credentials.clear()

    def _send_barrier(self, to: NodeId, number: int) -> None:
        peer = self._peers.get(to)
        if peer is None or number not in self._barriers:
            return
        self._flush(peer)
        if peer.link is not None and peer.link.open and not len(peer.outbox):
            peer.link.ping(number)
        else:
            # Not connected yet, or the socket is full: try again until the barrier ends.
            self.loop.call_later(0.05, self._send_barrier, to, number)

    # Peers.

    def _make_peer(self, peer: NodeId) -> Peer:
        return Peer(peer, Outbox(self.limits.queue_bytes, self.counters))

    def _new_peer(self, to: NodeId) -> Peer | None:
        if to == self.id or self._closed or self.book.get(to) is None or self._cooling(to):
            return None
        if len(self._peers) >= self.limits.connections and not self._make_room():
            return None
        peer = self._peers[to] = self._make_peer(to)
        return peer

    def _cooling(self, peer: NodeId) -> bool:
        until = self._unreachable.get(peer)
        if until is None:
            return False
        if until > self.loop.time():
            return True
        del self._unreachable[peer]
        return False

    def _make_room(self) -> bool:
        """Close the connection that was unused the longest, if one is not a link of the overlay."""
        idle = [p for p in self._peers.values() if p.link is not None and not self._events.linked(p.id)]
        if not idle:
            return False
        eldest = min(idle, key=lambda peer: peer.link.last_message if peer.link else 0.0)
        self._close_idle(eldest)
        return True

    def _close_idle(self, peer: Peer) -> None:
        link = peer.link
        if link is not None:
            del self._peers[peer.id]
            peer.link = None
            link.close(Bye("idle"))

    def _drop(self, peer: Peer) -> None:
        """The peer is out of reach."""
        peer.outbox.clear()
        self.congestion.drained(peer.id)
        if self._peers.get(peer.id) is peer:
            del self._peers[peer.id]
        self._events.lost(peer.id)

    # Dialling.

    def _dial(self, peer: Peer) -> None:
        if peer.dialling is None and not self._closed:
            peer.dialling = self._spawn(self._keep_dialling(peer))

    async def _keep_dialling(self, peer: Peer) -> None:
        try:
            for attempt in range(self.pace.dial_attempts):
                if attempt:
                    await asyncio.sleep(self._pause(attempt))
                address = self.book.get(peer.id)
                if peer.link is not None or self._closed:
                    return
                if address is None:
                    break
                try:
                    link = await self._connect(address, peer.id)
                except (OSError, ssl.SSLError, TimeoutError):
                    self.counters.dials_failed += 1
                    continue
                if link.peer != peer.id:
                    self.book.failed(peer.id)  # Somebody else lives there.
                    break
                return
        finally:
            peer.dialling = None
        if peer.link is None and self._peers.get(peer.id) is peer:
            if len(self._unreachable) > self.limits.addresses:
                self._unreachable.clear()
            self._unreachable[peer.id] = self.loop.time() + self.pace.unreachable_pause
            self._drop(peer)

    def _pause(self, attempt: int) -> float:
        """Twice as long each time, give or take half, so that nobody dials in step."""
        pause = self.pace.first_backoff * 2.0 ** (attempt - 1)
        return float(pause * self._random.uniform(0.5, 1.5))

    async def _connect(self, address: Address, expected: NodeId | None = None) -> Link:
        if self.cut(expected):
            raise ConnectionRefusedError("behind the firewall")
        async with asyncio.timeout(self.pace.dial_timeout):
            _, link = await self.loop.create_connection(
                lambda: Link(self, dialled=True),
                address.host,
                address.port,
                ssl=self._client_context,
                server_hostname="topicweave" if self._client_context else None,
            )
            try:
                await link.opened
            except BaseException:
                link.abort()
                raise
        return link

    # Signs of life.

    def _sweep(self) -> None:
        if self._closed:
            return
        self._sweeper = self.loop.call_later(self.pace.heartbeat / 2, self._sweep)
        now, pace = self.loop.time(), self.pace
        for link in list(self._links):
            if link.hello is None:
                continue
            if link.paused_since is not None and now - link.paused_since > pace.dead_after:
                self.counters.slow_peers_closed += 1
                link.abort()
            elif now - link.last_heard > pace.dead_after:
                link.abort()
            elif now - link.last_heard > pace.heartbeat:
                link.ping()
        for peer in list(self._peers.values()):
            link_ = peer.link
            if (
                link_ is not None
                and now - link_.last_message > pace.idle_close
                and not len(peer.outbox)
                and not self._events.linked(peer.id)
            ):
                self._close_idle(peer)

    def _spawn(self, work: object) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self.loop.create_task(work)  # type: ignore[arg-type]
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        with contextlib.suppress(asyncio.CancelledError):
            error = task.exception()
            if error is not None:
                log.error("%s: a task of the transport failed", self.name, exc_info=error)


__all__ = ["BATCH", "WRITE_BUFFER", "Events", "Transport"]
