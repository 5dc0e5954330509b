"""Epidemic broadcast trees, one per topic, over links whose both ends want the topic.

After J. Leitão, J. Pereira, L. Rodrigues, "Epidemic Broadcast Trees" (Plumtree, SRDS 2007).

Rules kept
----------
1. Every link that serves a topic is *eager* for it (events are pushed) or *lazy* (events are only announced:
   "I have"). A new link is eager. Only the lazy ones are remembered, so links may come and go without being
   registered.
2. The second copy of an event turns the link it came over lazy at both ends (prune): what stays eager is a
   tree. Of a burst of second copies one is answered, and again only if they go on. While several publishers send at
   once, only the events of the one with the lowest id do so: copies of different events meet at different places of
   the same circle, and each would cut it. With `prefer_short` the longer of two ways to that publisher is cut, whichever copy came
   first (after the paper's §3.8): a star stays one, however its links overtake each other.
   The peer over which that publisher's events come is the *way*. It is never cut for what was under way over another link when that was
   cut, and it is not pushed to, only told, what came over another link first: or of two ways both would go.
3. Announced events that do not arrive in time are asked for (graft), and the link becomes eager again: the
   tree heals over links that are there anyway. Whose way is gone asks the first that announces something, at once. Otherwise each announcer
   is asked in turn, `graft_attempts` times without an
   answer and with growing pauses, so a lost graft loses nothing; when all of them are gone, every neighbour is. How long one waits is drawn at random, up to twice the time set:
   of all that are cut off together, one asks and passes on before the others would. Who asks, asks for all it misses of the topic, and is sent
   what came since it was announced as well.
4. What is merely late is not asked for: while a stream's events go on arriving in order, or a gap in it goes on closing,
   those announced ahead of them are waited for. Whose graft was in vain, because the events came anyway, has more patience from
   then on (up to `MOST_PATIENCE` times the time set), and less again when a graft was needed.
5. Over a new link the events of the last `LATE` seconds are announced, with their ages: one that was lost with the link before comes
   over this one. Who took part in the topic later than that does not ask: it has lost nothing.
6. An event is handed to the application at most once, and passed on at most once, however often it comes.
7. All memory is bounded: the cache that answers grafts, the announcements waited for, the streams seen. State
   is kept only for peers that a link leads to, and only for topics that this node takes part in.

The paper announces and asks for single messages. Here both speak of runs, consecutive events of one stream (a publisher on a
topic), and there is one timer per stream: a burst costs as many announcements and timers as a single event.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import msgspec

from topicweave.blocks.broadcast_state import Hole, Missing, RecentRun, RunSource, Way
from topicweave.blocks.event_cache import EventCache
from topicweave.blocks.late_neighbours import LATE
from topicweave.blocks.seen import SeenEvents
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import EventMessage, Message, Onward, Receivers, TimerKey, Timers, World

NOBODY = "nobody else wants this topic, as far as its home knows; the event goes to the first that does"
NOT_YET = "no neighbour wants this topic yet; the event goes to the first that does"
"""What becomes of an event that `publish` sent to nobody."""
MOST_RUNS = 256
"""An announcement or a graft names this many runs at most; of a longer one the rest is ignored."""
MOST_ASKED = 16_384
"""Events asked for, and sent, by one graft: all that a node lacks which is far behind, or new events would come before the rest of them."""
MOST_SENT = 2 * 1024 * 1024
"""Bytes of payload sent for one graft, beyond the first event: more might not fit into a queue. What is left is asked for again."""


MOST_PATIENCE = 8.0
HOLE = 0.25
"""Times the usual patience for events that a stream has jumped over: under load, caches forget them soon."""
MOST_SEARCHES = 3
"""How often all neighbours are asked for events whose announcers are gone."""


class PublisherStream(NamedTuple):
    """The events of one publisher on one topic in one of its lives."""

    publisher: NodeId
    topic: TopicId
    epoch: int


class EventRun(NamedTuple):
    """Consecutive events of a stream."""

    publisher: NodeId
    topic: TopicId
    epoch: int
    first: int
    last: int

    @property
    def stream(self) -> PublisherStream:
        return PublisherStream(self.publisher, self.topic, self.epoch)

    @classmethod
    def of(cls, event: Event | EventId) -> EventRun:
        """A run of a single event."""
        return cls(event.publisher, event.topic, event.epoch, event.sequence, event.sequence)


class Push(EventMessage, frozen=True, array_like=True, tag="tree-push"):
    """The event itself."""


class IHave(Message, frozen=True, array_like=True, tag="tree-ihave"):
    """These events can be had from me; I had them so many seconds ago (`ages`, as many as runs), or just now (none)."""

    runs: tuple[EventRun, ...]
    ages: tuple[float, ...] = ()


class Graft(Message, frozen=True, array_like=True, tag="tree-graft"):
    """Send me these events of a topic, and push to me from now on."""

    runs: tuple[EventRun, ...]


class Prune(Message, frozen=True, array_like=True, tag="tree-prune"):
    """Push me no more events of this topic: announce them."""

    topic: TopicId


class BroadcastTreeParameters(msgspec.Struct, frozen=True):
    """Times in seconds. `most_missing` counts streams."""

    announce_period: float = 0.1
    graft_timeout: float = 0.5
    graft_attempts: int = 5
    cache_events: int = 1024
    cache_bytes: int = 4 * 1024 * 1024
    most_missing: int = 1024
    most_undelivered: int = 64
    prefer_short: bool = False
    """Cut the way with more links, not the slower one: where all links are about as fast."""


class BroadcastTree:
    """One node's part in the trees of all its topics.

    `links(topic)` yields the peers a link leads to that want the topic; `wants(topic)` tells whether this node
    takes part in it; `deliver(event)` is called once for each event of such a topic.
    """

    def __init__(
        self,
        world: World,
        links: Callable[[TopicId], Collection[NodeId]],
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
        self._cache = EventCache(self._parameters.cache_events, self._parameters.cache_bytes)
        # Topic -> lazy peer -> when it was last told so (never: minus infinity).
        self._lazy: dict[TopicId, dict[NodeId, float]] = {}
        self._missing: OrderedDict[PublisherStream, Missing] = OrderedDict()
        self._holes: dict[PublisherStream, Hole] = {}
        # Stream, where it came from, who was spared -> runs [first, last] to be announced to the lazy links, and to that one.
        self._news: dict[tuple[int, int, int, NodeId | None, NodeId | None], list[list[int]]] = {}
        self._unsent: OrderedDict[EventId, None] = OrderedDict()
        # What was spread lately, with the time; and to whom it is to be announced.
        self._recent: deque[RecentRun] = deque(maxlen=MOST_RUNS)
        self._new_links: dict[NodeId, frozenset[TopicId]] = {}
        # Since when this node takes part: in all topics, and in those that it began with later.
        self._since = world.now
        self._topic_since: dict[TopicId, float] = {}
        self._ways: dict[TopicId, Way] = {}
        self._grafted: set[NodeId] = set()  # asked, and nothing has come from them since
        self._patience = 1.0
        self.given_up = 0
        """Announced events that nobody sent however often they were asked."""

    def receivers(self) -> Receivers:
        return {
            Push: self._receive_push,
            IHave: self._receive_ihave,
            Graft: self._receive_graft,
            Prune: self._receive_prune,
        }

    def timers(self) -> Timers:
        return {
            "tree-announce": self._announce,
            "tree-missing": self._ask_for_missing,
            "tree-hole": self._ask_for_hole,
            "tree-recent": self._announce_recent,
        }

    # What the system tells the tree.

    def publish(self, event: Event) -> int:
        """Spread an event of this node; returns how many peers it was handed to at once.

        An event nobody could be given is kept, and sent over the first link that comes up for its topic.
        """
        push, topic, now = Push(event, 1), event.topic, self._world.now
        if self._seen.first_time(event):
            self._cache.add(push)
        self._note_own(event, now)
        if lazy := self._lazy.get(topic):
            links = list(self._links(topic))
            if links and lazy.keys() >= set(links):
                # Nobody has pushed to us since our part of the tree broke: do not wait until we are asked.
                self._make_eager(topic, links[0])
        sent_to = self._spread(push, None, now)
        if not sent_to:
            self._unsent[event.id] = None
            if len(self._unsent) > self._parameters.most_undelivered:
                self._unsent.popitem(last=False)
        return sent_to

    def targets(self, topic: TopicId) -> Collection[NodeId]:
        """To whom an event of this node would be handed now; nobody if `publish` has more to do than that."""
        links = self._links(topic)
        lazy = self._lazy.get(topic)
        return links if lazy is None else [peer for peer in links if peer not in lazy]

    def published(self, messages: Sequence[EventMessage]) -> None:
        """Consecutive events of this node were sent to the `targets`."""
        event, last, now = messages[0].event, messages[-1].event.sequence, self._world.now
        if not self._seen.follows(event, last):
            for message in messages:
                self._seen.first_time(message.event)
        self._cache.extend(messages)
        self._note_own(event, now)
        self._note_spread(event, last, None, now)

    def _note_own(self, event: Event, now: float) -> None:
        way = self._ways.get(event.topic)
        if way is None or event.publisher <= way.publisher:
            self._ways[event.topic] = Way(event.publisher, now, None, 0, now)

    def link_up(self, peer: NodeId, interest: frozenset[TopicId]) -> None:
        """A link leads to this peer now, or its interest changed: it gets what nobody could be sent before."""
        for topic in [topic for topic, lazy in self._lazy.items() if peer in lazy and topic not in interest]:
            self._make_eager(topic, peer)
        for event_id in [event_id for event_id in self._unsent if event_id.topic in interest]:
            del self._unsent[event_id]
            if push := self._cache.get(event_id):
                self._world.send(peer, push)
        if self._recent and self._recent[-1].began > self._world.now - LATE:
            if not self._new_links:
                # Not at once: the other end must know of the link.
                self._world.set_timer(("tree-recent",), self._parameters.graft_timeout)
            self._new_links[peer] = interest

    def link_down(self, peer: NodeId) -> None:
        """No link leads to this peer any more: forget all about it."""
        for topic in [topic for topic, lazy in self._lazy.items() if peer in lazy]:
            self._make_eager(topic, peer)
        self._grafted.discard(peer)
        self._new_links.pop(peer, None)
        for missing in self._missing.values():
            missing.sources.pop(peer, None)
        for hole in self._holes.values():
            hole.asked.discard(peer)
        for stream in [stream for stream in self._news if peer in stream[3:]]:
            # Where they came from matters no more.
            runs = self._news.pop(stream)
            source, spared = (None if one == peer else one for one in stream[3:])
            self._news.setdefault((*stream[:3], source, spared), []).extend(runs)

    def topic_up(self, topic: TopicId) -> None:
        """From now on, this node takes part in the topic."""
        self._topic_since[topic] = self._world.now

    def topic_down(self, topic: TopicId) -> None:
        """This node takes part in the topic no more."""
        self._topic_since.pop(topic, None)
        self._lazy.pop(topic, None)
        self._ways.pop(topic, None)
        for stream in [stream for stream in self._missing if stream.topic == topic]:
            self._forget_missing(stream)
        for stream in [stream for stream in self._holes if stream.topic == topic]:
            del self._holes[stream]
            self._world.cancel_timer(("tree-hole", stream))
        for news in [news for news in self._news if news[1] == topic]:
            del self._news[news]
        for event_id in [event_id for event_id in self._unsent if event_id.topic == topic]:
            del self._unsent[event_id]

    def known_peers(self) -> set[NodeId]:
        """Peers that some state is kept for."""
        peers = self._grafted.union(peer for news in self._news for peer in news[3:] if peer is not None)
        peers.update(self._new_links)
        peers.update(*(hole.asked for hole in self._holes.values()))
        return peers.union(*self._lazy.values(), *(missing.sources for missing in self._missing.values()))

    def restart(self) -> None:
        """Timers were lost with the last life: forget what waited for them."""
        self._missing.clear()
        self._holes.clear()
        self._news.clear()
        self._new_links.clear()
        self._since = self._world.now

    # What peers say.

    def _receive_push(self, sender: NodeId, message: Push) -> None:
        event = message.event
        topic = event.topic
        if not self._wants(topic):
            return
        new = self._seen.first_time(event)
        if self._grafted:
            self._note_graft(sender, new)
        if not new:
            self._turn_down(sender, message)
            return
        now = self._world.now
        self._note_way(sender, message, now)
        if self._seen.jumped_from is not None:
            self._note_hole(sender, event, self._seen.jumped_from)
            self._seen.jumped_from = None
        push = Push(event, message.hops + 1)
        self._cache.add(push)
        self._deliver(event)
        self._spread(push, sender, now)

    def receive_run(self, sender: NodeId, messages: Sequence[EventMessage]) -> Onward | None:
        """The same for a run of events that were all seen, or go on where their stream was, or both; one that closes a gap is looked at one by one."""
        first, last = messages[0], messages[-1].event.sequence
        event = first.event
        topic = event.topic
        if type(first) is not Push or not self._wants(topic):
            return None
        highest = self._seen.highest(event.publisher, topic, event.epoch)
        if event.sequence > highest + 1 or highest < 0:
            return None
        again = min(last, highest) - event.sequence + 1
        if again and self._seen.unseen(
            event.publisher, topic, event.epoch, event.sequence, min(last, highest)
        ):
            return None
        new = messages[again:]
        if self._grafted:
            self._note_graft(sender, not again)
        if again:
            self._turn_down(sender, first)
        if not new:
            return Onward((), ())
        self._seen.follows(new[0].event, last)
        pushes = [Push(message.event, first.hops + 1) for message in new]
        self._cache.extend(pushes)
        now = self._world.now
        self._note_way(sender, first, now)
        return Onward(pushes, self._note_spread(new[0].event, last, sender, now))

    def _note_graft(self, sender: NodeId, new: bool) -> None:
        """Something came from a peer that may have been asked."""
        if sender in self._grafted:
            self._grafted.discard(sender)
            self._patience = max(1.0, self._patience / 2) if new else min(2 * self._patience, MOST_PATIENCE)

    def _note_way(self, sender: NodeId, message: EventMessage, now: float) -> None:
        """Something new came over a link: it is not for announcements only, and its sender may be the way to the publisher."""
        event, hops = message.event, message.hops
        topic, lazy = event.topic, self._lazy.get(event.topic)
        cut = False
        if lazy is not None and sender in lazy:
            # What was under way when the link was cut comes yet, and nothing will follow it.
            cut = now - lazy[sender] < self._parameters.graft_timeout
            if not cut:
                self._make_eager(topic, sender)
        way = self._ways.get(topic)
        if way is None or event.publisher < way.publisher:
            self._ways[topic] = Way(event.publisher, now, sender, hops, now)
        elif event.publisher == way.publisher:
            way.heard = now
            if sender == way.peer:
                way.hops, way.pushed = hops, now
            elif not cut:
                if self._keeps(way, topic, hops, now):
                    way.rival = sender
                else:
                    self._ways[topic] = Way(event.publisher, now, sender, hops, now)

    def _keeps(self, way: Way, topic: TopicId, hops: int, now: float) -> bool:
        """Whether the way stays though another one, of so many links, was ahead: it is as short, and alive."""
        return (
            self._parameters.prefer_short
            and hops >= way.hops
            and now - way.pushed < self._parameters.graft_timeout
            and not self._is_lost(way, topic)
        )

    def _is_lost(self, way: Way, topic: TopicId) -> bool:
        """Whether nobody pushes over it any more."""
        return way.peer is not None and (
            way.peer in self._lazy.get(topic, ()) or way.peer not in self._links(topic)
        )

    def _turn_down(self, sender: NodeId, message: Push) -> None:
        """A second copy came: one of the two links is too much."""
        event, now = message.event, self._world.now
        topic = event.topic
        way = self._ways.get(topic)
        if way is None:
            way = self._ways[topic] = Way(event.publisher, now, None, 0, now)
        elif event.publisher > way.publisher and now - way.heard < self._parameters.graft_timeout:
            return
        same, way.publisher, way.heard = event.publisher == way.publisher, event.publisher, now
        cut: NodeId | None = sender
        if same and sender == way.peer:
            cut, way.rival = way.rival, None
            way.hops, way.pushed = message.hops, now
        elif same and self._is_lost(way, topic):
            self._go_by(sender, message, now)
            return
        elif same and self._parameters.prefer_short:
            if way.peer is not None and message.hops < way.hops and sender in self._links(topic):
                cut = way.peer
                self._go_by(sender, message, now)
            elif message.hops > way.hops + 2 and sender not in self._lazy.get(topic, ()):
                return  # It gets the event from here sooner than it has it from elsewhere, and cuts the longer way itself.
        if cut is not None:
            self._cut(topic, cut, now)

    def _cut(self, topic: TopicId, peer: NodeId, now: float) -> None:
        """One prune for all second copies that are under way."""
        if peer in self._links(topic):
            lazy = self._lazy.setdefault(topic, {})
            if now - lazy.get(peer, -math.inf) < self._parameters.graft_timeout:
                return
            lazy[peer] = now
        self._world.send(peer, Prune(topic))

    def _go_by(self, sender: NodeId, message: Push, now: float) -> None:
        """From now on, the way to the publisher is over this peer."""
        event, topic = message.event, message.event.topic
        self._ways[topic] = Way(event.publisher, now, sender, message.hops, now)
        if sender in self._lazy.get(topic, ()):
            # It was cut a moment ago, for the sake of another way: it shall go on pushing.
            self._make_eager(topic, sender)
            self._world.send(sender, Graft((EventRun.of(event),)))

    def _receive_ihave(self, sender: NodeId, message: IHave) -> None:
        ages = dict(zip(message.runs, message.ages, strict=False))
        for run in message.runs[:MOST_RUNS]:
            unseen = self._seen.unseen(*run)
            if ages and self._is_older_than_interest(run.topic, ages.get(run, 0.0)):
                continue
            if not unseen or not self._wants(run.topic) or sender not in self._links(run.topic):
                continue
            first, last = unseen[0][0], unseen[-1][1]
            stream = run.stream
            self._note_missing(stream, sender, first, last)
            way = self._ways.get(run.topic)
            if way is not None and self._is_lost(way, run.topic):
                # Nothing is under way that is worth waiting for: neither this nor what came before it.
                way.peer, way.pushed = sender, self._world.now
                behind = self._seen.highest(*stream)
                since = first if behind < 0 else min(first, behind + 1)
                self._graft(stream, sender, self._seen.unseen(*stream, since, last))

    def _note_missing(self, stream: PublisherStream, sender: NodeId, first: int, last: int) -> None:
        """A peer can be asked for events that are not here."""
        missing = self._missing.get(stream)
        if missing is None:
            highest = self._seen.highest(*stream)
            gaps = sum(high - low + 1 for low, high in self._seen.unseen(*stream, first, min(last, highest)))
            missing = self._missing[stream] = Missing(highest, gaps, first, last)
            self._wait_for(stream)
            if len(self._missing) > self._parameters.most_missing:
                self._forget_missing(next(iter(self._missing)))
        missing.first, missing.last = min(missing.first, first), max(missing.last, last)
        source = missing.sources.get(sender)
        if source is None:
            missing.sources[sender] = RunSource(first, last)
        else:
            source.first, source.last = min(source.first, first), max(source.last, last)

    def _note_hole(self, sender: NodeId, event: Event, before: int) -> None:
        """A stream of which this node had all up to number `before` goes on with this event: who sent it is asked for the rest, if that does not come over another link."""
        since = max(self._since, self._topic_since.get(event.topic, self._since))
        for one in reversed(self._recent):
            if (one.publisher, one.topic, one.epoch, one.last) == (
                event.publisher,
                event.topic,
                event.epoch,
                before,
            ):
                if one.began >= since:
                    stream = PublisherStream(event.publisher, event.topic, event.epoch)
                    hole = self._holes.get(stream)
                    if hole is not None:
                        hole.sender = sender
                    elif len(self._holes) < self._parameters.most_missing:
                        self._holes[stream] = Hole(sender, before + 1)
                        self._wait_for_hole(stream)
                return

    def _wait_for_hole(self, stream: PublisherStream) -> None:
        patience = HOLE * self._parameters.graft_timeout * (1.0 + self._world.random.random())
        self._world.set_timer(("tree-hole", stream), patience)

    def _ask_for_hole(self, key: TimerKey) -> None:
        """Ask who sent what came after, then one neighbour after the other; each once."""
        stream: PublisherStream = key[1]
        hole = self._holes[stream]
        runs = self._seen.unseen(*stream, hole.first, self._seen.highest(*stream))
        links = self._links(stream.topic) if runs and self._wants(stream.topic) else ()
        for peer in (hole.sender, *links):
            if peer in links and peer not in hole.asked:
                hole.asked.add(peer)
                self._wait_for_hole(stream)
                self._note_missing(stream, peer, runs[0][0], runs[-1][1])
                self._graft(stream, peer, runs)
                return
        del self._holes[stream]

    def _is_older_than_interest(self, topic: TopicId, age: float) -> bool:
        return self._world.now - age < max(self._since, self._topic_since.get(topic, self._since))

    def _receive_graft(self, sender: NodeId, message: Graft) -> None:
        left, bytes_left = MOST_ASKED, MOST_SENT
        runs = message.runs[:MOST_RUNS]
        # Whoever is pushed to from now on lacks what came since the announcement that it goes by.
        behind = {run.stream: run for run in runs if sender in self._lazy.get(run.topic, ())}
        for run in runs:
            publisher, topic, epoch, first, last = run
            self._make_eager(topic, sender)
            if behind.get(run.stream) is run:
                last = max(last, self._seen.highest(publisher, topic, epoch))
            for sequence in range(first, min(last + 1, first + left)):
                left -= 1
                push = self._cache.get((publisher, topic, epoch, sequence))
                if push is not None and bytes_left > 0:
                    bytes_left -= len(push.event.payload)
                    self._world.send(sender, push)

    def _receive_prune(self, sender: NodeId, message: Prune) -> None:
        # Only links that serve the topic can be lazy for it; otherwise a stranger could fill the table.
        if self._wants(message.topic) and sender in self._links(message.topic):
            self._lazy.setdefault(message.topic, {}).setdefault(sender, -math.inf)

    # How events spread.

    def _spread(self, push: EventMessage, source: NodeId | None, now: float) -> int:
        event = push.event
        peers = self._note_spread(event, event.sequence, source, now)
        for peer in peers:
            self._world.send(peer, push)
        return len(peers)

    def _note_spread(self, event: Event, last: int, source: NodeId | None, now: float) -> list[NodeId]:
        """The events from this one to number `last` are spread: who is to be sent them."""
        self._note_recent(event, last, now)
        topic = event.topic
        lazy, way = self._lazy.get(topic), self._ways.get(topic)
        spared = None
        if way is not None and way.peer != source and way.publisher == event.publisher:
            # It gets the event by itself, and would take this for a second way: it is only told of it.
            spared = way.peer
        peers = [peer for peer in self._links(topic) if peer not in (source, spared)]
        if lazy is None and spared is None:
            return peers
        self._note_news(event, last, source, spared)
        return peers if lazy is None else [peer for peer in peers if peer not in lazy]

    def _note_recent(self, event: Event, last: int, now: float) -> None:
        """To be announced over new links: the events from this one to number `last`."""
        recent = self._recent[-1] if self._recent else None
        if (
            recent is not None
            and recent.last + 1 == event.sequence
            and recent.publisher == event.publisher
            and recent.topic == event.topic
            and recent.epoch == event.epoch
            and now - recent.began < self._parameters.announce_period
        ):
            recent.last = last
        else:
            self._recent.append(RecentRun(event, last, now))

    def _note_news(self, event: Event, last: int, source: NodeId | None, spared: NodeId | None) -> None:
        """To be announced to whoever is lazy or was spared: the events from this one to number `last`."""
        news = self._news
        if not news:
            self._world.set_timer(("tree-announce",), self._parameters.announce_period)
        sequence = event.sequence
        stream = (event.publisher, event.topic, event.epoch, source, spared)
        runs = news.get(stream)
        if runs is None:
            news[stream] = [[sequence, last]]
        elif runs[-1][1] == sequence - 1:
            runs[-1][1] = last
        else:
            runs.append([sequence, last])

    def _announce(self, _key: TimerKey) -> None:
        news, self._news = self._news, {}
        told: dict[NodeId, list[EventRun]] = {}
        for (publisher, topic, epoch, source, spared), runs in news.items():
            lazy = self._lazy.get(topic, ())
            for peer in self._links(topic):
                if (peer in lazy or peer == spared) and peer != source:
                    told.setdefault(peer, []).extend(EventRun(publisher, topic, epoch, *run) for run in runs)
        for peer, announced in told.items():
            for start in range(0, len(announced), MOST_RUNS):
                self._world.send(peer, IHave(tuple(announced[start : start + MOST_RUNS])))

    def _announce_recent(self, _key: TimerKey) -> None:
        new, self._new_links = self._new_links, {}
        now, held = self._world.now, len(self._cache)
        recent: list[tuple[EventRun, float]] = []
        for one in reversed(self._recent):
            # No more than can be had: the cache holds these last ones.
            first = max(one.first, one.last - held + 1)
            held -= one.last - one.first + 1
            if one.began > now - LATE and first <= one.last and self._wants(one.topic):
                run = EventRun(one.publisher, one.topic, one.epoch, first, one.last)
                recent.append((run, now - one.began))
        for peer, interest in new.items():
            told = [(run, age) for run, age in reversed(recent) if run.topic in interest]
            if told:
                self._world.send(peer, IHave(tuple(run for run, _ in told), tuple(age for _, age in told)))

    def _ask_for_missing(self, key: TimerKey) -> None:
        """The timer of one stream: ask for what did not come, unless it is coming."""
        stream: PublisherStream = key[1]
        missing = self._missing.get(stream)
        if missing is None:
            return
        wanted: dict[NodeId, list[tuple[int, int]]] = {}
        for peer, source in list(missing.sources.items()):
            if runs := self._seen.unseen(*stream, source.first, source.last):
                wanted[peer] = runs
            else:
                del missing.sources[peer]
        if not wanted:
            self._search(stream, missing)
            return
        highest = self._seen.highest(*stream)
        gaps = sum(
            high - low + 1
            for low, high in self._seen.unseen(*stream, min(runs[0][0] for runs in wanted.values()), highest)
        )
        advances, closes = highest > missing.highest, gaps < missing.gaps
        missing.highest, missing.gaps = highest, gaps
        if advances or closes:
            for source in missing.sources.values():
                source.tries = 0
        for peer, runs in wanted.items():
            due = [(low, high) for low, high in runs if not (advances if low > highest else closes)]
            if due:
                self._graft(stream, peer, due)
                return
        self._wait_for(stream)

    def _graft(self, stream: PublisherStream, peer: NodeId, runs: list[tuple[int, int]]) -> None:
        """Ask a peer for all that it announced of the topic and that is not here, and let another one have the next turn."""
        self._make_eager(stream.topic, peer)
        wanted = [(stream, run) for run in runs]
        for other, missing in self._missing.items():
            source = missing.sources.get(peer)
            if other.topic == stream.topic and other != stream and source is not None:
                wanted += [(other, run) for run in self._seen.unseen(*other, source.first, source.last)]
        asked, left = [], MOST_ASKED
        for one, (low, high) in wanted[:MOST_RUNS]:
            high = min(high, low + left - 1)
            asked.append(EventRun(*one, low, high))
            left -= high - low + 1
            if not left:
                break
        self._grafted.add(peer)
        self._world.send(peer, Graft(tuple(asked)))
        for one in dict.fromkeys(run.stream for run in asked):
            self._asked(one, peer)

    def _asked(self, stream: PublisherStream, peer: NodeId) -> None:
        missing = self._missing[stream]
        source = missing.sources.pop(peer)
        source.tries += 1
        if source.tries < self._parameters.graft_attempts:
            missing.sources[peer] = source
        else:
            self._grafted.discard(peer)
        if missing.sources:
            self._wait_for(stream, min(one.tries for one in missing.sources.values()))
        else:
            self._search(stream, missing)

    def _search(self, stream: PublisherStream, missing: Missing) -> None:
        """Nobody is left who announced what is missing: any neighbour may have it by now, or have had it all along."""
        if not self._seen.unseen(*stream, missing.first, missing.last):
            self._forget_missing(stream)
            return
        missing.searches += 1
        peers = list(self._links(stream.topic)) if missing.searches <= MOST_SEARCHES else []
        if not peers:
            self.given_up += 1
            self._forget_missing(stream)
            return
        for peer in peers:
            source = missing.sources[peer] = RunSource(missing.first, missing.last)
            source.tries = self._parameters.graft_attempts - 1  # one question each
        self._wait_for(stream)

    def _wait_for(self, stream: PublisherStream, rounds: int = 0) -> None:
        """`rounds`: how often everybody who has the events was asked in vain."""
        patience = self._parameters.graft_timeout * self._patience * (1.0 + self._world.random.random())
        self._world.set_timer(("tree-missing", stream), patience * 2.0 ** min(rounds, 2))

    def _forget_missing(self, stream: PublisherStream) -> None:
        if self._missing.pop(stream, None) is not None:
            self._world.cancel_timer(("tree-missing", stream))

    def _make_eager(self, topic: TopicId, peer: NodeId) -> None:
        lazy = self._lazy.get(topic)
        if lazy is not None and peer in lazy:
            if self._news:
                # What it was not pushed while it was lazy must still be announced to it.
                self._world.cancel_timer(("tree-announce",))
                self._announce(("tree-announce",))
            del lazy[peer]
            if not lazy:
                del self._lazy[topic]
