"""Patterns at a live node: the node announces the names of topics that it publishes on, and subscribes to the
topics that its patterns match.

Rules kept
----------
1. A name is announced from the node's first event on it until `KEPT` seconds after the last, and as long as
   the node keeps the topic's retained value.
2. The node wants a topic that a pattern matches like any other topic. When the topic is gone and nothing else
   wants it, the node unsubscribes.
3. If a name is younger than the pattern, the node asks for all its events, also the topic's publisher. For
   other names it asks for events since the pattern began, or for what the subscriber asked for.
4. Certificates hold for the pattern, and for each name that it finds.
5. The numbers of names announced, patterns, and topics found are bounded. The subscriber learns what is left
   out, and the node takes it when there is room.

News of the name directory comes in the middle of the directory's own work. So the node notes it and acts upon
it in the next turn of the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from topicweave.client.words import Incomplete
from topicweave.errors import BadInput
from topicweave.live.announced_names import KEPT, AnnouncedNames
from topicweave.live.pattern_groups import PatternGroups
from topicweave.live.wanting import MOST_HISTORY
from topicweave.model.ids import NodeId, TopicId
from topicweave.model.name_index import NameIndex
from topicweave.model.pattern_tree import PatternTree
from topicweave.model.patterns import check_pattern, is_pattern

if TYPE_CHECKING:
    from topicweave.blocks.topic_names import NameDirectory
    from topicweave.live.node import LiveNode
    from topicweave.live.settings import Settings
    from topicweave.systems.system import System

log = logging.getLogger("topicweave.live")

MOST_PATTERNS = 50_000
MOST_WATCHED = 4096
"""Patterns that are watched for these; many that are alike are watched as one (`pattern_groups`)."""
MOST_LACKING = 1024
"""Places where one pattern is known not to be complete."""
RETAKEN = 1.0
"""Seconds from when there may be room until topics that were left out are taken; many end at once."""
SLACK = 5.0
"""Seconds by which a name may be older than a pattern and still counts as younger: it takes a while to be told."""
OVERLAP = 10.0
"""Seconds before the end of an earlier life that are asked for again: clocks differ."""
HERE, MESH, EARLIER = "here", "mesh", "earlier"
"""Who knows of a topic: this node itself, others, or an earlier life of this node."""
FOUND = "found/"
"""In the data folder: the names that patterns have found."""


class _Begin(NamedTuple):
    """A topic is to be subscribed to, and asked for its past."""

    name: str
    topic: TopicId
    last: int | None
    since: float | None
    publisher: NodeId | None

    def news(self) -> _Begin:
        return self


class _Watched:
    """One pattern."""

    def __init__(self, pattern: str, now: float) -> None:
        self.pattern = pattern
        self.holders = 0
        self.own = False
        self.began = now
        self.last = 0
        self.since: float | None = None
        self.found: dict[TopicId, set[str]] = {}
        """Topics, and who knows of them."""
        self.incomplete: dict[str, str] = {}
        """Prefixes below which some topics are not known, and why."""


class LivePatterns:
    """One per node. Without `names` there are none in this swarm."""

    def __init__(
        self, node: LiveNode, names: NameDirectory | None, own: Iterable[str], since: float | None
    ) -> None:
        self._node = node
        self._names = PatternGroups(names, lambda: node.clock.now) if names is not None else None
        self._loop = asyncio.get_running_loop()
        self._patterns: dict[str, _Watched] = {}
        self._tree = PatternTree[str, _Watched]()
        self._announced = AnnouncedNames(node.name, node.topics.id_of)
        self._earlier: dict[str, TopicId] = {}
        self._earlier_names = NameIndex()
        self._doubted_at = math.inf
        self._news: list[Callable[[], _Begin | TopicId | None]] = []
        self._working: asyncio.Task[None] | None = None
        self._turning: asyncio.TimerHandle | None = None
        self._left: dict[str, bool] = {}
        """Patterns of which topics were left out for want of room; False while it is looked whether they still are."""
        self._retaking: asyncio.TimerHandle | None = None
        self._tell: list[Callable[[Incomplete], None]] = []
        self._own = dict.fromkeys(own, since)
        self.topics = 0
        """Found by all patterns together; what several of them found counts as often."""
        node.world.catch_up.announces = self._announced.has_topic
        if self._names is not None:
            self._names.on_found, self._names.on_gone = self.found, self.gone
            self._names.on_incomplete, self._names.on_complete = self.incomplete, self.complete

    # Life.

    async def load(self) -> None:
        """What patterns had found in an earlier life. It is believed for a while: it may be nobody's any
        more, but events of it may be kept here.
        """
        disk = self._node.disk
        if disk is not None:
            kept = await disk.read(disk.store.facts_below, FOUND)
            self._earlier = {name: int.from_bytes(topic, "big") for name, topic in kept.items()}
            self._earlier_names = NameIndex(self._earlier)

    async def start(self) -> None:
        """What the application wanted before, or wants by its settings."""
        self._turning = self._loop.call_later(KEPT / 2, self._turn)
        self._doubted_at = self._node.clock.now + KEPT
        for pattern, since in self._own.items():
            # Ask for what came while this node was away, too.
            since = None if since is None else since - OVERLAP
            await self.take([pattern], since=since, lasting=False)

    def stop(self) -> None:
        for timer in (self._turning, self._retaking):
            if timer is not None:
                timer.cancel()
        if self._working is not None:
            self._working.cancel()

    @property
    def available(self) -> bool:
        return self._names is not None and self._node.settings.patterns != "off"

    @property
    def announced(self) -> int:
        return len(self._announced)

    # What the node publishes on.

    def published(self, topic: str) -> None:
        """Told of every event, before it goes out."""
        if not self._announced.is_fresh(topic):
            self._note_published(topic)

    def _note_published(self, topic: str) -> None:
        if is_pattern(topic):
            raise BadInput(f"{topic!r} is a pattern: publish on a single topic")
        self._announced.note(topic)
        if topic not in self._announced and not topic.startswith("$"):
            self._announce(topic)

    def keeps(self, topic: str) -> None:
        """The node keeps the topic's retained value for others: it is announced for as long."""
        if topic not in self._announced:
            self._announce(topic)

    def _announce(self, topic: str) -> None:
        if self._names is None or not self.available:
            return
        topic_id = self._announced.add(topic)
        if topic_id is None:
            return
        for _, _, watched in self._tree.matching(topic):
            # Before the event goes out, or the node itself would miss it.
            if self._add(watched, topic, topic_id, HERE):
                self._node.wanting.begin_now([topic_id])
        self._names.publishes(topic)

    def _turn(self) -> None:
        """A period is over: names without an event in this one and the one before are ended."""
        self._turning = self._loop.call_later(KEPT / 2, self._turn)
        for name in self._announced.turn(self._node.world.retained):
            self._end(name)
        if self._earlier and self._node.clock.now >= self._doubted_at:
            for name, topic in self._earlier.items():
                mine = [pattern for pattern, watched in self._patterns.items() if topic in watched.found]
                for pattern in mine:
                    self._forget(pattern, topic, EARLIER)
                if not mine:
                    self._keep_found(name, None)
            self._earlier, self._earlier_names = {}, NameIndex()

    def _end(self, name: str) -> None:
        assert self._names is not None
        topic = self._announced.end(name)
        self._names.ends(name)
        for pattern, _, _ in self._tree.matching(name):
            self._forget(pattern, topic, HERE)

    # What is wanted.

    def check(self, pattern: str) -> None:
        """Whether a pattern can be had here at all."""
        check_possible(pattern, self._node.settings, self._node.system)
        self._node.check_permission(pattern)

    def check_all(self, patterns: Sequence[str]) -> None:
        """The same for all of these together."""
        for pattern in patterns:
            self.check(pattern)
        new = {pattern for pattern in patterns if pattern not in self._patterns}
        if not new or self._names is None:
            return
        if len(self._patterns) + len(new) > MOST_PATTERNS or self._names.with_more(new) > MOST_WATCHED:
            raise BadInput(f"{patterns[0]!r}: {len(self._patterns)} patterns are wanted here, and no more")

    async def take(
        self, patterns: Iterable[str], *, last: int | None = None, since: float | None = None, lasting: bool
    ) -> None:
        """The application wants these."""
        patterns = list(dict.fromkeys(patterns))
        self.check_all(patterns)
        disk = self._node.disk
        for pattern in patterns:
            if disk is not None and lasting:
                disk.do(disk.store.add_subscription, pattern)
            watched = self._begin(pattern)
            watched.own = True
            await self._ask(pattern, watched, last, since)
        if disk is not None:
            disk.committed()

    async def drop(self, patterns: Iterable[str]) -> None:
        """The application is done with these."""
        disk = self._node.disk
        for pattern in patterns:
            if disk is not None:
                disk.do(disk.store.remove_subscription, pattern)
            if (watched := self._patterns.get(pattern)) is not None:
                watched.own = False
                await self._leave(pattern, watched)
        if disk is not None:
            disk.committed()

    async def more(
        self, patterns: Iterable[str], *, last: int | None = None, since: float | None = None
    ) -> None:
        """One client more wants each of these; who names one twice wants it twice."""
        await self.begin(self.count(patterns), last=last, since=since)

    def count(self, patterns: Iterable[str]) -> list[_Watched]:
        """The first half of `more`, at once: `less` may come from now on. `begin` follows."""
        patterns = list(patterns)
        self.check_all(patterns)
        counted = [self._begin(pattern) for pattern in patterns]
        for watched in counted:
            watched.holders += 1
        return counted

    async def begin(
        self, counted: Iterable[_Watched], *, last: int | None = None, since: float | None = None
    ) -> None:
        """The second half, of those that are wanted still."""
        for watched in counted:
            if self._patterns.get(watched.pattern) is watched:
                await self._ask(watched.pattern, watched, last, since)

    async def less(self, patterns: Iterable[str]) -> None:
        for pattern in patterns:
            if (watched := self._patterns.get(pattern)) is not None and watched.holders:
                watched.holders -= 1
                await self._leave(pattern, watched)

    def of_its_own(self, topic: str) -> bool:
        """Whether the application has a pattern that matches a topic."""
        return any(watched.own for _, _, watched in self._tree.matching(topic))

    def _begin(self, pattern: str) -> _Watched:
        watched = self._patterns.get(pattern)
        if watched is None:
            assert self._names is not None
            watched = self._patterns[pattern] = _Watched(pattern, self._node.clock.now)
            self._tree.put(pattern, pattern, watched)
            self._names.watch(pattern)
        return watched

    async def _ask(self, pattern: str, watched: _Watched, last: int | None, since: float | None) -> None:
        """For the past of the topics that are known; those to come are asked for it when they are found."""
        watched.last = max(watched.last, last or 0)
        if since is not None:
            watched.since = since if watched.since is None else min(watched.since, since)
        fresh = []
        for name, topic in self._announced.matching(pattern):
            fresh += [topic] if self._add(watched, name, topic, HERE) else []
        for name in self._earlier_names.matching(pattern):
            topic = self._earlier[name]
            if self._may_have(name):
                known = self._node.topics.learn(name, topic)
                fresh += [topic] if self._add(watched, known, topic, EARLIER) else []
        await self._node.wanting.begin(fresh)
        if last or since is not None:
            for topic in list(watched.found):
                self._node.world.catch_up.ask_history(topic, last or MOST_HISTORY, since or 0.0)

    async def _leave(self, pattern: str, watched: _Watched) -> None:
        if watched.own or watched.holders:
            return
        assert self._names is not None
        del self._patterns[pattern]
        self._tree.remove(pattern, pattern)
        self._names.unwatch(pattern)
        self._left.pop(pattern, None)
        self._retake_soon()
        self.topics -= len(watched.found)
        found, watched.found = list(watched.found), {}
        await self._let_go(found)

    async def _let_go(self, topics: Iterable[TopicId]) -> None:
        names, node = self._node.topics, self._node
        topics = list(topics)
        await node.wanting.less([names.of(topic) for topic in topics])
        for topic in topics:
            if topic not in node.node.subscriptions:
                self._keep_found(names.of(topic), None)
                if not self._announced.has_topic(topic):
                    names.forget(topic)

    @property
    def wanted(self) -> list[str]:
        return sorted(self._patterns)

    # What is found.

    def found(
        self, pattern: str, name: str, topic: TopicId, age: float, publisher: NodeId | None = None
    ) -> None:
        """Told by the name directory."""
        self._note(lambda: self._take_found(pattern, name, topic, age, publisher))

    def gone(self, pattern: str, _name: str, topic: TopicId) -> None:
        """Told by the name directory."""
        self._forget(pattern, topic, MESH)

    def _forget(self, pattern: str, topic: TopicId, by: str) -> None:
        self._note(lambda: self._take_gone(pattern, topic, by))

    def _note(self, news: Callable[[], _Begin | TopicId | None]) -> None:
        self._news.append(news)
        if self._working is None or self._working.done():
            self._working = self._loop.create_task(self._work())

    async def _work(self) -> None:
        """Act upon what was told, many at once: neighbours are told of each change."""
        while self._news:
            news, self._news = self._news, []
            begins: dict[tuple[int | None, float | None], list[TopicId]] = {}
            ends: list[TopicId] = []
            asked: list[tuple[NodeId, TopicId, int, float]] = []
            for one in news:
                said = one()
                if isinstance(said, int):
                    ends.append(said)
                elif said is not None:
                    begins.setdefault((said.last, said.since), []).append(said.topic)
                    if said.publisher is not None and said.publisher != self._node.id:
                        asked.append(
                            (said.publisher, said.topic, said.last or MOST_HISTORY, said.since or 0.0)
                        )
            for (last, since), topics in begins.items():
                await self._node.wanting.begin(topics, last=last, since=since)
            for question in asked:
                self._node.world.catch_up.ask_publisher(*question)
            await self._let_go(ends)

    def _take_found(
        self, pattern: str, name: str, topic: TopicId, age: float, publisher: NodeId | None
    ) -> _Begin | None:
        """What is to be done about a name: its topic, and what to ask for of the past."""
        watched = self._patterns.get(pattern)
        if watched is None or not self._may_have(name):
            return None
        if topic not in watched.found and not self._has_room(watched):
            return None  # And its name is not remembered.
        name = self._node.topics.learn(name, topic)
        if not self._add(watched, name, topic, MESH):
            return None
        clock = self._node.clock
        last, since = watched.last or None, watched.since
        if last is None and since is None:
            lasts = clock.now - watched.began
            since = 0.0 if age <= lasts + SLACK else clock.wall() - lasts
        return _Begin(name, topic, last, since, publisher)

    def _take_gone(self, pattern: str, topic: TopicId, by: str) -> TopicId | None:
        watched = self._patterns.get(pattern)
        knowing = watched.found.get(topic) if watched is not None else None
        self._retake_soon()
        if watched is None or knowing is None:
            return None
        knowing.discard(by)
        if knowing:
            return None
        del watched.found[topic]
        self.topics -= 1
        return topic

    def _add(self, watched: _Watched, name: str, topic: TopicId, by: str) -> bool:
        """Whether a topic is new to a pattern, and there is room for it. Then it is counted as wanted, too; that it
        is begun is the caller's matter.
        """
        knowing = watched.found.get(topic)
        if knowing is not None:
            knowing.add(by)
            return False
        if not self._has_room(watched):
            return False
        self._node.wanting.count([name])
        watched.found[topic] = {by}
        self.topics += 1
        if by is not EARLIER:
            self._keep_found(name, topic)
        return True

    # What was left out.

    def _has_room(self, watched: _Watched) -> bool:
        """For another topic of a pattern; if there is none, it lacks one from now on."""
        if self.topics < self._node.settings.limits.pattern_topics:
            return True
        told = watched.pattern in self._left
        self._left[watched.pattern] = True
        if not told:
            self._tell_incomplete(watched.pattern, "", self._full)
        return False

    def _retake_soon(self) -> None:
        """There may be room, or what was left out may be gone."""
        if self._left and self._retaking is None:
            self._retaking = self._loop.call_later(RETAKEN, self._retake)

    def _retake(self) -> None:
        """Take topics that were left out, as far as there is room; tell of patterns that lack none."""
        self._retaking = None
        for pattern in list(self._left):
            watched = self._patterns[pattern]
            self._left[pattern] = False
            for begin in self._all_of(watched):
                if self._left[pattern]:
                    break
                if begin is not None:
                    self._note(begin.news)
            if not self._left[pattern]:
                del self._left[pattern]
                self._told_complete(watched, "")

    def _all_of(self, watched: _Watched) -> Iterator[_Begin | None]:
        """What is to be done about each topic that matches; nothing, if it was found."""
        assert self._names is not None
        for name, topic in self._announced.matching(watched.pattern):
            yield _Begin(name, topic, None, None, None) if self._add(watched, name, topic, HERE) else None
        for name, topic, age, publisher in self._names.known(watched.pattern):
            if topic not in watched.found:
                yield self._take_found(watched.pattern, name, topic, age, publisher)

    @property
    def _full(self) -> str:
        most = self._node.settings.limits.pattern_topics
        return f"patterns have found {most} topics here (limits.pattern_topics)"

    def _keep_found(self, name: str, topic: TopicId | None) -> None:
        """For a later life; no topic: no more."""
        disk = self._node.disk
        if disk is None:
            return
        if topic is None:
            disk.do(disk.store.forget_fact, FOUND + name)
        else:
            disk.do(disk.store.set_fact, FOUND + name, topic.to_bytes(8, "big"))

    def _may_have(self, name: str) -> bool:
        keyring = self._node.keyring
        return keyring is None or keyring.own.permissions.may_subscribe(name)

    # What could not be found.

    def on_incomplete(self, tell: Callable[[Incomplete], None]) -> Callable[[], None]:
        """From now on, tell of patterns that could not be completed. Returns what ends that."""
        self._tell.append(tell)
        return lambda: self._tell.remove(tell) if tell in self._tell else None

    def incomplete(self, pattern: str, prefix: str, why: str) -> None:
        """Told by the name directory."""
        watched = self._patterns.get(pattern)
        if watched is None:
            return
        if watched.incomplete.get(prefix) == why or len(watched.incomplete) >= MOST_LACKING:
            return
        watched.incomplete[prefix] = why
        self._tell_incomplete(pattern, prefix, why)

    def _tell_incomplete(self, pattern: str, prefix: str, why: str) -> None:
        self._node.counters.incomplete_patterns += 1
        log.warning("%s: not all topics of %s are known, below %r: %s", self._node.name, pattern, prefix, why)
        for tell in list(self._tell):
            tell(Incomplete(pattern, prefix, why))

    def complete(self, pattern: str, prefix: str) -> None:
        """Told by the name directory: what was missing is known."""
        watched = self._patterns.get(pattern)
        if watched is not None and watched.incomplete.pop(prefix, None) is not None:
            self._told_complete(watched, prefix)

    def _told_complete(self, watched: _Watched, prefix: str) -> None:
        pattern = watched.pattern
        if prefix in watched.incomplete or (not prefix and pattern in self._left):
            return  # For another reason.
        log.info("%s: all topics of %s are known below %r", self._node.name, pattern, prefix)
        for tell in list(self._tell):
            tell(Incomplete(pattern, prefix, ""))

    def lacking(self, pattern: str | None = None) -> list[Incomplete]:
        """What is not complete now, of one pattern or of all."""
        full = [Incomplete(one, "", self._full) for one in self._left if pattern in (None, one)]
        one = self._patterns.get(pattern) if pattern is not None else None
        return full + [
            Incomplete(watched.pattern, prefix, why)
            for watched in (self._patterns.values() if pattern is None else filter(None, [one]))
            for prefix, why in watched.incomplete.items()
        ]

    def view(self) -> dict[str, Any]:
        """For people."""
        return {
            "available": self.available,
            "announced": len(self._announced),
            "unannounced": self._announced.left_out,
            "patterns": [
                {
                    "pattern": pattern,
                    "topics": len(watched.found),
                    "incomplete": {one.prefix: one.reason for one in self.lacking(pattern)},
                }
                for pattern, watched in sorted(self._patterns.items())
            ],
        }


def check_possible(pattern: str, settings: Settings, system: System) -> None:
    """Refuse a pattern that a node with these settings cannot have."""
    check_pattern(pattern)
    if system.needs == "subscribers" and not settings.has_directory(system):
        raise BadInput(
            f"{pattern!r}: patterns are found through the topic directory, and this node runs none "
            '(membership = "gossip")'
        )
    if not settings.has_names(system):
        raise BadInput(
            f"{pattern!r}: there are no patterns in this swarm; start all its nodes with --patterns on"
        )
    if settings.patterns == "off":
        raise BadInput(f"{pattern!r}: patterns are turned off at this node")


def split(topics: Iterable[str]) -> tuple[list[str], list[str]]:
    """Names and patterns apart.

    >>> split(["a/b", "a/+", "c#"])
    (['a/b', 'c#'], ['a/+'])
    """
    return split_each(dict.fromkeys(topics))


def split_each(topics: Iterable[str]) -> tuple[list[str], list[str]]:
    """The same; what is there twice stays so."""
    both: tuple[list[str], list[str]] = ([], [])
    for topic in topics:
        both[is_pattern(topic)].append(topic)
    return both
