"""Many patterns at once, and which of them match a name: a tree of levels, so that a look costs what matches,
not what there is.

A pattern without a wildcard matches the name that it is. `patterns` has the rules for a single one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

Holder = TypeVar("Holder", bound=Hashable)
Held = TypeVar("Held")

MOST_REMEMBERED = 4096
"""Names whose matches are remembered until a pattern comes or goes."""


class _Level(Generic[Holder, Held]):
    """What the levels so far lead to."""

    __slots__ = ("below", "ends", "rest")

    def __init__(self) -> None:
        self.below: dict[str, _Level[Holder, Held]] = {}
        self.ends: dict[tuple[str, Holder], Held] = {}
        """Patterns that end here;"""
        self.rest: dict[tuple[str, Holder], Held] = {}
        """and those that go on with `#`."""

    def __bool__(self) -> bool:
        return bool(self.below or self.ends or self.rest)


class PatternTree(Generic[Holder, Held]):
    """Who holds which pattern, and something with it.

    >>> tree = PatternTree[str, int]()
    >>> for pattern in ("a/+", "a/#", "a/b", "+", "#"):
    ...     tree.put(pattern, "me", len(pattern))
    >>> sorted(pattern for pattern, _, _ in tree.matching("a/b")), [one[0] for one in tree.matching("$a")]
    (['#', 'a/#', 'a/+', 'a/b'], [])
    """

    def __init__(self) -> None:
        self._root: _Level[Holder, Held] = _Level()
        self._remembered: dict[str, list[tuple[str, Holder, Held]]] = {}
        self._count = 0

    def __len__(self) -> int:
        """Pairs of a pattern and a holder."""
        return self._count

    def __iter__(self) -> Iterator[str]:
        """The patterns, one for each holder."""
        levels = [self._root]
        while levels:
            level = levels.pop()
            yield from [pattern for table in (level.ends, level.rest) for pattern, _ in table]
            levels += level.below.values()

    def put(self, pattern: str, holder: Holder, held: Held) -> None:
        """In place of what the holder has with this pattern, if anything."""
        levels = pattern.split("/")
        level = self._root
        rest = levels[-1] == "#"
        for text in levels[:-1] if rest else levels:
            level = level.below.setdefault(text, _Level())
        table = level.rest if rest else level.ends
        self._count += (pattern, holder) not in table
        table[pattern, holder] = held
        self._remembered.clear()

    def remove(self, pattern: str, holder: Holder) -> Held | None:
        """What was held, if anything."""
        levels = pattern.split("/")
        rest = levels[-1] == "#"
        way: list[tuple[_Level[Holder, Held], str]] = []
        level = self._root
        for text in levels[:-1] if rest else levels:
            if text not in level.below:
                return None
            way.append((level, text))
            level = level.below[text]
        table = level.rest if rest else level.ends
        if (pattern, holder) not in table:
            return None
        held = table.pop((pattern, holder))
        self._count -= 1
        for above, text in reversed(way):
            if above.below[text]:
                break
            del above.below[text]
        self._remembered.clear()
        return held

    def held(self, pattern: str) -> dict[Holder, Held]:
        """Who holds this very pattern, and what."""
        levels = pattern.split("/")
        rest = levels[-1] == "#"
        level: _Level[Holder, Held] | None = self._root
        for text in levels[:-1] if rest else levels:
            level = level.below.get(text) if level is not None else None
        if level is None:
            return {}
        return {holder: held for (_, holder), held in (level.rest if rest else level.ends).items()}

    def matching(self, name: str) -> list[tuple[str, Holder, Held]]:
        """Each pattern that matches a name, with its holder and what is held. Do not change the list."""
        known = self._remembered.get(name)
        if known is None:
            if len(self._remembered) >= MOST_REMEMBERED:
                self._remembered.clear()
            known = self._remembered[name] = self._match(name)
        return known

    def __contains__(self, name: object) -> bool:
        """Whether some pattern matches a name."""
        return isinstance(name, str) and bool(self.matching(name))

    def _match(self, name: str) -> list[tuple[str, Holder, Held]]:
        found: list[tuple[str, Holder, Held]] = []
        here = [self._root]
        for place, text in enumerate(name.split("/")):
            # Names that begin with $ are nobody's but who says so.
            hidden = place == 0 and text.startswith("$")
            after = []
            for level in here:
                if not hidden:
                    found += [(*key, held) for key, held in level.rest.items()]
                    if (one := level.below.get("+")) is not None:
                        after.append(one)
                if (one := level.below.get(text)) is not None:
                    after.append(one)
            here = after
            if not here:
                return found
        for level in here:
            found += [(*key, held) for table in (level.ends, level.rest) for key, held in table.items()]
        return found


class ReaderTopics:
    """The names and patterns of one reader.

    >>> topics = ReaderTopics(["news", "zone/+/door"])
    >>> topics.update(["a/#"])
    >>> [name in topics for name in ("news", "zone/7/door", "a", "zone/7")], sorted(topics)
    ([True, True, True, False], ['a/#', 'news', 'zone/+/door'])
    """

    def __init__(self, topics: Iterable[str] = ()) -> None:
        self._said: dict[str, None] = {}
        self._tree = PatternTree[None, None]()
        self.update(topics)

    def update(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self._said[topic] = None
            self._tree.put(topic, None, None)

    def difference_update(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self._said.pop(topic, None)
            self._tree.remove(topic, None)

    def said(self, topic: str) -> bool:
        """Whether this name or pattern was asked for, word by word."""
        return topic in self._said

    def __contains__(self, name: object) -> bool:
        return name in self._tree

    def __iter__(self) -> Iterator[str]:
        return iter(self._said)

    def __len__(self) -> int:
        return len(self._said)
