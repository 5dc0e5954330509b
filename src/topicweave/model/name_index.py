"""Names in order, so that a pattern is held against those only that begin as it does."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from topicweave.model.patterns import literal_of, matches


class NameIndex:
    """
    >>> index = NameIndex(["zone/7", "zone/7/door", "zone/8/door", "a"])
    >>> index.matching("zone/7/#"), index.matching("zone/+/door"), index.matching("a")
    (['zone/7', 'zone/7/door'], ['zone/7/door', 'zone/8/door'], ['a'])
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = sorted(set(names))

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._names[(at := self._place(name)) : at + 1] == [name]

    def add(self, name: str) -> None:
        if name not in self:
            insort(self._names, name)

    def discard(self, name: str) -> None:
        if name in self:
            del self._names[self._place(name)]

    def matching(self, pattern: str) -> list[str]:
        start = literal_of(pattern)
        above = start[:-1]  # `zone/#` matches `zone`, which begins otherwise
        found = [above] if above != pattern and above in self and matches(pattern, above) else []
        place = self._place(start)
        while place < len(self._names) and self._names[place].startswith(start):
            if matches(pattern, self._names[place]):
                found.append(self._names[place])
            place += 1
        return found

    def _place(self, name: str) -> int:
        return bisect_left(self._names, name)
