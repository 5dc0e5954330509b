"""The port between protocol code and the world it runs in.

Rules kept on both sides
------------------------
1. A node is a plain object. It is told things (`start`, `receive`, `timer`, `subscribe`, `unsubscribe`,
   `publish`, `peer_lost`, `leave`) one at a time and finishes each before the next; it never waits.
2. It learns the time, draws random numbers, sends, sets timers and hands over events only through the
   `World` it was made with. So the simulator and the live runtime run the same class, and a run is a
   function of its inputs and its seed.
3. Sending never fails visibly: a message may be lost, late, doubled or overtaken. Whoever needs an answer
   sets a timer.
4. A timer has a key. Setting a key again moves that timer; a fired or cancelled key is forgotten. The key's
   first element names the block or task it belongs to, so a node can route it and a test can see what leaks.
5. A message that carries an event is an `EventMessage`. The world sees every one that arrives and writes it
   down (wanted or not, first or again): no system reports its own noise.
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
"""Seconds for which a proof is good."""


class Message(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """Base of all messages: immutable, since the simulator passes them by reference.

    Nothing immutable refers back to itself, so the garbage collector need not look for circles in them.
    """

    wire: ClassVar[int] = 0
    """The wire format that brought this kind, if it came later than others of its system. Whoever sends it asks `World.understands` first."""

    def introduces(self) -> Iterable[NodeId]:
        """Peers the receiver may contact because of this message.

        The live world sends their addresses along; the simulator needs none.
        """
        return ()

    def vouchers(self) -> Iterable[tuple[NodeId, bytes]]:
        """Who vouched for something that the message says, with which proof (`World.vouch`).

        The live world sends their certificates along.
        """
        return ()


class EventMessage(Message, frozen=True, array_like=True):
    """A message that carries an event; `hops` counts the links it has crossed, this one included."""

    event: Event
    hops: Annotated[int, msgspec.Meta(ge=1, le=(1 << 31) - 1)]


class InFormat(Protocol):
    """What came with a wire format: a kind of message, or a part of one."""

    wire: ClassVar[int]


class World(Protocol):
    """What a node may ask for."""

    @property
    def now(self) -> float:
        """Seconds since some fixed moment; never goes back."""

    @property
    def random(self) -> random.Random:
        """The node's own stream of random numbers."""

    def send(self, peer: NodeId, message: Message) -> None:
        """Send and forget."""

    def understands(self, peer: NodeId, kind: type[InFormat]) -> bool:
        """Whether a peer, which may run an earlier version, knows such messages or parts; False if that is not known."""

    def set_timer(self, key: TimerKey, delay: float) -> None:
        """Call `node.timer(key)` once, `delay` seconds from now, unless cancelled or set again before."""

    def cancel_timer(self, key: TimerKey) -> None:
        """Forget the timer; nothing happens if there is none."""

    def deliver(self, event: Event) -> None:
        """Hand an event to the application."""

    @property
    def vouches_by(self) -> bytes:
        """Names the key by which this node vouches for what it says; empty where nothing is proven."""

    def vouch(self, statement: bytes) -> bytes:
        """A proof that this node said so, now. It is good for `PROOF_LASTS` seconds."""

    def vouched(self, by: NodeId, statement: bytes, proof: bytes) -> bool:
        """Whether a node said so, and lately; with an empty proof, whether what nobody vouches for counts, too."""


class Onward(NamedTuple):
    """What is to be done with events that a node took note of: send these messages to each of these peers, and hand over their events if they are wanted."""

    messages: Sequence[EventMessage]
    peers: Sequence[NodeId]


class Published(msgspec.Struct, frozen=True, gc=False):
    """What a publisher is told at once: the event, how many neighbours it was handed to, and if none, why."""

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
        """Let a block handle its messages and timers; what another one handles already is an error of the node."""
        receivers, timers = block.receivers(), block.timers()
        taken = [kind.__name__ for kind in receivers if kind in self._receivers]
        taken += [name for name in timers if name in self._timers]
        if taken:
            raise ValueError(f"{type(block).__name__} handles what another block does: {', '.join(taken)}")
        self._receivers.update(receivers)
        self._timers.update(timers)

    @property
    def message_types(self) -> tuple[type[Message], ...]:
        """All messages this node understands: what the live decoder accepts."""
        return tuple(self._receivers)

    def receive(self, sender: NodeId, message: Message) -> None:
        self._receivers[type(message)](sender, message)

    def receive_run(self, sender: NodeId, messages: Sequence[EventMessage]) -> Onward | None:
        """Messages of one kind, with consecutive events of one publisher on one topic that crossed as many links each.

        A node that can take note of all at once says what is to be done with them. None: nothing has happened, let it `receive` them one by one.
        """
        return None

    def targets(self, topic: TopicId) -> Collection[NodeId]:
        """Who would be sent an event that is published on a topic now, if that is all there is to it; nobody: let the node `publish` it.

        A world that has many events to publish may send them to these peers itself, as the node numbers them and puts them into messages (`numbered`),
        and tell the node afterwards, before anything else (`published`): the same as one by one, for less.
        """
        return ()

    def numbered(self, topic: TopicId, payload: bytes) -> EventMessage:
        """The next event on a topic that has `targets`, as it is sent to them."""
        raise NotImplementedError

    def published(self, messages: Sequence[EventMessage]) -> None:
        """These, with consecutive events on one topic, were sent to its `targets`."""
        raise NotImplementedError

    def timer(self, key: TimerKey) -> None:
        self._timers[key[0]](key)

    # What a system fills in.

    @abstractmethod
    def start(self, contacts: Sequence[NodeId]) -> None:
        """Join, knowing a few nodes that may be alive. Also called after a restart that kept the memory."""

    def resume(self, epoch: int, sequences: Mapping[TopicId, int]) -> None:  # noqa: B027 - may be ignored
        """Number events on from where an earlier life ended; told before `start`, if that life left a record.

        A node that ignores this begins a new epoch, which is right, too: see `Event`.
        """

    @abstractmethod
    def subscribe(self, topic: TopicId) -> None:
        """Want a topic from now on."""

    def subscribe_all(self, topics: Sequence[TopicId]) -> None:
        """Want several topics from now on; a system that has something to do per change does it once."""
        for topic in topics:
            self.subscribe(topic)

    @abstractmethod
    def unsubscribe(self, topic: TopicId) -> None:
        """Want a topic no more."""

    @abstractmethod
    def publish(self, topic: TopicId, payload: bytes = b"") -> Published:
        """Send an event to everybody who wants its topic."""

    @abstractmethod
    def peer_lost(self, peer: NodeId) -> None:
        """The world found a peer unreachable (a broken connection, say)."""

    @abstractmethod
    def leave(self) -> None:
        """Say goodbye in order; the world stops the node right after."""

    @abstractmethod
    def links(self) -> Iterable[Link]:
        """The links this node keeps at the moment, for telemetry and pictures."""

    @abstractmethod
    def known_peers(self) -> Iterable[NodeId]:
        """Every peer some state is kept for: must not keep the departed for ever (checked by campaigns)."""

    def gauges(self) -> Mapping[str, float]:
        """Figures of the system's own, for observers."""
        return {}

    @property
    def degree(self) -> int:
        """Distinct peers a link leads to."""
        return len({link.peer for link in self.links()})
