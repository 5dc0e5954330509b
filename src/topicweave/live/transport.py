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
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from topicweave.live.addresses import AddressBook
from topicweave.live.counters import Counters
from topicweave.live.dialling import Dialler
from topicweave.live.frames import Kind, ProtocolError
from topicweave.live.link import Link
from topicweave.live.listening import Listener
from topicweave.live.outbox import Outbox
from topicweave.live.sending import Peer, Sender
from topicweave.live.settings import Address, Limits, Pace
from topicweave.live.wire import (
    MAGIC,
    VERSIONS,
    Bye,
    Codec,
    Hello,
    bye_frame,
    hello_frame,
    number_frame,
)
from topicweave.model.ids import NodeId, ring_id
from topicweave.port import Message

if TYPE_CHECKING:
    from topicweave.live.keyring import Keyring

log = logging.getLogger("topicweave.live")


class Events:
    """What the transport tells; a world fills these in."""

    def received(self, sender: NodeId, messages: Sequence[Message]) -> None: ...

    def lost(self, peer: NodeId) -> None: ...

    def linked(self, peer: NodeId) -> bool:
        """Whether the overlay has a link to the peer."""
        return False


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
        self.random = rng
        self._events = events
        self._instance = secrets.randbits(63)
        self.peers: dict[NodeId, Peer] = {}
        self._links: set[Link] = set()
        self._half_open = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self.closed = False
        self.sender = Sender(self)
        self.dialler = Dialler(self)
        self._listener: Listener | None = None

    # What the node's world does.

    def listen(self, listen: Address, advertise: Address | None = None) -> None:
        self._listener = Listener(self, listen)
        self.address = Address(listen.host, self._listener.port)
        if advertise is not None:
            self.address = Address(advertise.host, advertise.port or self._listener.port)
        self._sweep()

    async def meet(self, address: Address) -> NodeId:
        """Dial somebody whose id is not known yet."""
        link = await self.dialler.connect(address)
        assert link.peer is not None
        return link.peer

    @property
    def connected(self) -> list[NodeId]:
        return [peer.id for peer in self.peers.values() if peer.link is not None]

    @property
    def connections(self) -> int:
        return len(self._links)

    @property
    def waiting_bytes(self) -> int:
        return sum(peer.outbox.size for peer in self.peers.values())

    def introduction(self, peer: NodeId) -> tuple[str, Address] | None:
        """The name and the address that a connected peer gave."""
        entry = self.peers.get(peer)
        if entry is None or entry.link is None or entry.link.hello is None:
            return None
        return entry.link.hello.name, entry.link.hello.address

    async def close(self) -> None:
        """Send what waits, say goodbye, and be gone within a moment."""
        if self.closed:
            return
        self.sender.flush_all()
        self.closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        self.sender.congestion.close()
        if self._listener is not None:
            await self._listener.close()
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
        if self.closed or full or (not link.dialled and self._half_open >= self.limits.half_open):
            self.counters.connections_refused += 1
            return False
        self._links.add(link)
        self._half_open += 1
        return True

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
        self.dialler.reached(hello.id)
        self._adopt(link, hello)

    def _adopt(self, link: Link, hello: Hello) -> None:
        peer = self.peers.get(hello.id)
        if peer is None:
            peer = self.peers[hello.id] = self._make_peer(hello.id)
        old = peer.link
        if old is not None and not old.closing and self._old_wins(old, link, hello):
            link.retire()
            return
        peer.link = link
        if old is not None:
            old.retire()
        self.sender.flush(peer)

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
        peer = self.peers.get(link.peer) if link.peer is not None else None
        if peer is None or peer.link is not link:
            return
        peer.link = None
        if self.closed:
            return
        in_order = link.bye is not None
        if not in_order:
            self.counters.links_lost += 1
        if link.bye is not None and link.bye.leaving:
            self.drop(peer)
        elif len(peer.outbox) or (not in_order and self._events.linked(peer.id)):
            self.dialler.dial(peer)
        else:
            del self.peers[peer.id]

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
        if not self.closed and not self.cut(sender):
            self._events.received(sender, messages)

    def ask_for_credential(self, peer: NodeId, publisher: NodeId) -> None:
        entry = self.peers.get(peer)
        if entry is not None and entry.link is not None:
            entry.link.write(number_frame(Kind.NEED_CREDENTIAL, publisher))

    def close_link(self, peer: NodeId) -> None:
        """End a connection as if it broke: for peers that misbehave."""
        entry = self.peers.get(peer)
        if entry is not None and entry.link is not None:
            entry.link.abort()

    def writable(self, link: Link) -> None:
        peer = self.peers.get(link.peer) if link.peer is not None else None
        if peer is not None and peer.link is link:
            self.sender.flush(peer)

    # Peers.

    def hold_up(self) -> None:
        """Peers that take too little became others: read from those who may send."""
        for link in self._links:
            link.hold(self.sender.congestion.holds_up(link.peer))

    def _make_peer(self, peer: NodeId) -> Peer:
        return Peer(peer, Outbox(self.limits.queue_bytes, self.counters))

    def new_peer(self, to: NodeId) -> Peer | None:
        if to == self.id or self.closed or self.book.get(to) is None or self.dialler.cooling(to):
            return None
        if len(self.peers) >= self.limits.connections and not self._make_room():
            return None
        peer = self.peers[to] = self._make_peer(to)
        return peer

    def _make_room(self) -> bool:
        """Close the connection that was unused the longest, if one is not a link of the overlay."""
        idle = [p for p in self.peers.values() if p.link is not None and not self._events.linked(p.id)]
        if not idle:
            return False
        eldest = min(idle, key=lambda peer: peer.link.last_message if peer.link else 0.0)
        self._close_idle(eldest)
        return True

    def _close_idle(self, peer: Peer) -> None:
        link = peer.link
        if link is not None:
            del self.peers[peer.id]
            peer.link = None
            link.close(Bye("idle"))

    def drop(self, peer: Peer) -> None:
        """The peer is out of reach."""
        peer.outbox.clear()
        self.sender.congestion.drained(peer.id)
        if self.peers.get(peer.id) is peer:
            del self.peers[peer.id]
        self._events.lost(peer.id)

    # Signs of life.

    def _sweep(self) -> None:
        if self.closed:
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
        for peer in list(self.peers.values()):
            link_ = peer.link
            if (
                link_ is not None
                and now - link_.last_message > pace.idle_close
                and not len(peer.outbox)
                and not self._events.linked(peer.id)
            ):
                self._close_idle(peer)

    def spawn(self, work: object) -> asyncio.Task[None]:
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
