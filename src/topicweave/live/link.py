"""The asyncio shell of a connection: bytes in and out, and timers. `connection` decides what they mean,
`transport` what follows from it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from topicweave.live.connection import (
    Abort,
    Arrived,
    Break,
    Bytes,
    Close,
    Connection,
    Drop,
    End,
    Failed,
    HoldReading,
    Input,
    Lost,
    Made,
    Opened,
    Ponged,
    Reading,
    Refuse,
    Retire,
    SaidBye,
    Spend,
    Tick,
    Wake,
    Writable,
    Write,
)
from topicweave.live.frames import Kind, ProtocolError
from topicweave.live.interests import HearingInterests, TellingInterests
from topicweave.live.settings import Address
from topicweave.live.wire import Bye, Hello, number_frame
from topicweave.model.ids import NodeId
from topicweave.port import Message

if TYPE_CHECKING:
    from topicweave.live.keyring import Credential
    from topicweave.live.transport import Transport

WRITE_BUFFER = 64 * 1024
"""Bytes handed to the socket's buffer before the rest waits in the outbox, where the policy holds."""
UNSENT = 128 * 1024
"""Bytes that the system holds beyond those under way, where it can be told."""
MOST_TOLD = 8192
"""Addresses and credentials remembered as told; beyond that some are told again."""


