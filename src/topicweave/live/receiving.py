"""Receiving: what the frames of a connection mean, and what of them the node gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from topicweave.live.frames import Kind, ProtocolError
from topicweave.live.link import MOST_TOLD, PeerLink
from topicweave.live.wire import (
    Pong,
    VerdictOn,
    read_addresses,
    read_ask,
    read_interests,
    read_number,
    read_verdicts,
)
from topicweave.model.event import EventId
from topicweave.model.ids import NodeId
from topicweave.port import Message

if TYPE_CHECKING:
    from topicweave.live.transport import Transport


class Events:
    """What the transport tells; a world fills these in."""

    def received(self, sender: NodeId, messages: Sequence[Message]) -> None: ...

    def lost(self, peer: NodeId) -> None: ...

    def linked(self, peer: NodeId) -> bool:
        """Whether the overlay has a link to the peer."""
        return False

    def asked(self, peer: NodeId, events: Sequence[EventId]) -> None:
        """A publisher asks what became of its events."""

    def judged(self, peer: NodeId, verdicts: Sequence[VerdictOn]) -> None:
        """What became of this node's own events at a peer."""

    def epoch_of(self, peer: NodeId) -> int:
        """The highest epoch known of a publisher; 0 for none."""
        return 0

    def epoch_told(self, epoch: int) -> None:
        """The highest epoch that a peer knows of this node."""


class Receiver:
    """The receiving side of a `Transport`."""

    def __init__(self, owner: Transport, events: Events) -> None:
        self._owner, self._events = owner, events
        self.delay: Callable[[NodeId], float] | None = None
        """Seconds by which what a peer sends is held back: for experiments."""
        self._handlers: dict[int, Callable[[PeerLink, bytes], None]] = {
            Kind.ADDRESSES: self._addresses,
            Kind.CREDENTIAL: self._credential,
            Kind.NEED_CREDENTIAL: self._need_credential,
            Kind.INTERESTS: self._interests,
            Kind.ASK: self._asked,
            Kind.VERDICTS: self._verdicts,
            Kind.REVOKED: self._revoked,
            Kind.EPOCH: self._epoch,
        }

    def arrived(self, link: PeerLink, kind: int, body: bytes) -> None:
        if kind == Kind.MESSAGES:
            messages = self._owner.codec.decode(body, link.interests)
            link.last_message = link.connection.last_heard
            link.spend(len(messages))
            link.rest, link.rest_bytes = messages, len(body)
            self.hand_on(link)
            return
        handler = self._handlers.get(kind)
        if handler is None:
            raise ProtocolError(f"a frame of unknown kind {kind}")
        link.spend(1)
        handler(link, body)

    def hand_on(self, link: PeerLink) -> None:
        """What the link's last frame brought: as much as one turn has room for, all of it if there will be no
        other turn.
        """
        messages = link.rest
        if len(messages) > link.left and link.attached:
            messages, link.rest = messages[: link.left], messages[link.left :]
        else:
            link.rest = ()
        if messages:
            assert link.peer is not None
            link.left -= len(messages)
            before = self._owner.sender.passed_on
            self.received(link.peer, messages)
            link.feeds = self._owner.sender.passed_on > before
        if link.attached and (link.rest or (link.left <= 0 and link.connection.unread)):
            link.give_way()
        if self._owner.holds_up(link):
            link.hold(True)

    def _addresses(self, link: PeerLink, body: bytes) -> None:
        for record in read_addresses(body):
            if not self._owner.book.hear(record):
                self._owner.counters.unproven_addresses += 1
            elif len(link.told_addresses) < MOST_TOLD:
                link.told_addresses[record.id] = record.address  # Who told us need not be told.

    def _credential(self, link: PeerLink, body: bytes) -> None:
        if self._owner.keyring is None:
            raise ProtocolError("a credential in a swarm without keys")
        credential = self._owner.keyring.learn(body)
        if len(link.told_credentials) < MOST_TOLD:
            link.told_credentials.add((credential.node, credential.key_id))

    def _need_credential(self, link: PeerLink, body: bytes) -> None:
        if len(body) != 16:
            raise ProtocolError(f"a need of {len(body)} bytes instead of 16")
        publisher, key_id = int.from_bytes(body[:8], "big"), body[8:]
        link.told_credentials.discard((publisher, key_id))
        self._owner.sender.tell_credential(link, publisher, key_id)

    def _interests(self, link: PeerLink, body: bytes) -> None:
        link.interests.hear(read_interests(body))

    def _asked(self, link: PeerLink, body: bytes) -> None:
        asked = read_ask(body)
        link.spend(len(asked.events))
        assert link.peer is not None
        self._events.asked(link.peer, asked.events)

    def _verdicts(self, link: PeerLink, body: bytes) -> None:
        assert link.peer is not None
        self._events.judged(link.peer, read_verdicts(body))

    def _revoked(self, link: PeerLink, body: bytes) -> None:
        if self._owner.keyring is None:
            raise ProtocolError("a list of revoked certificates in a swarm without keys")
        if self._owner.keyring.learn_revoked(body):
            self._owner.spread_revocations()
            self._owner.check_certificates()

    def _epoch(self, _link: PeerLink, body: bytes) -> None:
        self._events.epoch_told(read_number(body))

    def ponged(self, link: PeerLink, pong: Pong) -> None:
        if link.peer is not None:
            self._owner.clock.told(link.peer, pong.time)

    def received(self, sender: NodeId, messages: Sequence[Message]) -> None:
        self._owner.counters.messages_received += len(messages)
        if self.delay is None:
            self._hand_over(sender, messages)
            return
        for message in messages:
            self._owner.loop.call_later(self.delay(sender), self._hand_over, sender, (message,))

    def _hand_over(self, sender: NodeId, messages: Sequence[Message]) -> None:
        if not self._owner.closed and not self._owner.cut(sender):
            self._events.received(sender, messages)
