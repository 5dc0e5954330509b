"""A node as a watcher: it follows its patterns from home to home and knows which names match them.

Rules kept
----------
1. The walk begins at the home of the pattern's first level, or at the root if that is a wildcard, and goes on
   to every label that has a home of its own and may have matching names below it.
2. Each home is asked now and then whether what is known of it is right; what was not answered is asked of its
   successors in turn, and of the home again.
3. A name is gone when its home says so. One that a home does not list any more, though nobody said that it
   ended, is believed for a while: it may have moved.
4. A pattern that cannot be completed is told once per prefix and reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from topicweave.blocks.name_messages import NamesTold, NamesWatch, RingParcel
from topicweave.blocks.topic_names import rules
from topicweave.blocks.topic_names.parameters import NamesParameters
from topicweave.model.ids import RING_SIZE, NodeId, TopicId
from topicweave.model.patterns import matches, reaches_below
from topicweave.port import World

MOST_ATTEMPTS = 4
SLOW = 4
"""What nobody waits for may take so many times as long."""
MOST_AGAIN = 600.0
FULL, TOO_MANY, TOO_WIDE, SILENT, EARLIER = (
    "its home has no room for all names",
    "this node has no room for more names",
    "this node watches as many prefixes as it may",
    "its home does not answer",
    "a neighbour speaks an earlier wire format, which has no names",
)


class _Known:
    """A name that matches."""

    __slots__ = ("at", "born", "by", "topic")

    def __init__(self, topic: TopicId, born: float, by: NodeId | None) -> None:
        self.topic = topic
        self.born = born
        self.by = by  # a publisher, if one was told
        self.at: dict[str, None] = {}  # the prefixes whose homes list it


class _Walked:
    """One prefix on a pattern's way."""

    __slots__ = (
        *("again", "asked", "attempt", "due", "known", "labels", "listed", "names", "number", "pages"),
        "passed_over",
    )

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.labels: dict[str, None] = {}
        self.known = False  # the home was heard out once
        self.due = 0.0
        self.again = 0.0
        self.asked = -1.0
        self.attempt = 0
        self.passed_over = 0  # how many the last question passed over: the home, and some of its successors
        self.number = 0
        self.pages: dict[int, None] = {}  # of the answer that is coming in, and what it listed
        self.listed: tuple[dict[str, None], dict[str, None]] = ({}, {})


class _Pattern:
    __slots__ = ("doubted", "incomplete", "names", "way")

    def __init__(self) -> None:
        self.way: dict[str, _Walked] = {}
        self.names: dict[str, _Known] = {}
        self.doubted: dict[str, float] = {}  # names that no home lists, since when
        self.incomplete: set[tuple[str, str]] = set()


