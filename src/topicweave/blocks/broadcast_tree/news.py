"""Announcements: of what was pushed elsewhere to the lazy links, and of what was spread lately to new ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection

from topicweave.blocks.broadcast_tree.messages import EventRun, IHave
from topicweave.blocks.broadcast_tree.parameters import MOST_RUNS, BroadcastTreeParameters
from topicweave.blocks.broadcast_tree.state import RecentRun
from topicweave.blocks.broadcast_tree.ways import Ways
from topicweave.blocks.late_neighbours import LATE
from topicweave.model.event import Event
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import TimerKey, Timers, World

SOON = "tree-announce"
RECENT = "tree-recent"


class News:
    """`can_be_had()` says how many of the last events peers can ask for."""

    def __init__(
        self,
        world: World,
        links: Callable[[TopicId], Collection[NodeId]],
        wants: Callable[[TopicId], bool],
        ways: Ways,
        can_be_had: Callable[[], int],
        parameters: BroadcastTreeParameters,
    ) -> None:
        self._world = world
        self._links = links
        self._wants = wants
        self._ways = ways
        self._can_be_had = can_be_had
        self._parameters = parameters
        self.untold: dict[tuple[int, int, int, NodeId | None, tuple[NodeId, ...]], list[list[int]]] = {}
        """Stream, where it came from, who was spared -> runs [first, last] to be announced to the lazy links,
        and to those.
        """
        self.recent: deque[RecentRun] = deque(maxlen=MOST_RUNS)
        self._new_links: dict[NodeId, frozenset[TopicId]] = {}

    def timers(self) -> Timers:
        return {SOON: self._announce, RECENT: self._announce_recent}

    def spread(
        self,
        event: Event,
        last: int,
        source: NodeId | None,
        now: float,
        spared: tuple[NodeId, ...] = (),
        spilt: bool = False,
    ) -> list[NodeId]:
        """The events from this one to number `last` are spread: to whom they are pushed. Those that are spared are
        only told of them, and those that are lazy, unless the events are spilt to them.
        """
        self._note_recent(event, last, now)
        topic = event.topic
        lazy, way = self._ways.lazy.get(topic), self._ways.of.get(topic)
        if (
            way is not None
            and way.peer is not None
            and way.peer != source
            and way.publisher == event.publisher
        ):
            # It gets the event by itself, and would take this for a second way: it is only told of it.
            spared = (way.peer,)
        peers = [peer for peer in self._links(topic) if peer != source and peer not in spared]
        if (lazy is None or spilt) and not spared:
            return peers if lazy is None else [peer for peer in peers if peer not in lazy]
        self._note_untold(event, last, source, spared)
        return peers if lazy is None else [peer for peer in peers if peer not in lazy]

    def _note_recent(self, event: Event, last: int, now: float) -> None:
        """To be announced over new links: the events from this one to number `last`."""
        recent = self.recent[-1] if self.recent else None
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
            self.recent.append(RecentRun(event, last, now))

    def began(self, event: Event, last: int) -> float | None:
        """When the run of the event's stream that ends with number `last` was spread, if that was lately."""
        for one in reversed(self.recent):
            if (one.publisher, one.topic, one.epoch, one.last) == (
                event.publisher,
                event.topic,
                event.epoch,
                last,
            ):
                return one.began
        return None

    def _note_untold(
        self, event: Event, last: int, source: NodeId | None, spared: tuple[NodeId, ...]
    ) -> None:
        """To be announced to whoever is lazy or was spared: the events from this one to number `last`."""
        untold = self.untold
        if not untold:
            self._world.set_timer((SOON,), self._parameters.announce_period)
        sequence = event.sequence
        stream = (event.publisher, event.topic, event.epoch, source, spared)
        runs = untold.get(stream)
        if runs is None:
            untold[stream] = [[sequence, last]]
        elif runs[-1][1] == sequence - 1:
            runs[-1][1] = last
        else:
            runs.append([sequence, last])

    def flush(self) -> None:
        """Announce all that waits: what a link was not pushed while it was lazy must still be announced to it."""
        if self.untold:
            self._world.cancel_timer((SOON,))
            self._announce((SOON,))

    def _announce(self, _key: TimerKey) -> None:
        untold, self.untold = self.untold, {}
        told: dict[NodeId, list[EventRun]] = {}
        for (publisher, topic, epoch, source, spared), runs in untold.items():
            lazy = self._ways.lazy.get(topic, ())
            for peer in self._links(topic):
                if (peer in lazy or peer in spared) and peer != source:
                    told.setdefault(peer, []).extend(EventRun(publisher, topic, epoch, *run) for run in runs)
        for peer, announced in told.items():
            for start in range(0, len(announced), MOST_RUNS):
                self._world.send(peer, IHave(tuple(announced[start : start + MOST_RUNS])))

    def link_up(self, peer: NodeId, interest: frozenset[TopicId]) -> None:
        """What was spread lately is to be announced to this peer."""
        if self.recent and self.recent[-1].began > self._world.now - LATE:
            if not self._new_links:
                # Not at once: the other end must know of the link.
                self._world.set_timer((RECENT,), self._parameters.graft_timeout)
            self._new_links[peer] = interest

    def _announce_recent(self, _key: TimerKey) -> None:
        new, self._new_links = self._new_links, {}
        now, held = self._world.now, self._can_be_had()
        recent: list[tuple[EventRun, float]] = []
        for one in reversed(self.recent):
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

    def forget_peer(self, peer: NodeId) -> None:
        self._new_links.pop(peer, None)
        for stream in [stream for stream in self.untold if peer == stream[3] or peer in stream[4]]:
            # Where they came from matters no more.
            runs = self.untold.pop(stream)
            source = None if stream[3] == peer else stream[3]
            spared = tuple(one for one in stream[4] if one != peer)
            self.untold.setdefault((*stream[:3], source, spared), []).extend(runs)

    def forget_topic(self, topic: TopicId) -> None:
        for stream in [stream for stream in self.untold if stream[1] == topic]:
            del self.untold[stream]

    def known_peers(self) -> set[NodeId]:
        peers = {peer for *_, source, spared in self.untold for peer in (source, *spared) if peer is not None}
        return peers.union(self._new_links)

    def restart(self) -> None:
        self.untold.clear()
        self._new_links.clear()
