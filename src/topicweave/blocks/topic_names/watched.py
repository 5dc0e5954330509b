"""A node as the home of prefixes, for those who watch them: it answers in pages and tells of news.

Rules kept
----------
1. A watcher says what it knows in a digest. If that is right it gets a word, otherwise all that matches its
   pattern, in pages.
2. Changes are told to those who watch, a moment after they happened. Only the home tells; those who keep its
   records know its watchers.
3. A watcher of a single label that has a home of its own is sent there, and not kept here.
4. Watchers and patterns of a prefix are bounded. A watcher that finds no room is answered all the same, when it
   asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from topicweave.blocks.name_messages import NamesTold, NamesWatch, RingParcel
from topicweave.blocks.topic_directory.rules import Bucket, again_after
from topicweave.blocks.topic_names import rules
from topicweave.blocks.topic_names.home import MOST_TERM, KeptName, KeptPrefix
from topicweave.blocks.topic_names.parameters import NamesParameters
from topicweave.model.ids import RING_SIZE, NodeId, TopicId
from topicweave.model.patterns import BadPattern, check_pattern, is_pattern, matches, reaches_below

YOUNG = 120.0
"""Seconds from the birth of a name for which its watchers are told of a publisher, too."""
MOST_ASKERS = 4096
MOST_WATCHERS = 65_536
"""Of all prefixes together."""


_Page = tuple[tuple[str, ...], tuple[int, ...], tuple[TopicId, ...], tuple[str, ...], tuple[NodeId, ...]]


class _Watched:
    """One pattern below one prefix."""

    __slots__ = ("added", "digest", "full", "gone", "labels", "watchers")

    def __init__(self) -> None:
        self.watchers: dict[NodeId, float] = {}
        self.digest: int | None = None  # None: it is to be worked out
        self.added: dict[str, None] = {}  # what has changed and was not told yet
        self.gone: dict[str, None] = {}
        self.labels: dict[str, bool] = {}
        self.full = False

    @property
    def has_news(self) -> bool:
        return bool(self.added or self.gone or self.labels or self.full)

    def told(self) -> None:
        self.added.clear()
        self.gone.clear()
        self.labels.clear()
        self.full = False


class NamesWatched:
    """`kept(prefix)` is what the node keeps below a prefix. It is told of changes there (`NamesNews`)."""

    def __init__(
        self,
        parameters: NamesParameters,
        kept: Callable[[str], KeptPrefix | None],
        post: Callable[[RingParcel], None],
    ) -> None:
        self._parameters = parameters
        self._kept = kept
        self._post = post
        self._prefixes: dict[str, dict[str, _Watched]] = {}
        self._budgets: dict[NodeId, Bucket] = {}
        self._fresh: dict[str, None] = {}  # prefixes with news
        self.watchers = 0

    # What changes.

    @property
    def has_news(self) -> bool:
        return bool(self._fresh)

    def added(self, prefix: str, name: str) -> None:
        for pattern, watched in self._prefixes.get(prefix, {}).items():
            if matches(pattern, name):
                watched.digest = None
                watched.gone.pop(name, None)
                watched.added[name] = None
                self._fresh[prefix] = None

    def gone(self, prefix: str, name: str) -> None:
        for pattern, watched in self._prefixes.get(prefix, {}).items():
            if matches(pattern, name):
                watched.digest = None
                watched.added.pop(name, None)
                watched.gone[name] = None
                self._fresh[prefix] = None

    def label(self, prefix: str, label: str, there: bool) -> None:
        for pattern, watched in self._prefixes.get(prefix, {}).items():
            if reaches_below(pattern, f"{prefix}{label}/"):
                watched.digest = None
                watched.labels[label] = there
                self._fresh[prefix] = None

    def full(self, prefix: str) -> None:
        for watched in self._prefixes.get(prefix, {}).values():
            watched.full = True
            self._fresh[prefix] = None

    # Who watches.

    def watch(self, watch: NamesWatch, now: float) -> bool:
        """Answer; whether the watcher is kept, so that others should keep it, too."""
        if not self._sound(watch):
            return False
        kept = self._kept(watch.prefix)
        if watch.term <= 0.0:
            return self._unwatch(watch)
        level = rules.next_level(watch.pattern, watch.prefix)
        passes = kept is not None and level is not None and not is_pattern(level) and level in kept.labels
        watched = None if passes else self._register(watch, now)
        if not watch.kept:
            self._answer(watch, kept, watched, now)
        return watched is not None

    def _sound(self, watch: NamesWatch) -> bool:
        try:
            check_pattern(watch.pattern)
        except BadPattern:
            return False
        return (
            rules.is_prefix(watch.prefix)
            and reaches_below(watch.pattern, watch.prefix)
            and 0 <= watch.watcher < RING_SIZE
            and rules.is_term(watch.term)
        )

    def _unwatch(self, watch: NamesWatch) -> bool:
        watched = self._prefixes.get(watch.prefix, {}).get(watch.pattern)
        if watched is None or watched.watchers.pop(watch.watcher, None) is None:
            return False
        self.watchers -= 1
        self._tidy(watch.prefix)
        return True

    def _register(self, watch: NamesWatch, now: float) -> _Watched | None:
        patterns = self._prefixes.get(watch.prefix, {})
        watched = patterns.get(watch.pattern)
        new = watched is None or watch.watcher not in watched.watchers
        if new:
            here = sum(len(one.watchers) for one in patterns.values())
            if here >= self._parameters.watchers or self.watchers >= MOST_WATCHERS:
                return None
            if watched is None:
                if len(patterns) >= self._parameters.patterns:
                    return None
                watched = self._prefixes.setdefault(watch.prefix, {})[watch.pattern] = _Watched()
            self.watchers += 1
        assert watched is not None
        watched.watchers[watch.watcher] = now + min(watch.term, MOST_TERM)
        return watched

    def _answer(
        self, watch: NamesWatch, kept: KeptPrefix | None, watched: _Watched | None, now: float
    ) -> None:
        bucket = self._budget(watch.watcher, now)
        if not bucket.take(now):
            return
        known = watched.digest if watched is not None else None
        names: list[str] = []
        labels: list[str] = []
        if kept is not None and (known is None or known != watch.digest):
            pattern, prefix = watch.pattern, watch.prefix
            names = [name for name in kept.names if matches(pattern, name)]
            labels = [label for label in kept.labels if reaches_below(pattern, f"{prefix}{label}/")]
        if known is None:
            known = rules.digest_of(names, labels)
            if watched is not None:
                watched.digest = known
        full = kept is not None and kept.full_until > now
        here = len(watched.watchers) if watched is not None else 4 * self._parameters.watchers
        again = again_after(here, self._parameters.hot, self._parameters.watch_renew)
        if known == watch.digest:
            said = NamesTold(watch.prefix, watch.pattern, watch.number, same=True, full=full, again=again)
            self._post(RingParcel(watch.watcher, said))
            return
        pages = self._pages(watch.prefix, kept, names, labels, now)
        bucket.owe(len(pages) - 1)  # All of them or none: half an answer would be asked for again.
        for page, (some, ages, topics, some_labels, by) in enumerate(pages):
            said = NamesTold(
                *(watch.prefix, watch.pattern, watch.number, page, len(pages)),
                *(some, ages, topics, some_labels),
                full=full,
                again=again,
                by=by,
            )
            self._post(RingParcel(watch.watcher, said, soon=True))

    def _pages(
        self, prefix: str, kept: KeptPrefix | None, names: list[str], labels: list[str], now: float
    ) -> list[_Page]:
        """Names below a prefix, how old they are and their topics, labels, and publishers of young names: at
        least one page, if an empty one.
        """
        size = self._parameters.page
        pages = []
        for some, some_labels in _side_by_side(names, labels, size):
            known = [kept.names[name] for name in some] if kept is not None else []
            private = any(one.topic is not None for one in known)
            pages.append(
                (
                    tuple(rules.rest_of(name, prefix) for name in some),
                    tuple(int(now - one.born) for one in known),
                    tuple(one.topic or 0 for one in known) if private else (),
                    tuple(some_labels),
                    _publishers(known, now),
                )
            )
        return pages or [((), (), (), (), ())]

    def _budget(self, asker: NodeId, now: float) -> Bucket:
        bucket = self._budgets.get(asker)
        if bucket is None:
            if len(self._budgets) >= MOST_ASKERS:
                del self._budgets[next(iter(self._budgets))]
            rate = self._parameters.budget
            bucket = self._budgets[asker] = Bucket(rate, 10 * rate, now)
        return bucket

    # News, and what passes.

    def tell(self, owns: Callable[[str], bool], now: float) -> None:
        """Tell watchers what has changed."""
        fresh, self._fresh = self._fresh, {}
        for prefix in fresh:
            mine, kept = owns(prefix), self._kept(prefix)
            for pattern, watched in self._prefixes.get(prefix, {}).items():
                if not watched.has_news:
                    continue
                for told in self._news(prefix, pattern, watched, kept, now) if mine else ():
                    for watcher, until in watched.watchers.items():
                        if until > now:
                            self._post(RingParcel(watcher, told, soon=True))
                watched.told()

    def _news(
        self, prefix: str, pattern: str, watched: _Watched, kept: KeptPrefix | None, now: float
    ) -> list[NamesTold]:
        there = [name for name in watched.added if kept is not None and name in kept.names]
        labels = [label for label, is_there in watched.labels.items() if is_there]
        size = self._parameters.page
        parted = [label for label, is_there in watched.labels.items() if not is_there]
        made = [
            NamesTold(prefix, pattern, names=some, ages=ages, topics=topics, labels=some_labels, by=by)
            for some, ages, topics, some_labels, by in self._pages(prefix, kept, there, labels, now)
            if some or some_labels
        ]
        gone = [rules.rest_of(name, prefix) for name in watched.gone]
        for some_gone, some_parted in _side_by_side(gone, parted, size):
            made.append(NamesTold(prefix, pattern, gone=tuple(some_gone), no_labels=tuple(some_parted)))
        if watched.full:
            made.append(NamesTold(prefix, pattern, full=True))
        return made

    def sweep(self, now: float) -> None:
        """Let go of watchers whose term is over."""
        for prefix in list(self._prefixes):
            for watched in self._prefixes[prefix].values():
                for watcher in [one for one, until in watched.watchers.items() if until <= now]:
                    del watched.watchers[watcher]
                    self.watchers -= 1
            self._tidy(prefix)

    def _tidy(self, prefix: str) -> None:
        patterns = self._prefixes.get(prefix, {})
        for pattern in [pattern for pattern, watched in patterns.items() if not watched.watchers]:
            del patterns[pattern]
        if not patterns:
            self._prefixes.pop(prefix, None)

    # Records that others keep as well.

    @property
    def prefixes(self) -> Iterable[str]:
        return self._prefixes

    def records(self, prefix: str, now: float) -> list[NamesWatch]:
        return [
            NamesWatch(prefix, pattern, watcher, 0, until - now, kept=True)
            for pattern, watched in self._prefixes.get(prefix, {}).items()
            for watcher, until in watched.watchers.items()
            if until > now
        ]


def _publishers(names: list[KeptName], now: float) -> tuple[NodeId, ...]:
    by = [min(one.by, default=0) if now - one.born < YOUNG else 0 for one in names]
    return tuple(by) if any(by) else ()


def _side_by_side(some: list[str], others: list[str], size: int) -> list[tuple[list[str], list[str]]]:
    """Two long lists in pieces.

    >>> _side_by_side(["a", "b", "c"], ["x"], 2)
    [(['a', 'b'], ['x']), (['c'], [])]
    """
    longest = max(len(some), len(others))
    return [(some[first : first + size], others[first : first + size]) for first in range(0, longest, size)]
