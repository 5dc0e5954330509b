"""The port between protocol code and the world it runs in.

Rules kept on both sides
------------------------
1. A node is a plain object. Its world calls it (`start`, `receive`, `timer`, `subscribe`, `unsubscribe`,
   `publish`, `peer_lost`, `leave`), one call at a time. The node finishes each call before the next and never waits.
2. A node learns the time, draws random numbers, sends messages, sets timers and delivers events only through the
   `World` that it was made with. So the simulator and the live runtime run the same class, and a run is a
   function of its inputs and its seed.
3. Sending never fails visibly: a message may be lost, late, doubled or overtaken. A node that needs an answer
   sets a timer.
4. A timer has a key. Setting a key again moves that timer; a fired or cancelled key is forgotten. The key's
   first element names the block or task that it belongs to, so a node can route it and a test can see what leaks.
5. A message that carries an event is an `EventMessage`. The world records every one that arrives, wanted or not,
   first or again. So no system reports its own noise.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol

import msgspec

from topicweave.model.event import Event
from topicweave.model.ids import NodeId, TopicId

TimerKey = tuple[Any, ...]

PROOF_LASTS = 7200.0
"""For how many seconds a proof counts."""


class Message(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """Base of all messages. They are immutable, because the simulator passes them by reference.

    An immutable message cannot refer to itself, so the garbage collector need not look for cycles in it.
    """

    wire: ClassVar[int] = 0
    """The version of the wire format that brought this kind of message, if it is newer than the system. A
    sender asks `World.understands` first.
    """
    carries_event: ClassVar[bool] = False
    """Whether it is an `EventMessage`: asked of every message, and `isinstance` takes several times as long."""

    def introduces(self) -> Iterable[NodeId]:
        """Peers that the receiver may contact because of this message.

        The live world sends their addresses along; the simulator needs none.
        """
        return ()

    def vouchers(self) -> Iterable[tuple[NodeId, bytes]]:
        """Who signed something that the message says, with the proof (`World.vouch`).

        The live world sends their certificates along.
        """
        return ()


class EventMessage(Message, frozen=True, array_like=True):
    """A message that carries an event; `hops` counts the links it has crossed, this one included."""

    event: Event
    hops: Annotated[int, msgspec.Meta(ge=1, le=(1 << 31) - 1)]

    carries_event: ClassVar[bool] = True


class InFormat(Protocol):
    """Something that a version of the wire format brought: a kind of message, or a part of one."""

    wire: ClassVar[int]


class World(Protocol):
    """What a node may ask its world for."""

    @property
    def now(self) -> float:
        """Seconds since some fixed moment; never goes back."""

    @property
    def random(self) -> random.Random:
        """The node's own stream of random numbers."""

    def send(self, peer: NodeId, message: Message) -> None:
        """Send and forget."""

    def understands(self, peer: NodeId, kind: type[InFormat]) -> bool:
        """Whether a peer, which may run an earlier version, knows such messages or parts. False if that is unknown."""

    def set_timer(self, key: TimerKey, delay: float) -> None:
        """Call `node.timer(key)` once, `delay` seconds from now, unless cancelled or set again before."""

    def cancel_timer(self, key: TimerKey) -> None:
        """Forget the timer; nothing happens if there is none."""

    def deliver(self, event: Event) -> None:
        """Hand an event to the application."""

    @property
    def most_topics(self) -> int:
        """How many topics one peer may want."""

    @property
    def vouches_by(self) -> bytes:
        """The name of the key with which this node signs what it says; empty if nodes have no keys."""

    def vouch(self, statement: bytes) -> bytes:
        """A proof that this node says so now. It counts for `PROOF_LASTS` seconds."""

    def vouched(self, by: NodeId, statement: bytes, proof: bytes) -> bool:
        """Whether the proof shows that a node said so lately. With an empty proof: whether statements without
        a proof count.
        """


class Onward(NamedTuple):
    """What a world does with events that a node took note of: it sends these messages to each of these peers,
    and delivers the events if they are wanted.
    """

    messages: Sequence[EventMessage]
    peers: Sequence[NodeId]


class Published(msgspec.Struct, frozen=True, gc=False):
    """What a publisher learns at once: the event, how many neighbours it was sent to, and if none, why."""

    event: Event
    sent_to: int
    reason: str = ""


class Link(msgspec.Struct, frozen=True, array_like=True):
    """One end of a link as its node sees it."""

    peer: NodeId
    kind: str


Receivers = Mapping[type[Message], Callable[[NodeId, Any], None]]
Timers = Mapping[str, Callable[[TimerKey], None]]