class PeerLink(asyncio.Protocol):
    """Made by the `Transport`, which decides; the link carries out."""

    def __init__(self, owner: Transport, dialled: bool, remote: str = "") -> None:
        self.owner = owner
        self.remote = remote
        """The address that the other side connects from, or was dialled at."""
        self.connection = Connection(owner.terms, dialled, owner.loop.time())
        self.credential: Credential | None = None
        """The peer's certificate, as the TLS handshake proved it."""
        self.opened: asyncio.Future[None] = owner.loop.create_future()
        self.opened.add_done_callback(_mark_retrieved)
        self.greeting: asyncio.Task[None] | None = None
        """The handshake of TLS, while there is no connection yet."""
        self.error = ""
        self.fault = ProtocolError.fault
        self.last_message = owner.loop.time()
        self.feeds = False
        """Whether events that came last were passed on to others."""
        self.told_addresses: dict[NodeId, Address] = {}
        self.told_credentials: set[tuple[NodeId, bytes]] = set()
        self.told_interests = TellingInterests()
        self.interests = HearingInterests(owner.codec.names, owner.limits.topics_per_peer)
        self.rest: Sequence[Message] = ()
        """What came in the last frame and waits for its turn."""
        self.rest_bytes = 0
        """Of the frame that it came in."""
        self.left = 0
        """Messages that there is room for in this turn."""
        self.waits = False
        """Whether a turn is to come for the rest, and for what is unread."""
        self._transport: asyncio.Transport | None = None
        self._unread = 0

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
            proven = self.owner.identify(self, transport)
        except ProtocolError as error:
            self.fail(str(error))
            return
        self.tell(Made(proven))

    def data_received(self, data: bytes) -> None:
        self.owner.counters.bytes_received += len(data)
        self.left = self.owner.turns.portion
        if self.owner.turns.behind:
            self.give_way()
        self.tell(Bytes(data))
        self._weigh()

    def _weigh(self) -> None:
        """Account for what came and was not handled; without memory for it, cut the connection off."""
        held = self.connection.unread + (self.rest_bytes if self.rest else 0)
        if held > WRITE_BUFFER or self._unread:
            self._account(held)
            if self.owner.memory.excess("frames"):
                self._account(0)
                self.owner.memory.refused["frames"] += 1
                self.error = f"no memory for what it sends: {held} bytes that are not handled or not whole"
                self.abort()

    def _tick(self) -> None:
        self.tell(Tick())

    def _account(self, unread: int) -> None:
        self.owner.memory.settle("frames", self._unread, unread)
        self._unread = unread

    def pause_writing(self) -> None:
        self.tell(Writable(False))

    def resume_writing(self) -> None:
        self.tell(Writable(True))
        self.owner.writable(self)

    def give_up(self, error: BaseException) -> None:
        """Whoever dials waits no longer. uvloop closes a connection that is cancelled while it opens, and
        tells nobody.
        """
        if self._transport is not None:
            self.abort()
            self.connection_lost(ConnectionError(str(error)))

    def connection_lost(self, error: Exception | None) -> None:
        if self._transport is None:
            return  # It was given up.
        self._transport = None  # Nothing can be written any more, whatever is read below.
        self._account(0)
        if not self.connection.over:
            self.owner.receiver.hand_on(self)
        self.owner.turns.catch_up(self)
        self.tell(Lost(in_order=error is None))
        if not self.opened.done():
            self.opened.set_exception(
                ConnectionError(
                    self.error
                    or str(
                        error
                        or "it closed the connection without a word: are both of one swarm, with keys or without?"
                    )
                )
            )
        self.owner.link_lost(self)

    def tell(self, what: Input) -> None:
        """Let the connection decide, and carry out what it wants done."""
        owner = self.owner
        for output in self.connection.step(owner.loop.time(), what):
            match output:
                case Arrived(kind, body):
                    owner.counters.frames_received += 1
                    if not owner.cut(self.peer):
                        try:
                            owner.receiver.arrived(self, kind, body)
                        except ProtocolError as error:
                            self.fault = error.fault
                            self.fail(str(error))
                case Write(data):
                    self.write(data)
                case Opened(hello):
                    owner.greeted(self, hello)
                case Ponged(pong):
                    owner.receiver.ponged(self, pong)
                case Reading(wanted):
                    self._read(wanted)
                case Wake(at):
                    owner.loop.call_at(at, owner.turns.after_all, at, self._tick)
                case SaidBye(bye):
                    owner.said_bye(self, bye)
                case Failed(reason, broken):
                    self.error = self.error or reason
                    owner.failed(self, reason, broken)
                case Close():
                    if self._transport is not None:
                        self._transport.close()
                case Abort():
                    if self._transport is not None:
                        self._transport.abort()

    # What the transport does with it.

    @property
    def dialled(self) -> bool:
        return self.connection.dialled

    @property
    def hello(self) -> Hello | None:
        return self.connection.hello

    @property
    def peer(self) -> NodeId | None:
        hello = self.connection.hello
        return hello.id if hello is not None else self.connection.proven

    @property
    def bye(self) -> Bye | None:
        return self.connection.bye

    @property
    def open(self) -> bool:
        return self.connection.sending and self._transport is not None

    @property
    def attached(self) -> bool:
        """Whether there is a socket."""
        return self._transport is not None

    @property
    def stuck(self) -> bool:
        return self.connection.stuck_since is not None

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

    def accept(self) -> None:
        """The peer's hello was found good: answer it, and begin."""
        if not self.dialled:
            self.write(self.connection.accept())
        self.hold(self.owner.holds_up(self))
        if not self.opened.done():
            self.opened.set_result(None)

    def refuse(self, reason: str) -> None:
        self.tell(Refuse(reason))

    def retire(self) -> None:
        """Say that nothing more will come; read on until the other side says the same."""
        self.tell(Retire())

    def close(self, bye: Bye | None = None) -> None:
        """End in order: what was written is sent."""
        self.tell(End(bye))

    def evict(self) -> None:
        """Another one needs the place."""
        self.error = "others came, and it had not said hello"
        if self._transport is not None:
            self.abort()
        elif self.greeting is not None:
            self.greeting.cancel()

    def dismiss(self) -> None:
        """It never came to a connection."""
        self.opened.cancel()

    def abort(self) -> None:
        self.tell(Drop())

    def fail(self, error: str) -> None:
        """The other side broke the protocol."""
        self.tell(Break(error))

    def spend(self, units: int) -> None:
        self.tell(Spend(units))

    def hold(self, held: bool) -> None:
        """Read nothing while others can't be sent what would follow from it."""
        if held or not self.connection.unread:
            self.tell(HoldReading(held or self.waits))
        else:
            # Not at once: this may be called from within the handling of a message.
            self.owner.loop.call_soon(self._let_go)

    def _let_go(self) -> None:
        self.tell(HoldReading(self.waits or self.owner.holds_up(self)))

    def give_way(self) -> None:
        """Enough for one turn of the event loop: read on in another one."""
        if not self.waits:
            self.waits = True
            self.owner.turns.fall_behind(self, self._take_turn)
            self.tell(HoldReading(True))

    def _take_turn(self) -> None:
        self.waits, self.left = False, self.owner.turns.portion
        try:
            if self._transport is not None and not self.connection.over:
                self.owner.receiver.hand_on(self)
                self._let_go()
                self._weigh()
        except Exception:
            self.abort()  # As the event loop does when reading fails.
            raise
        finally:
            if not self.waits:
                self.owner.turns.catch_up(self)

    def _read(self, wanted: bool) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if wanted:
            if not transport.is_reading():
                transport.resume_reading()
        elif transport.is_reading():
            self.owner.counters.rate_limited += not self.connection.held
            transport.pause_reading()


def _mark_retrieved(future: asyncio.Future[None]) -> None:
    """An accepted link that never opens is no error of anybody who waits."""
    if not future.cancelled():
        future.exception()
