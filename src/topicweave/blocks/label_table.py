"""Labels of topics, and how neighbours tell them to each other in few bytes.

A label is a name (the lowest member of a part of a topic) and when that member made it; see `topic_beacons` for what they are for. A node
may want thousands of topics, and each of its heartbeats carries a label of each that the neighbour wants, too. So a table does not name the topics: both
ends know which ones they share, and put them in ascending order. A digest of them tells whether they mean the same ones; if not, because one
has not heard yet what the other wants now, the table is passed over, and the next one will do.

Two ways of keeping them do the same: entry by entry, for the tens of topics that most nodes want, and in arrays, for thousands.
"""

from __future__ import annotations

import hashlib
import math
import struct
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from topicweave.model.ids import Interest, NodeId, TopicId

FEW = 64
"""Up to so many topics, going through them is faster than arrays are."""
STEPS = 240
"""Ages are told in so many steps of the greatest age, rounded up: a label may look older than it is, never younger."""
PACKED_FROM = 256
"""Bytes from which labels are packed (zlib): most topics of a pair have one of a few labels."""
MOST_SHARED = (1 << 16) - 1
"""Of more topics that two neighbours share, the rest has no labels: leaders have numbers of two bytes."""
KNOWN_PAIRS = 512

Point = Annotated[int, msgspec.Meta(ge=0)]


