"""Epidemic broadcast trees, one per topic, over links whose both ends want the topic.

After J. Leitão, J. Pereira, L. Rodrigues, "Epidemic Broadcast Trees" (Plumtree, SRDS 2007).

Rules kept
----------
1. Every link that serves a topic is *eager* for it (events are pushed) or *lazy* (events are only announced:
   "I have"). A new link is eager. Only the lazy ones are remembered, so links may come and go without being
   registered.
2. A second copy of an event turns the link that it came over lazy at both ends (prune). So what stays eager is
   a tree.
   - A node answers one of a burst of second copies, and another one only if they go on for `graft_timeout`.
   - While several publishers send at once, only second copies of one publisher's events cut links: of the
     publisher with the lowest id. Copies of different events meet at different places of the same circle, and
     each would cut it there.
   - The *way* is the peer over which this publisher's events come. With `prefer_short`, the longer of two ways
     to the publisher is cut, whichever copy came first (after the paper's §3.8). So a star stays a star, however
     copies overtake each other.
   - Copies that were under way when their link was cut still arrive. They do not count against the way.
   - An event of this publisher that came first over another link is not pushed to the way, but announced.
     Otherwise both ends would see a second copy, and both links would be cut.
3. A node asks for announced events that do not arrive in time (graft), and the link becomes eager again. So the
   tree heals over links that exist anyway.
   - A node whose way is gone asks the first peer that announces something, at once.
   - Otherwise it asks one announcer after another, each up to `graft_attempts` times, with growing pauses. So a
     lost graft loses nothing. When no announcer is left, it asks every neighbour.
   - It waits for once to twice the time set, drawn at random. So of several nodes that are cut off together one
     asks first, and passes the events on before the others ask.
   - A graft asks for all that its receiver announced of the topic and that is missing. A receiver to which the
     link was lazy also sends what came since its announcement.
   - One graft asks for a bounded number of events. The next part is asked for when the first has come.
4. A system may prepare a topic's tree (`prepared`). Without that, its first event goes over all links, except those
   to peers that, by the system's word, get it from elsewhere (`elsewhere`). These are only told of it.
   - Of a prepared topic a node knows its parent before any event. When it loses the parent, all that it had turned
     down push again, and what is announced it asks for at once.
   - Near its publisher an event may go over lazy links, too (`spills`). Copies that took such a link are marked.
     They cut no links and make no ways.
5. A node does not ask for events that are merely late. While a stream goes on in order, it waits for announced
   events ahead; while a gap in the stream closes, it waits for the rest of the gap. A graft was in vain if the
   events came anyway: then the node waits longer from then on, up to `MOST_PATIENCE` times the time set. A graft
   that brought events shortens the wait again.
6. Over a new link the events of the last `LATE` seconds are announced, with their ages. So an event that was lost
   with another link comes over this one. A node does not ask for events that were spread before it took part in
   the topic.
7. An event is handed to the application at most once, and passed on at most once, however often it comes.
8. All memory is bounded: the cache that answers grafts, the announcements waited for, the streams seen. State
   is kept only for peers that a link leads to, and only for topics that this node takes part in.

Which links are pushed over is the affair of `ways`, announcing that of `news`, asking that of `missing`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence

from topicweave.blocks.broadcast_tree.messages import Graft, IHave, Prepare, Prune, Push, Spill
from topicweave.blocks.broadcast_tree.missing import MissingEvents
from topicweave.blocks.broadcast_tree.news import News
from topicweave.blocks.broadcast_tree.parameters import (
    MOST_ASKED,
    MOST_PREPARED,
    MOST_RUNS,
    MOST_SENT,
    BroadcastTreeParameters,
)
from topicweave.blocks.broadcast_tree.prepared import PreparedTrees
from topicweave.blocks.broadcast_tree.spills import Spills
from topicweave.blocks.broadcast_tree.ways import Ways
from topicweave.blocks.event_cache import EventCache
from topicweave.blocks.seen import SeenEvents
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import EventMessage, Onward, Receivers, Timers, World

NOBODY = "nobody else wants this topic, as far as its home knows; the event goes to the first that does"
NOT_YET = "no neighbour wants this topic yet; the event goes to the first that does"
"""What becomes of an event that `publish` sent to nobody."""


class BroadcastTree:
    """One node's part in the trees of all its topics.

    `links(topic)` yields the peers a link leads to that want the topic; `wants(topic)` tells whether this node
    takes part in it; `deliver(event)` is called once for each event of such a topic. `elsewhere(topic, source)`
    names those linked peers that surely get an event from others if it came from this one.
    """

    def __init__(
        self,
        world: World,
        links: Callable[[TopicId], Collection[NodeId]],
        wants: Callable[[TopicId], bool],
        deliver: Callable[[Event], None],
        parameters: BroadcastTreeParameters | None = None,
        elsewhere: Callable[[TopicId, NodeId], tuple[NodeId, ...]] | None = None,
    ) -> None:
        self._world = world
        self._elsewhere = elsewhere
        self._links = links
        self._wants = wants
        self._deliver = deliver
        self._parameters = parameters = parameters or BroadcastTreeParameters()
        self._seen = SeenEvents()
        self._cache = EventCache(parameters.cache_events, parameters.cache_bytes)
        self._ways = Ways(world, links, parameters, self._before_eager)
        self._prepared = PreparedTrees(world, self._ways)
        self._spills = Spills(world, links, self._ways)
        self._news = News(world, links, wants, self._ways, self._cache.__len__, parameters)
        self._missing = MissingEvents(world, links, wants, self._seen, self._ways.make_eager, parameters)
        self._unsent: OrderedDict[EventId, None] = OrderedDict()
        # Since when this node takes part: in all topics, and in those that it began with later.
        self._since = world.now
        self._topic_since: dict[TopicId, float] = {}

    def _before_eager(self) -> None:
        self._news.flush()

    @property
    def given_up(self) -> int:
        """Announced events that nobody sent however often they were asked."""
        return self._missing.given_up

    def receivers(self) -> Receivers:
        return {
            Push: self._receive_push,
            Spill: self._receive_push,
            IHave: self._receive_ihave,
            Graft: self._receive_graft,
            Prune: self._receive_prune,
            Prepare: self._receive_prepare,
        }

    def timers(self) -> Timers:
        return {**self._news.timers(), **self._missing.timers()}

    # What the system tells the tree.

    def publish(self, event: Event) -> int:
        """Spread an event of this node; returns how many peers it was handed to at once.

        An event nobody could be given is kept, and sent over the first link that comes up for its topic.
        """
        push, topic, now = Push(event, 1), event.topic, self._world.now
        if self._seen.first_time(event):
            self._cache.add(push)
        self._ways.own(event, now)
        if lazy := self._ways.lazy.get(topic):
            links = list(self._links(topic))
            if links and lazy.keys() >= set(links):
                # Nobody has pushed to us since our part of the tree broke: do not wait until we are asked.
                self._ways.make_eager(topic, links[0])
        sent_to = self._spread(push, None, now)
        if not sent_to:
            self._unsent[event.id] = None
            if len(self._unsent) > self._parameters.most_undelivered:
                self._unsent.popitem(last=False)
        return sent_to

    def targets(self, topic: TopicId) -> Collection[NodeId]:
        """To whom an event of this node would be handed now; nobody if `publish` has more to do than that."""
        return self._ways.targets(topic)

    def published(self, messages: Sequence[EventMessage]) -> None:
        """Consecutive events of this node were sent to the `targets`."""
        event, last, now = messages[0].event, messages[-1].event.sequence, self._world.now
        if not self._seen.follows(event, last):
            for message in messages:
                self._seen.first_time(message.event)
        self._cache.extend(messages)
        self._ways.own(event, now)
        self._news.spread(event, last, None, now)

    def link_up(self, peer: NodeId, interest: frozenset[TopicId]) -> None:
        """A link leads to this peer now, or its interest changed: it gets what nobody could be sent before."""
        self._ways.all_eager(peer, but=interest)
        self._lose_parent(peer, but=interest)
        for event_id in [event_id for event_id in self._unsent if event_id.topic in interest]:
            del self._unsent[event_id]
            if push := self._cache.get(event_id):
                self._world.send(peer, push)
        self._news.link_up(peer, interest)

    def link_down(self, peer: NodeId) -> None:
        """No link leads to this peer any more: forget all about it."""
        self._ways.all_eager(peer)
        self._lose_parent(peer)
        self._missing.forget_peer(peer)
        self._news.forget_peer(peer)

    def prepare(self, choices: Mapping[TopicId, Sequence[NodeId]]) -> None:
        """Make trees before there are events. Of the linked peers given for a topic one is enough to connect this
        node with all others: the first.
        """
        self._prepared.prepare(choices)

    def spill(self, hops: int, audience: Callable[[TopicId], int | None] | None = None) -> None:
        """For so many links from its publisher on, an event goes over lazy links, too: ways are shorter, and there
        are more copies. None by default. `audience(topic)` says how many others want a topic, which bounds copies.
        """
        self._spills.hops = hops
        if audience is not None:
            self._spills.audience = audience

    def _lose_parent(self, peer: NodeId, but: Collection[TopicId] = ()) -> None:
        parents = self._ways.parents
        if lost := [topic for topic, parent in parents.items() if parent == peer and topic not in but]:
            self._prepared.lost(peer, lost)

    def topic_up(self, topic: TopicId) -> None:
        """From now on, this node takes part in the topic."""
        self._topic_since[topic] = self._world.now

    def topic_down(self, topic: TopicId) -> None:
        """This node takes part in the topic no more."""
        self._topic_since.pop(topic, None)
        self._ways.forget_topic(topic)
        self._missing.forget_topic(topic)
        self._spills.forget_topic(topic)
        self._news.forget_topic(topic)
        for event_id in [event_id for event_id in self._unsent if event_id.topic == topic]:
            del self._unsent[event_id]

    def known_peers(self) -> set[NodeId]:
        """Peers that some state is kept for."""
        return self._news.known_peers().union(self._missing.known_peers(), *self._ways.lazy.values())

    def restart(self) -> None:
        """Timers were lost with the last life: forget what waited for them."""
        self._missing.restart()
        self._news.restart()
        self._since = self._world.now

    # What peers say.

    def _receive_push(self, sender: NodeId, message: Push | Spill) -> None:
        event = message.event
        if not self._wants(event.topic):
            return
        new = self._seen.first_time(event)
        if self._missing.asked:
            self._missing.came_from(sender, new)
        if self._missing.rest:
            self._missing.went_on(sender, event, event.sequence)
        if not new:
            self._came_again(sender, message)
            return
        now, over_tree = self._world.now, type(message) is Push
        spared: tuple[NodeId, ...] = ()
        if self._elsewhere is not None and not self._ways.known(event.topic):
            spared = self._elsewhere(event.topic, sender)
        if over_tree:
            self._ways.came(sender, message, now)
        else:
            self._spills.came(event.id)
        if self._seen.jumped_from is not None:
            self._note_jump(sender, event, self._seen.jumped_from)
            self._seen.jumped_from = None
        push = Push(event, message.hops + 1)
        self._cache.add(push)
        self._deliver(event)
        self._spread(push, sender, now, spared, over_tree)

    def _came_again(self, sender: NodeId, message: Push | Spill) -> None:
        """Only copies that came over the tree alone tell that it has a link too much."""
        if type(message) is Push:
            if self._spills.comes_over_tree(message.event.id):
                self._ways.came(sender, message, self._world.now)
            else:
                self._ways.turn_down(sender, message)

    def receive_run(self, sender: NodeId, messages: Sequence[EventMessage]) -> Onward | None:
        """The same for a burst of events that were all seen, or go on where their stream was, or both; one that
        closes a gap is looked at one by one.
        """
        first, last = messages[0], messages[-1].event.sequence
        event = first.event
        topic = event.topic
        if type(first) is not Push or not self._wants(topic):
            return None
        highest = self._seen.highest(event.publisher, topic, event.epoch)
        if event.sequence > highest + 1 or highest < 0:
            return None
        if self._spills.any_of([message.event.id for message in messages]):
            return None
        again = min(last, highest) - event.sequence + 1
        if again and self._seen.unseen(
            event.publisher, topic, event.epoch, event.sequence, min(last, highest)
        ):
            return None
        new = messages[again:]
        if self._missing.asked:
            self._missing.came_from(sender, not again)
        if again:
            self._ways.turn_down(sender, first)
        if not new:
            return Onward((), ())
        self._seen.follows(new[0].event, last)
        if self._missing.rest:
            self._missing.went_on(sender, event, last)
        pushes = [Push(message.event, first.hops + 1) for message in new]
        self._cache.extend(pushes)
        now = self._world.now
        self._ways.came(sender, first, now)
        return Onward(pushes, self._news.spread(new[0].event, last, sender, now))

    def _note_jump(self, sender: NodeId, event: Event, before: int) -> None:
        """A stream of which this node had all up to number `before` goes on with this event."""
        began = self._news.began(event, before)
        if began is not None and began >= self._takes_part_since(event.topic):
            self._missing.jumped(sender, event, before)

    def _takes_part_since(self, topic: TopicId) -> float:
        return max(self._since, self._topic_since.get(topic, self._since))

    def _receive_ihave(self, sender: NodeId, message: IHave) -> None:
        ages = dict(zip(message.runs, message.ages, strict=False))
        for run in message.runs[:MOST_RUNS]:
            topic = run.topic
            unseen = self._seen.unseen(*run)
            if ages and self._world.now - ages.get(run, 0.0) < self._takes_part_since(topic):
                continue
            if not unseen or not self._wants(topic) or sender not in self._links(topic):
                continue
            first, last = unseen[0][0], unseen[-1][1]
            stream = run.stream
            self._missing.note(stream, sender, first, last)
            if self._ways.nothing_comes(topic):
                # Nothing is under way that is worth waiting for: neither this nor what came before it.
                self._ways.go_by(topic, sender, self._world.now)
                behind = self._seen.highest(*stream)
                since = first if behind < 0 else min(first, behind + 1)
                self._missing.graft(stream, sender, self._seen.unseen(*stream, since, last))

    def _receive_graft(self, sender: NodeId, message: Graft) -> None:
        left, bytes_left = MOST_ASKED, MOST_SENT
        runs = message.runs[:MOST_RUNS]
        # Whoever is pushed to from now on lacks what came since the announcement that it goes by.
        behind = {run.stream: run for run in runs if sender in self._ways.lazy.get(run.topic, ())}
        for run in runs:
            publisher, topic, epoch, first, last = run
            self._ways.make_eager(topic, sender)
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
            self._ways.pruned(sender, message.topic)

    def _receive_prepare(self, sender: NodeId, message: Prepare) -> None:
        for topic in message.lazy[:MOST_PREPARED]:
            if self._wants(topic) and sender in self._links(topic):
                self._ways.pruned(sender, topic)
        for topic in message.eager[:MOST_PREPARED]:
            self._ways.make_eager(topic, sender)

    def _spread(
        self,
        push: EventMessage,
        source: NodeId | None,
        now: float,
        spared: tuple[NodeId, ...] = (),
        over_tree: bool = True,
    ) -> int:
        event = push.event
        beside, to_all = self._spills.peers(push, source)
        peers = self._news.spread(event, event.sequence, source, now, spared, to_all)
        spill = Spill(event, push.hops)
        for peer in peers:
            self._world.send(peer, push if over_tree or not self._world.understands(peer, Spill) else spill)
        for peer in beside:
            if self._world.understands(peer, Spill):
                self._world.send(peer, spill)
        return len(peers) + len(beside)
