"""One node's part in the name directory: publisher, watcher, home of prefixes. See docs/patterns.md.

Theory of operation: names are announced to the home of their first level, on the ring of homes that the topic
directory has (`ring`, `carrier`). A home with too many names gives those of its fullest label a home of their
own, and so on: the homes of prefixes form a tree. Each home that holds something says so to the home above;
the root knows first levels only. A watcher of a pattern walks down the tree as far as the pattern may
match, stays registered at the homes that it passes, and is told of news. Records are kept at a home's successors,
too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Protocol

from topicweave.blocks.name_messages import (
    LabelSaid,
    NameContent,
    NamesEnded,
    NamesKept,
    NamesSaid,
    NamesStill,
    NamesTold,
    NamesWanted,
    NamesWatch,
    RingParcel,
)
from topicweave.blocks.topic_directory.carrier import Carrier
from topicweave.blocks.topic_directory.ring import HomesRing
from topicweave.blocks.topic_names import rules
from topicweave.blocks.topic_names.announcing import NameAnnouncer
from topicweave.blocks.topic_names.home import KeptPrefix, NamesHome
from topicweave.blocks.topic_names.parameters import NamesParameters
from topicweave.blocks.topic_names.watched import NamesWatched
from topicweave.blocks.topic_names.watching import PatternWatcher
from topicweave.model.ids import RING_SIZE, NodeId, TopicId, clockwise, in_interval, ring_id
from topicweave.model.patterns import check_name, check_pattern, hidden, is_pattern
from topicweave.port import Receivers, TimerKey, Timers, World

TIMER, SOON = "names-tick", "names-soon"
SWEEP_EVERY = 5
"""Ticks."""
ASKS_AFTER = (0, 2, 5)
"""Ticks after a node became home to more: its neighbours may not know it at once."""
PREFIXES_AT_ONCE = 32
"""Whose records are sent to one neighbour per tick."""


class RingAndCarrier(Protocol):
    """The ring of homes, and what carries things over it."""

    ring: HomesRing
    carrier: Carrier


class NameDirectory:
    """Which names there are, by patterns.

    `on_found(pattern, name, topic, age, publisher)`, `on_gone(pattern, name, topic)`, `on_incomplete(pattern,
    prefix, why)` and `on_complete(pattern, prefix)` are called between two things that the node is told. The
    age is in seconds since the name's birth; a publisher is named if the name is young.
    """

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        base: RingAndCarrier,
        parameters: NamesParameters | None = None,
        private: bool = False,
    ) -> None:
        self._world = world
        self.id = node_id
        self.parameters = parameters or NamesParameters()
        self.private = private
        self._ring, self._carrier = base.ring, base.carrier
        self.on_found: Callable[[str, str, TopicId, float, NodeId | None], None] = lambda *_found: None
        self.on_gone: Callable[[str, str, TopicId], None] = lambda _pattern, _name, _topic: None
        self.on_incomplete: Callable[[str, str, str], None] = lambda _pattern, _prefix, _why: None
        self.on_complete: Callable[[str, str], None] = lambda _pattern, _prefix: None
        self.watched = NamesWatched(self.parameters, self._kept, self._post)
        self.home = NamesHome(self.parameters, self.watched, self._post, self._owns)
        self._announcer = NameAnnouncer(world, node_id, self.parameters, self._post, self._set_soon, private)
        self._watcher = PatternWatcher(world, node_id, self.parameters, self._post, self._set_soon, private)
        self._watcher.found, self._watcher.gone = self._found, self._gone
        self._watcher.incomplete, self._watcher.complete = self._incomplete, self._complete
        self._clear: dict[str, str] = {}  # patterns as they travel -> as they were said
        self._outcomes: deque[Callable[[], None]] = deque()
        self._arriving: deque[RingParcel] = deque()
        self._busy = False
        self._is_soon = False
        self._ticks = 0
        self._started = False
        self._arc_start: int | None = None
        self._asks_at: set[int] = set()  # ticks at which neighbours are asked for records
        self._keepers: list[NodeId] = []  # successors that have our records
        self._backlog: dict[NodeId, dict[str, None]] = {}  # prefixes whose records a neighbour is to get
        self._carrier.opened = self._open

    def receivers(self) -> Receivers:
        """All that comes, comes by way of the ring's carrier."""
        return {}

    def timers(self) -> Timers:
        return {TIMER: self._tick, SOON: self._act_soon}

    # What the application tells.

    def publishes(self, name: str) -> None:
        """This node publishes on a name: announce it, and go on doing so."""
        check_name(name)
        self._announcer.publishes(hidden(name) if self.private else name, ring_id(name))

    def ends(self, name: str) -> None:
        """It does so no more."""
        with self._turn():
            self._announcer.ends(hidden(name) if self.private else name)

    def watch(self, pattern: str) -> None:
        """Be told of names that match, those that there are and those to come."""
        check_pattern(pattern)
        travels = hidden(pattern) if self.private else pattern
        self._clear[travels] = pattern
        self._watcher.watch(travels)

    def unwatch(self, pattern: str) -> None:
        travels = hidden(pattern) if self.private else pattern
        with self._turn():
            self._watcher.unwatch(travels)
        self._clear.pop(travels, None)

    def known(self, pattern: str) -> Iterator[tuple[str, TopicId, float, NodeId | None]]:
        """All names that a pattern has found: name, topic, age, publisher."""
        for name, topic, age, by in self._watcher.known(hidden(pattern) if self.private else pattern):
            yield self._shown(pattern, name), topic, age, by

    def gauges(self) -> Mapping[str, float]:
        return {
            "names_kept": self.home.names,
            "name_prefixes": len(self.home.prefixes),
            "name_watchers": self.watched.watchers,
            "names_announced": len(self._announcer.names),
            "names_refused": self.home.refused + self._announcer.refused,
            "names_found": self._watcher.names,
            "name_patterns": len(self._watcher.patterns),
            "name_prefixes_watched": self._watcher.walked,
        }

    # What the node tells.

    def start(self) -> None:
        """Begin, or go on after a restart that kept the memory; the ring has started."""
        self._announcer.restart()
        self._watcher.restart()
        self._backlog.clear()
        self._keepers = []
        self._arc_start = None
        self._is_soon, self._started = False, True
        self._world.set_timer((TIMER,), self._world.random.random() * self.parameters.tick)

    def leave(self) -> None:
        """Say goodbye; the ring is still there."""
        if self._started and self._ring.ready:
            with self._turn():
                self._announcer.leave()
                self._watcher.leave()
            self._carrier.flush()
        self._started = False

    def known_peers(self) -> set[NodeId]:
        return {*self._keepers, *self._backlog}

    # Once per tick, and in between.

    def _set_soon(self) -> None:
        if self._started and not self._is_soon:
            self._is_soon = True
            self._world.set_timer((SOON,), self.parameters.soon)

    def _act_soon(self, _key: TimerKey) -> None:
        self._is_soon = False
        with self._turn():
            if self._ring.ready:
                self._announcer.say()
                self._watcher.ask(self._ring.beside_earlier)
                self.home.say_above(self._world.now)
                self.watched.tell(self._owns, self._world.now)

    def _tick(self, key: TimerKey) -> None:
        self._world.set_timer(key, self.parameters.tick)
        self._ticks += 1
        now = self._world.now
        with self._turn():
            if self._ticks % SWEEP_EVERY == 0:
                self.home.sweep(now)
                self.watched.sweep(now)
            if self._ring.ready:
                self._settle_in()
                self._hand_out(now)
        self._act_soon(key)

    def _settle_in(self) -> None:
        """The arc that this node is home to may be longer or shorter, and other nodes keep its records."""
        after, before = self._ring.parcel_sides()
        start = before[0] if before else self.id
        if start != self._arc_start:
            if self._arc_start is None or _arc(start, self.id) > _arc(self._arc_start, self.id):
                self._asks_at = {self._ticks + pause for pause in ASKS_AFTER}
            else:
                self._hand_over(before[:1], [prefix for prefix in self._prefixes() if not self._owns(prefix)])
            self._arc_start = start
        if self._ticks in self._asks_at:
            for peer in dict.fromkeys((*after[:2], *before[:1])):
                self._post(RingParcel(peer, NamesWanted(self.id, start)))
        keepers = after[:3]
        fresh = [peer for peer in keepers if peer not in self._keepers]
        self._keepers = list(keepers)
        if fresh:
            self._hand_over(fresh, [prefix for prefix in self._prefixes() if self._owns(prefix)])

    def _prefixes(self) -> list[str]:
        return list(dict.fromkeys((*self.home.prefixes, *self.watched.prefixes)))

    def _hand_over(self, peers: Iterable[NodeId], prefixes: Iterable[str]) -> None:
        for peer in peers:
            waiting = dict.fromkeys(prefixes)
            if waiting and peer != self.id:
                self._backlog.setdefault(peer, {}).update(waiting)

    def _hand_out(self, now: float) -> None:
        contacts = self._ring.contacts() if self._backlog else ()
        for peer, prefixes in list(self._backlog.items()):
            if peer not in contacts:
                del self._backlog[peer]
                continue
            for prefix in list(islice(prefixes, PREFIXES_AT_ONCE)):
                del prefixes[prefix]
                for record in (*self.home.records(prefix, now), *self.watched.records(prefix, now)):
                    self._post(RingParcel(peer, record))
            if not prefixes:
                del self._backlog[peer]

    # What comes.

    def _post(self, parcel: RingParcel) -> None:
        self._carrier.post(parcel)

    def _open(self, parcel: RingParcel) -> None:
        self._arriving.append(parcel)
        if not self._busy:
            with self._turn():
                pass

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One thing after the other: what one makes this node send may end here, too, and the application may
        answer by watching something else.
        """
        if self._busy:
            yield
            return
        self._busy = True
        try:
            yield
            while self._arriving:
                parcel = self._arriving.popleft()
                self._take(parcel, self._world.now)
        finally:
            self._busy = False
        if self.watched.has_news:
            self._set_soon()
        while self._outcomes:
            self._outcomes.popleft()()

    def _take(self, parcel: RingParcel, now: float) -> None:
        to, content = parcel.to, parcel.content
        match content:
            case NamesSaid():
                new = content.prefix not in self.home.prefixes
                if self.home.said(content, now) and not content.kept:
                    self._share(content.prefix, _for_keepers(content))
                if new and content.prefix in self.home.prefixes:
                    self._set_soon()  # Its label is to be said above.
            case NamesStill():
                known = self.home.still(content, now, parcel.soon)
                if content.kept and not known:
                    self._want(content.prefix)
                elif known and not content.kept:
                    self._share(content.prefix, NamesStill(*_fields(content)[:-1], kept=True))
            case NamesEnded():
                if self.home.ended(content) and not content.kept:
                    self._share(content.prefix, NamesEnded(content.prefix, content.by, content.names, True))
            case LabelSaid():
                new = self.home.label_said(content, now)
                if not content.kept:
                    self._share(content.prefix, LabelSaid(content.prefix, content.label, content.term, True))
                if new:
                    self._set_soon()
            case NamesWatch():
                if self.watched.watch(content, now) and not content.kept:
                    shared = (content.prefix, content.pattern, content.watcher, 0, content.term)
                    self._share(content.prefix, NamesWatch(*shared, kept=True))
            case NamesKept() if to == self.id:
                self._announcer.answered(content)
            case NamesTold() if to == self.id:
                self._watcher.told(content)
            case NamesWanted():
                self._wanted(content)
            case _:
                pass  # For one who is gone.

    def _share(self, prefix: str, content: NameContent) -> None:
        """With those who keep records with this node, if it is the home."""
        if self._owns(prefix):
            for peer in self._keepers:
                self._post(RingParcel(peer, content))

    def _want(self, prefix: str) -> None:
        """Of the home, what it knows below a prefix."""
        self._post(RingParcel(rules.place_of(prefix), NamesWanted(self.id, 0, prefix)))

    def _wanted(self, wanted: NamesWanted) -> None:
        if wanted.by not in self._ring.contacts() or not 0 <= wanted.start < RING_SIZE:
            return
        if wanted.prefix is not None:
            known = wanted.prefix in self.home.prefixes
            self._hand_over((wanted.by,), (wanted.prefix,) if known else ())
            return
        mine = [
            prefix
            for prefix in self._prefixes()
            if in_interval(rules.place_of(prefix), wanted.start, wanted.by)
        ]
        self._hand_over((wanted.by,), mine)

    def _kept(self, prefix: str) -> KeptPrefix | None:
        return self.home.prefixes.get(prefix)

    def _owns(self, prefix: str) -> bool:
        return self._ring.owns_parcels(rules.place_of(prefix))

    # What the application is told.

    def _found(self, pattern: str, name: str, topic: TopicId, age: float, by: NodeId | None) -> None:
        clear = self._clear.get(pattern, pattern)
        shown = self._shown(clear, name)
        self._outcomes.append(lambda: self.on_found(clear, shown, topic, age, by))

    def _gone(self, pattern: str, name: str, topic: TopicId) -> None:
        clear = self._clear.get(pattern, pattern)
        shown = self._shown(clear, name)
        self._outcomes.append(lambda: self.on_gone(clear, shown, topic))

    def _incomplete(self, pattern: str, prefix: str, why: str) -> None:
        clear = self._clear.get(pattern, pattern)
        self._outcomes.append(lambda: self.on_incomplete(clear, prefix, why))

    def _complete(self, pattern: str, prefix: str) -> None:
        clear = self._clear.get(pattern, pattern)
        self._outcomes.append(lambda: self.on_complete(clear, prefix))

    def _shown(self, clear: str, name: str) -> str:
        """A private name with those levels in clear that the pattern has."""
        if not self.private:
            return name
        levels, known = name.split("/"), clear.split("/")
        return "/".join(
            known[place] if place < len(known) and not is_pattern(known[place]) else level
            for place, level in enumerate(levels)
        )


def _arc(start: int, end: int) -> int:
    """How much of the ring lies after one node and up to another; all of it, if they are the same."""
    return clockwise(start, end) or RING_SIZE


def _fields(still: NamesStill) -> tuple[str, NodeId, int, float, int, bool]:
    return still.prefix, still.by, still.number, still.term, still.digest, still.kept


def _for_keepers(said: NamesSaid) -> NamesSaid:
    return NamesSaid(
        said.prefix, said.by, 0, said.term, said.names, said.ages, said.topics, (), said.whole, kept=True
    )
