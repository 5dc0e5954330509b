"""One connection to a peer: hello, frames in and out, signs of life.

Life of a link: *made* (bytes may flow; the dialler says hello) -> *open* (both said hello and fit together) -> maybe *retired* (another
connection to the same peer won: nothing is sent any more, what is under way is still read) -> *lost*. An acceptor says nothing
until a fitting hello has come, so strangers get a closed socket and no more.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from topicweave.live.frames import FrameSplitter, Kind, ProtocolError
from topicweave.live.interests import HearingInterests, TellingInterests
from topicweave.live.settings import Address
from topicweave.live.wire import (
    Bye,
    Hello,
    bye_frame,
    hello_frame,
    number_frame,
    read_addresses,
    read_bye,
    read_hello,
    read_interests,
    read_number,
)
from topicweave.model.ids import NodeId

if TYPE_CHECKING:
    from topicweave.live.transport import Transport

WRITE_BUFFER = 64 * 1024
"""Bytes handed to the socket's buffer before the rest waits in the outbox, where the policy holds."""
UNSENT = 128 * 1024
"""Bytes that the system holds beyond those under way, where it can be told."""
MOST_TOLD = 8192
"""Addresses and credentials remembered as told; beyond that some are told again."""


class Link(asyncio.Protocol):
    """Made by the `Transport`, which decides; the link carries out."""

    def __init__(self, owner: Transport, dialled: bool) -> None:
        self.owner = owner
        self.dialled = dialled
        self.hello: Hello | None = None
        self.peer: NodeId | None = None
        self.credential = b""
        """The peer's certificate, as the TLS handshake proved it."""
        self.opened: asyncio.Future[None] = owner.loop.create_future()
        self.opened.add_done_callback(_mark_retrieved)
        self.retired = False
        self.bye: Bye | None = None
        self.error = ""
        self.last_heard = owner.loop.time()
        self.last_message = self.last_heard
        self.paused_since: float | None = None
        self.told_addresses: dict[NodeId, Address] = {}
        self.told_credentials: set[NodeId] = set()
        self.told_interests = TellingInterests()
        self._interests = HearingInterests(owner.codec.names, owner.limits.topics_per_peer)
        self._transport: asyncio.Transport | None = None
        self._splitter = FrameSplitter(owner.limits.hello_bytes)
        self._hello_timer = owner.loop.call_later(owner.pace.hello_timeout, self._hello_overdue)
        self._allowance = float(owner.limits.messages_per_second)
        self._allowance_at = self.last_heard
        self._held = False
        self._over_allowance = False

    # asyncio's side.

    def connection_made(self, transport: Any) -> None:  # uvloop's transports do not extend asyncio's
        self._transport = transport
        if self.dialled and not self.owner.admit(self):
            transport.abort()
            return
        transport.set_write_buffer_limits(high=WRITE_BUFFER)
        if (option := getattr(socket, "TCP_NOTSENT_LOWAT", None)) is not None:
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, option, UNSENT)
        try:
            self.owner.identify(self, transport)
        except ProtocolError as error:
            self.fail(str(error))
            return
        if self.dialled:
            self.write(hello_frame(self.owner.hello()))

    def data_received(self, data: bytes) -> None:
        self.owner.counters.bytes_received += len(data)
        self._splitter.feed(data)
        self._read_frames()

    def pause_writing(self) -> None:
        self.paused_since = self.owner.loop.time()

    def resume_writing(self) -> None:
        self.paused_since = None
        self.owner.writable(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._hello_timer.cancel()
        self._transport = None  # Nothing can be written any more, whatever is read below.
        if self._held and error is None:
            self._read_frames(to_the_end=True)  # It was closed in order: what came before counts.
        if not self.opened.done():
            why = (
                self.error
                or (self.bye.reason if self.bye else "")
                or str(error or "closed by the other side")
            )
            self.opened.set_exception(ConnectionError(why))
        self.owner.link_lost(self)

    # What the transport does with it.

    @property
    def open(self) -> bool:
        return (
            self.hello is not None and not self.retired and self.bye is None and self._transport is not None
        )

    @property
    def closing(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing() and not self.owner.cut(self.peer):
            self._transport.write(data)
            self.owner.counters.frames_sent += 1
            self.owner.counters.bytes_sent += len(data)

    def ping(self, number: int = 0) -> None:
        self.write(number_frame(Kind.PING, number))

    def accept(self, hello: Hello) -> None:
        """The peer's hello fits: the link is open."""
        self.hello = hello
        self.peer = hello.id
        self._hello_timer.cancel()
        self._splitter.limit = self.owner.limits.frame_bytes
        self.hold(self.owner.sender.congestion.holds_up(self.peer))
        if not self.opened.done():
            self.opened.set_result(None)

    def retire(self) -> None:
        """Say that nothing more will come; read on until the other side says the same."""
        if not self.retired:
            self.retired = True
            self.write(bye_frame(Bye("another connection to you won")))
            if self.bye is not None:
                self.close()
            else:
                self.owner.loop.call_later(self.owner.pace.dead_after, self.abort)

    def close(self, bye: Bye | None = None) -> None:
        """End in order: what was written is sent."""
        if bye is not None and self.hello is not None:
            self.write(bye_frame(bye))
        if self._transport is not None:
            self._transport.close()

    def dismiss(self) -> None:
        """It never came to a connection."""
        self._hello_timer.cancel()
        self.opened.cancel()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def fail(self, error: str) -> None:
        """The other side broke the protocol."""
        self.error = error
        self.owner.protocol_error(self, error)
        self.abort()

    # Frames.

    def _hello_overdue(self) -> None:
        self.error = "no hello in time"
        self.owner.counters.connections_refused += 1
        self.abort()

    def _read_frames(self, to_the_end: bool = False) -> None:
        """All whole frames that are there, unless others can't be sent what would follow from them."""
        self.last_heard = self.owner.loop.time()
        try:
            while to_the_end or not (self._held or self.closing):
                found = self._splitter.next()
                if found is None:
                    break
                self.owner.counters.frames_received += 1
                if not self.owner.cut(self.peer):
                    self._frame(*found)
        except ProtocolError as error:
            self.fail(str(error))
        if self._allowance < 0 and not self.closing:
            self._wait_for_allowance()

    def _frame(self, kind: int, body: bytes) -> None:
        if self.hello is None:
            if kind == Kind.BYE and self.dialled:
                self.bye = read_bye(body)
                self.close()
                return
            if kind != Kind.HELLO:
                raise ProtocolError(f"a frame of kind {kind} instead of a hello")
            self.owner.greeted(self, read_hello(body))
            return
        handler = _HANDLERS.get(kind)
        if handler is None:
            raise ProtocolError(f"a frame of unknown kind {kind}")
        handler(self, body)

    def _messages(self, body: bytes) -> None:
        messages = self.owner.codec.decode(body, self._interests.held)
        self.last_message = self.last_heard
        self._spend(len(messages))
        assert self.peer is not None
        self.owner.received(self.peer, messages)

    def _addresses(self, body: bytes) -> None:
        self._spend(1)
        for entry in read_addresses(body):
            self.owner.book.hear(entry.id, entry.address)
            if len(self.told_addresses) < MOST_TOLD:
                self.told_addresses[entry.id] = entry.address  # Who told us need not be told.

    def _credential(self, body: bytes) -> None:
        self._spend(1)
        if self.owner.keyring is None:
            raise ProtocolError("a credential in a swarm without keys")
        publisher = self.owner.keyring.learn(body)
        if len(self.told_credentials) < MOST_TOLD:
            self.told_credentials.add(publisher)

    def _need_credential(self, body: bytes) -> None:
        self._spend(1)
        self.told_credentials.discard(read_number(body))
        self.owner.sender.tell_credential(self, read_number(body))

    def _interests_told(self, body: bytes) -> None:
        self._spend(1)
        self._interests.hear(read_interests(body))

    def _pinged(self, body: bytes) -> None:
        self._spend(1)
        self.write(number_frame(Kind.PONG, read_number(body)))

    def _ponged(self, body: bytes) -> None:
        assert self.peer is not None
        self.owner.sender.passed(self.peer, read_number(body))

    def _said_bye(self, body: bytes) -> None:
        self.bye = read_bye(body)
        self.owner.said_bye(self)
        self.close()

    # The rate limit: a bucket of one second's messages.

    def _spend(self, messages: int) -> None:
        rate = self.owner.limits.messages_per_second
        elapsed = self.last_heard - self._allowance_at
        self._allowance_at = self.last_heard
        self._allowance = min(float(rate), self._allowance + elapsed * rate) - messages

    def _wait_for_allowance(self) -> None:
        if self._over_allowance:
            return
        self.owner.counters.rate_limited += 1
        self._over_allowance = True
        self._read_or_not()
        self.owner.loop.call_later(-self._allowance / self.owner.limits.messages_per_second, self._read_on)

    def _read_on(self) -> None:
        self._over_allowance = False
        self._read_or_not()

    # Backpressure: see `congestion`.

    def hold(self, held: bool) -> None:
        """Read nothing while others can't be sent what would follow from it."""
        if held != self._held:
            self._held = held
            self.last_heard = self.owner.loop.time()  # It was not silent: we did not listen.
            self._read_or_not()
            if not held and len(self._splitter):
                # Not at once: this may be called from within the handling of a message.
                self.owner.loop.call_soon(self._read_frames)

    def _read_or_not(self) -> None:
        transport = self._transport
        if self.closing or transport is None or self.hello is None:
            return
        if self._held or self._over_allowance:
            if transport.is_reading():
                transport.pause_reading()
        elif not transport.is_reading():
            transport.resume_reading()


_HANDLERS: dict[int, Callable[[Link, bytes], None]] = {
    Kind.MESSAGES: Link._messages,
    Kind.ADDRESSES: Link._addresses,
    Kind.CREDENTIAL: Link._credential,
    Kind.NEED_CREDENTIAL: Link._need_credential,
    Kind.PING: Link._pinged,
    Kind.PONG: Link._ponged,
    Kind.BYE: Link._said_bye,
    Kind.INTERESTS: Link._interests_told,
}


def _mark_retrieved(future: asyncio.Future[None]) -> None:
    """An accepted link that never opens is no error of anybody who waits."""
    if not future.cancelled():
        future.exception()
