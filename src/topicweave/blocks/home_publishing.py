"""Publishing by way of a topic's home location, and handing events down the trees (Magnet §3.1, §3.3).

Rules kept
----------
1. A publisher finds the topic's home over the control ring once in a while, and sends its events there straight away.
   So no node on the lookup's way ever carries the event.
2. The home answers. A publisher sends an event without an answer again a few times, each time after looking for
   the home anew. An event comes down the tree at most once, however often it reached the home.
3. A node hands an event on to its children the first time it gets it, and to the application if that wants it. The
   publisher does not hand its own event over again when the tree brings it, but passes it on as everybody does.
4. A child that comes a little later gets the event too: a newcomer that takes over as home has no children
   yet, and a branch whose parent left looks for another one. It is told the event's age.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable

from topicweave.blocks.harmonic_links import as_point
from topicweave.blocks.late_neighbours import LateEvent, PassedOn, aged_event
from topicweave.blocks.ring.ring import Ring
from topicweave.blocks.seen import SeenEvents
from topicweave.model.event import Event, EventId
from topicweave.model.ids import RING_SIZE, NodeId, TopicId
from topicweave.port import EventMessage, Message, Receivers, World

MOST_HOPS = 256
MOST_WAITING = 1024
MOST_TRIES = 15
MOST_HOMES = 4096


class FindHome(Message, frozen=True, array_like=True, tag="home-find"):
    """Where is the home of this topic?"""

    topic: TopicId
    origin: NodeId
    hops: int = 0

    def introduces(self) -> Iterable[NodeId]:
        return (self.origin,)


class HomeIs(Message, frozen=True, array_like=True, tag="home-is"):
    """With me."""

    topic: TopicId


class ToHome(EventMessage, frozen=True, array_like=True, tag="home-event"):
    """An event for its topic's home."""


class AtHome(Message, frozen=True, array_like=True, tag="home-got"):
    """It arrived."""

    event: EventId


class TreeEvent(EventMessage, frozen=True, array_like=True, tag="tree-event"):
    """An event on its way down the tree."""


class _Waiting:
    __slots__ = ("event", "tries")

    def __init__(self, event: Event) -> None:
        self.event, self.tries = event, 0


class HomePublishing:
    """One node's part. `targets(topic)` are its children in the topic's tree; `deliver(event, age)` is called
    once per event, with the age of one that comes late.
    """

    def __init__(
        self,
        world: World,
        control: Ring,
        is_home: Callable[[TopicId], bool],
        targets: Callable[[TopicId], list[NodeId]],
        deliver: Callable[[Event, float], None],
        keep_home: float = 30.0,
    ) -> None:
        self._world = world
        self._id = control.id
        self._control = control
        self._is_home = is_home
        self._targets = targets
        self._deliver = deliver
        self._keep_home = keep_home
        self._seen = SeenEvents()
        self._waiting: OrderedDict[EventId, _Waiting] = OrderedDict()
        self._homes: OrderedDict[TopicId, tuple[NodeId, float]] = OrderedDict()
        self._passed = PassedOn[TreeEvent](world, aged_event)

    def receivers(self) -> Receivers:
        return {
            FindHome: self._receive_find,
            HomeIs: self._receive_home,
            ToHome: self._receive_to_home,
            AtHome: self._receive_at_home,
            TreeEvent: self._receive_event,
            LateEvent: self._receive_event,
        }

    def known_peers(self) -> set[NodeId]:
        return {home for home, _ in self._homes.values()}

    def publish(self, event: Event) -> int:
        """Send an event on its way; returns to how many peers it (or the question where it belongs) went."""
        if self._is_home(event.topic):
            self._seen.first_time(event.id)
            return self._pass_down(event, 0, None)
        self._waiting[event.id] = waiting = _Waiting(event)
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popitem(last=False)
        return self._send(waiting)

    def lost(self, peer: NodeId) -> None:
        for topic in [topic for topic, (home, _) in self._homes.items() if home == peer]:
            del self._homes[topic]

    def beat(self) -> None:
        """Once per period: send again what was not answered."""
        now = self._world.now
        for topic in self._passed.topics:
            self._passed.serve(topic, self._targets(topic))
        for topic in [topic for topic, (_, until) in self._homes.items() if until <= now]:
            del self._homes[topic]
        for event_id, waiting in list(self._waiting.items()):
            waiting.tries += 1
            if waiting.tries == 1:
                continue  # Published just now, perhaps.
            if waiting.tries > MOST_TRIES:
                del self._waiting[event_id]
            elif self._is_home(waiting.event.topic):
                del self._waiting[event_id]
                if self._seen.first_time(event_id):
                    self._pass_down(waiting.event, 0, None)
            else:
                self._homes.pop(waiting.event.topic, None)
                self._send(waiting)

    def _send(self, waiting: _Waiting) -> int:
        event = waiting.event
        home = self._homes.get(event.topic)
        if home is not None:
            self._world.send(home[0], ToHome(event, 1))
            return 1
        return self._find(FindHome(event.topic, self._id))

    def _find(self, message: FindHome) -> int:
        if self._control.own is None:
            return 0
        hop = self._control.table.next_hop(as_point(message.topic))
        if hop == self._id:
            if message.origin != self._id:
                self._world.send(message.origin, HomeIs(message.topic))
            return 0
        self._world.send(hop, FindHome(message.topic, message.origin, message.hops + 1))
        return 1

    def _receive_find(self, _sender: NodeId, message: FindHome) -> None:
        if 0 <= message.hops < MOST_HOPS and 0 <= message.topic < RING_SIZE:
            self._find(message)

    def _receive_home(self, sender: NodeId, message: HomeIs) -> None:
        waiting = [one for one in self._waiting.values() if one.event.topic == message.topic]
        if waiting:
            self._homes[message.topic] = (sender, self._world.now + self._keep_home)
            if len(self._homes) > MOST_HOMES:
                self._homes.popitem(last=False)
            for one in waiting:
                self._world.send(sender, ToHome(one.event, 1))

    def _receive_to_home(self, _sender: NodeId, message: ToHome) -> None:
        event = message.event
        if not self._is_home(event.topic):
            return  # It will be sent again, to the right one.
        self._world.send(event.publisher, AtHome(event.id))
        if self._seen.first_time(event.id):
            self._deliver(event, 0.0)
            self._pass_down(event, message.hops, None)

    def _receive_at_home(self, _sender: NodeId, message: AtHome) -> None:
        self._waiting.pop(message.event, None)

    def _receive_event(self, sender: NodeId, message: TreeEvent | LateEvent) -> None:
        event = message.event
        if self._seen.first_time(event.id):
            age = message.age if isinstance(message, LateEvent) else 0.0
            if event.publisher != self._id:
                self._deliver(event, age)
            self._pass_down(event, message.hops, sender, age)

    def _pass_down(self, event: Event, hops: int, source: NodeId | None, age: float = 0.0) -> int:
        message = TreeEvent(event, hops + 1)
        peers = [peer for peer in self._targets(event.topic) if peer != source]
        onward = aged_event(message, age)
        for peer in peers:
            self._world.send(peer, onward)
        self._passed.note(event.id, message, peers if source is None else [*peers, source], age)
        return len(peers)
