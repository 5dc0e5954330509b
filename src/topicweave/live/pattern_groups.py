"""Many patterns that differ in one level are watched as one.

A door has thousands of clients, and each wants `devices/ITS-OWN-NAME/#`. The first `ALONE` patterns of a kind
are watched by themselves. For the others `devices/+/#` is watched once, and what it finds is sorted here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from topicweave.model.ids import NodeId, TopicId
from topicweave.model.name_index import NameIndex
from topicweave.model.pattern_tree import PatternTree
from topicweave.model.patterns import literal_of, reaches_below

if TYPE_CHECKING:
    from topicweave.blocks.topic_names import NameDirectory

ALONE = 64


class _Told(NamedTuple):
    topic: TopicId
    born: float
    publisher: NodeId | None


class _Group:
    """Patterns that are watched as one."""

    def __init__(self) -> None:
        self.members = PatternTree[str, None]()
        self.told: dict[str, _Told] = {}
        self.names = NameIndex()
        self.incomplete: dict[str, str] = {}


def group_of(pattern: str) -> str:
    """The pattern that is watched for this and its like; none if there is too little that they have in common.

    >>> group_of("devices/7/#"), group_of("site/a/devices/7/+/t"), group_of("devices/+/t"), group_of("$retained/a/#")
    ('devices/+/#', 'site/a/devices/+/#', '', '')
    """
    levels = literal_of(pattern).split("/")[:-2]
    shared = levels[1:] if levels and levels[0].startswith("$") else levels
    return "/".join([*levels, "+", "#"]) if shared and shared != [""] else ""


class PatternGroups:
    """In front of the name directory, and used like it. Private names are not sorted: they cannot be read."""

    def __init__(self, names: NameDirectory, now: Callable[[], float]) -> None:
        self._names = names
        self._now = now
        self._alone: dict[str, str] = {}
        """Patterns that are watched by themselves, and their kind."""
        self._kinds: dict[str, int] = {}
        self._groups: dict[str, _Group] = {}
        self.on_found: Callable[[str, str, TopicId, float, NodeId | None], None] = lambda *_found: None
        self.on_gone: Callable[[str, str, TopicId], None] = lambda *_gone: None
        self.on_incomplete: Callable[[str, str, str], None] = lambda *_incomplete: None
        self.on_complete: Callable[[str, str], None] = lambda *_complete: None
        names.on_found, names.on_gone = self._found, self._gone
        names.on_incomplete, names.on_complete = self._incomplete, self._complete

    def __len__(self) -> int:
        """What is watched."""
        return len(self._alone) + len(self._groups)

    def with_more(self, patterns: Iterable[str]) -> int:
        """What would be watched with these, at most."""
        kinds = Counter("" if self._names.private else group_of(pattern) for pattern in patterns)
        return len(self) + sum(
            min(count, ALONE - self._kinds.get(kind, 0) + 1) if kind else count
            for kind, count in kinds.items()
            if kind not in self._groups
        )

    def publishes(self, name: str) -> None:
        self._names.publishes(name)

    def ends(self, name: str) -> None:
        self._names.ends(name)

    def watch(self, pattern: str) -> None:
        kind = "" if self._names.private else group_of(pattern)
        group = self._groups.get(kind)
        if group is None and (not kind or kind in self._alone or self._kinds.get(kind, 0) < ALONE):
            self._alone[pattern] = kind
            self._kinds[kind] = self._kinds.get(kind, 0) + 1
            self._names.watch(pattern)
            return
        if group is None:
            group = self._groups[kind] = _Group()
            self._names.watch(kind)
        group.members.put(pattern, pattern, None)
        for found in self.known(pattern):
            self.on_found(pattern, *found)
        for prefix, why in group.incomplete.items():
            if reaches_below(pattern, prefix):
                self.on_incomplete(pattern, prefix, why)

    def unwatch(self, pattern: str) -> None:
        kind = self._alone.pop(pattern, None)
        if kind is not None:
            self._kinds[kind] -= 1
            if not self._kinds[kind]:
                del self._kinds[kind]
            self._names.unwatch(pattern)
            return
        kind = group_of(pattern)
        group = self._groups.get(kind)
        if group is not None:
            group.members.remove(pattern, pattern)
            if not len(group.members):
                del self._groups[kind]
                self._names.unwatch(kind)

    def known(self, pattern: str) -> Iterator[tuple[str, TopicId, float, NodeId | None]]:
        """All names that a pattern has found: name, topic, age, publisher."""
        if pattern in self._alone:
            yield from self._names.known(pattern)
        elif (group := self._groups.get(group_of(pattern))) is not None:
            now = self._now()
            for name in group.names.matching(pattern):
                topic, born, publisher = group.told[name]
                yield name, topic, now - born, publisher

    # What the directory tells.

    def _found(self, pattern: str, name: str, topic: TopicId, age: float, publisher: NodeId | None) -> None:
        if pattern in self._alone:
            self.on_found(pattern, name, topic, age, publisher)
        elif (group := self._groups.get(pattern)) is not None:
            group.names.add(name)
            group.told[name] = _Told(topic, self._now() - age, publisher)
            for member, _, _ in group.members.matching(name):
                self.on_found(member, name, topic, age, publisher)

    def _gone(self, pattern: str, name: str, topic: TopicId) -> None:
        if pattern in self._alone:
            self.on_gone(pattern, name, topic)
        elif (group := self._groups.get(pattern)) is not None and group.told.pop(name, None) is not None:
            group.names.discard(name)
            for member, _, _ in group.members.matching(name):
                self.on_gone(member, name, topic)

    def _incomplete(self, pattern: str, prefix: str, why: str) -> None:
        if pattern in self._alone:
            self.on_incomplete(pattern, prefix, why)
        elif (group := self._groups.get(pattern)) is not None:
            group.incomplete[prefix] = why
            for member in self._reaching(group, prefix):
                self.on_incomplete(member, prefix, why)

    def _complete(self, pattern: str, prefix: str) -> None:
        if pattern in self._alone:
            self.on_complete(pattern, prefix)
        elif (group := self._groups.get(pattern)) is not None:
            group.incomplete.pop(prefix, None)
            for member in self._reaching(group, prefix):
                self.on_complete(member, prefix)

    def _reaching(self, group: _Group, prefix: str) -> list[str]:
        return [member for member in group.members if reaches_below(member, prefix)]