class Block(Protocol):
    """A reusable part of a node, with messages and timers of its own."""

    def receivers(self) -> Receivers:
        """Which messages it handles, and how."""

    def timers(self) -> Timers:
        """Which timers (by the first element of the key) are its own."""


class Node(ABC):
    """Base of every system's node: routes messages and timers to the parts they belong to.

    A system's node extends this, registers its blocks with `use`, and answers the calls below. `subscriptions`
    holds the topics the application wants; both worlds read it to tell wanted from unwanted receptions.
    """

    def __init__(self, world: World, node_id: NodeId, subscriptions: Iterable[TopicId]) -> None:
        self.world = world
        self.id = node_id
        self.subscriptions: set[TopicId] = set(subscriptions)
        self._receivers: dict[type[Message], Callable[[NodeId, Any], None]] = {}
        self._timers: dict[str, Callable[[TimerKey], None]] = {}

    def use(self, block: Block) -> None:
        """Let a block handle its messages and timers. Two blocks may not handle the same one."""
        receivers, timers = block.receivers(), block.timers()
        taken = [kind.__name__ for kind in receivers if kind in self._receivers]
        taken += [name for name in timers if name in self._timers]
        if taken:
            raise ValueError(f"{type(block).__name__} handles what another block does: {', '.join(taken)}")
        self._receivers.update(receivers)
        self._timers.update(timers)

    @property
    def message_types(self) -> tuple[type[Message], ...]:
        """All messages that this node understands. The live decoder accepts these."""
        return tuple(self._receivers)

    def receive(self, sender: NodeId, message: Message) -> None:
        self._receivers[type(message)](sender, message)

    def receive_run(self, sender: NodeId, messages: Sequence[EventMessage]) -> Onward | None:
        """Take a burst: messages of one kind, with consecutive events of one publisher on one topic that
        crossed the same number of links.

        A node that can take note of all of them at once returns what to do with them. It returns None if it
        did nothing; then the world lets it `receive` them one by one.
        """
        return None

    def targets(self, topic: TopicId) -> Collection[NodeId]:
        """The peers to which an event on a topic would be sent now, if nothing else has to be done. Empty:
        call `publish`.

        A world with many events to publish may send them to these peers itself. The node numbers each event
        and makes its message (`numbered`). The world tells the node about them (`published`) before it calls
        anything else. The result is that of `publish`, at less cost.
        """
        return ()

    def numbered(self, topic: TopicId, payload: bytes) -> EventMessage:
        """The next event on a topic that has `targets`, as a message to them."""
        raise NotImplementedError

    def published(self, messages: Sequence[EventMessage]) -> None:
        """The world sent these messages, with consecutive events on one topic, to the topic's `targets`."""
        raise NotImplementedError

    def timer(self, key: TimerKey) -> None:
        self._timers[key[0]](key)

    # What a system fills in.

    @abstractmethod
    def start(self, contacts: Sequence[NodeId]) -> None:
        """Join through these contacts, which may be alive. Also called after a restart that kept the memory."""

    def resume(self, epoch: int, sequences: Mapping[TopicId, int]) -> None:  # noqa: B027 - may be ignored
        """Continue the numbering of events of an earlier life. Called before `start`, if that life left a record.

        A node that ignores this begins a new epoch, which is correct, too: see `Event`.
        """

    @abstractmethod
    def subscribe(self, topic: TopicId) -> None:
        """Want a topic from now on."""

    def subscribe_all(self, topics: Sequence[TopicId]) -> None:
        """Want several topics from now on. A system that acts on each change acts once."""
        for topic in topics:
            self.subscribe(topic)

    @abstractmethod
    def unsubscribe(self, topic: TopicId) -> None:
        """Stop wanting a topic."""

    @abstractmethod
    def publish(self, topic: TopicId, payload: bytes = b"") -> Published:
        """Send an event to every node that wants its topic."""

    @abstractmethod
    def peer_lost(self, peer: NodeId) -> None:
        """The world found a peer unreachable, for example because a connection broke."""

    @abstractmethod
    def leave(self) -> None:
        """Say goodbye. The world stops the node right after."""

    @abstractmethod
    def links(self) -> Iterable[Link]:
        """The links this node keeps at the moment, for telemetry and pictures."""

    @abstractmethod
    def known_peers(self) -> Iterable[NodeId]:
        """Every peer that the node keeps state for. It must drop peers that left (campaigns check this)."""

    def gauges(self) -> Mapping[str, float]:
        """The system's own figures, for observers."""
        return {}

    @property
    def degree(self) -> int:
        """How many peers the node has a link to."""
        return len({link.peer for link in self.links()})
