"""The protocol of one connection, without I/O: hello, frames, signs of life, backpressure, the end. `link` is
its asyncio shell.

A connection takes what happens (`step`) and returns what to do about it. The table `TRANSITIONS` lists the
states, and what leads from one to the other. A frame without a line in the table is a protocol error; any
other input without a line changes nothing.

The side that accepted says nothing until a valid hello has come. So a stranger gets a closed socket and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple

from topicweave.live.budgets import Allowance
from topicweave.live.frames import FrameSplitter, Kind, ProtocolError
from topicweave.live.settings import Limits, Pace
from topicweave.live.wire import (
    Bye,
    Hello,
    Pong,
    bye_frame,
    hello_frame,
    number_frame,
    pong_frame,
    read_bye,
    read_hello,
    read_number,
    read_pong,
)
from topicweave.model.ids import NodeId, ring_id


class State(Enum):
    WAITING = "accepted: the other side speaks first"
    GREETING = "dialled: our hello is under way"
    OPEN = "both said hello and fit together"
    RETIRED = "another connection to the same peer won: nothing is sent, what is under way is read"
    CLOSING = "what was written is sent, nothing is read"
    CLOSED = "over"


class Sign(Enum):
    """What moves a connection from one state to another."""

    HELLO = "a hello that fits"
    MISFIT = "a hello that does not"
    BYE = "the other side says that nothing more will come"
    FRAME = "any other frame"
    RETIRE = "another connection won"
    CLOSE = "we end it in order"
    BREAK = "the protocol was broken"
    LATE = "a hello, a sign of life or a reader is overdue"
    LOST = "the socket is gone"


TRANSITIONS: dict[tuple[State, Sign], State] = {
    (State.WAITING, Sign.HELLO): State.OPEN,
    (State.WAITING, Sign.MISFIT): State.CLOSING,
    (State.GREETING, Sign.HELLO): State.OPEN,
    (State.GREETING, Sign.MISFIT): State.CLOSING,
    (State.GREETING, Sign.BYE): State.CLOSING,
    (State.OPEN, Sign.FRAME): State.OPEN,
    (State.OPEN, Sign.BYE): State.CLOSING,
    (State.OPEN, Sign.RETIRE): State.RETIRED,
    (State.RETIRED, Sign.FRAME): State.RETIRED,
    (State.RETIRED, Sign.BYE): State.CLOSING,
    **{(state, Sign.CLOSE): State.CLOSING for state in State if state is not State.CLOSED},
    **{(state, sign): State.CLOSED for state in State for sign in (Sign.BREAK, Sign.LATE, Sign.LOST)},
}

GREETED = frozenset({State.OPEN, State.RETIRED})


# What a connection is told.


class Made(NamedTuple):
    """Bytes may flow. `proven`: whose certificate the other side has shown, if it has one."""

    proven: NodeId | None = None


class Bytes(NamedTuple):
    data: bytes


class Tick(NamedTuple):
    """Time has passed."""


class HoldReading(NamedTuple):
    """Read nothing, or read on: others can, or can't, be sent what would follow."""

    held: bool


class Writable(NamedTuple):
    """The socket takes more, or no more for now."""

    writable: bool


class Spend(NamedTuple):
    """What arrived cost so much work."""

    units: int


class Retire(NamedTuple):
    pass


class End(NamedTuple):
    """Say this and close."""

    bye: Bye | None = None


class Refuse(NamedTuple):
    """The hello fits, but its sender is not wanted: say why."""

    reason: str


class Break(NamedTuple):
    """What was in a frame broke the protocol."""

    reason: str


class Drop(NamedTuple):
    """Cut it off."""


class Lost(NamedTuple):
    in_order: bool


Input = Made | Bytes | Tick | HoldReading | Writable | Spend | Retire | End | Refuse | Break | Drop | Lost


# What it wants done.


class Write(NamedTuple):
    data: bytes


class Close(NamedTuple):
    """Send what was written, then close."""


class Abort(NamedTuple):
    """Close at once."""


class Opened(NamedTuple):
    hello: Hello


class Arrived(NamedTuple):
    kind: int
    body: bytes


class Ponged(NamedTuple):
    pong: Pong


class SaidBye(NamedTuple):
    bye: Bye


class Failed(NamedTuple):
    """Why it came to nothing, and whose fault that is: `broken` is the other side's."""

    reason: str
    broken: bool = False


class Reading(NamedTuple):
    wanted: bool


class Wake(NamedTuple):
    """Say `Tick` at that time."""

    at: float


