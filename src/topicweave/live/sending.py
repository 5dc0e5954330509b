"""Sending: messages for each peer leave in batches, once in each turn of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from topicweave.live.congestion import ENOUGH, Congestion
from topicweave.live.frames import Kind, frame
from topicweave.live.interests import HELD, NamedInterest
from topicweave.live.link import MOST_TOLD, PeerLink
from topicweave.live.outbox import Outbox
from topicweave.live.wire import addresses_frame, interests_frame
from topicweave.model.ids import NodeId
from topicweave.port import EventMessage, Message

if TYPE_CHECKING:
    from topicweave.live.transport import Transport

BATCH = 64 * 1024
"""Messages of about so many bytes go into one frame; a node that must stop reading stops between two frames."""


class Peer:
    """Somebody we are connected to, or about to be."""

    __slots__ = ("addresses", "credentials", "dialling", "id", "interests", "link", "outbox")

    def __init__(self, peer: NodeId, outbox: Outbox) -> None:
        self.id = peer
        self.outbox = outbox
        self.link: PeerLink | None = None
        self.dialling: asyncio.Task[None] | None = None
        self.addresses: dict[NodeId, None] = {}
        """Whose addresses must arrive before what waits."""
        self.credentials: dict[tuple[NodeId, bytes], None] = {}
        self.interests: dict[bytes, NamedInterest] = {}
        """Those that what waits mentions by name."""

    def may_mention(self, interests: Mapping[bytes, NamedInterest]) -> bool:
        """Whether there is room for these names beside those that what waits mentions."""
        new = sum(len(named.topics) for name, named in interests.items() if name not in self.interests)
        return new == 0 or new + sum(len(named.topics) for named in self.interests.values()) <= 8 * HELD


class Sender:
    """The sending side of a `Transport`, which knows the peers and makes connections."""

    def __init__(self, owner: Transport) -> None:
        self._owner = owner
        self._loop = owner.loop
        self._codec = owner.codec
        self._counters = owner.counters
        self._dirty: dict[NodeId, Peer] = {}
        self.unflushed = 0
        """Bytes handed over since the event loop had its last turn."""
        self.passed_on = 0
        """Events that were to be sent to somebody."""
        self.congestion = Congestion()
        self._waiting: list[asyncio.Future[None]] = []
        self._impatience: asyncio.TimerHandle | None = None
        self._last_messages: list[bytes] = []
        self._last_frame = b""
        self._much = min(ENOUGH, owner.limits.queue_bytes // 2)

    def send(self, to: NodeId, message: Message) -> bool:
        """Whether a message without an event was taken: it is sent, or waits for a connection."""
        peer = self._owner.peers.get(to) or self._owner.new_peer(to)
        if peer is None:
            self._counters.unroutable += 1
            return False
        codec = self._codec
        if type(message) in codec.introducing:
            for introduced in message.introduces():
                if len(peer.addresses) < MOST_TOLD:
                    peer.addresses[introduced] = None
        if type(message) in codec.proving and self._owner.keyring is not None:
            for node, proof in message.vouchers():
                if len(peer.credentials) < MOST_TOLD:
                    peer.credentials[node, proof[:8]] = None
        mentioned = codec.mentioned(message)
        if mentioned and peer.may_mention(mentioned):
            peer.interests.update(mentioned)
            encoded = codec.encode_short(message)
        else:
            encoded = codec.encode(message)
        return self._put(peer, encoded, carries_event=False)

    def send_event(self, to: NodeId, message: EventMessage) -> bool:
        """The same for a message that carries an event."""
        self.passed_on += 1
        peer = self._owner.peers.get(to) or self._owner.new_peer(to)
        if peer is None:
            self._counters.events_dropped += 1
            self._counters.unroutable += 1
            return False
        if self._owner.keyring is not None and len(peer.credentials) < MOST_TOLD:
            peer.credentials[message.event.publisher, message.event.payload[:8]] = None
        return self._put(peer, self._codec.encode(message), carries_event=True)

    def send_own(self, targets: Iterable[NodeId], message: EventMessage) -> int:
        """The same to several peers; returns how many took it."""
        encoded, peers, taken, otherwise = self._codec.encode(message), self._owner.peers, 0, 0
        for to in targets:
            peer = peers.get(to)
            if peer is None:
                otherwise += self.send_event(to, message)
                continue
            outbox = peer.outbox
            if outbox.put(encoded, True):
                taken += 1
                if outbox.size > self._much or to not in self._dirty:
                    self._fills(peer, 0)
        self._counters.messages_sent += taken
        self.unflushed += len(encoded)
        return taken + otherwise

    def send_burst(self, to: NodeId, messages: Sequence[EventMessage]) -> None:
        """`send_event` for each of several messages."""
        self.passed_on += len(messages)
        peer = self._owner.peers.get(to)
        encoded, size = self._codec.encode_burst(messages)
        if peer is None or not peer.outbox.put_events(encoded, size):
            for message in messages:
                self.send_event(to, message)
            return
        if self._owner.keyring is not None:
            for name in {message.event.payload[:8] for message in messages}:
                if len(peer.credentials) < MOST_TOLD:
                    peer.credentials[messages[0].event.publisher, name] = None
        self._counters.messages_sent += len(encoded)
        self._fills(peer, size)

    def _put(self, peer: Peer, encoded: bytes, carries_event: bool) -> bool:
        outbox = peer.outbox
        if not outbox.put(encoded, carries_event):
            return False
        self._counters.messages_sent += 1
        self._fills(peer, len(encoded))
        return True

    def _fills(self, peer: Peer, size: int) -> None:
        """So many bytes more wait for a peer."""
        if peer.outbox.size > self._much:
            self._congested(self.congestion.filled(peer.id, self._loop.time()))
        if not self._dirty:
            self._loop.call_soon(self.flush_all)
        self._dirty[peer.id] = peer
        self.unflushed += size

    # Backpressure: the shell of `congestion`.

    async def room(self) -> None:
        """Returns when nobody holds up others."""
        while self.congestion.holding_up:
            waiting: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(waiting)
            await waiting

    def gone(self, peer: NodeId) -> None:
        self._congested(self.congestion.gone(peer, self._loop.time()))

    def close(self) -> None:
        for peer in list(self.congestion.holding_up):
            self.gone(peer)

    def _congested(self, changed: bool) -> None:
        """Those who hold up others have become others, perhaps."""
        if not changed:
            return
        if not self.congestion.holding_up:
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)
        self._owner.hold_up()
        self._look_again()

    def _look_again(self) -> None:
        if self._impatience is not None:
            self._impatience.cancel()
            self._impatience = None
        deadline = self.congestion.deadline(self._loop.time())
        if deadline is not None:
            self._impatience = self._loop.call_at(deadline, self._tick)

    def _tick(self) -> None:
        self._impatience = None
        changed = self.congestion.tick(self._loop.time())
        self._congested(changed)
        if not changed:
            self._look_again()

    def flush_all(self) -> None:
        owner = self._owner
        dirty, self._dirty = self._dirty, {}
        self.unflushed = 0
        for peer in dirty.values():
            if peer.link is not None:
                self.flush(peer)
            elif peer.dialling is None and owner.peers.get(peer.id) is peer:
                owner.dialler.dial(peer)
        self._last_messages, self._last_frame = [], b""

    def flush(self, peer: Peer) -> None:
        link = peer.link
        if link is None or not link.open or not len(peer.outbox):
            return
        if link.stuck:
            return
        self._tell_first(peer, link)
        link.last_message = self._loop.time()
        while len(peer.outbox) and not link.stuck:
            link.write(self._frame(peer.outbox.take(BATCH)))
        if not len(peer.outbox):
            peer.interests.clear()
        if self.congestion.holding_up:
            self.congestion.progressed(peer.id, self._loop.time())
        if peer.outbox.size <= self._much // 2:
            self._congested(self.congestion.drained(peer.id, self._loop.time()))

    def _frame(self, messages: list[bytes]) -> bytes:
        """A frame that goes to several peers is put together once. Its messages are the same objects, so
        comparing takes no time.
        """
        if messages != self._last_messages:
            self._last_messages, self._last_frame = messages, self._codec.batch(messages)
        return self._last_frame

    def _tell_first(self, peer: Peer, link: PeerLink) -> None:
        """The interests, addresses and credentials that what waits speaks of."""
        if peer.interests:
            for told in link.told_interests.news(peer.interests.values()):
                link.write(interests_frame(told))
        if len(link.told_credentials) >= MOST_TOLD:
            link.told_credentials.clear()
        news = []
        for introduced in peer.addresses:
            record = self._owner.book.record(introduced)
            if (
                record is not None
                and introduced != peer.id
                and link.told_addresses.get(introduced) != record.address
            ):
                if len(link.told_addresses) >= MOST_TOLD:
                    link.told_addresses.clear()
                link.told_addresses[introduced] = record.address
                news.append(record)
                if record.signature:
                    self.tell_credential(link, introduced, record.signature[:8])
        peer.addresses.clear()
        for start in range(0, len(news), 1000):
            link.write(addresses_frame(news[start : start + 1000]))
        for publisher, key_id in peer.credentials:
            self.tell_credential(link, publisher, key_id)
        peer.credentials.clear()

    def tell_credential(self, link: PeerLink, publisher: NodeId, key_id: bytes) -> None:
        """Unless the other side has it."""
        keyring = self._owner.keyring
        if keyring is None or (publisher, key_id) in link.told_credentials:
            return
        credential = keyring.credential(publisher, key_id)
        if credential is not None:
            link.write(frame(Kind.CREDENTIAL, credential.der))
            link.told_credentials.add((publisher, key_id))
