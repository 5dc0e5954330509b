"""Epidemic broadcast trees, one per topic, over links whose both ends want the topic.

After J. Leitão, J. Pereira, L. Rodrigues, "Epidemic Broadcast Trees" (Plumtree, SRDS 2007).

Rules kept
----------
1. Every link that serves a topic is *eager* for it (events are pushed) or *lazy* (events are only announced:
   "I have"). A new link is eager. Only the lazy ones are remembered, so links may come and go without being
   registered.
2. The second copy of an event turns the link it came over lazy at both ends (prune): what stays eager is a
   tree.
3. An announced event that does not arrive in time is asked for (graft), and the link becomes eager again: the
   tree heals over links that are there anyway.
4. An event is handed to the application at most once, and passed on at most once, however often it comes.
5. All memory is bounded: the cache that answers grafts, the announcements waited for, the streams seen. State
   is kept only for peers that a link leads to, and only for topics that this node takes part in.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable

import msgspec

from topicweave.blocks.seen import SeenEvents
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import EventMessage, Message, Receivers, TimerKey, Timers, World

# An announcement names this many events at most; of a longer one the rest is ignored.
MOST_IDS = 256


class Push(EventMessage, frozen=True, array_like=True, tag="tree-push"):
    """The event itself."""


class IHave(Message, frozen=True, array_like=True, tag="tree-ihave"):
    """These events can be had from me."""

    events: tuple[EventId, ...]


class Graft(Message, frozen=True, array_like=True, tag="tree-graft"):
    """Send me this event, and push to me from now on."""

    event: EventId


class Prune(Message, frozen=True, array_like=True, tag="tree-prune"):
    """Push me no more events of this topic: announce them."""

    topic: TopicId


class BroadcastTreeParameters(msgspec.Struct, frozen=True):
    """Times in seconds."""

    announce_period: float = 0.1
    graft_timeout: float = 0.5
    cache_events: int = 1024
    cache_bytes: int = 4 * 1024 * 1024
    most_missing: int = 1024
    most_undelivered: int = 64


class _Cached(msgspec.Struct):
    event: Event
    hops: int


class BroadcastTree:
    """One node's part in the trees of all its topics.

    `links(topic)` yields the peers a link leads to that want the topic; `wants(topic)` tells whether this node
    takes part in it; `deliver(event)` is called once for each event of such a topic.
    """

    def __init__(
        self,
        world: World,
        links: Callable[[TopicId], Iterable[NodeId]],
        wants: Callable[[TopicId], bool],
        deliver: Callable[[Event], None],
        parameters: BroadcastTreeParameters | None = None,
    ) -> None:
        self._world = world
        self._links = links
        self._wants = wants
        self._deliver = deliver
        self._parameters = parameters or BroadcastTreeParameters()
        self._seen = SeenEvents()
        self._cache: OrderedDict[EventId, _Cached] = OrderedDict()
        self._cache_size = 0
        self._lazy: dict[TopicId, set[NodeId]] = {}
        self._missing: OrderedDict[EventId, list[NodeId]] = OrderedDict()
        self._announcements: dict[NodeId, list[EventId]] = {}
        self._unsent: OrderedDict[EventId, None] = OrderedDict()

    def receivers(self) -> Receivers:
        return {
            Push: self._receive_push,
            IHave: self._receive_ihave,
            Graft: self._receive_graft,
            Prune: self._receive_prune,
        }

    def timers(self) -> Timers:
        return {"tree-announce": self._announce, "tree-missing": self._ask_for_missing}

    # What the system tells the tree.

    def publish(self, event: Event) -> int:
        """Spread an event of this node; returns how many peers it was handed to at once.

        An event nobody could be given is kept, and sent over the first link that comes up for its topic.
        """
        self._seen.first_time(event.id)
        self._remember(event, 0)
        links = list(self._links(event.topic))
        if links and self._lazy.get(event.topic, set()).issuperset(links):
            # Nobody has pushed to us since our part of the tree broke: do not wait until we are asked.
            self._make_eager(event.topic, links[0])
        sent_to = self._spread(event, 0, source=None)
        if not sent_to:
            self._unsent[event.id] = None
            if len(self._unsent) > self._parameters.most_undelivered:
                self._unsent.popitem(last=False)
        return sent_to

    def link_up(self, peer: NodeId, interest: frozenset[TopicId]) -> None:
        """A link leads to this peer now, or its interest changed: it gets what nobody could be sent before."""
        for topic in [topic for topic, lazy in self._lazy.items() if peer in lazy and topic not in interest]:
            self._make_eager(topic, peer)
        for event_id in [event_id for event_id in self._unsent if event_id.topic in interest]:
            del self._unsent[event_id]
            if cached := self._cache.get(event_id):
                self._world.send(peer, Push(cached.event, cached.hops + 1))

    def link_down(self, peer: NodeId) -> None:
        """No link leads to this peer any more: forget all about it."""
        for topic in [topic for topic, lazy in self._lazy.items() if peer in lazy]:
            self._make_eager(topic, peer)
        self._announcements.pop(peer, None)
        for sources in self._missing.values():
            if peer in sources:
                sources.remove(peer)

    def topic_down(self, topic: TopicId) -> None:
        """This node takes part in the topic no more."""
        self._lazy.pop(topic, None)
        for event_id in [event_id for event_id in self._missing if event_id.topic == topic]:
            self._forget_missing(event_id)
        for event_id in [event_id for event_id in self._unsent if event_id.topic == topic]:
            del self._unsent[event_id]

    def known_peers(self) -> set[NodeId]:
        """Peers that some state is kept for."""
        peers = set(self._announcements)
        return peers.union(*self._lazy.values(), *self._missing.values())

    def restart(self) -> None:
        """Timers were lost with the last life: forget what waited for them."""
        self._missing.clear()
        self._announcements.clear()

    # What peers say.

    def _receive_push(self, sender: NodeId, message: Push) -> None:
        event, topic = message.event, message.event.topic
        if not self._wants(topic):
            return
        if not self._seen.first_time(event.id):
            if sender in self._links(topic):
                self._lazy.setdefault(topic, set()).add(sender)
            self._world.send(sender, Prune(topic))
            return
        self._forget_missing(event.id)
        self._make_eager(topic, sender)
        self._remember(event, message.hops)
        self._deliver(event)
        self._spread(event, message.hops, source=sender)

    def _receive_ihave(self, sender: NodeId, message: IHave) -> None:
        for event_id in message.events[:MOST_IDS]:
            if event_id in self._seen or not self._wants(event_id.topic):
                continue
            if sender not in self._links(event_id.topic):
                continue
            sources = self._missing.get(event_id)
            if sources is not None:
                if sender not in sources:
                    sources.append(sender)
                continue
            self._missing[event_id] = [sender]
            self._world.set_timer(("tree-missing", event_id), self._parameters.graft_timeout)
            if len(self._missing) > self._parameters.most_missing:
                self._forget_missing(next(iter(self._missing)))

    def _receive_graft(self, sender: NodeId, message: Graft) -> None:
        self._make_eager(message.event.topic, sender)
        if cached := self._cache.get(message.event):
            self._world.send(sender, Push(cached.event, cached.hops + 1))

    def _receive_prune(self, sender: NodeId, message: Prune) -> None:
        # Only links that serve the topic can be lazy for it; otherwise a stranger could fill the table.
        if self._wants(message.topic) and sender in self._links(message.topic):
            self._lazy.setdefault(message.topic, set()).add(sender)

    # How events spread.

    def _spread(self, event: Event, hops: int, source: NodeId | None) -> int:
        lazy = self._lazy.get(event.topic, ())
        push = Push(event, hops + 1)
        sent_to = 0
        for peer in self._links(event.topic):
            if peer == source:
                continue
            if peer in lazy:
                self._queue_announcement(peer, event.id)
            else:
                self._world.send(peer, push)
                sent_to += 1
        return sent_to

    def _queue_announcement(self, peer: NodeId, event_id: EventId) -> None:
        if not self._announcements:
            self._world.set_timer(("tree-announce",), self._parameters.announce_period)
        queue = self._announcements.setdefault(peer, [])
        queue.append(event_id)
        if len(queue) == MOST_IDS:
            del self._announcements[peer]
            self._world.send(peer, IHave(tuple(queue)))

    def _announce(self, _key: TimerKey) -> None:
        announcements, self._announcements = self._announcements, {}
        for peer, events in announcements.items():
            self._world.send(peer, IHave(tuple(events)))

    def _ask_for_missing(self, key: TimerKey) -> None:
        event_id: EventId = key[1]
        sources = self._missing.get(event_id)
        if not sources:
            self._missing.pop(event_id, None)
            return
        peer = sources.pop(0)
        self._make_eager(event_id.topic, peer)
        self._world.send(peer, Graft(event_id))
        self._world.set_timer(key, self._parameters.graft_timeout)

    def _forget_missing(self, event_id: EventId) -> None:
        if self._missing.pop(event_id, None) is not None:
            self._world.cancel_timer(("tree-missing", event_id))

    def _make_eager(self, topic: TopicId, peer: NodeId) -> None:
        lazy = self._lazy.get(topic)
        if lazy is not None:
            lazy.discard(peer)
            if not lazy:
                del self._lazy[topic]

    def _remember(self, event: Event, hops: int) -> None:
        if known := self._cache.pop(event.id, None):
            self._cache_size -= len(known.event.payload)
        self._cache[event.id] = _Cached(event, hops)
        self._cache_size += len(event.payload)
        while len(self._cache) > self._parameters.cache_events or (
            self._cache_size > self._parameters.cache_bytes and len(self._cache) > 1
        ):
            _, dropped = self._cache.popitem(last=False)
            self._cache_size -= len(dropped.event.payload)