class PatternWatcher:
    """`post` sends; `soon()` asks for a call of `ask`. `found`, `gone`, `incomplete` and `complete` are told
    what the patterns, as they travel, match.
    """

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        parameters: NamesParameters,
        post: Callable[[RingParcel], None],
        soon: Callable[[], None],
        private: bool,
    ) -> None:
        self._world = world
        self._id = node_id
        self._parameters = parameters
        self._post = post
        self._soon = soon
        self._private = private
        self.found: Callable[[str, str, TopicId, float, NodeId | None], None] = lambda *_found: None
        self.gone: Callable[[str, str, TopicId], None] = lambda _pattern, _name, _topic: None
        self.incomplete: Callable[[str, str, str], None] = lambda _pattern, _prefix, _why: None
        self.complete: Callable[[str, str], None] = lambda _pattern, _prefix: None
        self.patterns: dict[str, _Pattern] = {}
        self.names = 0
        self.walked = 0
        self._number = 0

    def restart(self) -> None:
        for watched in self.patterns.values():
            for walked in watched.way.values():
                walked.asked, walked.attempt, walked.due = -1.0, 0, 0.0

    def watch(self, pattern: str) -> None:
        if pattern not in self.patterns:
            watched = self.patterns[pattern] = _Pattern()
            self._walk(pattern, watched, rules.start_of(pattern))

    def unwatch(self, pattern: str) -> None:
        watched = self.patterns.pop(pattern, None)
        if watched is not None:
            self.names -= len(watched.names)
            for prefix in list(watched.way):
                self._turn_back(pattern, watched, prefix)

    def known(self, pattern: str) -> Iterator[tuple[str, TopicId, float, NodeId | None]]:
        """All names that match, with what was told of them: topic, age, publisher."""
        watched, now = self.patterns.get(pattern), self._world.now
        for name, one in watched.names.items() if watched is not None else ():
            yield name, one.topic, now - one.born, one.by

    def leave(self) -> None:
        for pattern, watched in self.patterns.items():
            for prefix in watched.way:
                self._post(self._question(pattern, prefix, 0, 0.0, None))

    # What goes out.

    def ask(self, beside_earlier: bool = False) -> None:
        """What is to be asked now. `beside_earlier`: some on the ring keep no names and say none."""
        now, timeout = self._world.now, self._parameters.ask_timeout
        for pattern, watched in self.patterns.items():
            (self._tell_incomplete if beside_earlier else self._passed)(pattern, watched, rules.ROOT, EARLIER)
            for prefix, walked in watched.way.items():
                slow = SLOW if walked.known and walked.attempt < 2 else max(1, walked.attempt)
                waits = walked.asked >= 0.0 and now - walked.asked < timeout * slow
                if waits or (walked.asked < 0.0 and walked.due > now):
                    continue
                if walked.attempt >= MOST_ATTEMPTS:
                    self._tell_incomplete(pattern, watched, prefix, SILENT)
                self._ask(pattern, prefix, walked)
            self._doubt(pattern, watched, now)

    def _ask(self, pattern: str, prefix: str, walked: _Walked) -> None:
        self._number += 1
        walked.number, walked.asked = self._number, self._world.now
        walked.pages, walked.listed = {}, ({}, {})
        term = self._parameters.lasts * max(self._parameters.watch_renew, walked.again)
        digest = rules.digest_of(walked.names, walked.labels) if walked.known else None
        self._post(self._question(pattern, prefix, self._number, term, digest, walked.attempt))
        walked.passed_over = walked.attempt
        walked.attempt = (walked.attempt + 1) % (MOST_ATTEMPTS + 1)

    def _question(
        self, pattern: str, prefix: str, number: int, term: float, digest: int | None, attempt: int = 0
    ) -> RingParcel:
        watch = NamesWatch(prefix, pattern, self._id, number, term, digest)
        return RingParcel(rules.place_of(prefix), watch, attempt, soon=digest is None or attempt > 0)

    def _doubt(self, pattern: str, watched: _Pattern, now: float) -> None:
        for name in [
            name for name, since in watched.doubted.items() if now - since >= self._parameters.grace
        ]:
            self._is_gone(pattern, watched, name)

    # What homes tell.

    def told(self, told: NamesTold) -> None:
        watched = self.patterns.get(told.pattern)
        walked = watched.way.get(told.prefix) if watched is not None else None
        if watched is None or walked is None or len(told.ages) != len(told.names):
            return
        if told.number == 0:
            self._news(told, watched, walked)
        elif told.number == walked.number:
            self._answer(told, watched, walked)
        else:
            return
        if told.full:
            self._tell_incomplete(told.pattern, watched, told.prefix, FULL)
        elif told.number:
            self._passed(told.pattern, watched, told.prefix, FULL)

    def _news(self, told: NamesTold, watched: _Pattern, walked: _Walked) -> None:
        self._listed(told, watched, walked)
        for rest in told.gone:
            name = rules.named(told.prefix, rest)
            if name is not None:
                walked.names.pop(name, None)  # An answer may have come first, in which it was missing.
                self._unlist(told.pattern, watched, told.prefix, name, ended=True)
        for label in told.no_labels:
            if walked.labels.pop(label, self) is None:
                self._turn_back(told.pattern, watched, f"{told.prefix}{label}/")

    def _answer(self, told: NamesTold, watched: _Pattern, walked: _Walked) -> None:
        now = self._world.now
        self._passed(told.pattern, watched, told.prefix, SILENT)
        walked.again = min(max(told.again, 0.0), MOST_AGAIN)
        missing = False
        if not told.same:
            if told.page in walked.pages:
                return
            names, labels = self._listed(told, watched, walked)
            walked.listed[0].update(names)
            walked.listed[1].update(labels)
            if not 0 <= told.page < told.pages <= 4096:
                return
            walked.pages[told.page] = None
            if len(walked.pages) < told.pages:
                walked.asked = now  # More is on its way.
                return
            for name in [name for name in walked.names if name not in walked.listed[0]]:
                missing = True
                del walked.names[name]
                self._unlist(told.pattern, watched, told.prefix, name, ended=False)
            for label in [label for label in walked.labels if label not in walked.listed[1]]:
                missing = True
                del walked.labels[label]
                self._turn_back(told.pattern, watched, f"{told.prefix}{label}/")
        # A home that has come anew may not know yet what others know, and who answers in its place tells no
        # news: ask again before it is believed.
        early = missing or walked.passed_over > 0 or not walked.known
        walked.known, walked.asked, walked.attempt = True, -1.0, 0
        if self.names < self._parameters.found:
            self._passed(told.pattern, watched, told.prefix, TOO_MANY)
        for label in walked.labels:
            self._walk(told.pattern, watched, f"{told.prefix}{label}/")  # There may be room for it now.
        pause = max(self._parameters.watch_renew, walked.again) * self._world.random.uniform(0.75, 1.0)
        walked.due = now + (self._parameters.grace / 2 if early else pause)

    def _listed(
        self, told: NamesTold, watched: _Pattern, walked: _Walked
    ) -> tuple[dict[str, None], dict[str, None]]:
        """Take names and labels from what is told; those that are right."""
        now, prefix, pattern = self._world.now, told.prefix, told.pattern
        labels = {
            label: None
            for label in told.labels
            if rules.is_label(label) and reaches_below(pattern, f"{prefix}{label}/")
        }
        for label in [label for label in labels if label not in walked.labels]:
            if len(walked.labels) < self._parameters.labels:
                self._deepen(pattern, watched, walked, prefix, label)
            else:
                del labels[label]
                self._tell_incomplete(pattern, watched, prefix, TOO_WIDE)
        topics: tuple[TopicId | None, ...] = told.topics
        if len(topics) != len(told.names):
            topics = (None,) * len(told.names)
        names: dict[str, None] = {}
        by = told.by if len(told.by) == len(told.names) else (0,) * len(told.names)
        for rest, age, topic, publisher in zip(told.names, told.ages, topics, by, strict=True):
            name = rules.named(prefix, rest) if prefix != rules.ROOT else None
            if name is None or not matches(pattern, name):
                continue
            known = watched.names.get(name)
            if known is None:
                if self.names >= self._parameters.found:
                    self._tell_incomplete(pattern, watched, prefix, TOO_MANY)
                    continue
                self.names += 1
                true = rules.true_topic(name, topic, self._private)
                seconds = min(max(0.0, float(age)), 1e9)
                first = publisher if 0 < publisher < RING_SIZE else None
                known = watched.names[name] = _Known(true, now - seconds, first)
                self.found(pattern, name, true, seconds, first)
            names[name] = None
            known.at[prefix] = None
            watched.doubted.pop(name, None)
            walked.names[name] = None
        return names, labels

    def _deepen(self, pattern: str, watched: _Pattern, walked: _Walked, prefix: str, label: str) -> None:
        """Names below a label have a home of their own: go there."""
        child = f"{prefix}{label}/"
        walked.labels[label] = None
        for name in [name for name in walked.names if rules.label_of(name, prefix) == label]:
            del walked.names[name]
            self._unlist(pattern, watched, prefix, name, ended=False)
        self._walk(pattern, watched, child)

    def _walk(self, pattern: str, watched: _Pattern, prefix: str) -> None:
        if prefix in watched.way:
            return
        if self.walked >= self._parameters.walked:
            self._tell_incomplete(pattern, watched, prefix, TOO_WIDE)
            return
        self._passed(pattern, watched, prefix, TOO_WIDE)
        self.walked += 1
        watched.way[prefix] = _Walked()
        self._soon()

    def _turn_back(self, pattern: str, watched: _Pattern, prefix: str) -> None:
        """There is nothing below a prefix any more, or nobody wants to know."""
        for why in (FULL, TOO_MANY, TOO_WIDE, SILENT):
            self._passed(pattern, watched, prefix, why)
        walked = watched.way.pop(prefix, None)
        if walked is None:
            return
        self.walked -= 1
        if pattern not in self.patterns:
            self._post(self._question(pattern, prefix, 0, 0.0, None))
        for name in walked.names:
            self._unlist(pattern, watched, prefix, name, ended=False)
        for label in walked.labels:
            self._turn_back(pattern, watched, f"{prefix}{label}/")

    def _unlist(self, pattern: str, watched: _Pattern, prefix: str, name: str, ended: bool) -> None:
        known = watched.names.get(name)
        if known is None:
            return
        known.at.pop(prefix, None)
        if known.at:
            return
        if ended:
            self._is_gone(pattern, watched, name)
        else:
            watched.doubted.setdefault(name, self._world.now)

    def _is_gone(self, pattern: str, watched: _Pattern, name: str) -> None:
        known = watched.names.pop(name)
        watched.doubted.pop(name, None)
        if pattern in self.patterns:
            self.names -= 1
            self.gone(pattern, name, known.topic)

    def _passed(self, pattern: str, watched: _Pattern, prefix: str, why: str) -> None:
        if (prefix, why) in watched.incomplete:
            watched.incomplete.discard((prefix, why))
            if all(other != prefix for other, _ in watched.incomplete):
                self.complete(pattern, prefix)

    def _tell_incomplete(self, pattern: str, watched: _Pattern, prefix: str, why: str) -> None:
        if (prefix, why) not in watched.incomplete and len(watched.incomplete) < 64:
            watched.incomplete.add((prefix, why))
            self.incomplete(pattern, prefix, why)
