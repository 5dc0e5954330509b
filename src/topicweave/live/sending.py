"""Sending: what waits for each peer goes out in batches, once in each turn of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from topicweave.live.congestion import ENOUGH, Congestion
from topicweave.live.frames import Kind, frame
from topicweave.live.interests import HELD, Named
from topicweave.live.link import MOST_TOLD, Link
from topicweave.live.outbox import Outbox
from topicweave.live.wire import AddressOf, addresses_frame, interests_frame
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
        self.link: Link | None = None
        self.dialling: asyncio.Task[None] | None = None
        self.addresses: dict[NodeId, None] = {}
        """Whose addresses must arrive before what waits."""
        self.credentials: dict[NodeId, None] = {}
        self.interests: dict[bytes, Named] = {}
        """Those that what waits mentions by name."""

    def may_mention(self, interests: Mapping[bytes, Named]) -> bool:
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
        self.congestion = Congestion(owner.loop, owner.hold_up)
        self._much = min(ENOUGH, owner.limits.queue_bytes // 2)
        self._barriers: dict[int, Callable[[NodeId], None]] = {}
        self._barrier_number = 0

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
        mentioned = codec.mentioned(message)
        if mentioned and peer.may_mention(mentioned):
            peer.interests.update(mentioned)
            encoded = codec.encode_short(message)
        else:
            encoded = codec.encode(message)
        return self._put(peer, encoded, carries_event=False)

    def send_event(self, to: NodeId, message: EventMessage) -> bool:
        """The same for a message that carries an event."""
        peer = self._owner.peers.get(to) or self._owner.new_peer(to)
        if peer is None:
            self._counters.events_dropped += 1
            self._counters.unroutable += 1
            return False
        if self._owner.keyring is not None and len(peer.credentials) < MOST_TOLD:
            peer.credentials[message.event.publisher] = None
        return self._put(peer, self._codec.encode(message), carries_event=True)

    def _put(self, peer: Peer, encoded: bytes, carries_event: bool) -> bool:
        outbox = peer.outbox
        taken = outbox.put(encoded, carries_event)
        if taken:
            self._counters.messages_sent += 1
            if outbox.size > self._much:
                self.congestion.filled(peer.id)
        if not self._dirty:
            self._loop.call_soon(self.flush_all)
        self._dirty[peer.id] = peer
        self.unflushed += len(encoded)
        return taken

    def barrier(self, peers: Iterable[NodeId], passed: Callable[[NodeId], None]) -> int:
        """Calls `passed` for each peer that has read everything sent to it so far."""
        self._barrier_number += 1
        self._barriers[self._barrier_number] = passed
        for peer in peers:
            self._loop.call_soon(self._send_barrier, peer, self._barrier_number)
        return self._barrier_number

    def end_barrier(self, number: int) -> None:
        self._barriers.pop(number, None)

    def flush_all(self) -> None:
        owner = self._owner
        dirty, self._dirty = self._dirty, {}
        self.unflushed = 0
        for peer in dirty.values():
            if peer.link is not None:
                self.flush(peer)
            elif peer.dialling is None and owner.peers.get(peer.id) is peer:
                owner.dialler.dial(peer)

    def flush(self, peer: Peer) -> None:
        link = peer.link
        if link is None or not link.open or not len(peer.outbox):
            return
        if link.paused_since is None:
            self._tell_first(peer, link)
            link.last_message = self._loop.time()
        while len(peer.outbox) and link.paused_since is None:
            link.write(self._codec.batch(peer.outbox.take(BATCH)))
        if not len(peer.outbox):
            peer.interests.clear()
        if peer.outbox.size <= self._much // 2:
            self.congestion.drained(peer.id)

    def _tell_first(self, peer: Peer, link: Link) -> None:
        """The interests, addresses and credentials that what waits speaks of."""
        if peer.interests:
            for told in link.told_interests.news(peer.interests.values()):
                link.write(interests_frame(told))
        news = []
        for introduced in peer.addresses:
            address = self._owner.book.get(introduced)
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
            link.told_credentials = {self._owner.id, peer.id}
        for publisher in peer.credentials:
            if publisher not in link.told_credentials:
                self.tell_credential(link, publisher)
        peer.credentials.clear()

    def _send_barrier(self, to: NodeId, number: int) -> None:
        peer = self._owner.peers.get(to)
        if peer is None or number not in self._barriers:
            return
        self.flush(peer)
        if peer.link is not None and peer.link.open and not len(peer.outbox):
            peer.link.ping(number)
        else:
            # Not connected yet, or the socket is full: try again until the barrier ends.
            self._loop.call_later(0.05, self._send_barrier, to, number)

    def tell_credential(self, link: Link, publisher: NodeId) -> None:
        keyring = self._owner.keyring
        if keyring is not None and (credential := keyring.credential(publisher)) is not None:
            link.write(frame(Kind.CREDENTIAL, credential.der))
            link.told_credentials.add(publisher)

    def passed(self, peer: NodeId, number: int) -> None:
        """A peer has read what was sent before a barrier."""
        if (passed := self._barriers.get(number)) is not None:
            passed(peer)
