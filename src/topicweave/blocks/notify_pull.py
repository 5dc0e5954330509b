"""Spreading events by notification: a node says that there is an event, and nodes that lack it pull it (Vitis §III-C).

Rules kept
----------
1. A node that gets an event for the first time notifies all its targets for the topic, except the one that it
   came from. It notifies only of events that it has, so it answers a pull at once.
2. A node that learns of a new event sends one pull, to the first notifier. It remembers later notifiers of
   the same event and asks them one after another if no event comes.
3. A payload shorter than `inline` travels with the notification, so nothing is left to pull. With 0 all
   events are pulled.
4. An event is delivered to the application at most once, and passed on at most once, however often it comes.
5. A node that becomes a neighbour in the topic's tree a little later is notified, too (`appeared`), with the
   event's age.
6. A node keeps an event of its own if it could notify nobody, and notifies the first neighbour that comes (`link_up`).
7. All memory is bounded: the cache that answers pulls, the events waited for, the streams seen.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable

import msgspec

from topicweave.blocks.late_neighbours import Age, LateEvent, PassedOn, aged_event
from topicweave.blocks.seen import SeenEvents
from topicweave.model.event import Event, EventId
from topicweave.model.ids import RING_SIZE, NodeId, TopicId
from topicweave.port import EventMessage, Message, Receivers, TimerKey, Timers, World

TIMER = "pull"
MOST_SOURCES = 8


class Notify(Message, frozen=True, array_like=True, tag="np-notify"):
    """I have this event; pulled from me, it will have crossed `hops` links."""

    event: EventId
    hops: int


class LateNotify(Message, frozen=True, array_like=True, tag="np-late"):
    """The same of an event that came so long ago."""

    event: EventId
    hops: int
    age: Age


class NotifyInline(EventMessage, frozen=True, array_like=True, tag="np-inline"):
    """A notification that brings the event along."""


class Pull(Message, frozen=True, array_like=True, tag="np-pull"):
    """Give me this event."""

    event: EventId


class Pulled(EventMessage, frozen=True, array_like=True, tag="np-event"):
    """The event asked for."""


class NotifyPullParameters(msgspec.Struct, frozen=True):
    """Times in seconds, sizes in bytes."""

    inline: int = 0
    pull_timeout: float = 0.5
    cache_events: int = 1024
    cache_bytes: int = 4 * 1024 * 1024
    most_awaited: int = 1024
    most_unsent: int = 64
    streams: int = 65_536


def aged(message: Notify | NotifyInline, age: float) -> Message:
    """A notification as it is sent on: with the age of its event, unless that is new."""
    if isinstance(message, Notify):
        return LateNotify(message.event, message.hops, age) if age else message
    return aged_event(message, age)


class _Awaited:
    """Whom to ask next for an event, and when it came to those who have it."""

    __slots__ = ("came", "sources")

    def __init__(self, came: float) -> None:
        self.came = came
        self.sources: list[NodeId] = []


class NotifyPull:
    """One node's part.

    `targets(topic, source)` names whom to notify of an event that came from `source` (None for the node's own);
    `deliver(event, age)` is called once for each event, with the age of one that comes late.
    """

    def __init__(
        self,
        world: World,
        targets: Callable[[TopicId, NodeId | None], Iterable[NodeId]],
        deliver: Callable[[Event, float], None],
        parameters: NotifyPullParameters | None = None,
    ) -> None:
        self._world = world
        self._targets = targets
        self._deliver = deliver
        self._parameters = parameters or NotifyPullParameters()
        self._seen = SeenEvents(self._parameters.streams)
        self._cache: OrderedDict[EventId, tuple[Event, int]] = OrderedDict()
        self._cache_size = 0
        self._awaited: OrderedDict[EventId, _Awaited] = OrderedDict()
        self._unsent: OrderedDict[EventId, Event] = OrderedDict()
        self._passed = PassedOn[Notify | NotifyInline](world, aged)

    def receivers(self) -> Receivers:
        return {
            Notify: self._receive_notify,
            LateNotify: self._receive_notify,
            NotifyInline: self._receive_event,
            LateEvent: self._receive_event,
            Pull: self._receive_pull,
            Pulled: self._receive_event,
        }

    def timers(self) -> Timers:
        return {TIMER: self._ask_again}

    def restart(self) -> None:
        """Timers were lost with the last life: forget what waited for them."""
        self._awaited.clear()

    def publish(self, event: Event) -> int:
        """Spread an event of this node; returns how many peers were notified."""
        self._seen.first_time(event.id)
        count = self._spread(event, 0, None)
        if not count:
            self._unsent[event.id] = event
            if len(self._unsent) > self._parameters.most_unsent:
                self._unsent.popitem(last=False)
        return count

    def link_up(self) -> None:
        """There may be somebody now to tell of what could not be told before."""
        for event in list(self._unsent.values()):
            if self._spread(event, 0, None):
                del self._unsent[event.id]

    def appeared(self, topic: TopicId, peer: NodeId) -> None:
        """A peer is a new neighbour in the topic's tree."""
        self._passed.serve(topic, [peer])

    def lost(self, peer: NodeId) -> None:
        """Do not wait for a peer that is dead."""
        for awaited in self._awaited.values():
            if peer in awaited.sources:
                awaited.sources.remove(peer)

    def known_peers(self) -> set[NodeId]:
        return {peer for awaited in self._awaited.values() for peer in awaited.sources}

    def _receive_notify(self, sender: NodeId, message: Notify | LateNotify) -> None:
        event_id = message.event
        came = self._world.now - message.age if isinstance(message, LateNotify) else math.inf
        awaited = self._awaited.get(event_id)
        if awaited is not None:
            awaited.came = max(awaited.came, came)
            if sender not in awaited.sources and len(awaited.sources) < MOST_SOURCES:
                awaited.sources.append(sender)
            return
        if event_id in self._seen or not 0 <= event_id.topic < RING_SIZE:
            self._passed.has(event_id, sender)
            return
        self._awaited[event_id] = _Awaited(came)
        self._ask(event_id, sender)
        if len(self._awaited) > self._parameters.most_awaited:
            self._stop_awaiting(next(iter(self._awaited)))

    def _ask(self, event_id: EventId, source: NodeId) -> None:
        self._world.send(source, Pull(event_id))
        self._world.set_timer((TIMER, event_id), self._parameters.pull_timeout)

    def _ask_again(self, key: TimerKey) -> None:
        event_id: EventId = key[1]
        awaited = self._awaited.get(event_id)
        if awaited is not None and awaited.sources:
            self._ask(event_id, awaited.sources.pop(0))
        else:
            self._awaited.pop(event_id, None)

    def _stop_awaiting(self, event_id: EventId) -> None:
        if self._awaited.pop(event_id, None) is not None:
            self._world.cancel_timer((TIMER, event_id))

    def _receive_pull(self, sender: NodeId, message: Pull) -> None:
        if cached := self._cache.get(message.event):
            self._world.send(sender, Pulled(cached[0], cached[1] + 1))

    def _receive_event(self, sender: NodeId, message: EventMessage) -> None:
        event = message.event
        event_id = event.id
        if not self._seen.first_time(event_id):
            return
        age = message.age if isinstance(message, LateEvent) else 0.0
        if (awaited := self._awaited.get(event_id)) is not None:
            age = max(age, self._world.now - awaited.came)
            self._stop_awaiting(event_id)
        self._deliver(event, age)
        self._spread(event, message.hops, sender, age)

    def _spread(self, event: Event, hops: int, source: NodeId | None, age: float = 0.0) -> int:
        notification: Notify | NotifyInline
        if len(event.payload) < self._parameters.inline:
            notification = NotifyInline(event, hops + 1)
        else:
            self._remember(event, hops)
            notification = Notify(event.id, hops + 1)
        peers = [peer for peer in self._targets(event.topic, source) if peer != source]
        onward = aged(notification, age)
        for peer in peers:
            self._world.send(peer, onward)
        self._passed.note(event.id, notification, peers if source is None else [*peers, source], age)
        return len(peers)

    def _remember(self, event: Event, hops: int) -> None:
        self._cache[event.id] = (event, hops)
        self._cache_size += len(event.payload)
        while len(self._cache) > self._parameters.cache_events or (
            self._cache_size > self._parameters.cache_bytes and len(self._cache) > 1
        ):
            _, (dropped, _) = self._cache.popitem(last=False)
            self._cache_size -= len(dropped.payload)
