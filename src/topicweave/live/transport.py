"""Connections to peers: made when there is something to send, kept while they are used, one per pair of nodes.

Rules kept
----------
1. A message for a peer without a connection waits in its outbox while the transport dials, with growing and
   random pauses. If the peer can't be reached, what waits is dropped and counted, and the node is told.
2. Which of two connections to the same peer stays: see `connection.arbitrate`. The other is retired, not cut:
   what is under way on it arrives.
3. A broken connection is made anew if the overlay has a link there or something waits; only if that fails is
   the peer lost.
4. Silence is asked after, and ends a connection when it lasts; so does a peer that takes nothing for as long,
   and a certificate that ends or is revoked.
5. Peers can make this hold only so much: connections, half-open ones, waiting bytes, addresses. Those who
   do wrong are banned for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import secrets
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple

from topicweave.live.addresses import AddressBook
from topicweave.live.admission import HalfOpen, reserved
from topicweave.live.budgets import Reputation
from topicweave.live.clock import Clock
from topicweave.live.connection import Rivalry, Terms, Tick, arbitrate
from topicweave.live.counters import Counters
from topicweave.live.dialling import Dialler
from topicweave.live.frames import Kind, TooManyTopics, frame
from topicweave.live.link import PeerLink
from topicweave.live.listening import Listener
from topicweave.live.memory import Memory
from topicweave.live.outbox import Outbox
from topicweave.live.receiving import Events, Receiver
from topicweave.live.sending import Peer, Sender
from topicweave.live.settings import Address, Limits, Pace
from topicweave.live.troubles import Troubles
from topicweave.live.turns import PLAIN, SIGNED, LinkTurns
from topicweave.live.wire import (
    MAGIC,
    VERSIONS,
    AddressOf,
    Bye,
    Codec,
    Hello,
    number_frame,
)
from topicweave.model.ids import NodeId, ring_id

if TYPE_CHECKING:
    from topicweave.live.keyring import Keyring

log = logging.getLogger("topicweave.live")

ROUTINE = frozenset({"idle", "leaving", "another connection to you won"})
"""Byes that tell of no trouble."""


class Who(NamedTuple):
    """Which node this is."""

    name: str
    swarm: str
    system: str


class Transport:
    """All connections of one node."""

    def __init__(
        self,
        who: Who,
        codec: Codec,
        limits: Limits,
        pace: Pace,
        rng: random.Random,
        events: Events,
        clock: Clock,
        counters: Counters,
        memory: Memory,
        keyring: Keyring | None = None,
    ) -> None:
        self.memory = memory
        self.loop = asyncio.get_running_loop()
        self.name, self.id = who.name, ring_id(who.name)
        self.codec, self.limits, self.clock = codec, limits, clock
        self.terms = Terms(self.hello, limits, pace, clock.wall)
        self.counters = counters
        self.troubles = Troubles(who.name)
        self.reputation = Reputation()
        self.keyring = keyring
        proves = None if keyring is None else lambda record: keyring.verify_address(record, clock.trusted())
        self.book = AddressBook(self.id, limits.addresses, proves)
        self.address = Address("127.0.0.1", 0)
        self._record = AddressOf(self.id, self.address)
        self.blocked: Callable[[NodeId], bool] | None = None
        """Whether a peer is behind a firewall: for experiments."""
        self._who = who
        self.random = rng
        self._events = events
        self._instance = secrets.randbits(63)
        self.peers: dict[NodeId, Peer] = {}
        self._links: set[PeerLink] = set()
        self._half_open: HalfOpen[PeerLink] = HalfOpen(limits.half_open)
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._signs: asyncio.TimerHandle | None = None
        self.closed = False
        self.turns = LinkTurns(self.loop, PLAIN if keyring is None else SIGNED)
        self.sender = Sender(self)
        self.receiver = Receiver(self, events)
        self.dialler = Dialler(self)
        self._listener: Listener | None = None

    # What the node's world does.

    @property
    def pace(self) -> Pace:
        return self.terms.pace

    @pace.setter
    def pace(self, pace: Pace) -> None:
        self.terms.pace = pace

    def listen(self, listen: Address, advertise: Address | None = None) -> None:
        self._listener = Listener(self, listen)
        self.address = Address(listen.host, self._listener.port)
        if advertise is not None:
            self.address = Address(advertise.host, advertise.port or self._listener.port)
        self._sign_address()
        self._sweep()
        self._show_life()

    def use_keys(self) -> None:
        """The keyring was read again: new connections use what it holds, and those that it does not believe
        any more end.
        """
        self.dialler.use_keys()
        if self._listener is not None:
            self._listener.use_keys()
        self._sign_address()
        self.spread_revocations()
        self.check_certificates()

    def _sign_address(self) -> None:
        issued = int(self.clock.wall())
        signature = self.keyring.sign_address(self.address, issued) if self.keyring else b""
        self._record = AddressOf(self.id, self.address, issued, signature)

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

    def link_to(self, peer: NodeId) -> PeerLink | None:
        entry = self.peers.get(peer)
        return None if entry is None else entry.link

    def introduction(self, peer: NodeId) -> tuple[str, Address] | None:
        """The name and the address that a connected peer gave."""
        link = self.link_to(peer)
        return None if link is None or link.hello is None else (link.hello.name, link.hello.address)

    async def close(self) -> None:
        """Send what waits, say goodbye, and be gone within a moment."""
        if self.closed:
            return
        self.sender.flush_all()
        self.closed = True
        for timer in (self._sweeper, self._signs):
            if timer is not None:
                timer.cancel()
        self.sender.close()
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
        who, record = self._who, self._record
        return Hello(
            MAGIC,
            VERSIONS,
            who.swarm,
            who.system,
            self.id,
            who.name,
            record.address,
            self._instance,
            self.clock.wall(),
            record.issued,
            record.signature,
        )

    def cut(self, peer: NodeId | None) -> bool:
        return self.blocked is not None and peer is not None and self.blocked(peer)

    def admit(self, link: PeerLink) -> bool:
        """Whether there is room for one more connection; see `admission` for who goes for it."""
        full = len(self._links) >= self.limits.connections and not self._make_room()
        if self.closed or full:
            self.counters.connections_refused += 1
            return False
        self._links.add(link)
        goes = self._half_open.add(link, link.remote) if not link.dialled else None
        if goes is not None:
            self.counters.connections_refused += 1
            goes.evict()
            self.link_lost(goes)
        return True

    def identify(self, link: PeerLink, transport: asyncio.Transport) -> NodeId | None:
        """Keep the certificate that the connection proves; returns whose it is."""
        if self.keyring is None:
            return None
        tls = transport.get_extra_info("ssl_object")
        der = (tls.getpeercert(binary_form=True) if tls is not None else None) or b""
        link.credential = self.keyring.learn(der)
        return link.credential.node

    def greeted(self, link: PeerLink, hello: Hello) -> None:
        """Hellos are exchanged and fit together: see whether its sender is wanted here."""
        now = self.loop.time()
        if self.cut(hello.id):
            link.abort()
            return
        if reason := self._unwanted(link, hello, now):
            link.refuse(reason)
            return
        self._half_open.remove(link)
        link.accept()
        if link.credential is not None:
            link.told_credentials.add((hello.id, link.credential.key_id))
        self.counters.connections_opened += 1
        self.book.confirm(AddressOf(hello.id, hello.address, hello.issued, hello.signature))
        self.dialler.met(hello.id)
        self.troubles.settled(f"dialling {link.remote}")
        self.clock.told(hello.id, hello.time)
        if self.keyring is not None and self.keyring.revocations.data:
            link.write(frame(Kind.REVOKED, self.keyring.revocations.data))
        if epoch := self._events.epoch_of(hello.id):
            link.write(number_frame(Kind.EPOCH, epoch))
        self._adopt(link, hello)

    def _unwanted(self, link: PeerLink, hello: Hello, now: float) -> str:
        """Why a node whose hello fits is not let in, if so."""
        if self.reputation.banned(hello.id, now):
            return self.reputation.reason(hello.id, now)
        if self.keyring is not None and link.credential is not None:
            problem = self.keyring.problem(link.credential, self.clock.trusted())
            if problem:
                return f"the certificate of {hello.name!r} is {problem}"
        old = self.link_to(hello.id)
        if (
            old is not None
            and arbitrate(self.id, hello.id, old.connection, link.connection, now) is Rivalry.DUPLICATE
        ):
            self.counters.duplicate_names += 1
            return f"another node with the name {hello.name!r} is connected, from {old.remote}: names must differ"
        room = self.limits.connections - reserved(self.limits.connections)
        if old is None and not link.dialled and len(self.peers) >= room and not self.book.confirmed(hello.id):
            return (
                f"full: {len(self.peers)} peers are connected, and the rest of the room is for known members"
            )
        return ""

    def _adopt(self, link: PeerLink, hello: Hello) -> None:
        peer = self.peers.get(hello.id)
        if peer is None:
            peer = self.peers[hello.id] = self._make_peer(hello.id)
        old = peer.link
        if (
            old is not None
            and arbitrate(self.id, hello.id, old.connection, link.connection, self.loop.time()) is Rivalry.OLD
        ):
            link.retire()
            return
        peer.link = link
        if old is not None:
            old.retire()
        self.sender.flush(peer)

    def link_lost(self, link: PeerLink) -> None:
        if link not in self._links:
            return
        self._links.discard(link)
        self._half_open.remove(link)
        if link.hello is None and not link.dialled and not link.error:
            self.counters.connections_refused += 1  # It went before it was anybody.
        peer = self.peers.get(link.peer) if link.peer is not None else None
        if peer is None or peer.link is not link:
            return
        peer.link = None
        if self.closed:
            return
        self.clock.skews.forget(peer.id)
        in_order = link.bye is not None
        if not in_order:
            self.counters.links_lost += 1
        if link.bye is not None and link.bye.leaving:
            self.drop(peer)
        elif len(peer.outbox) or (not in_order and self._events.linked(peer.id)):
            self.dialler.dial(peer)
        else:
            del self.peers[peer.id]

    def said_bye(self, link: PeerLink, bye: Bye) -> None:
        """The other end closes in order; what we have for it needs another connection."""
        if bye.leaving and link.peer is not None:
            self.book.failed(link.peer)
        if bye.reason not in ROUTINE and link.hello is not None:
            who = f"{link.hello.name!r} at {link.hello.address}"
            self.troubles.note(who, f"it closed the connection: {bye.reason}", self.loop.time())

    def failed(self, link: PeerLink, reason: str, broken: bool) -> None:
        """A connection came to nothing, or must end; `broken`: because the other side broke the protocol."""
        claimed = link.connection.claimed
        who = f"{claimed.name!r} at {claimed.address}" if claimed else f"a stranger from {link.remote}"
        if broken:
            self.counters.protocol_errors += 1
            log.warning("%s: %s broke the protocol: %s", self.name, who, reason[:200])
            if link.hello is not None:
                if link.fault == TooManyTopics.fault:
                    self.troubles.note(who, reason, self.loop.time())
                self.fault(link.hello.id, link.fault)
        elif link.connection.stuck_since is not None and link.hello is not None:
            self.counters.slow_peers_closed += 1
        elif not link.opened.done():
            self.counters.connections_refused += 1
            known = f"dialling {link.remote}" if link.dialled else who
            self.troubles.note(known, reason, self.loop.time())

    def fault(self, peer: NodeId, what: str) -> None:
        """A peer did wrong; who does so again and again is not spoken to for a while."""
        if self.reputation.fault(peer, what, self.loop.time()):
            self.counters.bans += 1
            log.warning("%s: %016x is banned: it %s", self.name, peer, what)
            self.close_link(peer)

    def spread_revocations(self) -> None:
        if self.keyring is not None and self.keyring.revocations.data:
            told = frame(Kind.REVOKED, self.keyring.revocations.data)
            for peer in self.peers.values():
                if peer.link is not None and peer.link.open:
                    peer.link.write(told)

    def ask_for_credential(self, peer: NodeId, publisher: NodeId, key_id: bytes) -> None:
        link = self.link_to(peer)
        if link is not None and len(key_id) == 8:
            link.write(frame(Kind.NEED_CREDENTIAL, publisher.to_bytes(8, "big") + key_id))

    def close_link(self, peer: NodeId) -> None:
        """End a connection as if it broke: for peers that misbehave."""
        link = self.link_to(peer)
        if link is not None:
            link.abort()

    def writable(self, link: PeerLink) -> None:
        peer = self.peers.get(link.peer) if link.peer is not None else None
        if peer is not None and peer.link is link:
            self.sender.flush(peer)

    # Peers.

    def hold_up(self) -> None:
        """Peers that take too little became others: read from those who may send."""
        for link in self._links:
            link.hold(self.holds_up(link))

    def holds_up(self, link: PeerLink) -> bool:
        """Whether nothing is to be read from a link."""
        return link.feeds and self.sender.congestion.holds_up(link.peer)

    def _make_peer(self, peer: NodeId) -> Peer:
        return Peer(peer, Outbox(self.limits.queue_bytes, self.counters, self.memory))

    def new_peer(self, to: NodeId) -> Peer | None:
        if to == self.id or self.closed or self.book.get(to) is None or self.dialler.cooling(to):
            return None
        if self.reputation.banned(to, self.loop.time()):
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
        self.sender.gone(peer.id)
        if self.peers.get(peer.id) is peer:
            del self.peers[peer.id]
        self._events.lost(peer.id)

    # Signs of life.

    def _sweep(self) -> None:
        if self.closed:
            return
        now, pace = self.loop.time(), self.pace
        following = now + pace.heartbeat / 2
        self._sweeper = self.loop.call_at(following, self.turns.after_all, following, self._sweep)
        for link in list(self._links):
            link.tell(Tick())
        self.check_certificates()
        for peer in list(self.peers.values()):
            link_ = peer.link
            if (
                link_ is not None
                and now - link_.last_message > pace.idle_close
                and not len(peer.outbox)
                and not self._events.linked(peer.id)
            ):
                self._close_idle(peer)

    def _show_life(self) -> None:
        """Peers whose pings are not read now hear that we live. This timer waits for nobody: the others wait
        for what came before.
        """
        self._signs = self.loop.call_later(self.pace.heartbeat, self._show_life)
        for link in list(self._links):
            if link.connection.held and link.open:
                link.ping()

    def check_certificates(self) -> None:
        """End links whose certificate, the peer's or our own, is not in force any more."""
        if self.keyring is None or self.closed:
            return
        wall = self.clock.trusted()
        own = self.keyring.problem(self.keyring.own, wall)
        for peer in list(self.peers.values()):
            link = peer.link
            if link is None or link.credential is None or link.closing:
                continue
            problem = self.keyring.problem(link.credential, wall)
            if problem or own:
                who = f"the certificate of {link.credential.name!r}" if problem else "our own certificate"
                reason = f"{who} is {problem or own}"
                self.troubles.note(f"{link.credential.name!r} at {link.remote}", reason, self.loop.time())
                link.close(Bye(reason))

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        with contextlib.suppress(asyncio.CancelledError):
            error = task.exception()
            if error is not None:
                log.error("%s: a task of the transport failed", self.name, exc_info=error)
