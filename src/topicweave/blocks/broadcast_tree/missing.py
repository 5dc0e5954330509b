"""Asking for events that were announced, or jumped over, and have not come.

There is one timer per stream. Each announcer is asked in turn, then every neighbour. See `tree` for the rules.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection

from topicweave.blocks.broadcast_tree.messages import EventRun, Graft, PublisherStream
from topicweave.blocks.broadcast_tree.parameters import MOST_ASKED, MOST_RUNS, BroadcastTreeParameters
from topicweave.blocks.broadcast_tree.state import Hole, Missing, RunSource
from topicweave.blocks.seen import SeenEvents
from topicweave.model.event import Event
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import TimerKey, Timers, World

ASK = "tree-missing"
ASK_FOR_HOLE = "tree-hole"
MOST_PATIENCE = 8.0
HOLE = 0.25
"""Times the usual patience for events that a stream has jumped over: under load, caches forget them soon."""
MOST_SEARCHES = 3
"""How often all neighbours are asked for events whose announcers are gone."""


class MissingEvents:
    """`make_eager(topic, peer)` is called for whoever is asked: it pushes from then on."""

    def __init__(
        self,
        world: World,
        links: Callable[[TopicId], Collection[NodeId]],
        wants: Callable[[TopicId], bool],
        seen: SeenEvents,
        make_eager: Callable[[TopicId, NodeId], None],
        parameters: BroadcastTreeParameters,
    ) -> None:
        self._world = world
        self._links = links
        self._wants = wants
        self._seen = seen
        self._make_eager = make_eager
        self._parameters = parameters
        self.streams: OrderedDict[PublisherStream, Missing] = OrderedDict()
        self._holes: dict[PublisherStream, Hole] = {}
        self.asked: set[NodeId] = set()
        """Nothing has come from them since."""
        self.rest: dict[NodeId, EventRun] = {}
        """The last run that a peer was asked for, if that was not all."""
        self.patience = 1.0
        self.given_up = 0
        """Announced events that nobody sent however often they were asked."""

    def timers(self) -> Timers:
        return {ASK: self._ask, ASK_FOR_HOLE: self._ask_for_hole}

    def came_from(self, sender: NodeId, new: bool) -> None:
        """Something came from a peer that may have been asked."""
        if sender in self.asked:
            self.asked.discard(sender)
            self.patience = max(1.0, self.patience / 2) if new else min(2 * self.patience, MOST_PATIENCE)

    def note(self, stream: PublisherStream, sender: NodeId, first: int, last: int) -> None:
        """A peer can be asked for events that are not here."""
        missing = self.streams.get(stream)
        if missing is None:
            highest = self._seen.highest(*stream)
            gaps = sum(high - low + 1 for low, high in self._seen.unseen(*stream, first, min(last, highest)))
            missing = self.streams[stream] = Missing(highest, gaps, first, last)
            self._wait_for(stream)
            if len(self.streams) > self._parameters.most_missing:
                self._forget(next(iter(self.streams)))
        missing.first, missing.last = min(missing.first, first), max(missing.last, last)
        source = missing.sources.get(sender)
        if source is None:
            missing.sources[sender] = RunSource(first, last)
        else:
            source.first, source.last = min(source.first, first), max(source.last, last)

    # Holes: a stream of which this node had all goes on further ahead.

    def jumped(self, sender: NodeId, event: Event, before: int) -> None:
        """This event came after number `before`. If the events between do not come over another link, ask its
        sender for them.
        """
        stream = PublisherStream(event.publisher, event.topic, event.epoch)
        hole = self._holes.get(stream)
        if hole is not None:
            hole.sender = sender
        elif len(self._holes) < self._parameters.most_missing:
            self._holes[stream] = Hole(sender, before + 1)
            self._wait_for_hole(stream)

    def _wait_for_hole(self, stream: PublisherStream) -> None:
        patience = HOLE * self._parameters.graft_timeout * (1.0 + self._world.random.random())
        self._world.set_timer((ASK_FOR_HOLE, stream), patience)

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
                self.note(stream, peer, runs[0][0], runs[-1][1])
                self.graft(stream, peer, runs)
                return
        del self._holes[stream]

    # What was announced.

    def _ask(self, key: TimerKey) -> None:
        """The timer of one stream: ask for what did not come, unless it is coming."""
        stream: PublisherStream = key[1]
        missing = self.streams.get(stream)
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
                self.graft(stream, peer, due)
                return
        self._wait_for(stream)

    def graft(self, stream: PublisherStream, peer: NodeId, runs: list[tuple[int, int]]) -> None:
        """Ask a peer for all that it announced of the topic and that is not here, and let another one have
        the next turn.
        """
        self._make_eager(stream.topic, peer)
        wanted = [(stream, run) for run in runs]
        for other, missing in self.streams.items():
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
        self.rest.pop(peer, None)
        if not left:
            self.rest[peer] = asked[-1]
        self.asked.add(peer)
        self._world.send(peer, Graft(tuple(asked)))
        for one in dict.fromkeys(run.stream for run in asked):
            self._was_asked(one, peer)

    def went_on(self, peer: NodeId, event: Event, number: int) -> None:
        """A peer that has more than a graft asks for sent events from this one up to a number. If its answer
        is over, ask for the next part.
        """
        asked = self.rest.get(peer)
        stream = PublisherStream(event.publisher, event.topic, event.epoch)
        if asked is None or asked.stream != stream or number < asked.last:
            return
        if self._seen.unseen(*stream, asked.first, asked.first):
            return  # That was on its way before the answer.
        del self.rest[peer]
        missing = self.streams.get(stream)
        source = missing.sources.get(peer) if missing is not None else None
        last = max(self._seen.highest(*stream), source.last if source is not None else -1)
        runs = self._seen.unseen(*stream, asked.first, last)
        if runs and self._wants(stream.topic) and peer in self._links(stream.topic):
            self.note(stream, peer, runs[0][0], runs[-1][1])
            self.streams[stream].sources[peer].tries = 0
            self.graft(stream, peer, runs)

    def _was_asked(self, stream: PublisherStream, peer: NodeId) -> None:
        missing = self.streams[stream]
        source = missing.sources.pop(peer)
        source.tries += 1
        if source.tries < self._parameters.graft_attempts:
            missing.sources[peer] = source
        else:
            self.asked.discard(peer)
        if missing.sources:
            self._wait_for(stream, min(one.tries for one in missing.sources.values()))
        else:
            self._search(stream, missing)

    def _search(self, stream: PublisherStream, missing: Missing) -> None:
        """Nobody is left who announced what is missing: any neighbour may have it by now, or have had it all along."""
        if not self._seen.unseen(*stream, missing.first, missing.last):
            self._forget(stream)
            return
        missing.searches += 1
        peers = list(self._links(stream.topic)) if missing.searches <= MOST_SEARCHES else []
        if not peers:
            self.given_up += 1
            self._forget(stream)
            return
        for peer in peers:
            source = missing.sources[peer] = RunSource(missing.first, missing.last)
            source.tries = self._parameters.graft_attempts - 1  # one question each
        self._wait_for(stream)

    def _wait_for(self, stream: PublisherStream, rounds: int = 0) -> None:
        """`rounds`: how often everybody who has the events was asked in vain."""
        patience = self._parameters.graft_timeout * self.patience * (1.0 + self._world.random.random())
        self._world.set_timer((ASK, stream), patience * 2.0 ** min(rounds, 2))

    # What is forgotten.

    def _forget(self, stream: PublisherStream) -> None:
        if self.streams.pop(stream, None) is not None:
            self._world.cancel_timer((ASK, stream))

    def forget_peer(self, peer: NodeId) -> None:
        self.asked.discard(peer)
        self.rest.pop(peer, None)
        for missing in self.streams.values():
            missing.sources.pop(peer, None)
        for hole in self._holes.values():
            hole.asked.discard(peer)

    def forget_topic(self, topic: TopicId) -> None:
        for peer in [peer for peer, run in self.rest.items() if run.topic == topic]:
            del self.rest[peer]
        for stream in [stream for stream in self.streams if stream.topic == topic]:
            self._forget(stream)
        for stream in [stream for stream in self._holes if stream.topic == topic]:
            del self._holes[stream]
            self._world.cancel_timer((ASK_FOR_HOLE, stream))

    def known_peers(self) -> set[NodeId]:
        return self.asked.union(
            self.rest,
            *(missing.sources for missing in self.streams.values()),
            *(hole.asked for hole in self._holes.values()),
        )

    def restart(self) -> None:
        self.streams.clear()
        self.rest.clear()
        self._holes.clear()