class LabelTable(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The labels of the topics that two neighbours share, in the order of the topics."""

    shared: Point
    """A digest of those topics."""
    leaders: tuple[Point, ...]
    labels: bytes
    """Which of the leaders (2 bytes per topic, little-endian), then the steps of age (1 byte per topic); packed, if so long that it pays."""


class StoredLabel(NamedTuple):
    topic: TopicId
    leader: NodeId
    made: float


class _Shared(NamedTuple):
    """The topics that a neighbour wants, too: where they are found, how many, and their digest."""

    places: Any
    size: int
    digest: int


class Labels(ABC):
    """The labels of one node's topics. Where it knows of nobody lower, it leads itself."""

    def __init__(self, own: NodeId, max_age: float, wanted: Interest) -> None:
        self.wanted = wanted
        self.topics = sorted(wanted)
        self._own = own
        self._max_age = max_age
        self._step = max_age / STEPS
        # By a neighbour's interest. Its hash is kept by the set itself, so asking again costs nothing.
        self._pairs: dict[Interest, _Shared] = {}

    def tell(self, theirs: Interest, now: float) -> LabelTable:
        """What a neighbour that wants this should know."""
        pair = self._pair(theirs)
        leaders, labels = self._told(pair.places, now)
        return LabelTable(
            pair.digest, leaders, labels if len(labels) < PACKED_FROM else zlib.compress(labels, 1)
        )

    def hear(self, theirs: Interest, table: LabelTable, per_link: float, now: float) -> None:
        """What a neighbour that wants this knows; the way here adds `per_link` to the age. Whatever makes no sense is passed over."""
        pair = self._pair(theirs)
        if table.shared == pair.digest and 0 < len(table.leaders) <= pair.size:
            labels = _unpacked(table.labels, 3 * pair.size)
            if labels is not None:
                self._heard(pair, table.leaders, labels, per_link, now)

    def _pair(self, theirs: Interest) -> _Shared:
        pair = self._pairs.get(theirs)
        if pair is None:
            shared = sorted(self.wanted & theirs)[:MOST_SHARED]
            digest = hashlib.blake2b(struct.pack(f">{len(shared)}Q", *shared), digest_size=8).digest()
            if len(self._pairs) >= KNOWN_PAIRS:
                self._pairs.clear()
            pair = _Shared(self._places(shared), len(shared), int.from_bytes(digest, "big"))
            self._pairs[theirs] = pair
        return pair

    @abstractmethod
    def label(self, topic: TopicId, now: float) -> tuple[NodeId, float]:
        """The leader, and how old this news of it is."""

    @abstractmethod
    def all(self, now: float) -> dict[TopicId, tuple[NodeId, float]]:
        """Those of all topics, in their order."""

    @abstractmethod
    def others(self) -> Iterable[StoredLabel]:
        """The labels that others made."""

    @abstractmethod
    def keep(self, labels: Iterable[StoredLabel]) -> None:
        """Take over those of an earlier life that are of topics still wanted."""

    @abstractmethod
    def leaders(self) -> set[NodeId]:
        """All but this node."""

    @abstractmethod
    def expire(self, now: float) -> None:
        """Forget what is too old."""

    @abstractmethod
    def _places(self, shared: list[TopicId]) -> Any: ...

    @abstractmethod
    def _told(self, places: Any, now: float) -> tuple[tuple[NodeId, ...], bytes]: ...

    @abstractmethod
    def _heard(
        self, pair: _Shared, leaders: tuple[NodeId, ...], labels: bytes, per_link: float, now: float
    ) -> None: ...


class FewLabels(Labels):
    """Entry by entry."""

    def __init__(self, own: NodeId, max_age: float, wanted: Interest) -> None:
        super().__init__(own, max_age, wanted)
        # topic -> (leader, when the leader made this label); without an entry the node itself leads.
        self._labels: dict[TopicId, tuple[NodeId, float]] = {}
        self._none = (own, math.inf)

    def label(self, topic: TopicId, now: float) -> tuple[NodeId, float]:
        leader, made = self._labels.get(topic, self._none)
        age = now - made
        return (leader, age) if 0.0 <= age <= self._max_age else (self._own, 0.0)

    def all(self, now: float) -> dict[TopicId, tuple[NodeId, float]]:
        return {topic: self.label(topic, now) for topic in self.topics}

    def others(self) -> Iterable[StoredLabel]:
        return [StoredLabel(topic, leader, made) for topic, (leader, made) in self._labels.items()]

    def keep(self, labels: Iterable[StoredLabel]) -> None:
        self._labels = {topic: (leader, made) for topic, leader, made in labels if topic in self.wanted}

    def leaders(self) -> set[NodeId]:
        return {leader for leader, _ in self._labels.values()}

    def expire(self, now: float) -> None:
        oldest = now - self._max_age
        for topic in [topic for topic, (_, made) in self._labels.items() if made < oldest]:
            del self._labels[topic]

    def _places(self, shared: list[TopicId]) -> list[TopicId]:
        return shared

    def _told(self, places: list[TopicId], now: float) -> tuple[tuple[NodeId, ...], bytes]:
        labels, own, step, max_age = self._labels, self._own, self._step, self._max_age
        numbers: dict[NodeId, int] = {}
        which, ages = [], []
        for topic in places:
            label = labels.get(topic)
            if label is None or now - label[1] > max_age:
                which.append(numbers.setdefault(own, len(numbers)))
                ages.append(0)
            else:
                which.append(numbers.setdefault(label[0], len(numbers)))
                ages.append(math.ceil((now - label[1]) / step))
        return tuple(numbers), struct.pack(f"<{len(which)}H", *which) + bytes(ages)

    def _heard(
        self, pair: _Shared, leaders: tuple[NodeId, ...], labels: bytes, per_link: float, now: float
    ) -> None:
        count = pair.size
        which = struct.unpack_from(f"<{count}H", labels)
        if max(which) >= len(leaders):
            return
        own_labels, none, step, max_age = self._labels, self._none, self._step, self._max_age
        for topic, number, steps in zip(pair.places, which, labels[2 * count :], strict=True):
            age = steps * step + per_link
            leader = leaders[number]
            current, made = own_labels.get(topic, none)
            if now - made > max_age:
                del own_labels[topic]
                current, made = none
            if age <= max_age and (leader < current or (leader == current and now - age > made)):
                own_labels[topic] = (leader, now - age)


class ManyLabels(Labels):
    """In arrays, in the order of the topics."""

    def __init__(self, own: NodeId, max_age: float, wanted: Interest) -> None:
        super().__init__(own, max_age, wanted)
        self._topics = np.array(self.topics, np.uint64)
        self._leaders = np.full(len(self.topics), own, np.uint64)
        self._made = np.full(len(self.topics), np.inf)  # its own labels are always new

    def label(self, topic: TopicId, now: float) -> tuple[NodeId, float]:
        if topic in self.wanted:
            place = self._topics.searchsorted(np.uint64(topic))
            age = now - float(self._made[place])
            if 0.0 <= age <= self._max_age:
                return int(self._leaders[place]), age
        return self._own, 0.0

    def all(self, now: float) -> dict[TopicId, tuple[NodeId, float]]:
        self.expire(now)
        ages = np.maximum(now - self._made, 0.0)
        return dict(zip(self.topics, zip(self._leaders.tolist(), ages.tolist(), strict=True), strict=True))

    def others(self) -> Iterable[StoredLabel]:
        places = np.flatnonzero(self._leaders != np.uint64(self._own))
        columns = (self._topics[places], self._leaders[places], self._made[places])
        return [StoredLabel(*entry) for entry in zip(*(column.tolist() for column in columns), strict=True)]

    def keep(self, labels: Iterable[StoredLabel]) -> None:
        kept = [label for label in labels if label.topic in self.wanted]
        places = self._places([label.topic for label in kept])
        self._leaders[places] = np.array([label.leader for label in kept], np.uint64)
        self._made[places] = [label.made for label in kept]

    def leaders(self) -> set[NodeId]:
        return set(self._leaders[self._leaders != np.uint64(self._own)].tolist())

    def expire(self, now: float) -> None:
        self._forget(np.flatnonzero(self._made < now - self._max_age))

    def _forget(self, places: Any) -> None:
        self._leaders[places] = self._own
        self._made[places] = np.inf

    def _places(self, shared: list[TopicId]) -> Any:
        return self._topics.searchsorted(np.array(shared, np.uint64))

    def _told(self, places: Any, now: float) -> tuple[tuple[NodeId, ...], bytes]:
        ages = np.ceil((now - self._made[places]) / self._step)
        leaders = self._leaders[places]
        late = ages > STEPS
        if late.any():
            leaders[late] = self._own
            ages[late] = 0.0
        names, which = np.unique(leaders, return_inverse=True)
        steps = np.maximum(ages, 0.0).astype(np.uint8)
        return tuple(names.tolist()), which.astype("<u2").tobytes() + steps.tobytes()

    def _heard(
        self, pair: _Shared, leaders: tuple[NodeId, ...], labels: bytes, per_link: float, now: float
    ) -> None:
        places, count, max_age = pair.places, pair.size, self._max_age
        which = np.frombuffer(labels, "<u2", count)
        if which.max() >= len(leaders):
            return
        told = np.array(leaders, np.uint64)[which]
        ages = np.frombuffer(labels, np.uint8, count, 2 * count) * self._step + per_link
        late = now - self._made[places] > max_age
        if late.any():
            self._forget(places[late])
        current, made = self._leaders[places], self._made[places]
        news = now - ages
        better = (ages <= max_age) & ((told < current) | ((told == current) & (news > made)))
        taken = places[better]
        self._leaders[taken] = told[better]
        self._made[taken] = news[better]


def labels_of(wanted: Interest, own: NodeId, max_age: float, earlier: Labels | None = None) -> Labels:
    """The labels of these topics, as far as they are known from earlier."""
    labels: Labels = (FewLabels if len(wanted) <= FEW else ManyLabels)(own, max_age, wanted)
    if earlier is not None:
        labels.keep(earlier.others())
    return labels


def _unpacked(labels: bytes, size: int) -> bytes | None:
    """Just so many bytes, or nothing: whatever arrives, no more than that is unpacked."""
    if size < PACKED_FROM:
        return labels if len(labels) == size else None
    unpacking = zlib.decompressobj()
    try:
        unpacked = unpacking.decompress(labels, size + 1)
    except zlib.error:
        return None
    return unpacked if unpacking.eof and len(unpacked) == size else None