Output = Write | Close | Abort | Opened | Arrived | Ponged | SaidBye | Failed | Reading | Wake


class Terms:
    """What one node's connections have in common."""

    def __init__(
        self, hello: Callable[[], Hello], limits: Limits, pace: Pace, wall: Callable[[], float]
    ) -> None:
        self.hello = hello
        self.limits = limits
        self.pace = pace
        self.wall = wall


class Connection:
    """`dialled` says who speaks first."""

    def __init__(self, terms: Terms, dialled: bool, now: float) -> None:
        self.terms = terms
        self.dialled = dialled
        self.state = State.GREETING if dialled else State.WAITING
        self.hello: Hello | None = None
        self.version = 0
        """Of the wire format that both ends speak."""
        self.claimed: Hello | None = None
        """What the other side says it is, whether or not that fits."""
        self.proven: NodeId | None = None
        self.bye: Bye | None = None
        self.last_heard = now
        self.stuck_since: float | None = None
        """Since when the socket takes no more."""
        self._due = now + terms.pace.hello_timeout
        self._splitter = FrameSplitter(terms.limits.hello_bytes)
        self._allowance = Allowance(terms.limits.messages_per_second, now)
        self._bytes = Allowance(terms.limits.bytes_per_second, now)
        self.held = False
        """Whether others can't be sent what would follow from reading on."""
        self._waits_until = 0.0
        self._reading = True

    @property
    def sending(self) -> bool:
        """Whether messages may be written."""
        return self.state is State.OPEN

    @property
    def over(self) -> bool:
        return self.state in (State.CLOSING, State.CLOSED)

    @property
    def unread(self) -> int:
        return len(self._splitter)

    def step(self, now: float, what: Input) -> Iterator[Output]:
        """Carry out each output before asking for the next: between two frames a connection may be told to hold."""
        match what:
            case Bytes(data):
                self._splitter.feed(data)
                self._bytes.spend(len(data), now)
                yield from self._read(now)
            case Made(proven):
                self.proven = proven
                yield Wake(self._due)
                if self.dialled:
                    yield Write(hello_frame(self.terms.hello()))
            case Tick():
                yield from self._tick(now)
            case HoldReading(held):
                if held != self.held:
                    self.held = held
                    self.last_heard = now
                    yield from self._read_or_not(now)
                    if not held and self.unread:
                        yield from self._read(now)
            case Writable(writable):
                self.stuck_since = None if writable else now
            case Spend(units):
                self._allowance.spend(units, now)
            case Retire():
                if self._move(Sign.RETIRE):
                    yield Write(bye_frame(Bye("another connection to you won")))
                    if self.bye is not None:
                        self._move(Sign.CLOSE)
                        yield Close()
                    else:
                        self._due = now + self.terms.pace.dead_after
                        yield Wake(self._due)
            case Refuse(reason):
                yield from self._misfit(reason, None)
            case End(bye):
                if bye is not None and self.state in GREETED:
                    yield Write(bye_frame(bye))
                if self._move(Sign.CLOSE):
                    yield Close()
            case Break(reason):
                self._move(Sign.BREAK)
                yield Failed(reason, broken=True)
                yield Abort()
            case Drop():
                self._move(Sign.LOST)
                yield Abort()
            case Lost(in_order):
                if self.held and in_order and self.state in GREETED:
                    self.held = False  # It was closed in order: what came before counts.
                    yield from self._read(now)
                self._move(Sign.LOST)

    def _move(self, sign: Sign) -> bool:
        """Whether the table has a line for it."""
        following = TRANSITIONS.get((self.state, sign))
        if following is None:
            return False
        self.state = following
        return True

    # Frames.

    def _read(self, now: float) -> Iterator[Output]:
        """All whole frames that are there, unless others can't be sent what would follow from them."""
        self.last_heard = now
        try:
            while not (self.held or self.over):
                found = self._splitter.next()
                if found is None:
                    break
                yield from self._frame(now, *found)
        except ProtocolError as error:
            self._move(Sign.BREAK)
            yield Failed(str(error), broken=True)
            yield Abort()
            return
        if not self.over:
            wait = max(self._allowance.wait(), self._bytes.wait())
            if wait and now >= self._waits_until:
                self._waits_until = now + wait
                yield Wake(self._waits_until)
                yield from self._read_or_not(now)

    def _frame(self, now: float, kind: int, body: bytes) -> Iterator[Output]:
        if kind == Kind.HELLO:
            yield from self._greet(read_hello(body))
        elif kind == Kind.BYE:
            bye = read_bye(body)
            if not self._move(Sign.BYE):
                raise ProtocolError("a bye instead of a hello")
            self.bye = bye
            if self.hello is None:
                yield Failed(bye.reason)
            else:
                yield SaidBye(bye)
            yield Close()
        elif not self._move(Sign.FRAME):
            raise ProtocolError(f"a frame of kind {kind} instead of a hello")
        elif kind == Kind.PING:
            self._allowance.spend(1, now)
            yield Write(pong_frame(Pong(read_number(body), self.terms.wall())))
        elif kind == Kind.PONG:
            yield Ponged(read_pong(body))
        else:
            yield Arrived(kind, body)

    def _greet(self, hello: Hello) -> Iterator[Output]:
        if self.state not in (State.WAITING, State.GREETING):
            raise ProtocolError("a second hello")
        ours = self.terms.hello()
        self.claimed = hello
        if hello.id != ring_id(hello.name):
            raise ProtocolError(f"{hello.name!r} claims another's id")
        if self.proven is not None and self.proven != hello.id:
            raise ProtocolError(f"a certificate that is not {hello.name!r}'s")
        version = max(set(hello.versions) & set(ours.versions), default=None)
        if version is None or (hello.swarm, hello.system) != (ours.swarm, ours.system) or hello.id == ours.id:
            here = f"swarm {ours.swarm!r}, system {ours.system!r}, wire {list(ours.versions)}"
            there = f"swarm {hello.swarm!r}, system {hello.system!r}, wire {list(hello.versions)}"
            same = "; both have the same name" if hello.id == ours.id else ""
            if version is None:
                same += "; no version of the wire format in common: update the older node"
            yield from self._misfit(f"this is node {ours.name!r} of {here}; you are of {there}{same}", hello)
            return
        self.hello, self.version = hello, version
        self._move(Sign.HELLO)
        self._splitter.limit = self.terms.limits.frame_bytes
        yield Opened(hello)

    def _misfit(self, reason: str, hello: Hello | None) -> Iterator[Output]:
        """An acceptor's answer to a hello that does not fit is a word of farewell, without a hello of its own."""
        said = self.state is State.OPEN or not self.dialled
        if hello is None or self._move(Sign.MISFIT):
            if said:
                yield Write(bye_frame(Bye(reason[:400])))
            yield Failed(reason)
            self.state = State.CLOSING
            yield Close()

    def accept(self) -> bytes:
        """What an acceptor answers to a hello that was found good: its own, with the version that both speak."""
        return hello_frame(self.terms.hello().answer(self.version))

    # Time.

    def _tick(self, now: float) -> Iterator[Output]:
        pace = self.terms.pace
        late = ""
        if self.state in (State.WAITING, State.GREETING):
            late = "no hello in time" if now >= self._due else ""
        elif self.state is State.RETIRED:
            late = "no bye in time" if now >= self._due else ""
        elif self.state is State.OPEN:
            if self.stuck_since is not None and now - self.stuck_since > pace.dead_after:
                late = "it takes nothing"
            elif self.held:
                pass  # It is not silent: we do not listen.
            elif now - self.last_heard > pace.dead_after:
                late = "no sign of life"
            elif now - self.last_heard > pace.heartbeat:
                yield Write(number_frame(Kind.PING, 0))
        if late:
            self._move(Sign.LATE)
            yield Failed(late)
            yield Abort()
            return
        yield from self._read_or_not(now)

    def _read_or_not(self, now: float) -> Iterator[Output]:
        wanted = not (self.held or now < self._waits_until)
        if wanted != self._reading and self.state in GREETED:
            self._reading = wanted
            yield Reading(wanted)


class Rivalry(Enum):
    """Of two connections between the same two nodes."""

    OLD = "the old one stays"
    NEW = "the new one stays"
    DUPLICATE = "two living nodes bear the same name"


def arbitrate(own: NodeId, peer: NodeId, old: Connection, new: Connection, now: float) -> Rivalry:
    """Which of two connections stays.

    When both ends dialled at once, the one that the node with the lower id made. Of two made by the same end
    the newer: the older one's other end is gone. Another instance under the same name is a restarted node,
    unless the old connection shows that the other one lives.
    """
    assert new.hello is not None
    if old.over or old.hello is None:
        return Rivalry.NEW
    if old.hello.instance != new.hello.instance:
        alive = now - old.last_heard <= old.terms.pace.heartbeat
        return Rivalry.DUPLICATE if alive else Rivalry.NEW
    if old.dialled == new.dialled:
        return Rivalry.NEW
    return Rivalry.OLD if old.dialled == (own < peer) else Rivalry.NEW
